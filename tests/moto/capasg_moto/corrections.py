"""All corrections, in one list."""

from . import groups, launches, network, templates


def install() -> None:
    """Applies every correction; called once, before the first request."""
    for module in (templates, groups, launches, network):
        module.install()
