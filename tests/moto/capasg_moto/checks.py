"""Shows that each correction is needed and works: `python -m capasg_moto.checks` calls moto with and without them.

A check that succeeds without its correction means that moto was corrected, and that the correction can be removed.
"""

import base64
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from socket import socket
from uuid import uuid4

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

CHECKS: dict[str, Callable] = {}
IMAGE = "ami-0a1b2c3d"


def check(correction: str):
    """Registers a check under the name of its correction."""

    def register(function: Callable) -> Callable:
        CHECKS[correction] = function
        return function

    return register


class Account:
    """Clients of one server, and a network to launch in."""

    def __init__(self, port: int):
        self._port = port
        for service in ("ec2", "autoscaling", "elb", "elbv2", "cloudformation"):
            setattr(self, service, self._client(service))

    def _client(self, service: str):
        return boto3.client(
            service,
            endpoint_url=f"http://127.0.0.1:{self._port}",
            region_name="eu-west-1",
            aws_access_key_id="a",
            aws_secret_access_key="b",
            config=Config(retries={"max_attempts": 1}),
        )

    @cached_property
    def vpc(self) -> str:
        return self.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]

    @cached_property
    def subnets(self) -> list[str]:
        zones = enumerate(("eu-west-1a", "eu-west-1b"))
        return [
            self.ec2.create_subnet(VpcId=self.vpc, CidrBlock=f"10.0.{n}.0/24", AvailabilityZone=zone)["Subnet"][
                "SubnetId"
            ]
            for n, zone in zones
        ]

    def security_group(self) -> str:
        return self.ec2.create_security_group(GroupName=str(uuid4()), Description="check", VpcId=self.vpc)["GroupId"]

    def template(self, *user_data: str) -> str:
        """A launch template with one version for each user data; the first is the default version."""
        first, *others = [_data(text) for text in user_data]
        template = self.ec2.create_launch_template(LaunchTemplateName=str(uuid4()), LaunchTemplateData=first)
        template_id = template["LaunchTemplate"]["LaunchTemplateId"]
        for data in others:
            self.ec2.create_launch_template_version(LaunchTemplateId=template_id, LaunchTemplateData=data)
        return template_id

    def group(self, template: str | None = None, version: str = "1", **more) -> str:
        name = str(uuid4())
        if "MixedInstancesPolicy" not in more:
            more["LaunchTemplate"] = {"LaunchTemplateId": template or self.template("one"), "Version": version}
        self.autoscaling.create_auto_scaling_group(
            **{
                "AutoScalingGroupName": name,
                "MinSize": 0,
                "MaxSize": 4,
                "DesiredCapacity": 2,
                "VPCZoneIdentifier": ",".join(self.subnets),
                **more,
            }
        )
        return name

    def described(self, group: str) -> dict:
        groups = self.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[group])
        return groups["AutoScalingGroups"][0]

    def instance_ids(self, group: str) -> list[str]:
        return [instance["InstanceId"] for instance in self.described(group)["Instances"]]

    def instances(self, group: str) -> list[dict]:
        reservations = self.ec2.describe_instances(InstanceIds=self.instance_ids(group))["Reservations"]
        return [instance for reservation in reservations for instance in reservation["Instances"]]


def _data(user_data: str) -> dict:
    return {
        "ImageId": IMAGE,
        "InstanceType": "m7i.large",
        "UserData": base64.b64encode(user_data.encode()).decode(),
        "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeType": "gp3", "Encrypted": True}}],
        "MetadataOptions": {"HttpTokens": "required"},
    }


def refused(code: str, call: Callable, **arguments) -> None:
    """Requires that a call is refused with this error code."""
    try:
        call(**arguments)
    except ClientError as error:
        assert error.response["Error"]["Code"] == code, error
    else:
        raise AssertionError(f"not refused with {code}")


