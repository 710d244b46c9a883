"""Two programs that store to one address without an atomic: on the device either value may stay.

While a kernel runs its stores are noted, and one bit per element tells whether any was stored to twice. Only then, once
at the end, it is worked out which programs touched what, as runs of bytes per program. Kernels that may order their programs
by themselves (an atomic whose old value is used, a flag) are not looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..interpreter.faults import place
from ..interpreter.program_order.spans import Spans, runs_of
from ..interpreter.regions import AccessRegion, ElementAddresses
from ..interpreter.tensors import Tensor
from ..interpreter.values import Affine, Box
from ..ir.program import Op, Program
from ..messages import Message, fault
from ._races import mark_boxes, mark_elements
from .access import Access, Watcher

# Runs looked at in one tensor; a launch with more is not searched further.
MOST_RUNS = 1 << 20


class StoreWatch(Watcher):
    """Notes the stores of one launch."""

    def __init__(self, program: Program, programs: int) -> None:
        self.on = programs > 1 and not _orders_itself(program)
        self.twice = False
        self.maps: dict[int, np.ndarray] = {}
        self.wholes: dict[int, Tensor] = {}
        self.regular: dict[tuple[Any, ...], list[tuple[Affine, Any, np.ndarray]]] = {}
        self.places: dict[tuple[Any, ...], tuple[Op, Tensor]] = {}
        self.single: list[tuple[Op, Tensor, ElementAddresses, np.ndarray]] = []
        self.singles = 0

    def access(self, a: Access) -> None:
        if not self.on or a.what != "store" or not a.tensor.elements:
            return
        if a.region is not None:
            self._box(a, a.region)
        elif a.where is not None and self.singles <= MOST_RUNS:
            self.twice |= mark_elements(self._map(a.tensor), a.where.at, a.where.chosen)
            self.singles += len(a.where.at)
            self.single.append((a.op, a.tensor, a.where, a.programs))

    def _box(self, a: Access, region: AccessRegion) -> None:
        bits = self._map(a.tensor)
        self.twice |= mark_boxes(bits, region.starts, region.strides, region.lows, region.highs)
        affine = a.offsets if isinstance(a.offsets, Affine) else Affine(a.offsets, (), ())
        plain = all(isinstance(s, int) for s in affine.strides) and not isinstance(a.mask, Box | np.ndarray)
        key = (a.op.id, id(a.tensor), affine.strides if plain else len(self.regular))
        self.places[key] = (a.op, a.tensor)
        self.regular.setdefault(key, []).append((affine, a.mask, a.programs))

    def _map(self, tensor: Tensor) -> np.ndarray:
        """The bits of a tensor; one seen as several types is looked at closely in any case."""
        found = self.maps.get(id(tensor))
        if found is None:
            self.twice |= self.wholes.setdefault(id(tensor.whole), tensor) is not tensor
            found = self.maps[id(tensor)] = np.zeros((tensor.elements >> 6) + 1, np.uint64)
        return found

    def found(self) -> tuple[Message, ...]:
        """A sentence for each tensor in which stores of two programs overlap."""
        if not self.twice:
            return ()
        runs: dict[int, list[tuple[Op, Tensor, np.ndarray, np.ndarray, np.ndarray]]] = {}
        for op, tensor, program, low, high in (*self._boxes(), *self._elements()):
            runs.setdefault(id(tensor.whole), []).append((op, tensor, program, low, high))
        return tuple(text for batches in runs.values() if (text := _meeting(batches)))

    def _boxes(self) -> Any:
        for key, notes in self.regular.items():
            op, tensor = self.places[key]
            for affine, mask, numbers in [_together(notes)] if len(notes) > 1 else notes:
                bare = isinstance(mask, np.ndarray) and len(mask) == len(numbers)
                if bare:
                    affine, numbers = affine.take(np.flatnonzero(mask)), numbers[mask]
                program, low, high = runs_of(affine, True if bare else mask, numbers)
                yield op, tensor, program, *_bytes(tensor, low + tensor.origin, high + tensor.origin)

    def _elements(self) -> Any:
        for op, tensor, where, numbers in self.single:
            at, program = where.at, np.repeat(numbers, len(where.at) // len(numbers))
            if len(where.chosen):
                pick = where.chosen.view(bool)
                at, program = at[pick], program[pick]
            yield op, tensor, program, *_bytes(tensor, at, at + 1)


def _orders_itself(program: Program) -> bool:
    ops = list(program.walk())
    return any(op.kind == "atomic" and op.attrs.get("result_used", True) for op in ops) or any(
        "sync" in op.kind or "barrier" in op.kind for op in ops
    )


def _together(notes: list[tuple[Affine, Any, np.ndarray]]) -> tuple[Affine, Any, np.ndarray]:
    """Many stores of one shape as one."""
    first = notes[0][0]
    base = np.concatenate([np.broadcast_to(np.asarray(a.base, np.int64), len(n)) for a, _, n in notes])
    masks = [m for _, m, n in notes for _ in n if isinstance(m, bool)]
    keep = np.array(masks, bool) if len(masks) == len(base) else None
    return Affine(base, first.strides, first.shape), keep, np.concatenate([n for _, _, n in notes])


def _bytes(tensor: Tensor, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    size = tensor.dtype.itemsize
    return tensor.address + low * size, tensor.address + high * size


def _meeting(batches: list[tuple[Op, Tensor, np.ndarray, np.ndarray, np.ndarray]]) -> Message | None:
    if sum(len(low) for *_, low, _ in batches) > MOST_RUNS:
        return None
    program, low, high = (np.concatenate([b[k] for b in batches]) for k in (2, 3, 4))
    order = np.argsort(low, kind="stable")
    if len(low) < 2 or (low[order][1:] >= high[order][:-1]).all():
        return None  # no two runs overlap at all
    spans = Spans()
    spans.add(program, low, high)
    program, low, high = spans.merged()  # of one program nothing overlaps any more
    order = np.argsort(low, kind="stable")
    program, low, high = program[order], low[order], high[order]
    hit = np.flatnonzero(low[1:] < np.maximum.accumulate(high)[:-1])
    if not len(hit):
        return None
    second = int(hit[0]) + 1
    first = int(np.argmax(high[:second]))
    return _sentence(batches, int(low[second]), int(program[first]), int(program[second]))


def _sentence(batches: list[Any], address: int, p: int, q: int) -> Message:
    p, q = min(p, q), max(p, q)
    (one, tensor), (other, _) = (_writer(batches, address, number) for number in (p, q))
    element = (address - tensor.address) // tensor.dtype.itemsize - tensor.origin
    first, second = ((op.loc.file, op.loc.line) for op in (one, other))
    behind = f"{second[1]}" if first[0] == second[0] else ":".join(map(str, second))
    lines = f"line {first[1]}" if first == second else f"lines {first[1]} and {behind}"
    return fault(
        f"programs {p} and {q} both store to element {element} of {tensor.name!r} "
        f"({lines}) without an atomic: on the device either value may stay",
        place(one),
        (p, q),
    )


def _writer(batches: list[Any], address: int, number: int) -> tuple[Op, Tensor]:
    """The last store of that program to that address."""
    hits = [
        (op, tensor)
        for op, tensor, program, low, high in batches
        if ((program == number) & (low <= address) & (high > address)).any()
    ]
    return hits[-1]
