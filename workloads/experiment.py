"""The stack of an experiment: its manifests as Pulumi resources, and nothing else."""

from importlib.metadata import version
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from infra.config.platform import ExistingPlatform
from workloads.launchers.registry import manifests_of, run_name
from workloads.stacks import ExperimentStack


class Experiment(pulumi.ComponentResource):
    """One run. Its name holds a hash of its manifests, so an edit replaces every object and none is ever patched."""

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
            )
            previous = [_kubernetes_object(f"{stack.file.stack}-{manifest['kind'].lower()}", manifest, options)]
        self.register_outputs({"run": self.run})


def deploy_experiment(stack: ExperimentStack) -> None:
    """What `pulumi up` does for an experiment's stack."""
    experiment = Experiment(stack, _provider(stack))
    pulumi.export("run", experiment.run)
    pulumi.export("namespace", stack.run.team.namespace)


def _provider(stack: ExperimentStack) -> kubernetes.Provider:
    """The platform's cluster: named in its stack file, or in the outputs of its stack."""
    platform = stack.run.platform
    options = pulumi.ResourceOptions(version=version("pulumi-kubernetes"))
    if isinstance(platform, ExistingPlatform) and platform.cluster.context:
        return kubernetes.Provider(
            "cluster", context=platform.cluster.context, cluster_identifier=platform.cluster.context, opts=options
        )
    name = stack.run.experiment.platform
    outputs = pulumi.StackReference(f"{pulumi.get_organization()}/{pulumi.get_project()}/{name}")
    return kubernetes.Provider(
        "cluster", kubeconfig=outputs.require_output("kubeconfig"), cluster_identifier=name, opts=options
    )


def _kubernetes_object(name: str, manifest: dict[str, Any], options: pulumi.ResourceOptions) -> pulumi.CustomResource:
    """Any kind by its manifest, whether or not the SDK has a class for it."""
    group_version = manifest["apiVersion"] if "/" in manifest["apiVersion"] else f"core/{manifest['apiVersion']}"
    return pulumi.CustomResource(f"kubernetes:{group_version}:{manifest['kind']}", name, manifest, options)
