"""The tree of a trace while it is made: instructions whose numbers differ between lanes, and loops of them.

A lane is a program, or an iteration of a program. Numbers of a loop's body come iteration after iteration; those of a loop
inside another come iteration after iteration of the inner one, and each has those of the outer one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...interpreter.regions import AccessRegion
from ...interpreter.tensors import Tensor

Slots = tuple[int, ...]
FIRST, SECOND, BOTH = (0,), (1,), (0, 1)  # Vector cores of a program
# What an instruction may have a number a lane of.
_OF_LANES = ("occupancy", "amount", "share", "partial", "slow", "waits")


class GlobalAccess(NamedTuple):
    """Where a load reads or a store writes global memory."""

    tensor: Tensor
    region: AccessRegion
    write: bool


class Path(NamedTuple):
    """What memory gives or takes goes through channels[0], what L2 does through [1]; lines: numbers of the source line with
    the grades of both."""

    channels: tuple[int, int]
    lines: tuple[int, int]


class Instruction(NamedTuple):
    """A record of a program, or of each iteration of a loop.

    occupancy, amount, slow: one number, or one for each lane. slow: occupancy of a load from memory; None where it is that
    of a load from L2. late: cycles that a load from memory is usable later than one from L2. waits: lanes whose bytes
    another core loads from memory at that moment. partial: lanes that have it, None for all. access: where a transfer reads
    or writes. share: which part of a load comes from memory (of a store: whether it goes at memory's pace). cores: the
    Vector cores that have it, where a program has two. stage: of the loop's body that it belongs to, where these run apart.
    """

    pipe: int
    line: int
    occupancy: Any
    latency: float = 0.0
    channel: int = -1
    amount: Any = 0
    instructions: int = 1
    reads: Slots = ()
    writes: Slots = ()
    clobbers: Slots = ()
    path: Path | None = None
    access: GlobalAccess | None = None
    share: np.ndarray | None = None
    partial: np.ndarray | None = None
    slow: Any = None
    cores: Slots = FIRST
    stage: int = 0
    late: float = 0.0
    waits: np.ndarray | None = None

    @property
    def same_in_all(self) -> bool:
        """Whether all lanes have it, with the same numbers."""
        return (
            self.path is None
            and self.share is None
            and self.partial is None
            and not isinstance(self.occupancy, np.ndarray)
            and not isinstance(self.amount, np.ndarray)
        )


class Loop(NamedTuple):
    """gains: what an iteration adds to counts (see rotating.py).

    ahead: iterations of which one stage of the body runs before the next stage does; 1 where the body runs as a whole.
    """

    trip_count: int
    body: list[Any]  # of `Instruction` and `Loop`
    gains: Mapping[Any, int]
    ahead: int = 1

    @property
    def stage(self) -> int:
        """Of the body around it: that of its instructions."""
        return next((x.stage for x in instructions(self.body)), 0)


def records(body: Sequence[Any]) -> int:
    """How many records one execution of a body has, but for loads that come in parts."""
    return sum(x.trip_count * records(x.body) if isinstance(x, Loop) else 1 for x in body)


def instructions(body: Sequence[Any]) -> Iterator[Instruction]:
    """All instructions, those of loops too."""
    for x in body:
        if isinstance(x, Loop):
            yield from instructions(x.body)
        else:
            yield x


def accesses(body: Sequence[Any], known: dict[int, int], rows: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """The accesses that a body meets, in order, and the row of numbers of each.

    known: number of each access by its identity. rows: iterations of the loops around it.
    """
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for x in body:
        if isinstance(x, Loop):
            order, row = accesses(x.body, known, rows * x.trip_count)
            iteration = np.arange(x.trip_count, dtype=np.int64)[:, None] * rows
            found.append((order[None].repeat(x.trip_count, 0).ravel(), (row + iteration).ravel()))
        elif x.access is not None:
            found.append((np.array([known[id(x.access)]], np.int32), np.zeros(1, np.int64)))
    if not found:
        return np.empty(0, np.int32), np.empty(0, np.int64)
    return np.concatenate([o for o, _ in found]), np.concatenate([r for _, r in found])


class Cut:
    """Takes the lanes from `first` to before `end` out of what is known of all, in each row of so many lanes."""

    def __init__(self, lanes: int, first: int, end: int) -> None:
        self.lanes, self.first, self.end = lanes, first, end
        self.cut: dict[int, GlobalAccess] = {}

    def body(self, body: Sequence[Any]) -> list[Any]:
        """A body with the numbers of those lanes only."""
        return [
            x._replace(body=self.body(x.body)) if isinstance(x, Loop) else self._instruction(x) for x in body
        ]

    def _instruction(self, x: Instruction) -> Instruction:
        many = {n: y for n in _OF_LANES if isinstance(y := getattr(x, n), np.ndarray) and y.size > 1}
        if not many and x.access is None:
            return x
        found = {n: self._numbers(y) for n, y in many.items()}
        return x._replace(access=None if x.access is None else self._access(x.access), **found)

    def _access(self, access: GlobalAccess) -> GlobalAccess:
        found = self.cut.get(id(access))
        if found is None:
            found = self.cut[id(access)] = access._replace(region=self._region(access.region))
        return found

    def _numbers(self, x: Any) -> Any:
        if not isinstance(x, np.ndarray) or x.size == 1:
            return x
        rows = x.reshape(-1, self.lanes, *x.shape[1:])[:, self.first : self.end]
        return rows.reshape(-1, *x.shape[1:])

    def _region(self, region: AccessRegion) -> AccessRegion:
        out = copy.copy(region)
        out.starts = np.ascontiguousarray(self._numbers(region.starts))
        out.programs = len(out.starts)
        for name in ("strides", "lows", "highs"):
            table = getattr(region, name)
            if len(table) > 1:
                setattr(out, name, np.ascontiguousarray(self._numbers(table)))
        return out