@check("launch-template-version-user-data")
def _(aws: Account) -> None:
    group = aws.group(aws.template("one", "two"), "2")
    for instance in aws.instance_ids(group):
        attribute = aws.ec2.describe_instance_attribute(InstanceId=instance, Attribute="userData")
        assert base64.b64decode(attribute["UserData"]["Value"]) == b"two"


@check("delete-launch-template-versions")
def _(aws: Account) -> None:
    template = aws.template("one", "two", "three")
    aws.ec2.delete_launch_template_versions(LaunchTemplateId=template, Versions=["2"])
    created = aws.ec2.create_launch_template_version(LaunchTemplateId=template, LaunchTemplateData=_data("four"))
    assert created["LaunchTemplateVersion"]["VersionNumber"] == 4
    versions = aws.ec2.describe_launch_template_versions(LaunchTemplateId=template)["LaunchTemplateVersions"]
    assert [version["VersionNumber"] for version in versions] == [1, 3, 4]


@check("launch-pinned-version")
def _(aws: Account) -> None:
    group = aws.group(aws.template("one", "two"), "2")
    assert {i["LaunchTemplate"]["Version"] for i in aws.described(group)["Instances"]} == {"2"}
    for instance in aws.instances(group):
        assert instance["MetadataOptions"]["HttpTokens"] == "required"
    assert len({instance["SubnetId"] for instance in aws.instances(group)}) == 2


@check("volume-without-size")
def _(aws: Account) -> None:
    for instance in aws.instances(aws.group()):
        assert len(instance["BlockDeviceMappings"]) == 1
        assert instance["BlockDeviceMappings"][0]["Ebs"]["DeleteOnTermination"]


@check("architecture-of-image")
def _(aws: Account) -> None:
    refused(
        "InvalidParameterValue",
        aws.ec2.run_instances,
        ImageId=IMAGE,
        InstanceType="m7g.large",
        SubnetId=aws.subnets[0],
        MinCount=1,
        MaxCount=1,
    )


@check("group-settings")
def _(aws: Account) -> None:
    group = aws.group(DefaultCooldown=0, HealthCheckGracePeriod=0)
    policy = {"MinHealthyPercentage": 100, "MaxHealthyPercentage": 110}
    aws.autoscaling.update_auto_scaling_group(
        AutoScalingGroupName=group, InstanceMaintenancePolicy=policy, DefaultInstanceWarmup=0
    )
    described = aws.described(group)
    assert described["DefaultCooldown"] == described["HealthCheckGracePeriod"] == 0
    assert described["InstanceMaintenancePolicy"] == policy


@check("group-already-exists")
def _(aws: Account) -> None:
    group = aws.group()
    refused("AlreadyExists", aws.group, AutoScalingGroupName=group)


@check("template-errors")
def _(aws: Account) -> None:
    running = [{"Name": "instance-state-name", "Values": ["running"]}]
    before = len(aws.ec2.describe_instances(Filters=running)["Reservations"])
    for wrong in ({"ImageId": "ami-0ffffffff"}, {"IamInstanceProfile": {"Name": "no-such-profile"}}):
        data = {**_data("one"), **wrong}
        created = aws.ec2.create_launch_template(LaunchTemplateName=str(uuid4()), LaunchTemplateData=data)
        refused("ValidationError", aws.group, template=created["LaunchTemplate"]["LaunchTemplateId"])
    assert len(aws.ec2.describe_instances(Filters=running)["Reservations"]) == before


@check("hooks-at-creation")
def _(aws: Account) -> None:
    hook = {"LifecycleHookName": "h", "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING"}
    group = aws.group(LifecycleHookSpecificationList=[hook])
    assert aws.autoscaling.describe_lifecycle_hooks(AutoScalingGroupName=group)["LifecycleHooks"]


