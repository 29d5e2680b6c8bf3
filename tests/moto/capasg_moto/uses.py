"""Counts how often each correction changed an answer, so that a run can tell what had to be corrected."""

from collections import Counter
from threading import Lock

_LOCK = Lock()
_USES: Counter[str] = Counter()


def count(correction: str) -> None:
    """Records one use of a correction; its name is a heading of README.md."""
    with _LOCK:
        _USES[correction] += 1


def all_uses() -> dict[str, int]:
    """The corrections that were used, with the number of uses."""
    with _LOCK:
        return dict(sorted(_USES.items()))
