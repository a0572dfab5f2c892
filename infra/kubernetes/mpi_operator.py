"""Kubeflow's MPI operator: MPIJob v2beta1."""

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from infra.config import platform as config
from infra.kubernetes.helm import OWN_CHARTS, release
from infra.kubernetes.mirrors import ChartSource, mirrored_image
from infra.kubernetes.namespaces import operator_namespace
from infra.kubernetes.operator_crds import crd_files, create_crds
from infra.versions import MPI_OPERATOR_IMAGE

_NAME = "mpi-operator"


def mpi_operator_values(*, gang_scheduler: str, replicas: int, mirrors: config.Mirrors) -> dict[str, Any]:
    """Values of charts/mpi-operator."""
    return {
        "image": mirrored_image(MPI_OPERATOR_IMAGE, mirrors),
        "gangScheduler": gang_scheduler,
        "replicas": replicas,
    }


class MpiOperator(pulumi.ComponentResource):
    """The CRD, then the operator, from our own chart."""

    def __init__(
        self,
        name: str,
        *,
        gang_scheduler: str,
        replicas: int,
        mirrors: config.Mirrors,
        provider: kubernetes.Provider,
        after: Sequence[pulumi.Resource],
    ) -> None:
        super().__init__("trainyard:operators:MpiOperator", name, None, pulumi.ResourceOptions(providers=[provider]))
        options = pulumi.ResourceOptions(parent=self, depends_on=after)
        namespace = operator_namespace(f"{name}-namespace", name=_NAME, level="restricted", opts=options)
        crds = create_crds(f"{name}-crds", crd_files(_NAME, ["mpijobs"]), options)
        release(
            f"{name}-release",
            ChartSource(chart=f"{OWN_CHARTS}/{_NAME}"),
            name=_NAME,
            namespace=_NAME,
            values=mpi_operator_values(gang_scheduler=gang_scheduler, replicas=replicas, mirrors=mirrors),
            # It exits when the kinds it watches are missing.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[namespace, crds]),
        )
        self.register_outputs({})
