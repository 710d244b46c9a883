"""What the programs of a launch do: a tree of instructions and loops, which the engine decodes.

A trace is code: numbers of instructions in program order, and of loops, whose bodies are code again. An instruction is a
template. Its bytes, its occupancy and whether a program executes it are constants, one number a program, or one a program
and iteration: rows of a table, in which each loop around it goes on by a stride. Its slots are copies of buffers; one that
rotates is another copy whenever a count goes on.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.timing.engine._validate import fault

Array = npt.NDArray[Any]

# As the channel of an instruction: a barrier of all programs. `BARRIERS` kinds of them have this number and those below.
BARRIER = -2
MAX_RECORDS = (1 << 31) - 1
# Kinds of a dependency: read after write; write after read or write; a flag that a program sets and waits for.
DATA, BUFFER, FLAG = 0, 1, 2


def _row(**kinds: str) -> np.dtype[Any]:
    return np.dtype(list(kinds.items()), align=True)


INSTRUCTION = _row(
    **dict.fromkeys(("occupancy", "latency", "amount"), "f8"),
    **dict.fromkeys(("column", "cycles", "instructions", "line", "slot", "stride", "other"), "i4"),
    **dict.fromkeys(("reads", "writes", "clobbers"), "i2"),
    **dict.fromkeys(("depth", "pipe", "channel"), "i1"),
)
LOOP = _row(first="i8", end="i8", trip_count="i8", gain="i4", gains="i4")
GAIN = _row(by="i8", counter="i4")
ROTATING = _row(base="i8", counter="i4", copies="i4", choice="i4")


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Instructions and loops in program order, shared by the P programs of a group.

    Args:
        instructions: [I] rows of INSTRUCTION:
            pipe: its number.
            occupancy: cycles that the pipe is taken; for a transfer the least cycles.
            latency: cycles from the pipe being done to the result being usable.
            channel: -1 for a fixed cost, else the channel that carries the transfer; below -1: a barrier, whose kind is
                BARRIER - channel.
            amount: bytes of a transfer; 0 leaves the occupancy only.
            column: -1, or a row of `table`: what programs differ in.
            cycles: -1, or a row of `cycles`: occupancies that iterations differ in.
            instructions: hardware instructions that it stands for.
            line: source line (or any number the caller wants cycles added up by).
            slot, reads, writes, clobbers: where its slots begin in `slots`, and how many it reads, writes and clobbers.
            stride, depth: where its strides begin, and how many: by so many rows an iteration of each loop around it,
                the innermost first, goes on in `table` and `cycles`.
            other: 0, or below 0: by so many numbers before it stands the instruction that a program which skips it
                executes in its place, which has none in its own.
        code: [C] numbers of instructions, or -1 - k for loop k.
        length: of the code outside of all loops, at its beginning.
        loops: [L] rows of LOOP: its body is code[first:end], done `trip_count` times; gain, gains: what an iteration adds to
            counts. A loop knows only loops before it.
        gains: rows of GAIN: a counter and what it goes on by.
        slots: numbers of slots; below 0: rotating[-1 - slot].
        rotating: rows of ROTATING: slots that stand for the choice (base + count of its counter) % copies, of those from
            `choice` on. What is read or written is one slot in every choice.
        choices, items: choice k is items[choices[k]:choices[k + 1]].
        strides: see above.
        cycles: occupancies.
        table: [V, P] per program the bytes of a transfer or the occupancy of a fixed cost; negative: the program does not
            execute the record, which is then done together with the record before it on its pipe.
        flags: per slot 1 if it holds no bytes but stands for a flag; who waits there waits for a flag.
    """

    instructions: Array
    code: npt.NDArray[np.int32]
    length: int
    flags: npt.NDArray[np.int8]
    slots: npt.NDArray[np.int32]
    loops: Array = field(default_factory=lambda: np.zeros(0, LOOP))
    gains: Array = field(default_factory=lambda: np.zeros(0, GAIN))
    rotating: Array = field(default_factory=lambda: np.zeros(0, ROTATING))
    choices: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    items: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    strides: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    cycles: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    table: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))

    def __post_init__(self) -> None:
        wrong = fault(
            self.instructions, self.code, self.length, self.loops, self.gains, self.slots, self.rotating, self.choices,
            self.items, self.strides, self.cycles, self.table, self.flags,
        )  # fmt: skip
        if wrong:
            raise UsageError(f"trace: {wrong}")
        if self.records > MAX_RECORDS:
            raise UsageError(f"trace: {self.records} records, {MAX_RECORDS} are allowed")

    def __getattr__(self, name: str) -> Array:
        """A field of all instructions."""
        if name.startswith("_") or name not in (INSTRUCTION.names or ()):
            raise AttributeError(name)
        found: Array = self.instructions[name]
        return found

    @functools.cached_property
    def counts(self) -> npt.NDArray[np.int64]:
        """[I] how often each instruction is met; one that stands in the place of another is met with that."""
        out = np.zeros(len(self.instructions), np.int64)
        times = np.zeros(len(self.loops), np.int64)
        _count(self.code[: self.length], 1, out, times)
        for k in range(len(times) - 1, -1, -1):
            loop = self.loops[k]
            if times[k]:
                _count(self.code[loop["first"] : loop["end"]], int(times[k] * loop["trip_count"]), out, times)
        found = np.flatnonzero(self.instructions["other"])
        np.add.at(out, found + self.instructions["other"][found], out[found])
        return out

    @property
    def records(self) -> int:
        """How many records a program has, with those that it skips."""
        return int(self.counts.sum())

    @functools.cached_property
    def depth(self) -> int:
        """How many loops are inside each other at most."""
        depths: list[int] = []
        for loop in self.loops:
            inner = self.code[loop["first"] : loop["end"]]
            depths.append(1 + max((depths[-1 - c] for c in inner[inner < 0].tolist()), default=0))
        return max(depths, default=0)

    @functools.cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """[I] how many rows its numbers have: one, or one for each iteration of loops around it."""
        out = np.ones(len(self.instructions), np.int64)
        for code, trip_count in self._bodies():
            code = code[code >= 0]
            found = np.append(code, code + self.instructions["other"][code])
            for i in set(found[self.instructions["depth"][found] > 0].tolist()):
                first, depth = int(self.instructions["stride"][i]), int(self.instructions["depth"][i])
                strides = self.strides[first : first + depth].tolist()
                out[i] = 1 + sum(s * (n - 1) for s, n in zip(strides, trip_count[::-1], strict=False))
        return out

    def _bodies(self) -> Iterator[tuple[Array, list[int]]]:
        """The bodies of all loops with instructions that have strides, with the trip counts of the loops around them."""
        waiting: list[tuple[int, list[int]]] = [(-1 - int(c), []) for c in self.code[: self.length] if c < 0]
        while waiting:
            k, outer = waiting.pop()
            loop = self.loops[k]
            trip_count = [*outer, int(loop["trip_count"])]
            code = self.code[loop["first"] : loop["end"]]
            waiting += [(-1 - int(c), trip_count) for c in code[code < 0]]
            yield code, trip_count


def _count(code: Array, by: int, out: Array, times: Array) -> None:
    """Add what code of so many executions brings, to instructions and to loops."""
    inner = code < 0
    if inner.any():
        np.add.at(times, -1 - code[inner], by)
        code = code[~inner]
    out += by * np.bincount(code, minlength=len(out))


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramGroup:
    """Programs that run the same trace: programs[j] is the launch number of the program with column j of its
    table."""

    trace: Trace
    programs: Array

    def __post_init__(self) -> None:
        given = np.asarray(self.programs)
        if given.size and given.dtype.kind not in "iu":
            raise UsageError(f"group: programs has type {given.dtype}, int64 is needed")
        object.__setattr__(self, "programs", np.ascontiguousarray(given, np.int64))
        if self.programs.ndim != 1:
            raise UsageError(f"group: programs has {self.programs.ndim} dimensions, not 1")
        values, columns = self.trace.table.shape
        if values and columns != len(self.programs):
            raise UsageError(f"group: the table has {columns} columns for {len(self.programs)} programs")