@check("update-keeps-policy")
def _(aws: Account) -> None:
    specification = {"LaunchTemplateId": aws.template("one"), "Version": "1"}
    launch = {"LaunchTemplateSpecification": specification, "Overrides": [{"InstanceType": "m7i.large"}]}
    group = aws.group(MixedInstancesPolicy={"LaunchTemplate": launch})
    aws.autoscaling.update_auto_scaling_group(AutoScalingGroupName=group, MaxSize=5)
    described = aws.described(group)
    assert described["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"] and "LaunchTemplate" not in described


@check("terminate-several")
def _(aws: Account) -> None:
    group = aws.group()
    answer = aws.autoscaling.terminate_instance_in_auto_scaling_group(
        AutoScalingGroupName=group, InstanceIds=aws.instance_ids(group), ShouldDecrementDesiredCapacity=True
    )
    assert len(answer["Activities"]) == 2 and aws.described(group)["DesiredCapacity"] == 0


@check("delete-protected-instances")
def _(aws: Account) -> None:
    group = aws.group(NewInstancesProtectedFromScaleIn=True)
    instances = aws.instance_ids(group)
    aws.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=group, ForceDelete=True)
    reservations = aws.ec2.describe_instances(InstanceIds=instances)["Reservations"]
    assert {i["State"]["Name"] for reservation in reservations for i in reservation["Instances"]} == {"terminated"}


@check("delete-needs-force")
def _(aws: Account) -> None:
    refused("ResourceInUse", aws.autoscaling.delete_auto_scaling_group, AutoScalingGroupName=aws.group())


@check("capacity-in-bounds")
def _(aws: Account) -> None:
    refused(
        "ValidationError", aws.autoscaling.set_desired_capacity, AutoScalingGroupName=aws.group(), DesiredCapacity=9
    )


@check("load-balancer-name")
def _(aws: Account) -> None:
    listener = {"Protocol": "TCP", "LoadBalancerPort": 6443, "InstancePort": 6443}
    balancer = aws.elb.create_load_balancer(
        LoadBalancerName=str(uuid4())[:18], Listeners=[listener], Subnets=aws.subnets
    )
    assert balancer["DNSName"].startswith("127.0.0.")


@check("no-target-groups")
def _(aws: Account) -> None:
    balancer = aws.elbv2.create_load_balancer(Name=str(uuid4())[:18], Type="network", Subnets=aws.subnets)
    arn = balancer["LoadBalancers"][0]["LoadBalancerArn"]
    assert aws.elbv2.describe_target_groups(LoadBalancerArn=arn)["TargetGroups"] == []


@check("rule-without-ports")
def _(aws: Account) -> None:
    rule = {"IpProtocol": "4", "IpRanges": [{"CidrIp": "10.0.0.0/8"}]}
    aws.ec2.authorize_security_group_ingress(GroupId=aws.security_group(), IpPermissions=[rule])


@check("interface-deleted-with-instance")
def _(aws: Account) -> None:
    answer = aws.ec2.run_instances(
        ImageId=IMAGE, InstanceType="m7i.large", SubnetId=aws.subnets[0], MinCount=1, MaxCount=1
    )
    instance = answer["Instances"][0]
    aws.ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    wanted = [instance["NetworkInterfaces"][0]["NetworkInterfaceId"]]
    filters = [{"Name": "network-interface-id", "Values": wanted}]
    assert not aws.ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"]


@check("internal-names")
def _(aws: Account) -> None:
    aws.ec2.modify_vpc_attribute(VpcId=aws.vpc, EnableDnsHostnames={"Value": True})
    for instance in aws.instances(aws.group()):
        assert instance["NetworkInterfaces"][0]["PrivateDnsName"] == instance["PrivateDnsName"]
    options = aws.ec2.describe_vpcs(VpcIds=[aws.vpc])["Vpcs"][0]["DhcpOptionsId"]
    assert aws.ec2.describe_dhcp_options(DhcpOptionsIds=[options])["DhcpOptions"]


