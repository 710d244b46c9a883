"""What if the machine were another one: the same sweep over changed figures of a product, in one table."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..simulator.errors import UsageError
from .exploration import Exploration
from .explore import explore


@dataclass(frozen=True)
class Variants:
    """One sweep for each changed machine, the unchanged one first (its key is ())."""

    names: tuple[str, ...]
    explorations: dict[tuple[Any, ...], Exploration]

    @property
    def usual(self) -> Exploration:
        """The sweep on the machine as it is."""
        return self.explorations[()]

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `ascendtile explore OP --what-if NAME=V1,V2 --json`."""
        rows = [
            {"set": dict(zip(self.names, key, strict=False)), **e.to_dict()}
            for key, e in self.explorations.items()
        ]
        return {"op": self.usual.op, "product": self.usual.product, "case": self.usual.case, "variants": rows}

    def __str__(self) -> str:
        from ..simulator.views import show

        return show("variants", self)


def what_if(what: Any, changes: Mapping[str, Sequence[Any]], **options: Any) -> Variants:
    """Explore on the product as it is, and with every combination of the values of its figures.

    changes: name of a figure ("buffers.ub", "memory.bandwidth_tb_per_s", "cores.cube_cores") -> values. options: of
    `explore`.
    """
    if not changes or not all(changes.values()):
        raise UsageError("what-if needs figures of the product with values, such as buffers.ub=128KiB,256KiB")
    overrides = dict(options.pop("overrides", None) or {})
    explorations = {(): explore(what, overrides=overrides, **options)}
    for values in itertools.product(*changes.values()):
        changed = {**overrides, **dict(zip(changes, values, strict=True))}
        explorations[values] = explore(what, overrides=changed, **options)
    return Variants(tuple(changes), explorations)
