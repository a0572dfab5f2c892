"""The VPC as it is registered."""

import json

import pytest

from infra.prices import NUM_INTERFACE_ENDPOINTS
from tests.infra.aws.recorder import Recording, changed, platform, record, recording, statements

INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
EGRESS = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
ROUTE = "aws:ec2/route:Route"
ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"


@pytest.fixture(scope="module")
def prod() -> Recording:
    return recording("prod")


def test_efa_traffic_may_leave_and_enter_its_own_security_group(prod: Recording) -> None:
    for direction in (INGRESS, EGRESS):
        (rule,) = [rule for rule in prod.of_type(direction) if rule.name.startswith("prod-efa")]
        assert rule.inputs["ipProtocol"] == "-1"
        assert rule.inputs["referencedSecurityGroupId"] == rule.inputs["securityGroupId"] == "id-prod-efa"


def test_no_security_group_lets_the_internet_in(prod: Recording) -> None:
    for rule in prod.of_type(INGRESS):
        assert rule.inputs.get("cidrIpv4") in (None, platform("prod").network.cidr), rule.name


def test_the_default_security_group_has_no_rules(prod: Recording) -> None:
    (default,) = prod.of_type("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup")
    assert set(default.inputs) == {"vpcId"}


def test_no_subnet_gives_its_machines_public_addresses(prod: Recording) -> None:
    subnets = prod.of_type("aws:ec2/subnet:Subnet")
    assert len(subnets) == 6
    assert not any(subnet.inputs["mapPublicIpOnLaunch"] for subnet in subnets)


def test_private_subnets_leave_through_the_gateway_of_their_own_zone(prod: Recording) -> None:
    routes = {route.name: route.inputs.get("natGatewayId") for route in prod.of_type(ROUTE)}
    for zone in platform("prod").network.zones:
        assert routes[f"prod-private-{zone}-internet"] == f"id-prod-nat-{zone}"


def test_a_single_nat_gateway_serves_every_zone() -> None:
    single = record(changed(platform("prod"), network__nat="single"))
    assert len(single.of_type("aws:ec2/natGateway:NatGateway")) == 1
    gateways = {route.inputs["natGatewayId"] for route in single.of_type(ROUTE) if "natGatewayId" in route.inputs}
    assert gateways == {"id-prod-nat-us-east-1a"}


def test_images_and_checkpoints_do_not_pass_through_nat(prod: Recording) -> None:
    endpoints = {endpoint.inputs["serviceName"]: endpoint.inputs for endpoint in prod.of_type(ENDPOINT)}
    s3 = endpoints.pop("com.amazonaws.us-east-1.s3")
    assert sorted(s3["routeTableIds"]) == [f"id-prod-private-{zone}" for zone in platform("prod").network.zones]
    assert set(endpoints) == {f"com.amazonaws.us-east-1.{service}" for service in ("ecr.api", "ecr.dkr", "sts")}
    assert all(endpoint["privateDnsEnabled"] for endpoint in endpoints.values())


def test_as_many_endpoints_are_priced_as_there_are(prod: Recording) -> None:
    kinds = [endpoint.inputs["vpcEndpointType"] for endpoint in prod.of_type(ENDPOINT)]
    assert kinds.count("Interface") == NUM_INTERFACE_ENDPOINTS


def test_all_flows_are_logged_by_a_role_that_can_do_nothing_else(prod: Recording) -> None:
    (flows,) = prod.of_type("aws:ec2/flowLog:FlowLog")
    assert flows.inputs["trafficType"] == "ALL"
    policy = prod.named("prod-flow-logs-policy", "aws:iam/rolePolicy:RolePolicy").inputs["policy"]
    (allowed,) = statements(policy)
    assert allowed["Resource"] == f"{flows.inputs['logDestination']}:*"
    trust = json.loads(prod.named("prod-flow-logs", "aws:iam/role:Role").inputs["assumeRolePolicy"])
    assert trust["Statement"][0]["Principal"] == {"Service": "vpc-flow-logs.amazonaws.com"}