@check("interface-deleted-with-gateway")
def _(aws: Account) -> None:
    address = aws.ec2.allocate_address(Domain="vpc")["AllocationId"]
    gateway = aws.ec2.create_nat_gateway(SubnetId=aws.subnets[0], AllocationId=address)["NatGateway"]["NatGatewayId"]
    aws.ec2.delete_nat_gateway(NatGatewayId=gateway)
    filters = [{"Name": "subnet-id", "Values": aws.subnets[:1]}]
    assert not aws.ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"]


@check("dependency-of-subnet")
def _(aws: Account) -> None:
    subnet = aws.ec2.create_subnet(VpcId=aws.vpc, CidrBlock="10.0.99.0/24")["Subnet"]["SubnetId"]
    aws.ec2.run_instances(ImageId=IMAGE, InstanceType="m7i.large", SubnetId=subnet, MinCount=1, MaxCount=1)
    refused("DependencyViolation", aws.ec2.delete_subnet, SubnetId=subnet)


@check("dependency-of-security-group")
def _(aws: Account) -> None:
    first, second = aws.security_group(), aws.security_group()
    rule = {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, "UserIdGroupPairs": [{"GroupId": first}]}
    aws.ec2.authorize_security_group_ingress(GroupId=second, IpPermissions=[rule])
    refused("DependencyViolation", aws.ec2.delete_security_group, GroupId=first)


STACK = """
Resources:
  role:
    Type: AWS::IAM::Role
    Properties: {RoleName: NAME, AssumeRolePolicyDocument: {Version: 2012-10-17, Statement: []}}
  policy:
    Type: AWS::IAM::ManagedPolicy
    Properties:
      Roles: [{Ref: role}]
      PolicyDocument: {Version: 2012-10-17, Statement: [{Effect: Allow, Action: "ec2:*", Resource: "*"}]}
"""


def _stack(aws: Account) -> str:
    name = f"stack-{uuid4().hex[:8]}"
    aws.cloudformation.create_stack(StackName=name, TemplateBody=STACK.replace("NAME", name))
    return name


@check("policy-version-in-stack")
def _(aws: Account) -> None:
    resources = aws.cloudformation.describe_stack_resources(StackName=_stack(aws))["StackResources"]
    assert len(resources) == 2, resources


@check("role-in-stack")
def _(aws: Account) -> None:
    name = _stack(aws)
    aws.cloudformation.delete_stack(StackName=name)
    stacks = aws.cloudformation.list_stacks(StackStatusFilter=["CREATE_COMPLETE"])["StackSummaries"]
    assert name not in [stack["StackName"] for stack in stacks], stacks


@contextmanager
def _server(*arguments: str) -> Iterator[int]:
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "capasg_moto", f"--port={port}", f"--calls={folder}/calls", *arguments]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                deadline = time.monotonic() + 600
                while not _seeded(port):
                    if process.poll() is not None or time.monotonic() > deadline:
                        raise SystemExit("the server does not answer")
                    time.sleep(0.2)
                yield port
            finally:
                process.terminate()


def _seeded(port: int) -> bool:
    url = f"http://127.0.0.1:{port}/_capasg/seed/eu-west-1"
    seed = f'{{"images": [{{"id": "{IMAGE}", "name": "check"}}]}}'.encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data=seed)) as answer:
            return answer.status == 200
    except OSError:
        return False


def main() -> int:
    """Runs every check against both servers."""
    wrong = 0
    with _server() as corrected, _server("--uncorrected") as original:
        for name, run in CHECKS.items():
            fails = {}
            for server, port in (("corrected", corrected), ("original", original)):
                try:
                    run(Account(port))
                except Exception as error:  # Any failure counts; the reason is printed where it matters.
                    fails[server] = error
            if "corrected" in fails:
                verdict = f"FAILED: {fails['corrected']!r}"
            elif "original" not in fails:
                verdict = "FAILED: moto does this without the correction"
            else:
                verdict = "ok"
            wrong += verdict != "ok"
            print(f"{name}: {verdict}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
