"""Which changes the API server would refuse on an existing object: these replace it.

The table is the real provider's (provider/pkg/provider/diff.go), less the kinds of API versions that are gone.
"""

from tests.plugins.differences import Changes, below
from tests.plugins.values import Path

_VOLUME_SOURCES = (
    "awsElasticBlockStore azureDisk azureFile cephfs cinder csi fc flexVolume flocker gcePersistentDisk glusterfs "
    "hostPath iscsi local nfs photonPersistentDisk portworxVolume quobyte rbd scaleIO storageos vsphereVolume"
)
_POD = (
    "affinity automountServiceAccountToken containers dnsConfig dnsPolicy enableServiceLinks hostAliases hostIPC "
    "hostNetwork hostPID hostname imagePullSecrets initContainers nodeName nodeSelector overhead preemptionPolicy "
    "priority priorityClassName readinessGates restartPolicy runtimeClassName schedulerName securityContext "
    "serviceAccount serviceAccountName shareProcessNamespace subdomain terminationGracePeriodSeconds volumes"
)


def _spec(fields: str) -> list[Path]:
    return [("spec", field) for field in fields.split()]


# An edit of a ConfigMap or Secret replaces it, so that pods that name it follow.
_FIELDS: dict[tuple[str, str], list[Path]] = {
    ("apps/v1", "DaemonSet"): _spec("selector"),
    ("apps/v1", "Deployment"): _spec("selector"),
    ("apps/v1", "StatefulSet"): _spec(
        "podManagementPolicy revisionHistoryLimit selector serviceName volumeClaimTemplates"
    ),
    ("batch/v1", "Job"): _spec("completions parallelism selector template"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): [("roleRef",)],
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): [("roleRef",)],
    ("storage.k8s.io/v1", "StorageClass"): [("parameters",), ("provisioner",)],
    ("v1", "ConfigMap"): [("binaryData",), ("data",)],
    ("v1", "PersistentVolume"): _spec(_VOLUME_SOURCES),
    ("v1", "PersistentVolumeClaim"): [("spec",)],
    ("v1", "Pod"): _spec(_POD),
    ("v1", "ResourceQuota"): _spec("scopes"),
    ("v1", "Secret"): [("type",), ("stringData",), ("data",)],
    ("v1", "Service"): _spec("clusterIP"),
}
_IDENTITY: list[Path] = [("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")]


def replacing(changes: Changes, api_version: str, kind: str) -> frozenset[Path]:
    return below(changes, [*_IDENTITY, *_FIELDS.get((api_version, kind), [])])
