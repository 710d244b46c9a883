"""A kernel with exactly one fault beside its twin without it, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import ascendtile.simulator as sim


def faults(launch: Callable[[], Any], **options: Any) -> list[Any]:
    """What a launch says is wrong."""
    with sim.device("ascend910b3", time=False, **options):
        return [w for w in launch().warnings if w.kind == "fault"]


class Pair(NamedTuple):
    """says: what the message of the wrong one must contain."""

    wrong: Callable[[], Any]
    right: Callable[[], Any]
    says: str

    def told(self, check: bool) -> list[Any]:
        """The faults of the wrong one, of which one is that; its twin must have none."""
        found = faults(self.wrong, check=check)
        assert any(self.says in w for w in found), found
        assert not faults(self.right, check=check)
        return found
