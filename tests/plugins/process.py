"""A plugin's process: says its port, serves, and ends with the CLI that started it."""

import asyncio
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import grpc.aio
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS  # the engine's limit on the size of a message
from pulumi.runtime.proto import provider_pb2_grpc

from tests.plugins.provider import Provider
from tests.plugins.server import NUM_THREADS, PluginServicer

_CLI_CHECK_S = 0.5


def serve(provider: Callable[[], Provider], engine_address: str) -> None:
    """Runs until the CLI ends it, or is gone."""
    # The CLI makes every plugin the leader of a group of its own; whoever starts one by hand may not.
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    asyncio.run(_serve(provider(), engine_address, cli=os.getppid()))


async def _serve(provider: Provider, engine_address: str, cli: int) -> None:
    loop = asyncio.get_running_loop()
    # Children of a component hold a thread of this pool each until the engine has made them.
    loop.set_default_executor(ThreadPoolExecutor(NUM_THREADS))
    server = grpc.aio.server(options=_GRPC_CHANNEL_OPTIONS)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(PluginServicer(provider, engine_address), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _end_group)
    print(port, flush=True)
    while os.getppid() == cli:
        await asyncio.sleep(_CLI_CHECK_S)
    _end_group()


def _end_group() -> None:
    """At once, and with what it runs: a Helm that outlived the CLI would go on changing the cluster."""
    os.killpg(os.getpgrp(), signal.SIGKILL)
