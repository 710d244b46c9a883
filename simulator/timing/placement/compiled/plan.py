"""What is one buffer, when it lives and how often it is there (AscendNPU-IR, PlanMemory.cpp and MarkMultiBuffer.cpp).

Lives (3.3 to 3.8) come from the steps of an `Expansion`. What a loop carries is one buffer (3.6, `merging.py`), a result
may take the place of an operand that ends where it begins (3.9 to 3.12), what loads and stores move in a loop is there
twice (4.1 to 4.5). `levels.py` gives the addresses.
"""

from __future__ import annotations

from ..layouts import align
from ..memory_spaces import L1, UB
from .expansion import Expansion
from .levels import addresses, figure
from .merging import Merging
from .sizes import tile_size
from .tiles import Step, Tile

IN_LOOPS = (UB, L1)  # spaces in which tiles get copies (4.5); an accumulator has one (no-l0c)


class Plan:
    """Of one program.

    mixed: it has products and vector work. copies: of a tile that a load or a store moves in a loop. alignment: space ->
    bytes. entries: what is one buffer, by first write. pairs: see `levels.py`.
    """

    def __init__(self, x: Expansion, copies: int, alignment: dict[str, int]) -> None:
        self.x, self.copies, self.alignment = x, copies, alignment
        self.mixed = x.spaces.has_dot
        self.pairs: set[tuple[int, int]] = set()
        self.merging = Merging(x)
        self._in_place()
        roots = (t for t in x.tiles if self.merging.root(t) is t and t.first >= 0)
        self.entries = [self._measured(t) for t in roots]

    def root(self, t: Tile) -> Tile:
        """The buffer that a tile lies in."""
        return self.merging.root(t)

    def inside(self, space: str) -> list[Tile]:
        """Buffers of a space."""
        return [t for t in self.entries if t.space == space]

    def need(self, space: str) -> int:
        """Bytes that the message of an overflow tells (3.20)."""
        return figure(self.inside(space), self.pairs)

    def places(self, space: str, limit: int) -> dict[int, tuple[int, ...]]:
        """Where each slot of each buffer of a space begins, by identity of the buffer."""
        return addresses(self.inside(space), limit, self.pairs)

    def _measured(self, t: Tile) -> Tile:
        """3.1, with its slots."""
        t.size = align(tile_size(t), self.alignment.get(t.space, 1))
        t.slots = max(self._slots(t), t.asked)
        return t

    def _slots(self, t: Tile) -> int:
        """4.1 to 4.6: in a loop, of what is loaded or stored; what a loop carries, and tiles from outside, once."""
        if (
            not t.loops
            or not t.moved
            or t.carried
            or t.space not in IN_LOOPS
            or (t.space == UB and self.mixed)
        ):
            return 1
        hint = t.loops[-1].op.attrs.get("hints", {}).get("num_stages")
        return max(1, int(hint)) if hint and self.copies > 1 else self.copies

    def _in_place(self) -> None:
        """3.9: results take the place of operands, the largest first."""
        for s in self.x.steps:
            given: set[int] = set()
            for w in sorted(s.writes, key=lambda t: -t.numel * t.bits):
                r = self.root(w)
                if not r.carried and r.first == s.at:
                    self._take_over(s, r, given)

    def _take_over(self, s: Step, r: Tile, given: set[int]) -> None:
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


def _gives(q: Tile, r: Tile, at: int) -> bool:
    """Whether an operand ends here and its buffer is large enough and of the same space."""
    ends = q is not r and not q.carried and q.first < at == q.last
    return ends and q.space == r.space and q.numel * q.bits >= r.numel * r.bits
