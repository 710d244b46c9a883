"""When each value of a program is alive: from its definition to its last use, counted in operations."""

from __future__ import annotations

from ...ir.program import Op, Program, Region, Value
from .layouts import Definitions


class Lifetimes:
    """Lives of all values of a program.

    at: position of each operation. spans: first and last position of each loop. last: of the last use of each value that
    has bytes. lines: source line of each position. added: what a sum is added to when it has left L0C, by sum.
    """

    def __init__(self, program: Program, definitions: Definitions, added: dict[int, Value]) -> None:
        self.program = program
        self.definitions = definitions
        self.added = added
        self.at: dict[int, int] = {}
        self.spans: dict[int, tuple[int, int]] = {}
        self.last: dict[int, int] = {}
        self.lines: list[int] = []
        self.entered: dict[int, int] = {}  # argument of a region -> position after its operation
        self._number(program.body)
        self._last_uses(program.body)
        self._late_starts(program.body)

    def _number(self, region: Region) -> None:
        for op in region.ops:
            at = self.at[op.id] = len(self.lines)
            self.lines.append(op.loc.line)
            for inner in op.regions:
                self.entered.update((a.id, at + 1) for a in inner.args)
                self._number(inner)
            if op.kind in ("for", "while"):
                self.lines.append(op.loc.line)  # the end of the loop, where carried values are handed back
                self.spans[op.id] = (at, len(self.lines) - 1)

    def _last_uses(self, region: Region, loop: Op | None = None) -> None:
        for op in region.ops:
            for v in op.args:
                self._use(v, self.at[op.id])
            for inner in op.regions:
                self._last_uses(inner, op if op.kind in ("for", "while") else loop)
                end = self.spans.get(op.id, (0, self._end_of(inner, op)))[1]
                for y in inner.yields:
                    self._use(y, end)

    def _late_starts(self, region: Region) -> None:
        """What is added to a sum when it has left L0C is alive until then."""
        for op in region.ops:
            for r in op.results:
                if r.id in self.added:
                    self._use(self.added[r.id], self.spans.get(op.id, (0, self.at[op.id]))[1])
            for inner in op.regions:
                self._late_starts(inner)

    def _end_of(self, region: Region, op: Op) -> int:
        return max((self.at[o.id] for o in region.ops), default=self.at[op.id])

    def _use(self, v: Value | None, at: int) -> None:
        root = None if v is None else self.definitions.root(v)
        if root is not None:
            self.last[root.id] = max(self.last.get(root.id, -1), self._outside(root, at))

    def _outside(self, v: Value, at: int) -> int:
        """A value from before a loop that is used inside it stays alive to the loop's end."""
        born = self.birth(v)
        for begin, end in self.spans.values():
            if begin <= at <= end and not begin < born <= end:
                at = max(at, end)
        return at

    def birth(self, v: Value) -> int:
        """Position at which a value is there; what a loop gives, at its end."""
        op = self.definitions.of(v)
        if op is None:
            return self.entered.get(v.id, -1)
        return self.spans[op.id][1] if op.id in self.spans else self.at[op.id]
