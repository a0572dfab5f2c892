"""Priority classes that experiments name."""

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as kubernetes

from infra.config.platform import Priority


class Priorities(pulumi.ComponentResource):
    """One PriorityClass for each priority of the platform."""

    def __init__(
        self,
        name: str,
        *,
        priorities: Sequence[Priority],
        provider: kubernetes.Provider,
        after: Sequence[pulumi.Resource],
    ) -> None:
        super().__init__("trainyard:teams:Priorities", name, None, pulumi.ResourceOptions(providers=[provider]))
        for priority in priorities:
            kubernetes.scheduling.v1.PriorityClass(
                f"{name}-{priority.name}",
                metadata={"name": priority.name},
                value=priority.value,
                preemption_policy="PreemptLowerPriority" if priority.preempts else "Never",
                global_default=False,
                opts=pulumi.ResourceOptions(parent=self, depends_on=after),
            )
        self.register_outputs({"names": [priority.name for priority in priorities]})
