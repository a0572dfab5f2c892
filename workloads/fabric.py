"""The transport between nodes: which variables a pod gets, and why so few.

aws-ofi-nccl sets NCCL's tuner, protocol and chunk sizes for each instance type by itself, so what older guides export
(NCCL_PROTO, NCCL_ALGO, FI_EFA_USE_DEVICE_RDMA, FI_EFA_FORK_SAFE) can only do harm on the images of today.
"""

from workloads.resolve import Run

# `pod-id-link0` is EKS Pod Identity's link; NCCL's bootstrap hangs when it picks that one
# (aws-samples/aws-do-eks#54). A list of exclusions holds for pod networks (eth0) and host networks (ens*) alike.
_NOT_FOR_NCCL = "^lo,docker,veth,pod-id-link"


def environment(run: Run) -> dict[str, str]:
    """Variables for a pod's fabric, accelerator and processor; the experiment's own `env` wins over them."""
    variables = {"OMP_NUM_THREADS": str(_threads_per_process(run))}
    if run.resources.gpu:
        variables |= {
            # Workers of a data loader are forked, and libfabric's huge pages do not survive a fork.
            **({"FI_PROVIDER": "efa", "FI_EFA_USE_HUGE_PAGE": "0"} if run.uses_efa else {}),
            "NCCL_DEBUG": "WARN",
            "NCCL_SOCKET_IFNAME": _NOT_FOR_NCCL,
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
            # On a shared file system, hundreds of processes wait for each other's compile locks.
            "TRITON_CACHE_DIR": "/tmp/triton",
        }
        if run.experiment.fabric == "tcp":
            variables["NCCL_NET"] = "Socket"
    return variables


def _threads_per_process(run: Run) -> int:
    """Processes that each start a thread per core of the node fight for them."""
    return max(1, int(run.resources.cpu) // run.processes_per_node)
