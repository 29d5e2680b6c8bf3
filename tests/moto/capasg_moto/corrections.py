"""All corrections, in one list."""

from . import groups, launches, network, stacks, templates


def install() -> None:
    """Applies every correction; called once, before the first request."""
    for module in (templates, groups, launches, network, stacks):
        module.install()
