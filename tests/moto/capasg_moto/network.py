"""Load balancers with names that resolve, and security group rules without ports."""

from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2.exceptions import DependencyViolationError
from moto.ec2.models import security_groups
from moto.ec2.models.dhcp_options import DHCPOptionsSet, DHCPOptionsSetBackend
from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ec2.models.instances import Instance
from moto.ec2.models.nat_gateways import NatGatewayBackend
from moto.ec2.models.subnets import SubnetBackend
from moto.elb import models as elb
from moto.elbv2 import models as elbv2

from .uses import count


def _free_address() -> str:
    # An address needs no resolver. The first load balancer is at 127.0.0.1, one beside it at 127.0.0.2, so that two clusters
    # can use the same port.
    balancers = [
        balancer
        for backends in (elb.elb_backends, elbv2.elbv2_backends)
        for backend in backends[DEFAULT_ACCOUNT_ID].values()
        for balancer in backend.load_balancers.values()
    ]
    taken = {balancer.dns_name for balancer in balancers}
    return next(address for n in range(1, 255) if (address := f"127.0.0.{n}") not in taken)


def _names() -> None:
    # AWS: the DNS name of a load balancer resolves. moto: the name is under amazonaws.com and leads nowhere.
    for model in (elb.LoadBalancer, elbv2.FakeLoadBalancer):
        original = model.__init__

        def initialize(self, *args, original=original, **kwargs):
            original(self, *args, **kwargs)
            count("load-balancer-name")
            self.dns_name = _free_address()

        model.__init__ = initialize


def _target_groups() -> None:
    # AWS: a load balancer without target groups has an empty list of them. moto: TargetGroupNotFound.
    original = elbv2.ELBv2Backend.describe_target_groups

    def describe_target_groups(self, load_balancer_arn, target_group_arns, names):
        try:
            return original(self, load_balancer_arn, target_group_arns, names)
        except elbv2.TargetGroupNotFoundError:
            if not load_balancer_arn:
                raise
            count("no-target-groups")
            return []

    elbv2.ELBv2Backend.describe_target_groups = describe_target_groups


def _rules_without_ports() -> None:
    # AWS: protocols other than TCP, UDP and ICMP have no ports; FromPort and ToPort may be absent or -1.
    # moto: converts the absent port to a number and fails with an internal error.
    original = security_groups.SecurityGroupRule.__init__

    def initialize(self, ec2_backend, ip_protocol, group_id, from_port, to_port, *args, **kwargs):
        if from_port is None and str(ip_protocol) != "-1":
            count("rule-without-ports")
            from_port, to_port = -1, -1
        original(self, ec2_backend, ip_protocol, group_id, from_port, to_port, *args, **kwargs)

    security_groups.SecurityGroupRule.__init__ = initialize


def _interfaces_of_instances() -> None:
    # AWS: an interface that was made with an instance is deleted with it. moto: keeps it, unless the request says so.
    original = Instance.prep_nics

    def prep_nics(self, nic_spec, *args, **kwargs):
        existing = {nic["NetworkInterfaceId"] for nic in nic_spec if nic.get("NetworkInterfaceId")}
        original(self, nic_spec, *args, **kwargs)
        for nic in self.nics.values():
            if nic.id not in existing and not nic.delete_on_termination:
                count("interface-deleted-with-instance")
                nic.delete_on_termination = True

    Instance.prep_nics = prep_nics


def _internal_names() -> None:
    # AWS: private names end with ec2.internal in us-east-1 and with <Region>.compute.internal elsewhere, also those of
    # interfaces; the DHCP options of a new VPC exist and have this domain. moto: interfaces have the domain of us-east-1
    # everywhere, and a new VPC refers to options that do not exist.
    original = NetworkInterface.__init__

    def initialize(self, ec2_backend, *args, **kwargs):
        original(self, ec2_backend, *args, **kwargs)
        name = getattr(self, "private_dns_name", None)
        if name and ec2_backend.region_name != "us-east-1":
            count("internal-names")
            self.private_dns_name = f"{name.split('.')[0]}.{ec2_backend.region_name}.compute.internal"
            for address in self.private_ip_addresses:
                if address.get("Primary"):
                    address["PrivateDnsName"] = self.private_dns_name

    NetworkInterface.__init__ = initialize
    describe = DHCPOptionsSetBackend.describe_dhcp_options

    def describe_dhcp_options(self, dhcp_options_ids=None, filters=None):
        if dhcp_options_ids != ["default"]:
            return describe(self, dhcp_options_ids, filters)
        count("internal-names")
        region = self.region_name
        domain = "ec2.internal" if region == "us-east-1" else f"{region}.compute.internal"
        options = DHCPOptionsSet(self, ["AmazonProvidedDNS"], [domain])
        options.id = "default"
        return [options]

    DHCPOptionsSetBackend.describe_dhcp_options = describe_dhcp_options


def _interfaces_of_gateways() -> None:
    # AWS: the interface of a NAT gateway is deleted with it. moto: keeps it.
    original = NatGatewayBackend.delete_nat_gateway

    def delete_nat_gateway(self, nat_gateway_id):
        gateway = original(self, nat_gateway_id)
        if self.enis.pop(self.nat_gateways[nat_gateway_id]._eni.id, None):
            count("interface-deleted-with-gateway")
        return gateway

    NatGatewayBackend.delete_nat_gateway = delete_nat_gateway


def _dependencies() -> None:
    # AWS: a subnet or a security group with network interfaces, and a group that a rule of another group names, cannot be
    # deleted: DependencyViolation. moto: deletes them.
    delete_subnet = SubnetBackend.delete_subnet

    def checked_subnet(self, subnet_id):
        if any(nic.subnet and nic.subnet.id == subnet_id for nic in self.enis.values()):
            count("dependency-of-subnet")
            raise DependencyViolationError(f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")
        return delete_subnet(self, subnet_id)

    SubnetBackend.delete_subnet = checked_subnet
    delete_group = security_groups.SecurityGroupBackend.delete_security_group

    def checked_group(self, name=None, group_id=None):
        if group_id:
            in_use = any(group.id == group_id for nic in self.enis.values() for group in nic.group_set)
            named = any(
                rule.source_group.get("GroupId") == group_id
                for in_vpc in self.groups.values()
                for group in in_vpc.values()
                if group.id != group_id
                for rule in [*group.ingress_rules, *group.egress_rules]
            )
            if in_use or named:
                count("dependency-of-security-group")
                raise DependencyViolationError(f"resource {group_id} has a dependent object")
        return delete_group(self, name, group_id)

    security_groups.SecurityGroupBackend.delete_security_group = checked_group


def install() -> None:
    """Applies the corrections of this module."""
    _names()
    _target_groups()
    _rules_without_ports()
    _interfaces_of_instances()
    _interfaces_of_gateways()
    _internal_names()
    _dependencies()
