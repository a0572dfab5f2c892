"""Kubeflow's Training Operator v1: PyTorchJob, TFJob, XGBoostJob and PaddleJob."""

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from infra.config import platform as config
from infra.kubernetes.helm import OWN_CHARTS, release
from infra.kubernetes.mirrors import ChartSource, mirrored_image
from infra.kubernetes.namespaces import operator_namespace
from infra.kubernetes.operator_crds import crd_files, create_crds
from infra.versions import TRAINING_OPERATOR_IMAGE, TRAINING_OPERATOR_INIT_IMAGE

_NAME = "training-operator"
_NAMESPACE = "kubeflow"


def training_operator_values(
    operator: config.TrainingOperator, *, gang_scheduler: str, replicas: int, mirrors: config.Mirrors
) -> dict[str, Any]:
    """Values of charts/training-operator."""
    return {
        "image": mirrored_image(TRAINING_OPERATOR_IMAGE, mirrors),
        "initContainerImage": mirrored_image(TRAINING_OPERATOR_INIT_IMAGE, mirrors),
        "schemes": list(operator.schemes),
        "gangScheduler": gang_scheduler,
        "replicas": replicas,
    }


class TrainingOperator(pulumi.ComponentResource):
    """CRDs, then the operator, from our own chart."""

    def __init__(
        self,
        name: str,
        *,
        operator: config.TrainingOperator,
        gang_scheduler: str,
        replicas: int,
        mirrors: config.Mirrors,
        provider: kubernetes.Provider,
        after: Sequence[pulumi.Resource],
    ) -> None:
        super().__init__(
            "trainyard:operators:TrainingOperator", name, None, pulumi.ResourceOptions(providers=[provider])
        )
        options = pulumi.ResourceOptions(parent=self, depends_on=after)
        namespace = operator_namespace(f"{name}-namespace", name=_NAMESPACE, level="restricted", opts=options)
        # One file per scheme. The operator's own MPIJob (v1) is none of them: its CRD has the name of the MPI
        # operator's (v2beta1), and the API server keeps one of the two.
        crds = create_crds(f"{name}-crds", crd_files(_NAME, [f"{scheme}s" for scheme in operator.schemes]), options)
        release(
            f"{name}-release",
            ChartSource(chart=f"{OWN_CHARTS}/{_NAME}"),
            name=_NAME,
            namespace=_NAMESPACE,
            values=training_operator_values(
                operator, gang_scheduler=gang_scheduler, replicas=replicas, mirrors=mirrors
            ),
            # It exits when a CRD that it watches is missing; with a gang scheduler, PodGroup's is one (hence `after`).
            opts=pulumi.ResourceOptions(parent=self, depends_on=[namespace, crds]),
        )
        self.register_outputs({})
