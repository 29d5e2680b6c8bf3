"""Auto Scaling groups: their settings, hooks and terminations."""

import copy
from contextlib import contextmanager

from moto.autoscaling.exceptions import AutoscalingClientError, ValidationError
from moto.autoscaling.models import AutoScalingBackend, FakeAutoScalingGroup, TerminateInstanceActivity
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.exceptions import ServiceException
from moto.core.responses import ActionResult

from .uses import count

# Settings of a group that moto reads from no request: the parameter, and the attribute that answers contain.
_SETTINGS = {
    "DefaultCooldown": "default_cooldown",
    "DefaultInstanceWarmup": "default_instance_warmup",
    "InstanceMaintenancePolicy": "instance_maintenance_policy",
    "InstanceLifecyclePolicy": "instance_lifecycle_policy",
    "CapacityRebalance": "capacity_rebalance",
    "HealthCheckGracePeriod": "health_check_grace_period",
    "MaxInstanceLifetime": "max_instance_lifetime",
    "TerminationPolicies": "termination_policies",
}


def _remember(response, group) -> None:
    # AWS: CreateAutoScalingGroup and UpdateAutoScalingGroup store each of these, also the value 0.
    # moto: ignores them at an update, replaces 0 by the default, and does not know the newer ones.
    given = response._get_params()
    for parameter, attribute in _SETTINGS.items():
        if parameter in given and getattr(group, attribute, None) != given[parameter]:
            count("group-settings")
            setattr(group, attribute, given[parameter])


@contextmanager
def _template_errors():
    # AWS: a group whose launch template cannot launch is refused with a ValidationError. moto: answers with the error of EC2 or
    # IAM, whose code the action does not have.
    try:
        yield
    except AutoscalingClientError:
        raise
    except ServiceException as error:
        count("template-errors")
        raise ValidationError(f"You must use a valid fully-formed launch template. {error.message}") from error


def _create() -> None:
    # AWS: LifecycleHookSpecificationList creates the hooks with the group. moto: ignores it.
    original = AutoScalingResponse.create_auto_scaling_group

    def create_auto_scaling_group(self):
        name = self._get_param("AutoScalingGroupName")
        # AWS: AlreadyExists. moto: replaces the group, and its instances run on without a group.
        if name in self.autoscaling_backend.autoscaling_groups:
            count("group-already-exists")
            raise _AlreadyExists(name)
        with _template_errors():
            answer = original(self)
        for hook in self._get_param("LifecycleHookSpecificationList", []):
            count("hooks-at-creation")
            self.autoscaling_backend.create_lifecycle_hook(
                name=hook["LifecycleHookName"],
                as_name=name,
                transition=hook["LifecycleTransition"],
                timeout=hook.get("HeartbeatTimeout"),
                result=hook.get("DefaultResult"),
            )
        _remember(self, self.autoscaling_backend.autoscaling_groups[name])
        return answer

    AutoScalingResponse.create_auto_scaling_group = create_auto_scaling_group


class _AlreadyExists(AutoscalingClientError):
    code = "AlreadyExists"

    def __init__(self, name: str):
        super().__init__(f"AutoScalingGroup by this name already exists - A group with the name {name} already exists")


def _update() -> None:
    # AWS: an update changes what it names. moto: an update without MixedInstancesPolicy removes the group's policy.
    original = FakeAutoScalingGroup.update

    def update(self, *args, **kwargs):
        if kwargs.get("mixed_instances_policy") is None and not kwargs.get("launch_template"):
            if self.mixed_instances_policy:
                count("update-keeps-policy")
                policy = copy.deepcopy(self.mixed_instances_policy)
                # moto added the name of the template to its ID, and accepts only one of them.
                policy["LaunchTemplate"]["LaunchTemplateSpecification"].pop("LaunchTemplateName", None)
                kwargs["mixed_instances_policy"] = policy
        original(self, *args, **kwargs)

    FakeAutoScalingGroup.update = update
    respond = AutoScalingResponse.update_auto_scaling_group

    def update_auto_scaling_group(self):
        with _template_errors():
            answer = respond(self)
        _remember(self, self.autoscaling_backend.autoscaling_groups[self._get_param("AutoScalingGroupName")])
        return answer

    AutoScalingResponse.update_auto_scaling_group = update_auto_scaling_group


