"""What is one buffer, when it lives and how often it is there (AscendNPU-IR, PlanMemory.cpp and MarkMultiBuffer.cpp).

Lives (3.3 to 3.8) come from the steps of an `Expansion`. What a loop carries is one buffer (3.6), a result
may take the place of an operand that ends where it begins (3.9 to 3.12), what loads and stores move in a loop is there
twice (4.1 to 4.5). `levels.py` gives the addresses.
"""

from __future__ import annotations

from ..layouts import align
from ..memory_spaces import L0C
from .expansion import Expansion
from .levels import addresses, figure
from .tiles import BufferStep, Carried, PlannedLoop, PlannedTile, tile_size


class BufferMerging:
    """Lives of all tiles of an expansion, and which of them are one buffer.

    uses: of a buffer, by identity: times, each with the loops around it.
    """

    def __init__(self, x: Expansion) -> None:
        self.x = x
        self.parent: dict[int, PlannedTile] = {}
        self.uses: dict[int, list[tuple[int, tuple[PlannedLoop, ...]]]] = {}
        self._lives()
        for c in x.carried:
            self._carry(c)
        for c in x.carried:
            t = self.root(c.tile)
            t.last = max(t.last, c.loop.end)

    def root(self, t: PlannedTile) -> PlannedTile:
        """The buffer that a tile lies in."""
        while id(t) in self.parent:
            t = self.parent[id(t)]
        return t

    def join(self, into: PlannedTile, t: PlannedTile) -> None:
        """One entry of both: the larger size, the union of the lives (3.9)."""
        into, t = self.root(into), self.root(t)
        if into is t:
            return
        self.parent[id(t)] = into
        into.first = min((x for x in (into.first, t.first) if x >= 0), default=-1)
        into.last = max(into.last, t.last)
        for mark in ("carried", "loaded", "stored", "scalar", "unique", "asked"):
            setattr(into, mark, max(getattr(into, mark), getattr(t, mark)))
        into.values += t.values
        into.pieces = min(into.pieces, t.pieces)
        self.uses.setdefault(id(into), []).extend(self.uses.get(id(t), ()))
        if t.room > into.room:
            into.shape, into.bits, into.spread, into.padding = t.shape, t.bits, t.spread, t.padding

    def _lives(self) -> None:
        """3.4: from the first write to the last use."""
        for s in self.x.steps:
            for t in s.writes:
                t.first = s.at if t.first < 0 else t.first
            for t in (*s.writes, *s.reads):
                self.uses.setdefault(id(t), []).append((s.at, s.loops))
        for t in self.x.tiles:
            ends = (_end(t, at, loops) for at, loops in self.uses.get(id(t), ()))
            t.last = max((t.first, t.last, *ends))
            if t.unique:
                t.first, t.last = 0, self.x.time + 1

    def _carry(self, c: Carried) -> None:
        """3.6: start, argument, next value and result are one buffer where none of them is needed beside another."""
        if c.start is not None:
            self._from(c, self.root(c.start))
        t = self.root(c.tile)
        t.carried = True
        t.first = c.loop.begin if t.first < 0 else min(t.first, c.loop.begin)
        t.last = max(t.last, c.loop.end)
        if c.next is not None and self.root(c.next) is not t:
            self._handed_back(c, t, self.root(c.next))

    def _from(self, c: Carried, start: PlannedTile) -> None:
        """The start is the buffer itself, unless somebody reads it later: then it is copied before the loop."""
        if start is self.root(c.tile):
            return
        again = any(at > c.loop.begin for at, _ in self.uses.get(id(c.start), ()))
        if start.space == c.tile.space and not again and not (start.carried and start.last > c.loop.end):
            self.join(c.tile, start)
            return
        before = c.loop.begin - 1
        c.tile.first = before if c.tile.first < 0 else min(c.tile.first, before)
        start.last = max(start.last, before)

    def _handed_back(self, c: Carried, t: PlannedTile, y: PlannedTile) -> None:
        """The next value is made in the buffer itself, unless the old one is read after that."""
        reads = (at for at, _ in self.uses.get(id(c.tile), ()) if c.loop.begin <= at <= c.loop.end)
        if y.first >= c.loop.begin and y.space == t.space and not any(at > y.first for at in reads):
            self.join(t, y)
        else:
            y.last = max(y.last, c.loop.end)


