"""What L2 holds during a launch: which bytes come from memory, and which stores push older ones out to it.

L2 keeps the lines that were touched last (LRU), reads and writes alike; a changed line goes to memory when it leaves. The
order of the program, and of programs within one instruction, stands in for the order in time. Where there are more programs
than cores, those that run at the same time (a wave: as many as there are cores, by their numbers) do all that they do before
the next ones begin: accesses are then noted down (`later`) and touched when all are known (`settle`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...interpreter.regions import AccessRegion
from ...interpreter.tensors import Tensor
from ._l2 import touch

LINE_SHIFT = 7  # MSO counts reads of L2 in requests of 128 bytes: that much comes from memory at least
MAX_LINES = 1 << 28
MEMO = 1 << 14  # tiles of one form that are known to have been touched
NEW, CHANGED, TOTAL = 9, 10, 11  # places in an access of `touch`
PARTS = 64  # in which what earlier kernels wrote leaves L2
NOTES = 1 << 12  # of stores whose lines are still in L2; more are added up
CLOCK, OWED, WRITTEN, HEAD, TAIL = range(5)  # places in the state of `touch`
KEPT_BYTES = (
    1 << 28
)  # of accesses that are noted down; then they are touched, in waves as far as they are known
Met = Sequence[tuple[Tensor, AccessRegion, bool]]


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
    is full of what earlier kernels wrote, and has to go to memory first.
    """

    def __init__(
        self, capacity: int = 1 << 36, resident: Iterable[Tensor] = (), changed: float = 0.0
    ) -> None:
        self.room = capacity >> LINE_SHIFT
        self.maps: dict[int, tuple[np.ndarray, int]] = {}
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
        left = self.room
        for tensor in resident:
            lines = (tensor.whole.elements * tensor.dtype.itemsize >> LINE_SHIFT) + 1
            if id(tensor.whole) not in self.maps and lines <= left:
                self._map(tensor)[0][:] = 2
                left -= lines

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
        self._touch([ticket], 0)
        return ticket.shares

    # -- waves -------------------------------------------------------------------------------------------------------

    def in_waves(self, cores: int) -> None:
        """From here on accesses may be noted down, to be touched in waves of so many programs."""
        self.cores = cores

    def later(self, met: Met, order: np.ndarray, rows: np.ndarray, numbers: np.ndarray) -> Ticket:
        """Note accesses down; `settle` finds their shares."""
        ticket = Ticket(met, order, rows, numbers)
        self.tickets.append(ticket)
        self.kept_bytes += sum(_size(region) for _, region, _ in met)
        if self.kept_bytes > KEPT_BYTES:
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
        order = np.concatenate([t.order + k for t, k in zip(tickets, before, strict=False)])
        first = np.concatenate([t.rows * len(t.numbers) for t in tickets])
        cut = np.repeat(np.arange(len(tickets), dtype=np.int32), [len(t.order) for t in tickets])
        cuts = _cuts(tickets, cores)
        touch(
            accesses,
            order.astype(np.int32),
            first.astype(np.int64),
            cut,
            cuts,
            self.room,
            self.state,
            self.queue,
        )
        for t, k in zip(tickets, before, strict=False):
            t.shares = [self._found(accesses[k + i], write) for i, (*_, write) in enumerate(t.met)]
            t.met = []

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
    def write_share(self) -> float:
        """Part of the traffic with memory that writes have."""
        return self.written_lines / max(1, self.read_lines + self.written_lines)

    def _access(self, tensor: Tensor, region: AccessRegion, write: bool) -> tuple[Any, ...]:
        """As `_touch.touch` wants it."""
        stamps, shift = self._map(tensor)
        size, count = tensor.dtype.itemsize, len(region.starts)
        box = (region.strides, region.lows, region.highs)
        memo = None
        if not write and all(len(x) == 1 for x in box):
            key = (id(tensor.whole), size, *(x.tobytes() for x in box))
            memo = self.touched.get(key)
            if memo is None:
                memo = self.touched[key] = np.zeros((MEMO, 3), np.int64)
        counts = np.zeros((3, count), np.int64)
        return (stamps, write, shift, 1 << (shift - LINE_SHIFT), size, region.starts, *box, *counts, memo)

    def _map(self, tensor: Tensor) -> tuple[np.ndarray, int]:
        tensor = tensor.whole
        found = self.maps.get(id(tensor))
        if found is None:
            size, shift = tensor.elements * tensor.dtype.itemsize, LINE_SHIFT
            while size >> shift >= MAX_LINES:
                shift += 1
            found = self.maps[id(tensor)] = (np.zeros((size >> shift) + 2, np.uint32), shift)
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
