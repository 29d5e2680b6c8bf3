"""What a group launches: the version, the devices and the zone of its instances."""

from moto.autoscaling.models import ASG_NAME_TAG, FakeAutoScalingGroup, InstanceState
from moto.ec2.exceptions import InvalidParameterValue
from moto.ec2.models.instances import Instance, InstanceBackend
from moto.ec2.utils import filter_iam_instance_profiles
from moto.utilities.utils import get_partition

from .uses import count


def _instances_tell_their_version() -> None:
    # AWS: an instance of a group tells the launch template version that it was launched from.
    # moto: tells the default version of the template, whatever the group pins.
    def launch_template(self):
        return getattr(self, "launched_from", None)

    InstanceState.launch_template = property(launch_template)


def _groups_launch_their_version() -> None:
    # AWS: a group launches from the version that it names: image, user data, devices, profile, metadata options and tags;
    # it distributes instances over its subnets, and the first type of a policy for mixed instances wins.
    # moto: takes image, type and user data of that version, the rest of the default version or of none, and one subnet.
    def launch(self, count_needed, propagated_tags):
        if self.ec2_launch_template is None:
            return
        version = self.ec2_launch_template.get_version(self.launch_template_version)
        if version.number != self.ec2_launch_template.default_version_number:
            count("launch-pinned-version")
        data = version.data
        backend = self.autoscaling_backend.ec2_backend
        for _ in range(count_needed):
            specifications = {s["ResourceType"]: s["Tags"] for s in data.get("TagSpecifications", [])}
            tags = {
                kind: {tag["Key"]: tag["Value"] for tag in specifications.get(kind, [])}
                for kind in ("instance", "volume")
            }
            tags["instance"].update(propagated_tags)
            tags["instance"][ASG_NAME_TAG] = self.name
            profile = data.get("IamInstanceProfile") or {}
            if profile:
                # Before the instance runs, as AWS does: it would run on without a group.
                filter_iam_instance_profiles(
                    self.account_id, get_partition(self.region), profile.get("Arn"), profile.get("Name")
                )
            reservation = backend.run_instances(
                version.image_id,
                1,
                version.user_data,
                [],
                security_group_ids=list(data.get("SecurityGroupIds", [])),
                instance_type=_type(self, data),
                is_instance_type_default=False,
                key_name=data.get("KeyName"),
                metadata_options=data.get("MetadataOptions", {}),
                block_device_mappings=_devices(backend, version),
                placement=None,
                subnet_id=_subnet(self),
                associate_public_ip=None,
                tags=tags,
                nics=[],
                launch_template={},
                region_name=self.region,
            )
            instance = reservation.instances[0]
            instance.add_tags({
                "aws:ec2launchtemplate:id": self.ec2_launch_template.id,
                "aws:ec2launchtemplate:version": str(version.number),
            })
            if profile:
                backend.associate_iam_instance_profile(
                    instance_id=instance.id,
                    iam_instance_profile_name=profile.get("Name"),
                    iam_instance_profile_arn=profile.get("Arn"),
                )
            instance.autoscaling_group = self
            state = InstanceState(instance, protected_from_scale_in=self.new_instances_protected_from_scale_in)
            state.launched_from = {
                "LaunchTemplateId": self.ec2_launch_template.id,
                "LaunchTemplateName": self.ec2_launch_template.name,
                "Version": str(version.number),
            }
            self.instance_states.append(state)

    FakeAutoScalingGroup.replace_autoscaling_group_instances = launch


def _type(group, data) -> str:
    overrides = ((group.mixed_instances_policy or {}).get("LaunchTemplate") or {}).get("Overrides") or []
    types = [item["InstanceType"] for item in overrides if item.get("InstanceType")]
    return types[0] if types else data.get("InstanceType", "")


def _subnet(group) -> str | None:
    if not group.vpc_zone_identifier:
        return None
    subnets = [subnet.strip() for subnet in group.vpc_zone_identifier.split(",")]
    taken = [state.instance.subnet_id for state in group.instance_states]
    return min(subnets, key=taken.count)


def _devices(backend, version) -> list[dict]:
    # AWS: the root volume is deleted with the instance unless the template says otherwise.
    devices = [
        {**device, "Ebs": {"DeleteOnTermination": True, **device.get("Ebs", {})}}
        for device in version.data.get("BlockDeviceMappings", [])
    ]
    image = backend.amis.get(version.image_id)
    if image and not any(device["DeviceName"] == image.root_device_name for device in devices):
        ebs = {**image.block_device_mappings[0]["Ebs"], "DeleteOnTermination": True}
        devices.append({"DeviceName": image.root_device_name, "Ebs": ebs})
    return devices


def _volume_sizes() -> None:
    # AWS: the size of a volume without VolumeSize is that of the image's snapshot. moto: requires a size or a snapshot.
    original = Instance.add_block_device

    def add_block_device(self, size, device_path, snapshot_id, *args, **kwargs):
        if size is None and snapshot_id is None:
            count("volume-without-size")
            image = self.ec2_backend.amis.get(self.image_id)
            size = image.block_device_mappings[0]["Ebs"]["VolumeSize"] if image else 8
        original(self, size, device_path, snapshot_id, *args, **kwargs)

    Instance.add_block_device = add_block_device


def _architectures() -> None:
    # AWS: an image is launched on types of its architecture only. moto: launches it on any type.
    original = InstanceBackend.run_instances

    def run_instances(self, image_id, *args, **kwargs):
        image = self.amis.get(image_id)
        instance_type = kwargs.get("instance_type")
        known = [one for one in self.describe_instance_types() if one["InstanceType"] == instance_type]
        supported = known[0]["ProcessorInfo"]["SupportedArchitectures"] if known else []
        if image and supported and image.architecture not in supported:
            count("architecture-of-image")
            raise InvalidParameterValue(
                f"The architecture '{','.join(supported)}' of the specified instance type does not match the "
                f"architecture '{image.architecture}' of the specified AMI. Specify an instance type and an AMI that "
                "have matching architectures, and try again."
            )
        return original(self, image_id, *args, **kwargs)

    InstanceBackend.run_instances = run_instances


def install() -> None:
    """Applies the corrections of this module."""
    _instances_tell_their_version()
    _groups_launch_their_version()
    _volume_sizes()
    _architectures()
