"""EFS: shared volumes that every zone reaches and that grow by themselves."""

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from infra.aws.security_groups import Ports, allow, security_group
from infra.config.storage import EfsVolume

_NFS = Ports(2049, 2049)


class SharedFileSystems(pulumi.ComponentResource):
    def __init__(
        self,
        name: str,
        volumes: Sequence[EfsVolume],
        *,
        vpc_id: pulumi.Input[str],
        subnet_ids: Mapping[str, pulumi.Input[str]],
        node_security_group_id: pulumi.Input[str],
        key_arn: pulumi.Input[str],
        protect: bool,
    ) -> None:
        super().__init__("trainyard:aws:SharedFileSystems", name)
        group = security_group(f"{name}-efs", vpc_id=vpc_id, description="NFS from the nodes to EFS", parent=self)
        allow(
            f"{name}-efs-nodes",
            source=node_security_group_id,
            target=group.id,
            ports=[_NFS],
            description="NFS from the nodes",
            parent=self,
        )
        self.ids: dict[str, pulumi.Output[str]] = {}
        for volume in volumes:
            file_system = aws.efs.FileSystem(
                f"{name}-{volume.name}",
                encrypted=True,
                kms_key_id=key_arn,
                # The default, bursting, gives a nearly empty file system 50 KiB/s per GiB; AWS advises elastic.
                throughput_mode="elastic",
                tags={"Name": f"{name}-{volume.name}"},
                opts=pulumi.ResourceOptions(parent=self, protect=protect),
            )
            targets = [
                aws.efs.MountTarget(
                    f"{name}-{volume.name}-{zone}",
                    file_system_id=file_system.id,
                    subnet_id=subnet_id,
                    security_groups=[group.id],
                    opts=pulumi.ResourceOptions(parent=self),
                )
                for zone, subnet_id in subnet_ids.items()
            ]
            # Only a file system with its mount targets can be mounted, so whoever takes the id waits for them.
            self.ids[volume.name] = pulumi.Output.all(file_system.id, *(target.id for target in targets)).apply(
                lambda ids: str(ids[0])
            )
        self.register_outputs({"ids": self.ids})