def _launch_or_policy() -> None:
    # AWS: a group has either a launch template or a policy for mixed instances, and describes only that one.
    # moto: describes the template of the policy as the template of the group as well.
    original = FakeAutoScalingGroup.launch_template.fget

    def launch_template(self):
        return None if self.mixed_instances_policy else original(self)

    FakeAutoScalingGroup.launch_template = property(launch_template)


def _terminate() -> None:
    # AWS: up to 100 InstanceIds with AutoScalingGroupName; the answer has Activities. moto: knows InstanceId only, and fails
    # on an instance that is in no group with an internal error.
    original = AutoScalingResponse.terminate_instance_in_auto_scaling_group

    def terminate_instance_in_auto_scaling_group(self):
        wanted = self._get_param("InstanceIds", [])
        single = self._get_param("InstanceId")
        if single:
            if not self.autoscaling_backend.describe_auto_scaling_instances([single]):
                raise ValidationError(f"Instance Id not found - No managed instance found for instance ID: {single}")
            return original(self)
        count("terminate-several")
        name = self._get_param("AutoScalingGroupName")
        group = self.autoscaling_backend.autoscaling_groups.get(name)
        if group is None:
            raise ValidationError("AutoScalingGroup name not found - null")
        states = {state.instance.id: state for state in group.instance_states}
        for instance in wanted:
            if instance not in states:
                raise ValidationError(f"Instance Id not found - No managed instance found for instance ID: {instance}")
        decrement = self._get_bool_param("ShouldDecrementDesiredCapacity", False)
        before = group.desired_capacity
        self.autoscaling_backend.detach_instances(name, wanted, decrement)
        self.autoscaling_backend.ec2_backend.terminate_instances(wanted)
        activities = [TerminateInstanceActivity(states[instance].instance, before) for instance in wanted]
        return ActionResult({"Activities": activities})

    AutoScalingResponse.terminate_instance_in_auto_scaling_group = terminate_instance_in_auto_scaling_group


def _delete() -> None:
    # AWS: ForceDelete terminates all instances, protected ones as well; without it a group with instances stays.
    # moto: ignores ForceDelete, and instances with scale-in protection run on without a group.
    original = AutoScalingBackend.delete_auto_scaling_group

    def delete_auto_scaling_group(self, group_name):
        group = self.autoscaling_groups.get(group_name)
        for state in group.instance_states if group else []:
            if state.protected_from_scale_in:
                count("delete-protected-instances")
                state.protected_from_scale_in = False
        original(self, group_name)
        for key in [key for key, hook in self.lifecycle_hooks.items() if hook.auto_scaling_group_name == group_name]:
            del self.lifecycle_hooks[key]

    AutoScalingBackend.delete_auto_scaling_group = delete_auto_scaling_group
    respond = AutoScalingResponse.delete_auto_scaling_group

    def delete(self):
        group = self.autoscaling_backend.autoscaling_groups.get(self._get_param("AutoScalingGroupName"))
        if group and group.instance_states and not self._get_bool_param("ForceDelete", False):
            count("delete-needs-force")
            raise _ResourceInUse()
        return respond(self)

    AutoScalingResponse.delete_auto_scaling_group = delete


class _ResourceInUse(AutoscalingClientError):
    code = "ResourceInUse"

    def __init__(self) -> None:
        super().__init__(
            "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) "
            "still in the group."
        )


def _capacity_in_bounds() -> None:
    # AWS: SetDesiredCapacity outside of MinSize and MaxSize is a ValidationError. moto: accepts it.
    original = AutoScalingResponse.set_desired_capacity

    def set_desired_capacity(self):
        group = self.autoscaling_backend.autoscaling_groups.get(self._get_param("AutoScalingGroupName"))
        if group is None:
            raise ValidationError("AutoScalingGroup name not found - null")
        desired = self._get_int_param("DesiredCapacity")
        for bound, breaks in (("min", desired < group.min_size), ("max", desired > group.max_size)):
            if breaks:
                count("capacity-in-bounds")
                side = "below" if bound == "min" else "above"
                value = group.min_size if bound == "min" else group.max_size
                raise ValidationError(f"New SetDesiredCapacity value {desired} is {side} {bound} value {value} for the AutoScalingGroup.")
        return original(self)

    AutoScalingResponse.set_desired_capacity = set_desired_capacity


def install() -> None:
    """Applies the corrections of this module."""
    _create()
    _update()
    _launch_or_policy()
    _terminate()
    _delete()
    _capacity_in_bounds()
