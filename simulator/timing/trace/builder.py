"""Makes the trace of some programs while they are lowered: each instruction once, and the code that gives their order.

Instructions that are equal in everything are one instruction, so an iteration that repeats is a few numbers of code.
Iterations of a loop that repeat become a loop of the trace.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..costs.l2_cache import FirstTouch, Ticket
from ..engine.trace import GAIN, INSTRUCTION, LOOP, ROTATING, Trace
from .pieces import Piece, pieces, waiting
from .repeats import Repeats
from .rotating import Rotating
from .staged import staged
from .tree import Instruction, Loop, Slots, accesses, instructions, records
from .two_cores import Pair

CHUNK = 1 << 18  # records after which accesses are touched, in waves as far as they are known


class Nest(NamedTuple):
    """Loops around an instruction: iterations of all of them, and by how many rows each goes on, the innermost first."""

    rows: int = 1
    strides: tuple[int, ...] = ()

    def inside(self, trip_count: int) -> Nest:
        """Of one more loop, around which these are."""
        return Nest(self.rows * trip_count, (self.rows, *self.strides))


OUTSIDE = Nest()


class RecordLanes(NamedTuple):
    """Lanes that have a record. active: their numbers, None for all. each: lanes that one of the programs has."""

    active: np.ndarray | None
    each: int
    programs: int

    @property
    def size(self) -> int:
        """How many there are."""
        return self.programs * self.each if self.active is None else len(self.active)

    def numbers(self, programs: np.ndarray) -> np.ndarray:
        """Numbers of their programs in the grid, as L2 counts waves; two lanes of a program come without waves."""
        if self.each > 1:
            return np.arange(self.size)
        return programs if self.active is None else programs[self.active]


class Pending(NamedTuple):
    """What is known when all accesses of the programs are."""

    body: Sequence[Any]
    known: dict[int, int]  # number of each access, by identity
    lanes: RecordLanes
    ticket: Ticket


class TraceBuilder:
    """Takes what is recorded of the programs `numbers`, of the grid.

    pair: where a program has two Vector cores. rotating: slots that alternate.
    """

    def __init__(self, numbers: np.ndarray, touch: FirstTouch, pair: Pair | None = None) -> None:
        self.programs = len(numbers)
        self.numbers = numbers
        self.touch = touch
        self.pair = pair
        self.rotating = Rotating()
        self.records = 0
        self.pending = False  # whether any record waits for its accesses
        self.settled = 0  # of them, when accesses were touched last
        self.known: dict[tuple[Any, ...], int] = {}  # instruction -> its number
        self.keys: list[tuple[Any, ...]] = []
        self.repeats = Repeats(self.keys, self.rotating)
        self.table: list[np.ndarray] = []
        self.columns = 0
        self.known_rows: dict[bytes, int] = {}
        self.of_active: dict[tuple[float, int], tuple[int, np.ndarray]] = {}
        self.cycles: list[np.ndarray] = []
        self.cycle_rows = 0

    # -- what comes --------------------------------------------------------------------------------------------------

    def fixed(
        self, pipe: int, line: int, occupancy: float, latency: float, channel: int, amount: float, count: int,
        slots: tuple[Slots, Slots, Slots], active: np.ndarray | None,
    ) -> None:  # fmt: skip
        """A record that is the same in all programs that have it. count: instructions. active: those programs."""
        number = self._fixed(pipe, line, occupancy, latency, channel, amount, count, slots, active)
        self.repeats.code.append(number)
        self.records += 1

    def same(self, x: Instruction, active: np.ndarray | None) -> None:
        """`fixed` for an instruction that is the same in all lanes."""
        self.repeats.code.append(self._same(x, active))
        self.records += 1

    def take(self, body: Sequence[Any], active: np.ndarray | None, each: int) -> None:
        """Instructions and loops of lanes. active: those that have them, None for all. each: lanes of a program."""
        self.records += records(body)
        known: dict[int, int] = {}
        met = []
        for x in instructions(body):
            if x.access is not None and id(x.access) not in known:
                known[id(x.access)] = len(known)
                met.append(x.access)
        if not met:
            self._resolve(body, RecordLanes(active, each, self.programs), {})
            return
        order, rows = accesses(body, known)
        lanes = RecordLanes(active, each, self.programs)
        ticket = self.touch.later(met, order, rows, lanes.numbers(self.numbers))
        pending = Pending(body, known, lanes, ticket)
        if self.touch.waits:
            self.repeats.code.append(pending)
            self.pending = True
            self.settle_if_many()
        else:
            self.touch.settle()
            self._finish(pending)

    def settle_if_many(self) -> None:
        """What is pending takes room."""
        if self.records - self.settled >= CHUNK:
            self.touch.guess()
            self.settle()

    def settle(self) -> None:
        """Touch what is pending, and make code of it."""
        self.settled = self.records
        if not self.pending:
            return
        self.pending = False
        self.touch.settle()
        repeats = self.repeats
        repeats.finish()
        before, repeats.code = repeats.code, []
        for x in before:
            if isinstance(x, Pending):
                self._finish(x)
            else:
                repeats.code.append(x)
        repeats.finish()

    def _finish(self, x: Pending) -> None:
        self._resolve(x.body, x.lanes, {key: x.ticket.shares[k] for key, k in x.known.items()})

    def _resolve(self, body: Sequence[Any], lanes: RecordLanes, shares: dict[int, np.ndarray]) -> None:
        for code in self._codes(body, lanes, shares, OUTSIDE):
            self.repeats.append(code)

    # -- code --------------------------------------------------------------------------------------------------------

    def _codes(
        self, body: Sequence[Any], lanes: RecordLanes, shares: dict[int, np.ndarray], nest: Nest
    ) -> list[int]:
        out: list[int] = []
        for x in body:
            if isinstance(x, Loop) and x.ahead > 1:
                out += self._staged(x, lanes, shares, nest)
                continue
            if isinstance(x, Loop):
                inner = self._codes(x.body, lanes, shares, nest.inside(x.trip_count))
                if inner:
                    gains = tuple(sorted(x.gains.items(), key=str))
                    out.append(self.repeats.loop(x.trip_count, tuple(inner), gains))
                continue
            if x.access is not None:
                share = shares[id(x.access)]
                x = x._replace(share=share, waits=self._waits(x, share, lanes))
            elif self.pair is None and x.same_in_all:
                out.append(self._same(x, lanes.active))
                continue
            for piece in pieces(x, lanes.size):
                out += self._put(x, piece, lanes, nest)
        return out

    def _waits(self, x: Instruction, share: np.ndarray, lanes: RecordLanes) -> np.ndarray | None:
        """Lanes that find in L2 what another core of their wave loads from memory at that moment; None for none of them."""
        assert x.access is not None
        same = x.slow is None and not x.late  # for those that wait and those that do not
        if x.access.write or same or lanes.each > 1 or share.size < lanes.size or lanes.size == 1:
            return None
        waves = lanes.numbers(self.numbers) // (self.touch.cores or len(self.numbers))
        return waiting(share, x.access.region.starts, waves)

    def _staged(self, x: Loop, lanes: RecordLanes, shares: dict[int, np.ndarray], nest: Nest) -> list[int]:
        """A loop whose stages run `ahead` iterations each: loops of stages, in a loop; and for the iterations left over."""
        inside = nest.inside(x.trip_count)
        stages: dict[int, list[int]] = {y.stage: [] for y in x.body}
        for y in x.body:
            stages[y.stage] += self._codes([y], lanes, shares, inside)
        parts = {k: tuple(codes) for k, codes in stages.items() if codes}
        return staged(self.repeats, self.number, parts, x, len(nest.strides))

    def _put(self, x: Instruction, piece: Piece, all_lanes: RecordLanes, nest: Nest) -> list[int]:
        """One record, or one for each Vector core that has it."""
        others = self._put(x, piece.other, all_lanes, nest) if piece.other is not None else ()
        if self.pair is None:
            own = x.reads, piece.writes, piece.clobbers
            return [self._numbered(x, piece, all_lanes.active, None, nest, x.pipe, own, *others)]
        out: list[int] = []
        for core in x.cores:
            lanes, columns = self.pair.lanes(core, all_lanes.active, self.programs, all_lanes.each)
            if isinstance(lanes, np.ndarray) and not len(lanes):
                continue
            slots = tuple(
                self.pair.slots(s, core, x.pipe, k == 0, self.rotating)
                for k, s in enumerate((x.reads, piece.writes, piece.clobbers))
            )
            mine = piece._replace(channel=self.pair.channel(piece.channel, core, x))
            other = others[len(out) : len(out) + 1]
            out.append(
                self._numbered(x, mine, columns, lanes, nest, self.pair.pipe(x.pipe, core), slots, *other)
            )
        return out

    def _numbered(
        self,
        x: Instruction,
        piece: Piece,
        columns: np.ndarray | None,
        lanes: Any,
        nest: Nest,
        pipe: int,
        slots: Any,
        other: int = -1,
    ) -> int:
        """The number of an instruction. other: of the one in its place, -1 for none."""
        values = piece.amount
        if isinstance(values, np.ndarray) and lanes is not None:
            values = values[:, lanes] if values.shape[1] > 1 else values
        occupancy, cycles, column = piece.occupancy, -1, -1
        strides: tuple[int, ...] = ()
        varies = isinstance(occupancy, np.ndarray)
        if isinstance(values, np.ndarray):
            if len(values) > 1 and (values == values[0]).all():
                values = values[:1]
            if columns is None and len(values) == 1 and (values == values[0, 0]).all() and values[0, 0] >= 0:
                values = float(values[0, 0]) if piece.channel >= 0 else None
        if isinstance(values, np.ndarray) or columns is not None:
            if values is None:
                values = np.reshape(occupancy, (-1, 1)) if varies else occupancy
                varies = False
                occupancy = 0.0 if isinstance(occupancy, np.ndarray) else occupancy
            many = nest.rows if varies or (isinstance(values, np.ndarray) and len(values) > 1) else 1
            column = self._rows(values, columns, many)
            values, strides = 0.0, nest.strides if many > 1 else ()
        if varies:
            cycles, strides = self._cycles(occupancy), nest.strides
            occupancy = 0.0
        amount = 0.0 if values is None else values
        numbers = occupancy, piece.latency, amount, column, cycles, x.instructions, piece.line
        return self.number((*numbers, slots, strides, pipe, piece.channel, other))

    def _fixed(
        self, pipe: int, line: int, occupancy: float, latency: float, channel: int, amount: float, count: int,
        slots: tuple[Slots, Slots, Slots], active: np.ndarray | None,
    ) -> int:  # fmt: skip
        """The number of an instruction as `fixed` takes it."""
        column = -1
        if active is not None:
            column = self._of_active(amount if channel >= 0 else occupancy, active)
            amount = 0.0
        return self.number(
            (occupancy, latency, amount, column, -1, count, line, slots, (), pipe, channel, -1)
        )

    def _same(self, x: Instruction, active: np.ndarray | None) -> int:
        """The number of an instruction that is the same in all lanes."""
        cycles, amount, slots = float(x.occupancy), float(x.amount), (x.reads, x.writes, x.clobbers)
        return self._fixed(
            x.pipe, x.line, cycles, x.latency, x.channel, amount, x.instructions, slots, active
        )

    def number(self, key: tuple[Any, ...]) -> int:
        """The number of an instruction, by what it is."""
        found = self.known.setdefault(key, len(self.keys))
        if found == len(self.keys):
            self.keys.append(key)
        return found

    # -- numbers that differ -----------------------------------------------------------------------------------------

    def _of_active(self, amount: float, active: np.ndarray) -> int:
        """Row of the table with one number for the active programs."""
        found = self.of_active.get((amount, id(active)))
        if found is None:
            found = self._rows(amount, active, 1), active
            self.of_active[amount, id(active)] = found  # keeps `active` alive, and so its id its own
        return found[0]

    def _rows(self, values: Any, columns: np.ndarray | None, rows: int) -> int:
        """The first of so many rows of the table; -1 for programs that skip the record."""
        block = np.full((rows, self.programs), -1.0)
        block[:, slice(None) if columns is None else columns] = values
        if rows == 1:
            found = self.known_rows.setdefault(block.tobytes(), self.columns)
            if found < self.columns:
                return found
        self.table.append(block)
        self.columns += rows
        return self.columns - rows

    def _cycles(self, occupancy: np.ndarray) -> int:
        self.cycles.append(occupancy)
        self.cycle_rows += len(occupancy)
        return self.cycle_rows - len(occupancy)

    # -- the trace ---------------------------------------------------------------------------------------------------

    def trace(self, slots: int, flags: Collection[int] = ()) -> Trace:
        """All that was recorded. slots: how many there are. flags: those that stand for flags."""
        self.settle()
        self.repeats.finish()
        rows, all_slots, strides = _instruction_rows(self.keys)
        main, met = _loops_met(self.repeats.code, self.repeats.loops)
        code, loops, gains, counters = _code_rows(main, met)
        rotating, choices, items = self._rotating_rows(counters)
        is_flag = np.zeros(max(1, slots), np.int8)
        is_flag[list(flags)] = 1
        return Trace(
            instructions=rows,
            code=code,
            length=len(main),
            loops=loops,
            gains=gains,
            slots=all_slots,
            rotating=rotating,
            choices=choices,
            items=items,
            strides=strides,
            cycles=np.concatenate(self.cycles) if self.cycles else np.zeros(0),
            table=_one_block(self.table),
            flags=is_flag,
        )

    def _rotating_rows(self, counters: dict[Any, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        out = np.zeros(len(self.rotating.meaning), ROTATING)
        sizes: list[int] = [0]
        items: list[int] = []
        for row, (choices, counter, count) in zip(out, self.rotating.meaning, strict=True):
            row["base"], row["copies"], row["choice"] = count, len(choices), len(sizes) - 1
            row["counter"] = counters.setdefault(counter, len(counters))
            for slots in choices:
                items += slots
                sizes.append(len(items))
        return out, np.array(sizes, np.int64), np.array(items, np.int32)


def _one_block(table: list[np.ndarray]) -> np.ndarray:
    """All rows; the parts go as it grows, so that they are not there twice."""
    if len(table) < 2:
        return table.pop() if table else np.empty((0, 0))
    end = sum(map(len, table))
    out = np.empty((end, table[0].shape[1]))
    while table:
        part = table.pop()
        out[end - len(part) : end] = part
        end -= len(part)
    return out


def _instruction_rows(known: list[tuple[Any, ...]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows, slots, strides) of instructions, each a key of `TraceBuilder.known`."""
    slots: list[int] = []
    strides: list[int] = []
    rows = []
    for number, (*costs, (reads, writes, clobbers), own, pipe, channel, other) in enumerate(known):
        place = len(slots), len(strides), other - number if other >= 0 else 0
        sizes = len(reads), len(writes), len(clobbers), len(own)
        rows.append((*costs, *place, *sizes, pipe, channel))
        slots += reads
        slots += writes
        slots += clobbers
        strides += own
    return np.array(rows, INSTRUCTION), np.array(slots, np.int32), np.array(strides, np.int64)


