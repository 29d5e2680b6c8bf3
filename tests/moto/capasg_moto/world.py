"""What the test does to the account beside the calls of AWS: what exists before, what runs, and what is left."""

import json
from collections.abc import Callable, Iterable

from moto.autoscaling.models import autoscaling_backends
from moto.core import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends
from moto.ec2.models.amis import Ami
from moto.elb.models import elb_backends
from moto.elbv2.models import elbv2_backends
from moto.iam.models import iam_backends
from moto.ssm.models import ssm_backends

from .uses import all_uses

# Kubernetes images of Cluster API Provider AWS are published by this account.
IMAGE_OWNER = "819546954734"


class World:
    """Serves `/_capasg/...`, and passes all other requests on."""

    def __init__(self, application: Callable):
        self._application = application

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if not path.startswith("/_capasg/"):
            return self._application(environ, start_response)
        _, _, name, *region = path.split("/")
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        status, answer = "200 OK", None
        try:
            if name == "ready":
                answer = {}
            elif name == "corrections":
                answer = all_uses()
            elif name == "left":
                answer = left(region[0])
            elif name == "instances":
                answer = instances(region[0])
            elif name == "seed":
                answer = seed(region[0], json.loads(body))
            else:
                status, answer = "404 Not Found", {"error": f"no {path}"}
        except Exception as error:  # The caller gets the reason; the server goes on.
            status, answer = "500 Internal Server Error", {"error": repr(error)}
        text = json.dumps(answer).encode()
        start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(text)))])
        return [text]


def seed(region: str, wanted: dict) -> dict:
    """Makes images, SSM parameters, key pairs and instance profiles that do not exist yet."""
    ec2 = ec2_backends[DEFAULT_ACCOUNT_ID][region]
    for image in wanted.get("images", []):
        ec2.amis[image["id"]] = Ami(
            ec2,
            image["id"],
            name=image["name"],
            description=image["name"],
            owner_id=IMAGE_OWNER,
            public=True,
            virtualization_type="hvm",
            architecture=image.get("architecture") or "x86_64",
            hypervisor="xen",
            root_device_type="ebs",
            root_device_name="/dev/sda1",
            region_name=f"{region}a",
            tags={"kubernetes_version": image["version"]} if image.get("version") else None,
        )
    ssm = ssm_backends[DEFAULT_ACCOUNT_ID][region]
    for name, value in wanted.get("parameters", {}).items():
        ssm.put_parameter(
            name=name,
            description="",
            value=value,
            parameter_type="String",
            allowed_pattern="",
            keyid="",
            overwrite=True,
            tags=[],
            data_type="text",
            tier=None,
            policies=None,
        )
    for name in wanted.get("keyPairs", []):
        if name not in ec2.key_pairs:
            ec2.create_key_pair(name, "ed25519", {})
    iam = iam_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for name in wanted.get("instanceProfiles", []):
        if name not in [profile.name for profile in iam.instance_profiles.values()]:
            iam.create_instance_profile(name, "/", [])
    return {}


def instances(region: str) -> list[dict]:
    """Running instances with what their kubelet would see."""
    ec2 = ec2_backends[DEFAULT_ACCOUNT_ID][region]
    return [
        {
            "id": instance.id,
            "zone": instance.placement.zone,
            "instanceType": instance.instance_type,
            "image": instance.image_id,
            "version": _version(ec2, instance.image_id),
            "hostname": instance.private_dns_name,
            "address": instance.private_ip,
            "userData": str(instance.user_data or ""),
        }
        for instance in ec2.all_running_instances()
    ]


def _version(ec2, image_id: str) -> str | None:
    image = ec2.amis.get(image_id)
    return image and next((tag["value"] for tag in image.get_tags() if tag["key"] == "kubernetes_version"), None)


def left(region: str) -> dict[str, list[str]]:
    """What exists in the Region beyond what every account has. Terminated instances and released addresses do not count."""
    ec2 = ec2_backends[DEFAULT_ACCOUNT_ID][region]
    default = next((vpc.id for vpc in ec2.vpcs.values() if vpc.is_default), None)
    groups = autoscaling_backends[DEFAULT_ACCOUNT_ID][region].autoscaling_groups
    everything = {
        "auto-scaling-groups": list(groups),
        "launch-templates": [template.name for template in ec2.launch_templates.values()],
        "instances": [i.id for i in ec2.all_instances() if i.state != "terminated"],
        "volumes": list(ec2.volumes),
        "load-balancers": [
            *elb_backends[DEFAULT_ACCOUNT_ID][region].load_balancers,
            *elbv2_backends[DEFAULT_ACCOUNT_ID][region].load_balancers,
        ],
        "target-groups": list(elbv2_backends[DEFAULT_ACCOUNT_ID][region].target_groups),
        "vpcs": [vpc.id for vpc in ec2.vpcs.values() if vpc.id != default],
        "subnets": [s.id for zone in ec2.subnets.values() for s in zone.values() if s.vpc_id != default],
        "security-groups": [
            group.id for in_vpc in ec2.groups.values() for group in in_vpc.values() if group.vpc_id != default
        ],
        "nat-gateways": [n.id for n in ec2.nat_gateways.values() if n.state != "deleted"],
        "internet-gateways": list(ec2.internet_gateways),
        "route-tables": [t.id for t in ec2.route_tables.values() if t.vpc_id != default],
        "elastic-addresses": [address.allocation_id for address in ec2.addresses],
        "network-interfaces": list(ec2.enis),
    }
    return {kind: ids for kind, ids in everything.items() if ids}
