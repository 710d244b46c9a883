"""A `while` that waits for memory: others go on meanwhile, and where nobody can, that is a hang, found at once.

What a `while` does next follows from the values that it carries and from the memory that it reads. Where an iteration
leaves both as they were, as far as its condition depends on them, so does every further one until others change that
memory: the part of the other core, or other programs (`turns.py`). The same holds where some iterations bring both back:
after many of them each is compared with the last one that was looked at (R. Brent, BIT 20, 1980).
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from typing import Any

import numpy as np

from ...ir.program import Op
from ..tensors import overlap
from ..values import Affine, Box, Opaque, Pointers
from .condition import Condition, condition_of, reads_memory
from .look_ahead import reaches

FIRST = 8  # iteration that is looked at, and then those of 16, 32, 64 ...; the first ones, too, of a loop that reads memory
MOST_BYTES = 1 << 26  # of memory that is compared, where the loop writes to it
MANY = 1 << 14  # iterations after which it is looked whether the step limit is reached
AFTER = 3  # iterations that are looked at when others have gone on
CYCLES = 1 << 10  # iterations after which each is compared with the last one that was looked at
CYCLE_BYTES = 1 << 12  # of memory that is then compared each time


class Waits:
    """The iterations of a `while`: some are looked at, and others go on where one has changed nothing."""

    def __init__(self, state: Any, op: Op) -> None:
        self.state, self.op = state, op
        self.first = 0  # iteration with which it went on when others had
        self.each = 0  # of how many iterations from there each is looked at
        self.due = 1 if reads_memory(state.program, op) else FIRST
        self.again = False
        self.ends = 0  # of how many lanes the first one is known to end
        self.last: Spin | None = None  # that was looked at, of many iterations
        self.now = 0

    def look(self, iteration: int, carried: Sequence[Any], lanes: int) -> Spin | None:
        """An iteration (from 0) begins; gives the one with whose beginning its end is to be compared, if any."""
        self.now = iteration
        if iteration < self.due:
            return self.last
        since = iteration - self.first
        self.due = iteration + 1 if since < self.each else self.first + 2 * since
        spin = Spin(self.state, self.op, carried, lanes, iteration)
        self.last = spin if since >= CYCLES and spin.size <= CYCLE_BYTES else None
        return spin

    def go_on(self, spin: Spin, frame: Any, carried: Sequence[Any], lanes: int) -> bool:
        """Whether the iterations since then changed anything, or others could go on; else it never ends. frame: around the
        loop.
        """
        if not spin.stands(carried, lanes):
            self.again = False
            if spin.iteration >= MANY and lanes != self.ends:
                self._look_ahead(frame, carried, lanes)
            return True
        state = self.state
        if state.turns is None or not spin.condition.reads:
            return False
        state.gives_way()
        if not state.turns.others_go_on(self.op, int(state.programs[0]), self.again):
            return False
        self.first = self.due = self.now + 1
        self.last = None
        self.each, self.again = AFTER, True
        return True

    def _look_ahead(self, frame: Any, carried: Sequence[Any], lanes: int) -> None:
        """Where the loop reaches the step limit in any case it does so now."""
        if reaches(self.op, frame, carried, self.state.steps_left):
            self.state.steps_left = 0
        self.ends = lanes


class Spin:
    """One iteration of a `while`."""

    def __init__(self, state: Any, op: Op, carried: Sequence[Any], lanes: int, iteration: int) -> None:
        """state: the interpreter, with the programs in the loop. carried: before the iteration, in so many lanes."""
        self.state, self.op, self.lanes, self.iteration = state, op, lanes, iteration
        if op.id not in state.conditions:
            state.conditions[op.id] = condition_of(state.program, op, self._sharing)
        self.condition: Condition = state.conditions[op.id]
        self.windows = self._windows()
        self.memory = None if self.windows is None else [w.tobytes() for w in self.windows]
        self.values = [copy(carried[k]) for k in self.condition.carried]
        self.size = sum(map(len, self.memory or []))

    def stands(self, carried: Sequence[Any], lanes: int) -> bool:
        """Whether the iteration left all as it was. carried: behind it."""
        if self.windows is None or self.memory is None or self.lanes != lanes:
            return False
        if not all(map(_same, self.values, (carried[k] for k in self.condition.carried))):
            return False
        return all(w.tobytes() == old for w, old in zip(self.windows, self.memory, strict=True))

    def _sharing(self, names: AbstractSet[str]) -> set[str]:
        """The arguments that share memory with these."""
        given = self.state.known.given
        those = [t for t in given if t.name in names]
        return {t.name for t in given if any(t is x or overlap(t, x) for x in those)} | set(names)

    def _windows(self) -> list[np.ndarray] | None:
        """Memory that the loop may write to; None where it is not looked at."""
        names = self.condition.written
        if not names:
            return None if names is None else []
        found = [t for t in self.state.known.given if t.name in names and t.window is not None]
        size = sum(t.elements * t.dtype.itemsize for t in found)
        return None if size > MOST_BYTES else [t.window for t in found]


def _same(a: Any, b: Any) -> bool:
    """Whether two values of the interpreter are the same to the bit; elements that nobody knows decide nothing, or the
    condition would not be known."""
    if isinstance(a, Opaque) and isinstance(b, Opaque):
        return True
    if isinstance(a, Pointers) and isinstance(b, Pointers):
        return a.tensor is b.tensor and _same(a.offsets, b.offsets)
    if isinstance(a, Affine) and isinstance(b, Affine):
        return _same(a.base, b.base) and all(map(_same, a.strides, b.strides))
    if isinstance(a, Box) and isinstance(b, Box):
        return all(map(_same, (*a.lows, *a.highs), (*b.lows, *b.highs)))
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and bool(a == b)
