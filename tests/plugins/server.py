"""The provider protocol (proto/pulumi/provider.proto), spoken for a Provider.

`pulumi.provider.server.ProviderServicer` has the hard part of components; resources are not in it and are here.
"""

# ruff: noqa: N802  # the protocol's names

import asyncio
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import grpc
from google.protobuf.empty_pb2 import Empty
from pulumi.provider.server import ProviderServicer
from pulumi.runtime import proto
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, status_pb2

from tests.plugins.differences import Difference, property_path
from tests.plugins.provider import Provider, Refused, Resource, Unfinished
from tests.plugins.values import Path, Properties, properties_of, secret_paths, struct_of

NUM_THREADS = 64


class PluginServicer(ProviderServicer):
    """Speaks the protocol for a Provider."""

    def __init__(self, provider: Provider, engine_address: str) -> None:
        super().__init__(provider, [], engine_address)  # type: ignore[arg-type]  # only `construct` is called
        self.stand_in = provider
        # Not the loop's own executor: components' children wait there until the engine has called Check and Create.
        self._threads = ThreadPoolExecutor(NUM_THREADS)
        provider.warn = self._warn

    async def Handshake(self, request: Any, context: Any) -> Any:
        self.engine_address = request.engine_address or self.engine_address
        return proto.ProviderHandshakeResponse(accept_secrets=True, accept_resources=True)

    async def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return proto.PluginInfo(version=self.stand_in.version)

    async def GetSchema(self, request: Any, context: Any) -> Any:
        return proto.GetSchemaResponse(schema="{}")

    async def Cancel(self, request: Any, context: Any) -> Any:
        self.stand_in.cancel()
        return Empty()

    async def CheckConfig(self, request: Any, context: Any) -> Any:
        return proto.CheckResponse(inputs=request.news)

    async def DiffConfig(self, request: Any, context: Any) -> Any:
        old, new = properties_of(request.old_inputs), properties_of(request.news)
        return _diff_response(self.stand_in.diff_config(old, new))

    async def Configure(self, request: Any, context: Any) -> Any:
        await self._in_thread(context, self.stand_in.configure, properties_of(request.args))
        return proto.ConfigureResponse(acceptSecrets=True, acceptResources=True, supportsPreview=True)

    async def Check(self, request: Any, context: Any) -> Any:
        old, new = properties_of(request.olds), properties_of(request.news)
        checked = await self._in_thread(context, self.stand_in.check, _resource(request), old, new, request.randomSeed)
        failures = [proto.CheckFailure(property=name, reason=why) for name, why in checked.failures.items()]
        return proto.CheckResponse(inputs=self._wrap(request, checked.inputs, request.news), failures=failures)

    async def Diff(self, request: Any, context: Any) -> Any:
        old, new = properties_of(request.old_inputs), properties_of(request.news)
        return _diff_response(await self._in_thread(context, self.stand_in.diff, _resource(request), old, new))

    async def Create(self, request: Any, context: Any) -> Any:
        inputs = properties_of(request.properties)
        live = await self._in_thread(
            context, self.stand_in.create, _resource(request), inputs, secrets=request.properties
        )
        resource_id = "" if request.preview else live.resource_id
        return proto.CreateResponse(id=resource_id, properties=self._wrap(request, live.state, request.properties))

    async def Read(self, request: Any, context: Any) -> Any:
        inputs, state = properties_of(request.inputs), properties_of(request.properties)
        live = await self._in_thread(
            context, self.stand_in.read, _resource(request), request.id, inputs, state, secrets=request.inputs
        )
        if live is None:
            return proto.ReadResponse(id="")
        return proto.ReadResponse(
            id=live.resource_id,
            properties=self._wrap(request, live.state, request.inputs),
            inputs=self._wrap(request, live.inputs, request.inputs),
        )

    async def Update(self, request: Any, context: Any) -> Any:
        state, inputs = properties_of(request.olds), properties_of(request.news)
        live = await self._in_thread(
            context, self.stand_in.update, _resource(request), state, inputs, secrets=request.news
        )
        return proto.UpdateResponse(properties=self._wrap(request, live.state, request.news))

    async def Delete(self, request: Any, context: Any) -> Any:
        inputs, state = properties_of(request.old_inputs), properties_of(request.properties)
        await self._in_thread(context, self.stand_in.delete, _resource(request), request.id, inputs, state)
        return Empty()

    async def Invoke(self, request: Any, context: Any) -> Any:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"the stand-in has no function {request.tok}")

    async def Construct(self, request: Any, context: Any) -> Any:
        try:
            return await self._construct(request, context)
        except Refused as refused:
            await context.abort(grpc.StatusCode.UNKNOWN, str(refused))

    async def _in_thread(self, context: Any, method: Callable[..., Any], *arguments: Any, secrets: Any = None) -> Any:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, method, *arguments)
        except Unfinished as unfinished:
            await self._abort_unfinished(context, arguments[0], unfinished, secret_paths(secrets))
        except Refused as refused:
            await context.abort(grpc.StatusCode.UNKNOWN, str(refused))
        except Exception as error:  # a fault of the stand-in: the trace is what its author needs
            await context.abort(grpc.StatusCode.UNKNOWN, "".join(traceback.format_exception(error)))

    async def _abort_unfinished(
        self, context: Any, resource: Resource, unfinished: Unfinished, secrets: list[Path]
    ) -> NoReturn:
        secrets = [*secrets, *self.stand_in.always_secret(resource)]
        detail = proto.ErrorResourceInitFailed(
            id=unfinished.resource_id,
            properties=struct_of(unfinished.state, secrets),
            inputs=struct_of(unfinished.inputs, secrets),
            reasons=[str(unfinished)],
        )
        rich = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(unfinished))
        rich.details.add().Pack(detail)
        status = grpc.Status()
        status.code, status.details = grpc.StatusCode.UNKNOWN, str(unfinished)
        status.trailing_metadata = (("grpc-status-details-bin", rich.SerializeToString()),)
        await context.abort_with_status(status)
        raise AssertionError("abort_with_status always raises")

    def _wrap(self, request: Any, properties: Properties, marked: Any) -> Any:
        return struct_of(properties, [*secret_paths(marked), *self.stand_in.always_secret(_resource(request))])

    def _warn(self, urn: str, message: str) -> None:
        with grpc.insecure_channel(self.engine_address) as channel:
            request = engine_pb2.LogRequest(severity=engine_pb2.WARNING, urn=urn, message=message)
            engine_pb2_grpc.EngineStub(channel).Log(request)


def _resource(request: Any) -> Resource:
    return Resource(
        urn=request.urn,
        type=request.type,
        name=request.name,
        preview=getattr(request, "preview", False),
        timeout_s=getattr(request, "timeout", 0) or None,
    )


def _diff_response(difference: Difference) -> Any:
    def detail(path: Path, change: str) -> Any:
        kind = f"{change}_REPLACE" if path in difference.replacing else change
        return proto.PropertyDiff(kind=getattr(proto.PropertyDiff, kind), inputDiff=True)

    changes = difference.changes
    return proto.DiffResponse(
        changes=proto.DiffResponse.DIFF_SOME if changes else proto.DiffResponse.DIFF_NONE,
        diffs=sorted({str(path[0]) for path in changes}),
        replaces=sorted(property_path(path) for path in difference.replacing),
        detailedDiff={property_path(path): detail(path, change) for path, change in changes.items()},
        hasDetailedDiff=True,
        deleteBeforeReplace=difference.delete_first,
    )
