"""What L2 holds during a launch: which bytes come from memory, and which stores push older ones out to it.

L2 keeps the lines that were touched last (LRU), reads and writes alike; a changed line goes to memory when it leaves. The
order of the program, and of programs within one instruction, stands in for the order in time. Where there are more programs
than cores, those that run at the same time (a wave: as many as there are cores, by their numbers) do all that they do before
the next ones begin: accesses are then noted down (`later`) and touched when all are known (`settle`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...interpreter.regions import AccessRegion
from ...interpreter.tensors import Tensor
from ...l2.state import LINE_BYTES, InL2, lines_of
from ._l2 import held, touch, touch_back

LINE_SHIFT = LINE_BYTES.bit_length() - 1
MAX_LINES = 1 << 28
MEMO = 1 << 14  # tiles of one form that are known to have been touched
NEW, CHANGED, TOTAL = 9, 10, 11  # places in an access of `touch`
PARTS = 64  # in which what earlier kernels wrote leaves L2
AGES = 1 << 10  # likewise, what the launch before left
NOTES = 1 << 12  # of stores whose lines are still in L2; more are added up
CLOCK, OWED, WRITTEN, HEAD, TAIL = range(5)  # places in the state of `touch`
KEPT_BYTES = (
    1 << 28
)  # of accesses that are noted down; then they are touched, in waves as far as they are known
BLOCK_SHIFT, EACH = 5, 1  # as `_lines.pxd` has them
Met = Sequence[tuple[Tensor, AccessRegion, bool]]
Run = tuple[
    Tensor | None, int, int, int
]  # tensor, first of its lines, how many, the last of them that are changed


class LineMap(NamedTuple):
    """When the lines of a tensor were touched, see `_lines.pxd`. shift: a line of it has 2^shift bytes."""

    stamps: np.ndarray
    runs: np.ndarray
    shift: int

    @classmethod
    def of(cls, lines: int, shift: int) -> LineMap:
        """Of lines that nobody touched yet; what is never written takes no memory."""
        return cls(
            np.zeros(lines, np.uint32), np.zeros(((lines - 1 >> BLOCK_SHIFT) + 1, 2), np.uint32), shift
        )

    def each(self, first: int, end: int) -> np.ndarray:
        """The stamps of lines first..end, to be written; those of their blocks are not touched before."""
        self.runs[first >> BLOCK_SHIFT : (end - 1 >> BLOCK_SHIFT) + 1, 1] = EACH
        return self.stamps[first:end]


class Ticket:
    """Accesses that are noted down, and when they are touched the part that each of their tiles has from memory.

    order, rows: the k-th to be met is row `rows[k]` of access `order[k]`; a row has a tile for each of `numbers`.
    """

    def __init__(self, met: Met, order: np.ndarray, rows: np.ndarray, numbers: np.ndarray) -> None:
        self.met, self.order, self.rows, self.numbers = met, order, rows, numbers
        self.shares: list[np.ndarray] = []


class FirstTouch:
    """L2 as the accesses of a launch see it.

    capacity: its bytes. Kept per tensor as a map of pieces of 128 bytes (larger ones for tensors above 32 GiB). `resident`:
    tensors that are there when the kernel starts, as far as they fit; all others come from memory. changed: part of L2 that
    is full of what earlier kernels wrote, and has to go to memory first. left: what the launch before left, oldest first; a
    tensor None is memory that the launch does not reach.
    """

    def __init__(
        self,
        capacity: int = 1 << 36,
        resident: Iterable[Tensor] = (),
        changed: float = 0.0,
        left: Sequence[Run] = (),
    ) -> None:
        self.room = capacity >> LINE_SHIFT
        self.maps: dict[int, LineMap] = {}
        self.touched: dict[Any, np.ndarray] = {}
        self.state = np.array([1, 0, 0, 0, 0], np.int64)
        self.queue = np.zeros((NOTES, 2), np.int64)
        for k in range(PARTS) if changed else ():
            self.queue[k] = 1 - self.room + k * self.room // PARTS, int(changed * self.room) // PARTS
            self.state[TAIL] = k + 1
        self.read_lines = 0
        self.tickets: list[Ticket] = []
        self.kept_bytes = 0
        self.cores = 0
        self.loop = False  # whether the start is known when all accesses are
        self.apart: set[int] = set()  # tensors (by id) of which the start is known in a loop, too
        self.guessed: Callable[[], Sequence[Run]] = tuple
        self.resident = tuple(resident)
        self.follows = bool(left)  # whether launches before are known
        if left:
            self._put(left)
        self._bring()

    def in_loop(self, cold: Iterable[Tensor], guessed: Callable[[], Sequence[Run]]) -> None:
        """The launch before was the same. cold: of which nothing is there all the same; so it is with the resident ones.

        guessed: what is taken for what it left, where there are too many accesses to wait for the last one.
        """
        self.loop, self.follows, self.guessed = True, True, guessed
        self.apart = {id(x.whole) for x in (*self.resident, *cold)}

    def guess(self) -> None:
        """Do not wait for the last access."""
        if self.loop:
            self.loop = False
            self._put(self.guessed())
            self._bring()

    def _bring(self) -> None:
        """The resident tensors, as the newest."""
        left = self.room
        for tensor in self.resident:
            lines = lines_of(tensor)
            if id(tensor.whole) not in self.maps and lines <= left:
                found = self._map(tensor)
                found.each(0, len(found.stamps))[:] = 2 * self.state[CLOCK]
                left -= lines

    def _put(self, left: Sequence[Run]) -> None:
        """Begin with these lines, at a clock at which each of them has an age."""
        clock = self.state[CLOCK] = self.room + 1
        notes = []
        for tensor, first, lines, changed in reversed(left):
            lines = min(lines, clock - 1)
            if tensor is not None and id(tensor.whole) not in self.apart:
                found = self._map(tensor)
                k = found.shift - LINE_SHIFT
                some = found.each(first >> k, (first + lines) >> k)
                some[:] = (clock - lines + 1 + (np.arange(len(some)) << k)) << 1
                some[len(some) - (changed >> k) :] |= 1
            changed, step = min(changed, lines), max(1, self.room // AGES)
            over = changed if tensor is not None else lines  # of others nobody knows which
            notes += [(clock - n * over // changed, min(step, changed - n)) for n in range(0, changed, step)]
            clock -= lines
        self._note(notes[::-1])

    def _note(self, notes: Sequence[tuple[int, int]]) -> None:
        """Lines that were changed before: (clock of the last touch, how many), oldest first."""
        self.queue[: len(notes)] = np.reshape(notes, (-1, 2))
        self.state[HEAD], self.state[TAIL] = 0, len(notes)

    @property
    def owed(self) -> int:
        """Lines that left L2 changed and whose write to memory is not charged yet."""
        return int(self.state[OWED])

    @property
    def written_lines(self) -> int:
        """Lines whose write to memory is charged."""
        return int(self.state[WRITTEN])

    @property
    def changed(self) -> list[tuple[int, int]]:
        """(clock, lines that were changed then and may still be in L2)."""
        return [(int(c), int(n)) for c, n in self.queue[self.state[HEAD] : self.state[TAIL]]]

    def share(self, tensor: Tensor, region: AccessRegion) -> np.ndarray:
        """Per program (or one for all alike) the part of its bytes, 0 to 1, that a load gets from memory.

        A line that two neighbours share counts for neither of them: parts that differ from 0 or 1 by less than two
        lines are taken as 0 or 1.
        """
        return self._one(tensor, region, False)

    def write(self, tensor: Tensor, region: AccessRegion) -> bool:
        """A store changes these lines; True if what it pushes out weighs as much, so that it runs at memory's pace."""
        return bool(self._one(tensor, region, True)[0])

    def _one(self, tensor: Tensor, region: AccessRegion, write: bool) -> np.ndarray:
        once = np.zeros(1, np.int32)
        numbers = np.zeros(len(region.starts), np.int64)
        return self.shares([(tensor, region, write)], once, once.astype(np.int64), numbers)[0]

    def shares(self, met: Met, order: np.ndarray, rows: np.ndarray, numbers: np.ndarray) -> list[np.ndarray]:
        """`share` of loads and `write` of stores that are met more than once (see `Ticket`), now and in this order.

        Gives one number for each tile of an access.
        """
        ticket = Ticket(met, order, rows, numbers)
        self.guess()
        self._touch([ticket], 0)
        return ticket.shares

    # -- waves -------------------------------------------------------------------------------------------------------

    def in_waves(self, cores: int) -> None:
        """From here on accesses may be noted down, to be touched in waves of so many programs."""
        self.cores = cores

    @property
    def waits(self) -> bool:
        """Whether shares are known only once more accesses are."""
        return self.loop or self.cores > 0

    def later(self, met: Met, order: np.ndarray, rows: np.ndarray, numbers: np.ndarray) -> Ticket:
        """Note accesses down; `settle` finds their shares."""
        ticket = Ticket(met, order, rows, numbers)
        self.tickets.append(ticket)
        self.kept_bytes += sum(_size(region) for _, region, _ in met)
        if self.kept_bytes > KEPT_BYTES:
            self.guess()
            self.settle()
        return ticket

    def settle(self) -> None:
        """Touch what is noted down, wave by wave; within a wave in the order in which it was noted."""
        tickets, self.tickets, self.kept_bytes = self.tickets, [], 0
        if tickets:
            self._touch(tickets, self.cores)

    def _touch(self, tickets: list[Ticket], cores: int) -> None:
        accesses = [self._access(*x) for t in tickets for x in t.met]
        before = np.cumsum([0, *(len(t.met) for t in tickets)])
        order = np.concatenate([t.order + k for t, k in zip(tickets, before, strict=False)]).astype(np.int32)
        first = np.concatenate([t.rows * len(t.numbers) for t in tickets]).astype(np.int64)
        cut = np.repeat(np.arange(len(tickets), dtype=np.int32), [len(t.order) for t in tickets])
        tiles = accesses, order, first, cut, _cuts(tickets, cores)
        if not (self.loop and self._all_is_there(*tiles, tickets)):
            touch(*tiles, self.room, self.state, self.queue)
        self.loop = False
        for t, k in zip(tickets, before, strict=False):
            t.shares = [self._found(accesses[k + i], write) for i, (*_, write) in enumerate(t.met)]
            t.met = []

    def _all_is_there(
        self, accesses: list[Any], order: np.ndarray, first: np.ndarray, cut: np.ndarray, cuts: np.ndarray,
        tickets: list[Ticket],
    ) -> bool:  # fmt: skip
        """Find what the same accesses left before; gives whether it is all that they touch."""
        changed = np.zeros(AGES, np.int64)
        if self.apart:
            met = np.array([id(x.whole) not in self.apart for t in tickets for x, *_ in t.met])
            kept = met[order]
            order, first, cut = order[kept], first[kept], cut[kept]
        fits = touch_back(accesses, order, first, cut, cuts, self.room, changed)
        self.state[CLOCK] = self.room + 1
        ages = np.flatnonzero(changed)
        self._note([((k + 1) * (self.room + 2) // AGES, int(changed[k])) for k in ages.tolist()])
        if fits and not self.apart:
            return True
        for memo in self.touched.values():
            memo[:] = 0
        self._bring()
        return False

    def _found(self, access: tuple[Any, ...], write: bool) -> np.ndarray:
        if write:
            late: np.ndarray = (access[NEW] > 0).astype(np.float64)
            return late
        self.read_lines += int(access[NEW].sum())
        return _part(access[NEW], access[TOTAL])

    def past(self, size: float) -> None:
        """A load of `size` bytes that leaves no trace in L2."""
        self.read_lines += int(size) >> LINE_SHIFT

    @property
    def left_bytes(self) -> int:
        """What is changed in L2, or has left it, without memory having it yet."""
        return LINE_BYTES * (self.owed + sum(n for _, n in self.changed) - self.pushed_out)

    @property
    def pushed_out(self) -> int:
        """Changed lines that left L2 for lines that were loaded, so that no store waited for them.

        Only after other launches: on a clean L2 they are the launch's own, and are left for those that follow.
        """
        gone = int(self.state[CLOCK]) - self.room
        return self.owed + sum(n for c, n in self.changed if c < gone) if self.follows else 0

    @property
    def memory_part(self) -> float:
        """Part of memory's rate that is left for what transfers wait for: the rest goes to what is pushed out."""
        waited = self.read_lines + self.written_lines
        return waited / (waited + self.pushed_out) if waited else 1.0

    def ends(self, tensors: Mapping[str, Tensor]) -> tuple[InL2, ...]:
        """What is there of each tensor, by name, oldest first: so many lines, up to the last one that is there."""
        found = []
        for name, x in tensors.items():
            if id(x.whole) in self.maps:
                stamps, runs, shift = self.maps[id(x.whole)]
                lines, changed, end, newest = held(stamps, runs, int(self.state[CLOCK]), self.room)
                k = shift - LINE_SHIFT
                found.append((newest, InL2(name, (end - lines) << k, lines << k, changed << k)))
        return tuple(x for _, x in sorted(found, key=lambda pair: pair[0]) if x.lines)

    def close(self) -> None:
        """Forget the maps of lines, the large part, when nothing is asked for any more.

        What lowers a launch refers to itself and to this, so they would stay until Python looks for such garbage.
        """
        self.maps.clear()
        self.touched.clear()

    @property
    def write_share(self) -> float:
        """Part of the traffic with memory that writes have."""
        written = self.written_lines + self.pushed_out
        return written / max(1, self.read_lines + written)

    def _access(self, tensor: Tensor, region: AccessRegion, write: bool) -> tuple[Any, ...]:
        """As `_touch.touch` wants it."""
        stamps, runs, shift = self._map(tensor)
        size, count = tensor.dtype.itemsize, len(region.starts)
        box = (region.strides, region.lows, region.highs)
        memo = None
        if not write and all(len(x) == 1 for x in box):
            key = (id(tensor.whole), size, *(x.tobytes() for x in box))
            memo = self.touched.get(key)
            if memo is None:
                memo = self.touched[key] = np.zeros((MEMO, 3), np.int64)
        counts = np.zeros((3, count), np.int64)
        return (
            stamps,
            write,
            shift,
            1 << (shift - LINE_SHIFT),
            size,
            region.starts,
            *box,
            *counts,
            memo,
            runs,
        )

    def _map(self, tensor: Tensor) -> LineMap:
        tensor = tensor.whole
        found = self.maps.get(id(tensor))
        if found is None:
            size, shift = tensor.elements * tensor.dtype.itemsize, LINE_SHIFT
            while size >> shift >= MAX_LINES:
                shift += 1
            found = self.maps[id(tensor)] = LineMap.of((size >> shift) + 2, shift)
        return found


def _cuts(tickets: list[Ticket], cores: int) -> np.ndarray:
    """Where each wave begins among the programs of a ticket, and their number; one wave if `cores` is 0."""
    if not cores:
        return np.array([[0, len(t.numbers)] for t in tickets], np.int64)
    waves = max(int(t.numbers[-1]) // cores for t in tickets) + 1
    known: dict[int, np.ndarray] = {}
    for t in tickets:
        if id(t.numbers) not in known:
            known[id(t.numbers)] = np.searchsorted(t.numbers // cores, np.arange(waves + 1))
    return np.stack([known[id(t.numbers)] for t in tickets]).astype(np.int64)


def _size(region: AccessRegion) -> int:
    return int(region.starts.nbytes + region.strides.nbytes + region.lows.nbytes + region.highs.nbytes)


def _part(new: np.ndarray, total: np.ndarray) -> np.ndarray:
    out, some = np.zeros(len(new)), np.flatnonzero(new)
    lines, of = new[some], total[some]
    part: np.ndarray = lines / of
    part[lines >= of - 2] = 1.0
    part[lines <= np.minimum(2, of >> 2)] = 0.0
    out[some] = part
    return out
