"""The stack of an experiment: its manifests as Pulumi resources, and nothing else."""

import asyncio
import json
import subprocess
from importlib.metadata import version
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from infra.config.platform import ExistingPlatform
from infra.digest import config_digest
from workloads.build_tools import BuildFailed
from workloads.images import image_reference, is_built, is_on_this_machine, is_reference
from workloads.launchers.registry import manifests_of, run_name
from workloads.repositories import is_pushed
from workloads.resolve import Run
from workloads.stacks import ExperimentStack

_LIST_TIMEOUT_S = 60


class Experiment(pulumi.ComponentResource):
    """One run. Its name holds a hash of its manifests, so an edit replaces all but the account, and patches nothing.

    The old run ends first: it saves as it stops, its nodes are free, and the new one goes on from where it was.
    """

    def __init__(self, stack: ExperimentStack, provider: kubernetes.Provider) -> None:
        super().__init__("trainyard:workloads:Experiment", stack.file.stack)
        self.run = run_name(stack.run)
        previous: list[pulumi.Resource] = []
        for manifest in manifests_of(stack.run):
            options = pulumi.ResourceOptions(
                parent=self,
                provider=provider,
                # A PodGroup before its pods, a Service before those that look its names up.
                depends_on=previous,
                # The old run's pods must reach each other until they have saved.
                delete_before_replace=manifest["kind"] != "NetworkPolicy",
            )
            previous = [_kubernetes_object(f"{stack.file.stack}-{manifest['kind'].lower()}", manifest, options)]
        self.register_outputs({"run": self.run})


def deploy_experiment(stack: ExperimentStack) -> None:
    """What `pulumi up` does for an experiment's stack."""
    provider = _provider(stack)
    if not pulumi.runtime.is_dry_run():
        _require_image(stack.run)
    experiment = Experiment(stack, provider)
    pulumi.export("run", experiment.run)
    pulumi.export("namespace", stack.run.team.namespace)


def _require_image(run: Run) -> None:
    """Pods that wait for an image hold the nodes that they were given, and the run before them has been ended."""
    image, platform = run.experiment.image, run.experiment.platform
    if not is_built(run) or _is_missing_here(run):
        command = f"python -m workloads build {image} --platform {platform}"
        raise pulumi.RunError(f"image `{image}` as it is here was never built for `{platform}`; first run: {command}")


def _is_missing_here(run: Run) -> bool:
    """Whether the registry of this machine says that it lacks the image; one that is silent may serve the nodes yet."""
    reference = image_reference(run)
    if is_reference(run.experiment.image) or not is_on_this_machine(reference):
        return False
    try:
        return not is_pushed(reference)
    except BuildFailed as failure:
        pulumi.log.warn(f"{failure.message}: nodes may have no {reference} to pull")
        return False


def _provider(stack: ExperimentStack) -> kubernetes.Provider:
    """The platform's cluster: named in its stack file, or in the outputs of its stack."""
    platform, name = stack.run.platform, stack.run.experiment.platform
    outputs = _outputs(name)
    if outputs:
        outputs.get_output("config_digest").apply(lambda digest: _compare(name, config_digest(platform), digest))
    # What an update that was killed has made is taken over by the next: no other run has the name.
    settings = {"upsert_existing_objects": True, "opts": pulumi.ResourceOptions(version=version("pulumi-kubernetes"))}
    if isinstance(platform, ExistingPlatform) and platform.cluster.context:
        context = platform.cluster.context
        return kubernetes.Provider("cluster", context=context, cluster_identifier=context, **settings)
    kubeconfig = pulumi.Output.secret(outputs.require_output("kubeconfig")) if outputs else unknown_output()
    return kubernetes.Provider("cluster", kubeconfig=kubeconfig, cluster_identifier=name, **settings)


def _outputs(platform: str) -> pulumi.StackReference | None:
    """The outputs of the platform's stack; while it is not deployed, None to a preview and an error to all else."""
    if _is_deployed(platform):
        return pulumi.StackReference(f"{pulumi.get_organization()}/{pulumi.get_project()}/{platform}")
    if not pulumi.runtime.is_dry_run():
        raise pulumi.RunError(f"platform `{platform}` is not deployed; first run: pulumi up -s {platform}")
    pulumi.log.warn(f"platform `{platform}` is not deployed yet: nothing is compared with a cluster")
    return None


def _compare(platform: str, checked_against: str, deployed: str | None) -> None:
    if deployed != checked_against:
        pulumi.log.warn(
            f"platform `{platform}` was deployed from another version of its stack file than is checked here"
        )


def _is_deployed(platform: str) -> bool:
    """Asks the CLI: a reference to a stack that does not exist fails the program where nothing can catch it."""
    command = ["pulumi", "stack", "ls", "--json", "--project", pulumi.get_project()]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_LIST_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return False
    stacks = {entry["name"].rpartition("/")[2]: entry for entry in json.loads(listed.stdout)}
    return bool(stacks.get(platform, {}).get("resourceCount"))


def _kubernetes_object(name: str, manifest: dict[str, Any], options: pulumi.ResourceOptions) -> pulumi.CustomResource:
    """Any kind by its manifest, whether or not the SDK has a class for it."""
    group_version = manifest["apiVersion"] if "/" in manifest["apiVersion"] else f"core/{manifest['apiVersion']}"
    return pulumi.CustomResource(f"kubernetes:{group_version}:{manifest['kind']}", name, manifest, options)


def unknown_output() -> pulumi.Output[str]:
    """An output whose value is not known before an update."""

    def settled(value: Any) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = asyncio.get_event_loop().create_future()
        future.set_result(value)
        return future

    return pulumi.Output(set(), settled(None), settled(False))
