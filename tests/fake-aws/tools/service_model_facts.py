#!/usr/bin/env python3
"""Writes testdata/service-model-facts.json from the installed botocore.

Usage:
    python3 -m venv venv
    venv/bin/pip install botocore
    venv/bin/python tests/fake-aws/tools/service_model_facts.py > tests/fake-aws/testdata/service-model-facts.json

Only facts are taken: names of operations, members, their wire names, types, which are required, enumerations and
bounds. No documentation text.

Format, per service: `operations` maps a name to its input and output shape; `shapes` maps a name to
`{"members": {member: shape or [shape, name in requests, name in replies]}, "required": [...]}`,
`{"list": shape, "item": element name, "flat": bool}` or `{"map": [key shape, value shape]}`.
A shape name that is not in `shapes` is a scalar: string, integer, long, float, double, boolean, timestamp or blob,
followed by its bounds `[min,max]` or its enumeration `{a,b}` where the model has one (left out for EC2: its
service checks those values itself, and its list of instance types alone is longer than the rest).
"""
import json
import sys

import botocore
import botocore.session

OPERATIONS = {
    "autoscaling": """CreateAutoScalingGroup DescribeAutoScalingGroups UpdateAutoScalingGroup DeleteAutoScalingGroup
        SetDesiredCapacity TerminateInstanceInAutoScalingGroup DescribeAutoScalingInstances DescribeScalingActivities
        CreateOrUpdateTags DeleteTags DescribeTags SetInstanceProtection SetInstanceHealth SuspendProcesses
        ResumeProcesses PutLifecycleHook DescribeLifecycleHooks DeleteLifecycleHook CompleteLifecycleAction
        RecordLifecycleActionHeartbeat AttachInstances DetachInstances EnterStandby ExitStandby StartInstanceRefresh
        DescribeInstanceRefreshes CancelInstanceRefresh RollbackInstanceRefresh""",
    "ec2": """CreateLaunchTemplate CreateLaunchTemplateVersion DescribeLaunchTemplates DescribeLaunchTemplateVersions
        DeleteLaunchTemplateVersions DeleteLaunchTemplate ModifyLaunchTemplate DescribeInstances TerminateInstances
        DescribeSubnets DescribeSecurityGroups DescribeSecurityGroupVpcAssociations DescribeImages DescribeSnapshots DescribeInstanceTypes DescribeInstanceTypeOfferings CreateTags DeleteTags
        DescribeInstanceStatus DescribeVpcs GetConsoleOutput DescribeInstanceAttribute""",
    "sqs": "DeleteMessage DeleteMessageBatch GetQueueAttributes GetQueueUrl ReceiveMessage SendMessage",
    "service-quotas": "GetServiceQuota",
    "ssm": "GetParameter GetParameters",
    "sts": "AssumeRole AssumeRoleWithWebIdentity GetCallerIdentity",
}


def scalar(shape, bounded):
    text = shape.type_name
    if shape.type_name not in ("string", "integer", "long", "float", "double"):
        return text
    if bounded and getattr(shape, "enum", None):
        return text + "{" + ",".join(shape.enum) + "}"
    low, high = shape.metadata.get("min"), shape.metadata.get("max")
    if bounded and (low is not None or high is not None):
        return f"{text}[{'' if low is None else low},{'' if high is None else high}]"
    return text


def reference(shape, shapes, protocol, bounded):
    if shape.type_name == "structure":
        if shape.name not in shapes:
            entry = shapes[shape.name] = {"members": {}}
            required = shape.metadata.get("required", [])
            if required:
                entry["required"] = sorted(required)
            for name, member in shape.members.items():
                reply = member.serialization.get("name", name)
                request = name
                if protocol == "ec2":
                    wire = member.serialization.get("name")
                    request = member.serialization.get("queryName") or (wire[:1].upper() + wire[1:] if wire else name)
                elif protocol == "query":
                    request = reply
                else:
                    request = reply = name
                fact = reference(member, shapes, protocol, bounded)
                entry["members"][name] = fact if request == reply == name else [fact, request, reply]
        return shape.name
    if shape.type_name == "list":
        key = shape.name
        if key not in shapes:
            entry = shapes[key] = {}
            low, high = shape.metadata.get("min"), shape.metadata.get("max")
            if bounded and (low is not None or high is not None):
                entry["bounds"] = [low, high]
            entry["list"] = reference(shape.member, shapes, protocol, bounded)
            entry["item"] = shape.member.serialization.get("name", "member")
            entry["flat"] = bool(shape.serialization.get("flattened"))
        return key
    if shape.type_name == "map":
        shapes[shape.name] = {"map": [reference(shape.key, shapes, protocol, bounded),
                                      reference(shape.value, shapes, protocol, bounded)]}
        return shape.name
    return scalar(shape, bounded)


def main():
    session = botocore.session.get_session()
    services = {}
    for service, names in OPERATIONS.items():
        model = session.get_service_model(service)
        protocol = model.metadata["protocol"]
        shapes, operations = {}, {}
        for name in sorted(names.split()):
            operation = model.operation_model(name)
            entry = operations[name] = {}
            if operation.input_shape:
                entry["input"] = reference(operation.input_shape, shapes, protocol, protocol != "ec2")
            if operation.output_shape:
                entry["output"] = reference(operation.output_shape, shapes, protocol, protocol != "ec2")
        # The simulator knows a service by the name in the credential scope.
        services[model.signing_name] = {
            "protocol": protocol,
            "version": model.api_version,
            "namespace": model.metadata.get("xmlNamespace", ""),
            "operations": operations,
            "shapes": dict(sorted(shapes.items())),
        }
    out = sys.stdout
    out.write('{"botocore": %s, "services": {\n' % json.dumps(botocore.__version__))
    for index, (service, facts) in enumerate(services.items()):
        out.write('%s: {"protocol": %s, "version": %s, "namespace": %s,\n' % tuple(
            json.dumps(value) for value in (service, facts["protocol"], facts["version"], facts["namespace"])))
        for part in ("operations", "shapes"):
            rows = [f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in facts[part].items()]
            out.write(f'"{part}": {{\n' + ",\n".join(rows) + "\n}" + ("" if part == "shapes" else ",") + "\n")
        out.write("}" + ("," if index + 1 < len(services) else "") + "\n")
    out.write("}}\n")


main()
