"""A cluster that has the Training Operator's MPIJob already: the platform stops before it has touched anything."""

import pytest

from tests.cluster.kube import everything, get, kubectl
from tests.cluster.pulumi_cli import Checkout

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

_V1 = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: mpijobs.kubeflow.org}
spec:
  group: kubeflow.org
  names: {kind: MPIJob, plural: mpijobs, singular: mpijob}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


def test_up_says_how_to_migrate_changes_nothing_and_works_afterwards(platform: Checkout) -> None:
    kubectl("delete", "crd", "mpijobs.kubeflow.org")
    kubectl("apply", "-f", "-", stdin=_V1)
    before = everything()
    try:
        refused = platform.pulumi("up", "--yes", "--skip-preview", "--stack", "local", check=False)
        assert refused.returncode != 0
        assert "mpijobs.kubeflow.org in version v1" in refused.stdout
        assert "kubectl delete crd mpijobs.kubeflow.org" in refused.stdout
        assert "Traceback" not in refused.stdout + refused.stderr
        assert everything() == before
    finally:
        kubectl("delete", "crd", "mpijobs.kubeflow.org")
        platform.pulumi("refresh", "--yes", "--skip-preview", "--stack", "local")  # our own went away, too
        platform.up("local")
    (definition,) = get("crd", "mpijobs.kubeflow.org")
    assert [version["name"] for version in definition["spec"]["versions"]] == ["v2beta1"]
