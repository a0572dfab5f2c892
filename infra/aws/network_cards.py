"""How the network interfaces of an EFA node sit on its network cards."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Interface:
    card: int
    device: int
    kind: Literal["interface", "efa-only"]


def efa_interfaces(num_efa: int) -> list[Interface]:
    """One interface for IP, and EFA alone on every card.

    The layout is EC2's for instances with several network cards (User Guide, "Maximize network bandwidth on Amazon EC2
    instances with multiple network cards"): an EFA-only interface may not be the primary one, so card 0 has both. An
    EFA-only interface takes no address; with ordinary ones a p5.48xlarge would hold 32 of its subnet before any pod.
    """
    primary = Interface(card=0, device=0, kind="interface")
    beside_it = Interface(card=0, device=1, kind="efa-only")
    return [primary, beside_it, *(Interface(card=card, device=0, kind="efa-only") for card in range(1, num_efa))]
