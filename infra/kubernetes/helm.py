"""Helm releases, all installed the same way.

`helm.v3.Release` runs Helm itself. The newer `helm.v4.Chart` renders templates and drops hooks, and Volcano makes its
admission certificate in one.
"""

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from infra.kubernetes.mirrors import ChartSource

# Relative to the project, so that the state is the same from every machine.
OWN_CHARTS = "./infra/charts"
_TIMEOUT_S = 600  # pulls of several hundred megabytes on a node that has just started
# Helm keeps every revision as a Secret that holds the whole chart.
_MAX_HISTORY = 3


def release(
    resource_name: str,
    source: ChartSource,
    *,
    name: str,
    namespace: pulumi.Input[str],
    values: Mapping[str, Any],
    opts: pulumi.ResourceOptions,
) -> kubernetes.helm.v3.Release:
    """A chart installed as `name`, its Deployments awaited."""
    return kubernetes.helm.v3.Release(
        resource_name,
        name=name,
        namespace=namespace,
        chart=source.chart,
        version=source.version,
        repository_opts={"repo": source.repository} if source.repository else None,
        values=values,
        timeout=_TIMEOUT_S,
        max_history=_MAX_HISTORY,
        # A failed first install is taken back; left behind, it would block the next attempt under the same name.
        atomic=True,
        opts=opts,
    )
