"""Every version that the platform installs, in one place.

Charts and images as of August 2026; where two lines of a chart exist, the one that suits the Kubernetes version is
chosen by a function here and nowhere else.
"""

from dataclasses import dataclass

KUBERNETES = "1.33"


@dataclass(frozen=True, kw_only=True)
class Chart:
    name: str
    repository: str
    version: str
    namespace: str


def volcano_version(kubernetes_version: str) -> str:
    """Volcano's newest line that its compatibility table lists for a Kubernetes minor."""
    minor = int(kubernetes_version.lstrip("v").split(".")[1])
    for newest_minor, version in ((32, "1.12.0"), (33, "1.13.0"), (34, "1.14.0")):
        if minor <= newest_minor:
            return version
    return "1.15.0"


def volcano_chart(version: str) -> Chart:
    return Chart(
        name="volcano",
        repository="https://volcano-sh.github.io/helm-charts",
        version=version,
        namespace="volcano-system",
    )


VOLCANO_IMAGES = "docker.io/volcanosh"

# 0.19.0 to 0.19.2 mount all of /dev/infiniband into GPU pods and clash with the EFA plugin; 0.19.3 does not.
NVIDIA_DEVICE_PLUGIN = Chart(
    name="nvidia-device-plugin",
    repository="https://nvidia.github.io/k8s-device-plugin",
    version="0.20.0",
    namespace="nvidia-device-plugin",
)
NVIDIA_DEVICE_PLUGIN_IMAGE = "nvcr.io/nvidia/k8s-device-plugin"
EFA_DEVICE_PLUGIN = Chart(
    name="aws-efa-k8s-device-plugin",
    repository="https://aws.github.io/eks-charts",
    version="v0.5.30",
    namespace="kube-system",
)
# The chart names this region's registry whatever the cluster's own; any region may pull from it.
EFA_DEVICE_PLUGIN_IMAGE = "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin"
NEURON = Chart(
    name="neuron-helm-chart",
    repository="oci://public.ecr.aws/neuron",
    version="1.10.0",
    namespace="kube-system",
)
NEURON_DEVICE_PLUGIN_IMAGE = "public.ecr.aws/neuron/neuron-device-plugin"

# Operators without an upstream chart: our own charts carry these images, and the CRDs of the same tag.
TRAINING_OPERATOR = "v1.8.1"
TRAINING_OPERATOR_IMAGE = "docker.io/kubeflow/training-operator:v1-04f9f13"
TRAINING_OPERATOR_INIT_IMAGE = "docker.io/library/alpine:3.10"  # waits for the master's name in a PyTorchJob's workers
MPI_OPERATOR = "v0.6.0"
MPI_OPERATOR_IMAGE = "docker.io/mpioperator/mpi-operator:0.6.0"
# Trainer 2.1 is the first that makes Volcano's PodGroup; its go.mod names this JobSet.
JOBSET = "v0.10.1"
JOBSET_IMAGE = "registry.k8s.io/jobset/jobset:v0.10.1"
TRAINER = "v2.1.0"
TRAINER_IMAGE = "ghcr.io/kubeflow/trainer/trainer-controller-manager:v2.1.0"

# The last line with the v2 API, which torchrun's etcd rendezvous speaks.
ETCD = "v3.5.24"
ETCD_IMAGE = f"quay.io/coreos/etcd:{ETCD}"

BUSYBOX_IMAGE = "docker.io/library/busybox:1.37.0"  # for chown
