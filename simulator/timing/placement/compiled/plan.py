"""Lifetimes, in-place results, slots and addresses: the compiler's planner."""

from __future__ import annotations

from ..layouts import accumulator_bytes, fractal_bytes
from ..memory_spaces import L0C, L1, UB
from .expand import Expansion
from .tiles import Loop, Tile

UNIT = {UB: 32, L1: 32, L0C: 512}


class Plan:
    def __init__(self, x: Expansion, mixed: bool, copies: int = 2) -> None:
        self.x, self.mixed, self.copies = x, mixed, copies
        self.parent: dict[int, Tile] = {}
        self.uses: dict[int, list[tuple[int, tuple[Loop, ...]]]] = {}
        self._lives()
        self._carry()
        self._in_place()
        self._slots(mixed, copies)

    def root(self, t: Tile) -> Tile:
        while id(t) in self.parent:
            t = self.parent[id(t)]
        return t

    def _lives(self) -> None:
        first, uses = {}, self.uses
        for s in self.x.steps:
            for t in s.writes:
                t.first = s.at if t.first < 0 else t.first
                uses.setdefault(id(t), []).append((s.at, s.loops))
            for t in s.reads:
                uses.setdefault(id(t), []).append((s.at, s.loops))
        for t in self.x.tiles:
            self._span(t)

    def _span(self, t: Tile) -> None:
        t.last = max(t.first, t.last)
        for at, loops in self.uses.get(id(t), ()):
            end = at
            for l in loops:
                if t.first < l.begin:
                    end = max(end, l.end)
                    break
            t.last = max(t.last, end)

    def _carry(self) -> None:
        for loop, start, t, y in self.x.carried:
            if start is not None:
                s = self.root(start)
                used_later = any(at > loop.begin for at, _ in self.uses.get(id(start), ()))
                if s is not self.root(t):
                    if used_later or (s.carried and s.last > loop.end):
                        t.first = min(x for x in (t.first, loop.begin - 1) if x >= 0) if t.first >= 0 else loop.begin - 1
                        start.last = max(start.last, loop.begin - 1)
                    else:
                        self._join(t, s)
            c = self.root(t)
            c.carried = True
            c.first = loop.begin if c.first < 0 else min(c.first, loop.begin)
            c.last = max(c.last, loop.end)
            if y is None:
                continue
            yr = self.root(y)
            if yr is c:
                continue
            reads = [at for at, _ in self.uses.get(id(t), ()) if loop.begin <= at <= loop.end]
            if yr.first >= loop.begin and not yr.carried and not any(at > yr.first for at in reads) and yr.space == c.space:
                self._join(c, yr)
            elif yr.carried and yr.first >= loop.begin and not any(at > yr.first for at in reads):
                self._join(c, yr)
            else:
                yr.last = max(yr.last, loop.end)
        for loop, start, t, y in self.x.carried:
            c = self.root(t)
            c.last = max(c.last, loop.end)

    def _join(self, into: Tile, t: Tile) -> None:
        """One entry of both."""
        into, t = self.root(into), self.root(t)
        if into is t:
            return
        self.parent[id(t)] = into
        into.first = min(x for x in (into.first, t.first) if x >= 0) if max(into.first, t.first) >= 0 else -1
        into.last = max(into.last, t.last)
        into.carried |= t.carried
        into.loaded |= t.loaded
        into.stored |= t.stored
        into.values += t.values
        self.uses.setdefault(id(into), []).extend(self.uses.get(id(t), ()))
        if t.numel * t.bits > into.numel * into.bits:
            into.shape, into.bits = t.shape, t.bits

    def _in_place(self) -> None:
        for s in self.x.steps:
            given = set()
            for w in sorted(s.writes, key=lambda t: -t.numel * t.bits):
                r = self.root(w)
                if r.carried or r.first != s.at:
                    continue
                for o in sorted((o for o in s.over), key=lambda t: -self.root(t).first):
                    q = self.root(o)
                    if id(q) in given or q is r or q.carried or q.last != s.at or q.space != r.space:
                        continue
                    if q.numel * q.bits < r.numel * r.bits or q.first == s.at:
                        continue
                    if q.loaded and r.stored and self.doubled(q) and self.doubled(r):
                        continue
                    given.add(id(q))
                    self._join(q, r)
                    break

    def doubled(self, t: Tile) -> bool:
        return self.copies > 1 and not self.mixed and t.moved and bool(t.loops)

    def _slots(self, mixed: bool, copies: int) -> None:
        entries = []
        for t in self.x.tiles:
            if id(t) in self.parent or t.first < 0:
                continue
            t.size = _bytes(t)
            t.slots = 1
            if t.loops and copies > 1 and t.moved and not t.carried:
                if t.space == L1 or (t.space == UB and not mixed):
                    t.slots = copies
            entries.append(t)
        self.entries = entries

    def need(self, space: str) -> int:
        mine = sorted((t for t in self.entries if t.space == space), key=lambda t: (0 if t.moved else 2 if t.scalar else 1, t.first))
        placed: list[tuple[int, int, Tile]] = []
        top = 0
        for t in mine:
            for _ in range(t.slots):
                at = 0
                for lo, hi, other in sorted((p for p in placed if p[2].first <= t.last and t.first <= p[2].last), key=lambda p: p[0]):
                    if at + t.size <= lo:
                        break
                    at = max(at, hi)
                placed.append((at, at + t.size, t))
                top = max(top, at + t.size)
        self.placed = placed
        return top


def _bytes(t: Tile) -> int:
    unit = UNIT[t.space]
    if t.space == L1:
        n = fractal_bytes(t.values[0])
    elif t.space == L0C:
        n = accumulator_bytes(t.values[0])
    else:
        n = -(-t.numel * t.bits // 8)
    return -(-n // unit) * unit
