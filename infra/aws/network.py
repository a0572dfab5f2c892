"""The VPC: where nodes and pods get their addresses, and how they reach AWS and the internet."""

import pulumi
import pulumi_aws as aws

from infra.aws.identity import Account, role_arn
from infra.aws.logs import log_group
from infra.aws.security_groups import allow_all_within, security_group
from infra.aws.subnets import ZoneSubnets, plan_subnets
from infra.config.platform import Network as NetworkConfig

# Every node pulls from these at every start: image names, image layers, credentials. S3, where layers lie, is free.
_INTERFACE_ENDPOINTS = ("ecr.api", "ecr.dkr", "sts")


class Network(pulumi.ComponentResource):
    """Private subnets for nodes and pods, public ones for NAT and load balancers."""

    def __init__(self, name: str, config: NetworkConfig, account: Account, key_arn: pulumi.Input[str]) -> None:
        super().__init__("trainyard:aws:Network", name)
        self._prefix = name
        self._config = config
        self._account = account
        self._child = pulumi.ResourceOptions(parent=self)

        self._vpc = self._create_vpc()
        self._gateway = aws.ec2.InternetGateway(
            f"{name}-internet", vpc_id=self._vpc.id, tags={"Name": name}, opts=self._child
        )
        self._close_default_security_group()
        plan = plan_subnets(config.cidr, config.zones)
        public = {subnets.zone: self._create_subnet(subnets, "public") for subnets in plan}
        private = {subnets.zone: self._create_subnet(subnets, "private") for subnets in plan}
        self._route_public_subnets(public)
        private_tables = self._route_private_subnets(private, self._create_nat_gateways(public))
        self._create_endpoints(private, private_tables)
        self._log_flows(key_arn)
        efa = self._create_efa_security_group()

        self.vpc_id: pulumi.Output[str] = self._vpc.id
        self.private_subnet_ids: dict[str, pulumi.Output[str]] = {zone: subnet.id for zone, subnet in private.items()}
        self.public_subnet_ids: dict[str, pulumi.Output[str]] = {zone: subnet.id for zone, subnet in public.items()}
        self.efa_security_group_id: pulumi.Output[str] = efa.id
        self.register_outputs({"vpc_id": self.vpc_id, "private_subnet_ids": self.private_subnet_ids})

    def _create_vpc(self) -> aws.ec2.Vpc:
        return aws.ec2.Vpc(
            f"{self._prefix}-vpc",
            cidr_block=self._config.cidr,
            # The names of interface endpoints and of EFS and FSx resolve inside the VPC only with both.
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags={"Name": self._prefix},
            opts=self._child,
        )

    def _close_default_security_group(self) -> None:
        """What is created without a security group lands in the default one; taken over without rules, it is shut."""
        aws.ec2.DefaultSecurityGroup(f"{self._prefix}-default", vpc_id=self._vpc.id, opts=self._child)

    def _create_subnet(self, subnets: ZoneSubnets, kind: str) -> aws.ec2.Subnet:
        # The tags by which load balancer controllers choose subnets.
        role = "kubernetes.io/role/internal-elb" if kind == "private" else "kubernetes.io/role/elb"
        return aws.ec2.Subnet(
            f"{self._prefix}-{kind}-{subnets.zone}",
            vpc_id=self._vpc.id,
            availability_zone=subnets.zone,
            cidr_block=subnets.private if kind == "private" else subnets.public,
            map_public_ip_on_launch=False,
            tags={"Name": f"{self._prefix}-{kind}-{subnets.zone}", role: "1"},
            opts=self._child,
        )

    def _route_public_subnets(self, public: dict[str, aws.ec2.Subnet]) -> None:
        table = self._create_route_table("public")
        aws.ec2.Route(
            f"{self._prefix}-public-internet",
            route_table_id=table.id,
            destination_cidr_block="0.0.0.0/0",
            gateway_id=self._gateway.id,
            opts=self._child,
        )
        for zone, subnet in public.items():
            self._associate(f"{self._prefix}-public-{zone}", subnet, table)

    def _create_nat_gateways(self, public: dict[str, aws.ec2.Subnet]) -> dict[str, aws.ec2.NatGateway]:
        """By the zone that they are in: the first alone, or every one."""
        zones = self._config.zones if self._config.nat == "per-zone" else self._config.zones[:1]
        gateways = {}
        for zone in zones:
            address = aws.ec2.Eip(f"{self._prefix}-nat-{zone}-address", domain="vpc", opts=self._child)
            gateways[zone] = aws.ec2.NatGateway(
                f"{self._prefix}-nat-{zone}",
                subnet_id=public[zone].id,
                allocation_id=address.id,
                tags={"Name": f"{self._prefix}-{zone}"},
                # AWS: a NAT gateway needs the VPC's internet gateway before itself, and after itself on the way down.
                opts=pulumi.ResourceOptions(parent=self, depends_on=[self._gateway]),
            )
        return gateways

    def _route_private_subnets(
        self, private: dict[str, aws.ec2.Subnet], gateways: dict[str, aws.ec2.NatGateway]
    ) -> list[aws.ec2.RouteTable]:
        shared = gateways[self._config.zones[0]]
        tables = []
        for zone, subnet in private.items():
            table = self._create_route_table(f"private-{zone}")
            aws.ec2.Route(
                f"{self._prefix}-private-{zone}-internet",
                route_table_id=table.id,
                destination_cidr_block="0.0.0.0/0",
                nat_gateway_id=gateways.get(zone, shared).id,
                opts=self._child,
            )
            self._associate(f"{self._prefix}-private-{zone}", subnet, table)
            tables.append(table)
        return tables

    def _create_route_table(self, suffix: str) -> aws.ec2.RouteTable:
        name = f"{self._prefix}-{suffix}"
        return aws.ec2.RouteTable(name, vpc_id=self._vpc.id, tags={"Name": name}, opts=self._child)

    def _associate(self, name: str, subnet: aws.ec2.Subnet, table: aws.ec2.RouteTable) -> None:
        aws.ec2.RouteTableAssociation(f"{name}-route", subnet_id=subnet.id, route_table_id=table.id, opts=self._child)

    def _create_endpoints(self, private: dict[str, aws.ec2.Subnet], tables: list[aws.ec2.RouteTable]) -> None:
        """Traffic to AWS that stays inside: NAT charges by the gigabyte, and checkpoints are many."""
        service = f"com.amazonaws.{self._account.region}"
        aws.ec2.VpcEndpoint(
            f"{self._prefix}-s3",
            vpc_id=self._vpc.id,
            service_name=f"{service}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[table.id for table in tables],
            opts=self._child,
        )
        group = security_group(
            f"{self._prefix}-endpoints", vpc_id=self._vpc.id, description="HTTPS to the VPC's endpoints", parent=self
        )
        aws.vpc.SecurityGroupIngressRule(
            f"{self._prefix}-endpoints-https",
            security_group_id=group.id,
            cidr_ipv4=self._config.cidr,
            ip_protocol="tcp",
            from_port=443,
            to_port=443,
            description="HTTPS from inside the VPC",
            opts=self._child,
        )
        for endpoint in _INTERFACE_ENDPOINTS:
            aws.ec2.VpcEndpoint(
                f"{self._prefix}-{endpoint.replace('.', '-')}",
                vpc_id=self._vpc.id,
                service_name=f"{service}.{endpoint}",
                vpc_endpoint_type="Interface",
                private_dns_enabled=True,
                subnet_ids=[subnet.id for subnet in private.values()],
                security_group_ids=[group.id],
                opts=self._child,
            )

    def _log_flows(self, key_arn: pulumi.Input[str]) -> None:
        group = log_group(
            f"{self._prefix}-flows", log_group_name=f"/trainyard/{self._prefix}/flows", key_arn=key_arn, parent=self
        )
        writer = role_arn(
            f"{self._prefix}-flow-logs",
            "vpc-flow-logs.amazonaws.com",
            statements=[
                {
                    "Effect": "Allow",
                    "Action": ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"],
                    "Resource": pulumi.Output.concat(group.arn, ":*"),
                }
            ],
            parent=self,
        )
        aws.ec2.FlowLog(
            f"{self._prefix}-flow-log",
            vpc_id=self._vpc.id,
            traffic_type="ALL",
            log_destination_type="cloud-watch-logs",
            log_destination=group.arn,
            iam_role_arn=writer,
            opts=self._child,
        )

    def _create_efa_security_group(self) -> aws.ec2.SecurityGroup:
        """EFA's packets are no IP: a rule for 0.0.0.0/0 does not cover them, only one that names the group does, and
        it takes the one outwards as much as the one inwards (awslabs/awsome-distributed-ai#546)."""
        name = f"{self._prefix}-efa"
        group = security_group(name, vpc_id=self._vpc.id, description="EFA between training nodes", parent=self)
        allow_all_within(name, group, description="EFA within the group", parent=self)
        return group
