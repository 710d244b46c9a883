"""In which buffer each value lives, by what makes it and what uses it.

    UB     everything the Vector unit touches
    L1     a tile that is loaded only to be an operand of a matrix product (ND to NZ on the way)
    L0C    a matrix product, and an accumulator that a loop carries for it
    VIEW   a transpose of an L1 tile, which the way to L0 does for nothing
    (what an explicit buffer holds lives where the buffer does)
    FIXP   a cast of an L0C value on its way out: the fixpipe does it, no buffer is needed

A value of L0C that the Vector unit (or a coupled core's store) needs gets a copy in UB as well: `copied_to_ub`. A value of
UB that becomes an operand of a product gets a place in L1: `staged`.
"""

from __future__ import annotations

from ..frontend.buffers import moved
from ..frontend.cores import VECTOR
from ..frontend.program import Op, Program, Region, Value
from .buffer_homes import made_in_place
from .geometry import VIEWS, Definitions

UB, L1, L0C, FIXP, VIEW = "UB", "L1", "L0C", "FIXP", "VIEW"
OUT_CASTS = ("fp16", "bf16", "fp32")


def looks_through(op: Op) -> bool:
    """Whether the Cube reads the operand of an operation in place of its result: views, and matrices transposed."""
    order = op.attrs["order"] if op.kind == "permute" else ()
    return op.kind in (*VIEWS, "from_l1") or (
        op.kind == "permute" and order[:-2] == tuple(range(len(order) - 2))
    )


class Homes:
    """Homes of all values of a program. `fixpipe` is False on coupled cores, where L0C leaves through the Vector unit."""

    def __init__(self, program: Program, definitions: Definitions, fixpipe: bool) -> None:
        self.definitions = definitions
        self.fixpipe = fixpipe
        self.has_dot = any(op.kind == "dot" or _flag(op) or _of_cube(op) for op in program.walk())
        self.of_value = {v: str(op.attrs["space"]) for v, op in program.buffers.items()}
        self.made_for = made_in_place(
            program, definitions
        )  # moves that have nothing to do, if the homes agree
        self.in_place = {m for m in self.made_for if not self.has_dot}
        self.copied_to_ub: set[int] = set()
        self.staged: set[int] = set()
        self.users: dict[int, list[tuple[Op, int]]] = {}
        if self.has_dot:
            self._collect(program.body)
            self._accumulators(program.body)
            for op in program.walk():
                self._classify(op)
            self.in_place = {op.id for op in program.walk() if op.id in self.made_for and self._at_home(op)}

    def home(self, v: Value) -> str:
        return self.of_value.get(v.id, UB)

    def _collect(self, region: Region) -> None:
        """Who reads each value, views looked through."""
        for op in region.ops:
            for i, v in enumerate(op.args):
                if v is not None:
                    self.users.setdefault(v.id, []).append((op, i))
            for inner in op.regions:
                self._collect(inner)

    def _readers(self, v: Value) -> list[tuple[Op, int]]:
        out: list[tuple[Op, int]] = []
        for op, i in self.users.get(v.id, []):
            if looks_through(op) and not op.results[0].is_pointer:
                out.extend(self._readers(op.results[0]))
            else:
                out.append((op, i))
        return out

    def _accumulators(self, region: Region) -> None:
        """A carried value whose next value is a product added to it stays in L0C through the loop."""
        for op in region.ops:
            for inner in op.regions:
                self._accumulators(inner)
            if op.kind != "for":
                continue
            body = op.regions[0]
            for k, r in enumerate(op.results):
                made = self.definitions.of(body.yields[k])
                if made is not None and made.kind == "dot" and made.args[2] is body.args[1 + k]:
                    for v in (body.args[1 + k], r):
                        self.of_value[v.id] = L0C
                        self._leave_l0c(v, carried=v is not r)

    def _classify(self, op: Op) -> None:
        if op.kind == "dot":
            r = op.results[0]
            self.of_value[r.id] = L0C
            self._leave_l0c(r, carried=False)
            for v in op.args[:2]:
                assert v is not None
                self._operand(v)
        elif op.kind == "load" and not _on_vector(op):
            readers = self._readers(op.results[0])
            if readers and all(self._reads_l1(o, i, op) for o, i in readers):
                self.of_value[op.results[0].id] = L1
                self._fold_transposes(op.results[0])
        elif op.kind == "from_l1":
            readers = self._readers(op.results[0])
            if all(o.kind == "dot" and i < 2 for o, i in readers):
                self.of_value[op.results[0].id] = VIEW
                self.definitions.folded.add(op.results[0].id)
                self._fold_transposes(op.results[0])

    def _reads_l1(self, reader: Op, i: int, load: Op) -> bool:
        """A product, or a buffer in L1 that the load goes to."""
        into = reader.kind == "move" and reader.attrs["space"] == L1 and self.made_for.get(reader.id) is load
        return into or (reader.kind == "dot" and i < 2)

    def _at_home(self, move: Op) -> bool:
        """Whether a tile that is made for a buffer lives where the buffer does."""
        return self.home(moved(move)) == str(move.attrs["space"])

    def _fold_transposes(self, v: Value) -> None:
        for op, _ in self.users.get(v.id, []):
            if op.kind == "permute" and looks_through(op):
                self.of_value[op.results[0].id] = VIEW
                self.definitions.folded.add(op.results[0].id)
            if looks_through(op) and not op.results[0].is_pointer:
                self._fold_transposes(op.results[0])

    def _operand(self, v: Value) -> None:
        source = self.source(v)
        made = self.definitions.of(source)
        readers = self._readers(source)
        if self.home(source) == L1:
            return  # a buffer, or loaded for products only
        loaded = made is not None and made.kind == "load" and not _on_vector(made)
        if not (loaded and all(o.kind == "dot" and i < 2 for o, i in readers)):
            self.staged.add(source.id)

    def source(self, v: Value) -> Value:
        """The value behind views and transposes (the Cube reads either way)."""
        op = self.definitions.of(v)
        while op is not None and looks_through(op):
            assert op.args[0] is not None
            v = op.args[0]
            op = self.definitions.of(v)
        return v

    def _leave_l0c(self, v: Value, carried: bool) -> None:
        """Follow an L0C value to its uses: fixpipe casts and stores need no UB, everything else does."""
        for op, i in self._readers(v):
            if op.kind == "dot" and i == 2:
                continue
            if op.kind in ("store", "atomic") and i == 1 and self.fixpipe and not _on_vector(op):
                continue
            if op.kind == "cast" and self.fixpipe and self._cast_on_the_way_out(op):
                self.of_value[op.results[0].id] = FIXP
                self.definitions.folded.add(op.results[0].id)
                continue
            self.copied_to_ub.add(v.id)

    def _cast_on_the_way_out(self, op: Op) -> bool:
        readers = self._readers(op.results[0])
        stores = all(o.kind in ("store", "atomic") and i == 1 and not _on_vector(o) for o, i in readers)
        return bool(readers) and stores and op.results[0].dtype.name in OUT_CASTS


def _on_vector(op: Op) -> bool:
    """Whether a scope puts it on the Vector core."""
    return op.attrs.get("core") == VECTOR


def _of_cube(op: Op) -> bool:
    """An explicit buffer of the Cube."""
    return op.kind == "alloc" and op.attrs["space"] != UB


def _flag(op: Op) -> bool:
    """A flag from one core to the other: both are there."""
    return op.kind == "sync" and op.name != "all"
