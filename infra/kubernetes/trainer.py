"""Kubeflow Trainer v2, and JobSet, of which it makes its jobs."""

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_kubernetes.yaml.v2 import ConfigGroup

from infra.config import platform as config
from infra.kubernetes.helm import OWN_CHARTS, release
from infra.kubernetes.mirrors import ChartSource, mirrored_image
from infra.kubernetes.namespaces import operator_namespace
from infra.kubernetes.operator_crds import crd_files, create_crds
from infra.versions import JOBSET_IMAGE, TRAINER_IMAGE

# Upstream's namespaces.
_JOBSET_NAMESPACE = "jobset-system"
_TRAINER_NAMESPACE = "kubeflow-system"
_TRAINER_GROUP = "trainer.kubeflow.org"
_TRAINER_KINDS = ("clustertrainingruntimes", "trainingruntimes", "trainjobs")


def jobset_values(*, replicas: int, mirrors: config.Mirrors) -> dict[str, Any]:
    """Values of charts/jobset."""
    return {"image": mirrored_image(JOBSET_IMAGE, mirrors), "replicas": replicas}


def trainer_values(*, replicas: int, mirrors: config.Mirrors) -> dict[str, Any]:
    """Values of charts/trainer."""
    return {"image": mirrored_image(TRAINER_IMAGE, mirrors), "replicas": replicas}


class Trainer(pulumi.ComponentResource):
    """JobSet's CRDs and controller, then Trainer's, each from our own chart. Runtimes are the experiments' own."""

    def __init__(
        self,
        name: str,
        *,
        replicas: int,
        mirrors: config.Mirrors,
        provider: kubernetes.Provider,
        after: Sequence[pulumi.Resource],
    ) -> None:
        super().__init__("trainyard:operators:Trainer", name, None, pulumi.ResourceOptions(providers=[provider]))
        job_set_crds = self._install(
            name,
            "jobset",
            namespace=_JOBSET_NAMESPACE,
            crds=crd_files("jobset", ["jobsets"], "jobset.x-k8s.io"),
            values=jobset_values(replicas=replicas, mirrors=mirrors),
            after=after,
        )
        self._install(
            name,
            "trainer",
            namespace=_TRAINER_NAMESPACE,
            crds=crd_files("trainer", _TRAINER_KINDS, _TRAINER_GROUP),
            values=trainer_values(replicas=replicas, mirrors=mirrors),
            # It exits when JobSet's kind is missing, and looks for Volcano's PodGroup only when it starts. The two
            # controllers start together: each waits a minute for the kubelet to show it its certificate.
            after=[*after, job_set_crds],
        )
        self.register_outputs({})

    def _install(
        self,
        name: str,
        chart: str,
        *,
        namespace: str,
        crds: list[str],
        values: dict[str, Any],
        after: Sequence[pulumi.Resource],
    ) -> ConfigGroup:
        """The definitions, for whoever needs the kinds."""
        options = pulumi.ResourceOptions(parent=self, depends_on=after)
        created = operator_namespace(f"{name}-{chart}-namespace", name=namespace, level="restricted", opts=options)
        definitions = create_crds(f"{name}-{chart}-crds", crds, options)
        release(
            f"{name}-{chart}-release",
            ChartSource(chart=f"{OWN_CHARTS}/{chart}"),
            name=chart,
            namespace=namespace,
            values=values,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[created, definitions]),
        )
        return definitions
