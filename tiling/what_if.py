"""What if the machine were another one: the same sweep over changed figures of a product, in one table."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..simulator.device import current_device
from ..simulator.errors import UsageError
from ..simulator.products import Product, load_product
from ..simulator.record.files import picked
from ..simulator.record.lazy_views import PrintedRecord
from .explore import explore
from .results.exploration import Exploration


@dataclass(frozen=True)
class Variants(PrintedRecord):
    """One sweep for each changed machine, the unchanged one first (its key is ()).

    refused: machines that cannot be, and why: figures that have to change together, such as the numbers of cores, or a
    buffer that no tiling fits in.
    """

    names: tuple[str, ...]
    explorations: dict[tuple[Any, ...], Exploration]
    refused: dict[tuple[Any, ...], str] = field(default_factory=dict)

    @property
    def usual(self) -> Exploration:
        """The sweep on the machine as it is."""
        return self.explorations[()]

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `ascendtile explore OP --what-if NAME=V1,V2 --json`."""
        found = self.explorations.items()
        rows = [{"set": dict(zip(self.names, k, strict=False)), **e.documented()} for k, e in found]
        refused = [
            {"set": dict(zip(self.names, k, strict=True)), "why": why} for k, why in self.refused.items()
        ]
        return {**picked(self.usual, "op product case"), "variants": rows, "refused": refused}


def what_if(what: Any, changes: Mapping[str, Sequence[Any]], **options: Any) -> Variants:
    """Explore on the product as it is, and with every combination of the values of its figures.

    A combination that cannot be, such as more Vector cores than the Cube cores have, is listed and left out.

    changes: name of a figure ("buffers.ub", "memory.bandwidth_tb_per_s", "cores.cube_cores") -> values. options: of
    `explore`.
    """
    if not changes or not all(changes.values()):
        raise UsageError("what-if needs figures of the product with values, such as buffers.ub=128KiB,256KiB")
    overrides = dict(options.pop("overrides", None) or {})
    every = itertools.product(*changes.values())
    machines = {values: {**overrides, **dict(zip(changes, values, strict=True))} for values in every}
    refused = _refused(options.get("product"), machines)
    explorations = {(): explore(what, overrides=overrides, **options)}
    for values, changed in machines.items():
        if values not in refused:
            try:
                explorations[values] = explore(what, overrides=changed, **options)
            except UsageError as e:  # the usual machine takes what was asked: this one has no tiling for it
                refused[values] = str(e).splitlines()[0]
    return Variants(tuple(changes), explorations, refused)


def _refused(
    product: str | Product | None, machines: Mapping[tuple[Any, ...], Mapping[str, Any]]
) -> dict[tuple[Any, ...], str]:
    """Machines that cannot be, and why. Raises `UsageError` if none of them can."""
    name = product or current_device().product
    found: dict[tuple[Any, ...], str] = {}
    for values, changed in machines.items():
        try:
            load_product(name, overrides=changed)
        except UsageError as e:
            if len(found) + 1 == len(machines):
                raise
            found[values] = str(e).splitlines()[0]
    return found
