"""EC2 instance types: what one node offers, what it costs, and where each figure is from.

Sources, column by column:
- vCPU, memory, accelerators, device memory, EFA, network, allocatable memory: Karpenter's AWS provider,
  `docs/reference/instance-types.md` at commit 1d927085 (p3.2xlarge: the same page of its v1.0 documentation).
  Device memory is what EC2 reports: an A10G or L4 sold as 24 GB shows 22.4 GiB.
- Dollars: the same repository's `zz_generated.pricing_aws.go`, us-east-1, Linux, on demand, generated on `PRICED_ON`.
  None means that the list does not have the type.
- Allocatable memory is Karpenter's estimate of what kubelet leaves to pods; DaemonSets come out of it too.
- Dense bf16 TFLOP/s per device: NVIDIA's and AWS's data sheets as used by torchtitan `tools/utils.py`, nanochat
  `common.py` and the Neuron architecture pages. None means that the device has no bf16 arithmetic.
"""

from dataclasses import dataclass
from typing import Literal

PRICED_ON = "2026-07-20"
PRICED_REGION = "us-east-1"


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """One kind of device."""

    name: str
    kind: Literal["gpu", "neuron"]
    memory_gib: float
    bf16_tflops: float | None
    fp8: bool = False
    """Tensor cores with 8-bit floating point: Ada, Hopper, Blackwell and Trainium2."""
    cores: int = 1
    """Processes one device serves: NeuronCores are addressed one by one, a GPU is one."""


T4 = Accelerator(name="T4", kind="gpu", memory_gib=16, bf16_tflops=None)
A10G = Accelerator(name="A10G", kind="gpu", memory_gib=22.4, bf16_tflops=70)
L4 = Accelerator(name="L4", kind="gpu", memory_gib=22.4, bf16_tflops=121, fp8=True)
L40S = Accelerator(name="L40S", kind="gpu", memory_gib=44.7, bf16_tflops=362, fp8=True)
V100_16 = Accelerator(name="V100", kind="gpu", memory_gib=16, bf16_tflops=None)
V100_32 = Accelerator(name="V100", kind="gpu", memory_gib=32, bf16_tflops=None)
A100_40 = Accelerator(name="A100", kind="gpu", memory_gib=40, bf16_tflops=312)
A100_80 = Accelerator(name="A100", kind="gpu", memory_gib=80, bf16_tflops=312)
H100 = Accelerator(name="H100", kind="gpu", memory_gib=80, bf16_tflops=989, fp8=True)
H200 = Accelerator(name="H200", kind="gpu", memory_gib=141, bf16_tflops=989, fp8=True)
B200 = Accelerator(name="B200", kind="gpu", memory_gib=179, bf16_tflops=2250, fp8=True)
TRAINIUM = Accelerator(name="Trainium", kind="neuron", memory_gib=32, bf16_tflops=190, cores=2)
TRAINIUM2 = Accelerator(name="Trainium2", kind="neuron", memory_gib=96, bf16_tflops=667, fp8=True, cores=8)


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """One row of the table."""

    name: str
    vcpu: int
    memory_gib: float
    accelerator: Accelerator | None
    num_accelerators: int
    num_efa: int
    """The most EFA interfaces the type takes; 0: it cannot have one."""
    network_gbps: float
    network_bursts: bool
    usd_per_hour: float | None
    allocatable_memory_gib: float

    @property
    def family(self) -> str:
        return self.name.partition(".")[0]


# m5.xlarge has no published estimate; its fellow c5.2xlarge with the same 16 GiB has this one.
_16_GIB_NODE = 13.8


def _row(
    name: str,
    vcpu: int,
    memory_gib: float,
    accelerator: Accelerator | None,
    num_accelerators: int,
    num_efa: int,
    network: str,
    usd_per_hour: float | None,
    allocatable_memory_gib: float,
) -> InstanceType:
    """`network` is in Gbit/s, with a "b" behind it where the type bursts higher."""
    return InstanceType(
        name=name,
        vcpu=vcpu,
        memory_gib=memory_gib,
        accelerator=accelerator,
        num_accelerators=num_accelerators,
        num_efa=num_efa,
        network_gbps=float(network.rstrip("b")),
        network_bursts=network.endswith("b"),
        usd_per_hour=usd_per_hour,
        allocatable_memory_gib=allocatable_memory_gib,
    )