def _loops_met(main: list[int], loops: list[Any]) -> tuple[list[int], list[Any]]:
    """The code, and the loops that it has: those that have become a part of others go."""
    met: set[int] = set()
    waiting = [c for c in main if c < 0]
    while waiting:
        met.add(c := waiting.pop())
        waiting += [x for x in loops[-1 - c][1] if x < 0 and x not in met]
    if len(met) == len(loops):
        return main, loops
    number = {c: -1 - k for k, c in enumerate(sorted(met, reverse=True))}
    kept = [
        (trip_count, tuple([number.get(c, c) for c in body]), gains)
        for trip_count, body, gains in (loops[-1 - c] for c in number)
    ]
    return [number.get(c, c) for c in main], kept


def _code_rows(
    main: list[int], loops: list[Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[Any, int]]:
    """(code, loops, gains, numbers of counters); bodies come after the main code."""
    counters: dict[Any, int] = {}
    gains: list[tuple[int, int]] = []
    rows, parts, size = np.zeros(len(loops), LOOP), [np.array(main, np.int32)], len(main)
    for row, (trip_count, body, gained) in zip(rows, loops, strict=True):
        row["first"], row["end"], row["trip_count"] = size, size + len(body), trip_count
        row["gain"], row["gains"] = len(gains), len(gained)
        gains += [(by, counters.setdefault(counter, len(counters))) for counter, by in gained]
        parts.append(np.array(body, np.int32))
        size += len(body)
    return np.concatenate(parts), rows, np.array(gains, GAIN), counters
