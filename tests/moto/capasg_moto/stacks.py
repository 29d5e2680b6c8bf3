"""CloudFormation stacks with IAM roles and policies."""

import sys
from types import ModuleType

import yaml


class _NotInstalled(ModuleType):
    """A package that is imported and never called."""

    __path__ = []

    def __getattr__(self, name: str) -> type:
        return Exception


# moto imports every service when it reads a stack; that of API Gateway, which nothing here calls, requires this package.
for _name in ("", ".validation", ".validation.exceptions"):
    _name = f"openapi_spec_validator{_name}"
    sys.modules.setdefault(_name, _NotInstalled(_name))

from moto.cloudformation.parsing import ResourceMap  # noqa: E402
from moto.iam.models import Role  # noqa: E402

from .uses import count  # noqa: E402


def _versions_of_policies() -> None:
    # AWS: the version of a policy document, such as 2012-10-17, is text. moto: reads it as a date, which it cannot write as JSON.
    def as_text(loader: yaml.Loader, node: yaml.ScalarNode) -> str:
        count("policy-version-in-stack")
        return loader.construct_scalar(node)

    yaml.Loader.add_constructor("tag:yaml.org,2002:timestamp", as_text)


def _roles_with_policies() -> None:
    # AWS: the deletion of a stack detaches its policies from its roles. moto: refuses to delete a role that has policies.
    original = ResourceMap._delete_resource

    def delete(self, resource, *args, **kwargs):
        if isinstance(resource, Role):
            for policy in list(resource.managed_policies.values()):
                count("role-in-stack")
                policy.detach_from(resource)
        original(self, resource, *args, **kwargs)

    ResourceMap._delete_resource = delete


def install() -> None:
    """Applies the corrections of this module."""
    _versions_of_policies()
    _roles_with_policies()
