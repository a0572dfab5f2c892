"""Custom resource definitions of the operators whose charts are ours.

They are applied before the chart and by the server: at half a megabyte each they do not fit the annotation in which a
client-side apply keeps its last state.
"""

from collections.abc import Iterable

import pulumi
from pulumi_kubernetes.yaml.v2 import ConfigGroup

from infra.kubernetes.helm import OWN_CHARTS


def crd_files(chart: str, plurals: Iterable[str], group: str = "kubeflow.org") -> list[str]:
    """Files of a chart's CRDs, by the plural of each kind."""
    return [f"{OWN_CHARTS}/{chart}/crds/{group}_{plural}.yaml" for plural in plurals]


def create_crds(resource_name: str, files: list[str], opts: pulumi.ResourceOptions) -> ConfigGroup:
    """The definitions; whoever depends on them starts once the API server has established each."""
    return ConfigGroup(resource_name, files=files, opts=opts)