# name, vCPU, memory GiB, accelerator × count, EFA, network, $/h, allocatable GiB
INSTANCE_TYPES: dict[str, InstanceType] = {
    row.name: row
    for row in (
        _row("g4dn.xlarge", 4, 16, T4, 1, 0, "5b", 0.526, 14.1),
        _row("g4dn.12xlarge", 48, 192, T4, 4, 1, "50", 3.912, 174.7),
        _row("g4dn.metal", 96, 384, T4, 8, 1, "100", 7.824, 346.9),
        _row("g5.xlarge", 4, 16, A10G, 1, 0, "2.5b", 1.006, 13.8),
        _row("g5.2xlarge", 8, 32, A10G, 1, 0, "5b", 1.212, 28.6),
        _row("g5.12xlarge", 48, 192, A10G, 4, 1, "40", 5.672, 169.3),
        _row("g5.24xlarge", 96, 384, A10G, 4, 1, "50", 8.144, 346.9),
        _row("g5.48xlarge", 192, 768, A10G, 8, 1, "100", 16.288, 706.3),
        _row("g6.xlarge", 4, 16, L4, 1, 0, "2.5b", 0.8048, 13.8),
        _row("g6.12xlarge", 48, 192, L4, 4, 1, "40", 4.6016, 174.7),
        _row("g6.48xlarge", 192, 768, L4, 8, 1, "100", 13.3504, 702.1),
        _row("g6e.xlarge", 4, 32, L40S, 1, 0, "2.5b", 1.861, 28.6),
        _row("g6e.12xlarge", 48, 384, L40S, 4, 1, "100", 10.49264, 351.7),
        _row("g6e.48xlarge", 192, 1536, L40S, 8, 4, "400", 30.13118, 1415.2),
        _row("p3.2xlarge", 8, 61, V100_16, 1, 0, "2.5b", 3.06, 55.5),
        _row("p3dn.24xlarge", 96, 768, V100_32, 8, 1, "100", 31.212, 702.1),
        _row("p4d.24xlarge", 96, 1152, A100_40, 8, 4, "400", 21.957642, 1057.3),
        _row("p4de.24xlarge", 96, 1152, A100_80, 8, 4, "400", 27.44705, 1057.3),
        _row("p5.48xlarge", 192, 2048, H100, 8, 32, "3200", 55.04, 1893.0),
        _row("p5e.48xlarge", 192, 2048, H200, 8, 32, "3200", None, 1893.0),
        _row("p5en.48xlarge", 192, 2048, H200, 8, 16, "3200", 63.296, 1891.9),
        _row("p6-b200.48xlarge", 192, 2048, B200, 8, 8, "3200", 113.9328, 1891.9),
        _row("trn1.2xlarge", 8, 32, TRAINIUM, 1, 0, "3.1b", 1.34375, 28.6),
        _row("trn1.32xlarge", 128, 512, TRAINIUM, 16, 8, "800", 21.5, 470.6),
        _row("trn1n.32xlarge", 128, 512, TRAINIUM, 16, 16, "1600", 24.78, 470.6),
        _row("trn2.48xlarge", 192, 2048, TRAINIUM2, 16, 16, "3200", None, 1893.0),
        _row("c5.2xlarge", 8, 16, None, 0, 0, "2.5b", 0.34, 13.8),
        _row("c5.4xlarge", 16, 32, None, 0, 0, "5b", 0.68, 26.7),
        _row("c5.9xlarge", 36, 72, None, 0, 0, "12", 1.53, 63.7),
        _row("m5.xlarge", 4, 16, None, 0, 0, "1.25b", 0.192, _16_GIB_NODE),
        _row("m5.2xlarge", 8, 32, None, 0, 0, "2.5b", 0.384, 28.6),
        _row("m5.4xlarge", 16, 64, None, 0, 0, "5b", 0.768, 56.3),
    )
}
