"""FSx for Lustre: the fast volumes that training reads data from and writes checkpoints to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from infra.aws.security_groups import Ports, allow, allow_all_within, security_group
from infra.config.storage import FsxVolume

_DEPLOYMENTS = {"scratch-2": "SCRATCH_2", "persistent-1": "PERSISTENT_1", "persistent-2": "PERSISTENT_2"}
# FSx's newest, valid for all three deployments; its default on scratch, 2.10, cannot be linked to S3.
_LUSTRE_VERSION = "2.15"
# Lustre user guide, "File system access control with Amazon VPC": clients and servers call each other on these.
_LUSTRE = (Ports(988, 988), Ports(1018, 1023))
_ALL_CHANGES = ["NEW", "CHANGED", "DELETED"]


@dataclass(frozen=True, kw_only=True)
class FsxHandle:
    """What a volume needs to mount a file system."""

    id: pulumi.Output[str]
    dns_name: pulumi.Output[str]
    mount_name: pulumi.Output[str]


class LustreFileSystems(pulumi.ComponentResource):
    """All in one zone, that of the nodes that matter most."""

    def __init__(
        self,
        name: str,
        volumes: Sequence[FsxVolume],
        *,
        vpc_id: pulumi.Input[str],
        subnet_id: pulumi.Input[str],
        node_security_group_id: pulumi.Input[str],
        key_arn: pulumi.Input[str],
        protect: bool,
        link_after: Sequence[pulumi.Resource],
    ) -> None:
        """`link_after`: the platform's own buckets, for a link may name one."""
        super().__init__("trainyard:aws:LustreFileSystems", name)
        self._link_after = list(link_after)
        group = self._create_security_group(name, vpc_id, node_security_group_id)
        self.handles: dict[str, FsxHandle] = {}
        for volume in volumes:
            file_system = aws.fsx.LustreFileSystem(
                f"{name}-{volume.name}",
                deployment_type=_DEPLOYMENTS[volume.deployment],
                storage_capacity=volume.capacity_gib,
                storage_type="SSD",
                file_system_type_version=_LUSTRE_VERSION,
                subnet_ids=subnet_id,
                security_group_ids=[group.id],
                **_persistent_settings(volume, key_arn),
                tags={"Name": f"{name}-{volume.name}"},
                # Scratch is lost with a server that fails; to guard it would promise more than it keeps.
                opts=pulumi.ResourceOptions(parent=self, protect=protect and volume.deployment != "scratch-2"),
            )
            if volume.s3_link is not None:
                self._link(f"{name}-{volume.name}", file_system, volume.s3_link)
            self.handles[volume.name] = FsxHandle(
                id=file_system.id, dns_name=file_system.dns_name, mount_name=file_system.mount_name
            )
        self.register_outputs({"ids": {name: handle.id for name, handle in self.handles.items()}})

    def _create_security_group(
        self, name: str, vpc_id: pulumi.Input[str], nodes: pulumi.Input[str]
    ) -> aws.ec2.SecurityGroup:
        group = security_group(f"{name}-lustre", vpc_id=vpc_id, description="Lustre servers", parent=self)
        allow_all_within(f"{name}-lustre", group, description="Lustre servers among themselves", parent=self)
        for suffix, source, target in (("nodes", nodes, group.id), ("servers", group.id, nodes)):
            allow(
                f"{name}-lustre-{suffix}",
                source=source,
                target=target,
                ports=_LUSTRE,
                description=f"Lustre from the {suffix}",
                parent=self,
            )
        aws.vpc.SecurityGroupEgressRule(
            f"{name}-lustre-to-nodes",
            security_group_id=group.id,
            referenced_security_group_id=nodes,
            ip_protocol="tcp",
            from_port=_LUSTRE[0].first,
            to_port=_LUSTRE[-1].last,
            description="Lustre to the nodes",
            opts=pulumi.ResourceOptions(parent=self),
        )
        return group

    def _link(self, name: str, file_system: aws.fsx.LustreFileSystem, s3_link: str) -> None:
        """Objects appear as files and files become objects.

        By an association for every kind (FSx API reference, "CreateDataRepositoryAssociation"): import paths, the older
        way, are there for persistent-1 alone.
        """
        aws.fsx.DataRepositoryAssociation(
            f"{name}-s3",
            file_system_id=file_system.id,
            file_system_path="/",
            data_repository_path=s3_link,
            batch_import_meta_data_on_create=True,
            s3=aws.fsx.DataRepositoryAssociationS3Args(
                auto_import_policy=aws.fsx.DataRepositoryAssociationS3AutoImportPolicyArgs(events=_ALL_CHANGES),
                auto_export_policy=aws.fsx.DataRepositoryAssociationS3AutoExportPolicyArgs(events=_ALL_CHANGES),
            ),
            opts=pulumi.ResourceOptions(parent=self, depends_on=self._link_after),
        )


def _persistent_settings(volume: FsxVolume, key_arn: pulumi.Input[str]) -> dict[str, Any]:
    """What FSx refuses on scratch: there throughput is fixed and the key is its own."""
    if volume.deployment == "scratch-2":
        return {}
    return {"per_unit_storage_throughput": volume.throughput_mb_s_per_tib, "kms_key_id": key_arn}
