"""A stack on the cluster of the tests; and a cluster that is not there, for what needs none to be tested."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.paths import KUBECONFIG
from tests.plugins.kubernetes.cluster import Cluster, Reference
from tests.plugins.kubernetes.kubeconfig import kubeconfig_of
from tests.plugins.kubernetes.objects import Objects
from tests.plugins.stack import Stack


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """Destroyed after the test; nothing may be left."""
    stack = Stack(tmp_path, str(KUBECONFIG))
    yield stack
    stack.run("destroy", "--yes", "--skip-preview")
    namespace = Reference(api_version="v1", kind="Namespace", namespace=None, name=stack.namespace)
    assert stack.cluster.get(namespace) is None


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(kubeconfig_of(str(tmp_path / "absent"), None), "default")


@pytest.fixture
def objects(cluster: Cluster) -> Objects:
    return Objects(cluster, namespace=None, upsert=False, force=False)