def _end(t: PlannedTile, at: int, loops: tuple[PlannedLoop, ...]) -> int:
    """3.5: a use in a loop that began after the first write counts to the loop's end."""
    outer = next((loop.end for loop in loops if t.first < loop.begin), at)
    return max(at, outer)


class BufferPlan:
    """Of one program.

    copies: of a tile that a load or a store moves in a loop. copied: buffers in which it has them. alignment: space ->
    bytes. entries: what is one buffer, by first write. pairs: see `levels.py`.
    """

    def __init__(self, x: Expansion, copies: int, copied: tuple[str, ...], alignment: dict[str, int]) -> None:
        self.x, self.copies, self.copied, self.alignment = x, copies, copied, alignment
        self.pairs: set[tuple[int, int]] = set()
        self.merging = BufferMerging(x)
        self._in_place()
        roots = (t for t in x.tiles if self.merging.root(t) is t and t.first >= 0)
        self.entries = [self._measured(t) for t in roots]

    def root(self, t: PlannedTile) -> PlannedTile:
        """The buffer that a tile lies in."""
        return self.merging.root(t)

    def inside(self, space: str) -> list[PlannedTile]:
        """Buffers of a space."""
        return [t for t in self.entries if t.space == space]

    def need(self, space: str) -> int:
        """Bytes that the message of an overflow tells (3.20)."""
        return figure(self.inside(space), self.pairs)

    def places(self, space: str, limit: int) -> dict[int, tuple[int, ...]]:
        """Where each slot of each buffer of a space begins, by identity of the buffer."""
        return addresses(self.inside(space), limit, self.pairs)

    def _measured(self, t: PlannedTile) -> PlannedTile:
        """3.1, with its slots."""
        t.size = align(tile_size(t), self.alignment.get(t.space, 1))
        t.slots = max(self._slots(t), t.asked)
        return t

    def _slots(self, t: PlannedTile) -> int:
        """4.1 to 4.6: in a loop, of what is loaded or stored; what a loop carries, and tiles from outside, once."""
        moved = t.moved or t.space == L0C  # which the fixpipe empties
        if not t.loops or not moved or t.carried or t.space not in self.copied:
            return 1
        hint = t.loops[-1].op.attrs.get("hints", {}).get("num_stages")
        return max(1, int(hint)) if hint and self.copies > 1 else self.copies

    def _in_place(self) -> None:
        """3.9: results take the place of operands, the largest first."""
        for s in self.x.steps:
            given: set[int] = set()
            for w in sorted(s.writes, key=lambda t: -t.room):
                r = self.root(w)
                if not r.carried and r.first == s.at and (r.merged or not s.casts):
                    self._take_over(s, r, given)

    def _take_over(self, s: BufferStep, r: PlannedTile, given: set[int]) -> None:
        """The place of the first operand that dies, is large enough and passes. given: those that were taken."""
        for q in sorted((self.root(o) for o in s.over), key=lambda t: -t.first):
            if id(q) in given or not _gives(q, r, s.at):
                continue
            if q.loaded and r.stored and self._slots(q) > 1 and self._slots(r) > 1:
                self.pairs.add((id(q), id(r)))  # 3.12: a load would wait for the store
                continue
            given.add(id(q))
            self.merging.join(q, r)
            return


def _gives(q: PlannedTile, r: PlannedTile, at: int) -> bool:
    """Whether an operand ends here and its buffer is large enough and of the same space."""
    ends = q is not r and not q.carried and q.first < at == q.last
    return ends and q.space == r.space and q.room >= r.room
