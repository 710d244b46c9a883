"""Lives of buffers, and what a loop carries as one buffer (AscendNPU-IR, PlanMemory.cpp: 3.3 to 3.6)."""

from __future__ import annotations

from .expansion import Expansion
from .tiles import Carried, Loop, Tile


class Merging:
    """Lives of all tiles of an expansion, and which of them are one buffer.

    uses: of a buffer, by identity: times, each with the loops around it.
    """

    def __init__(self, x: Expansion) -> None:
        self.x = x
        self.parent: dict[int, Tile] = {}
        self.uses: dict[int, list[tuple[int, tuple[Loop, ...]]]] = {}
        self._lives()
        for c in x.carried:
            self._carry(c)
        for c in x.carried:
            t = self.root(c.tile)
            t.last = max(t.last, c.loop.end)

    def root(self, t: Tile) -> Tile:
        """The buffer that a tile lies in."""
        while id(t) in self.parent:
            t = self.parent[id(t)]
        return t

    def join(self, into: Tile, t: Tile) -> None:
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
        self.uses.setdefault(id(into), []).extend(self.uses.get(id(t), ()))
        if t.numel * t.bits > into.numel * into.bits:
            into.shape, into.bits, into.spread = t.shape, t.bits, t.spread

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

    def _from(self, c: Carried, start: Tile) -> None:
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

    def _handed_back(self, c: Carried, t: Tile, y: Tile) -> None:
        """The next value is made in the buffer itself, unless the old one is read after that."""
        reads = (at for at, _ in self.uses.get(id(c.tile), ()) if c.loop.begin <= at <= c.loop.end)
        if y.first >= c.loop.begin and y.space == t.space and not any(at > y.first for at in reads):
            self.join(t, y)
        else:
            y.last = max(y.last, c.loop.end)


def _end(t: Tile, at: int, loops: tuple[Loop, ...]) -> int:
    """3.5: a use in a loop that began after the first write counts to the loop's end."""
    outer = next((loop.end for loop in loops if t.first < loop.begin), at)
    return max(at, outer)
