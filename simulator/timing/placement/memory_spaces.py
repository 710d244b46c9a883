"""In which buffer each value lives, by what makes it and what uses it.

    UB     everything the Vector unit touches
    L1     a tile that is loaded only to be an operand of a matrix product (ND to NZ on the way)
    L0C    a matrix product, and an accumulator that a loop carries for it
    BT     the row that an accumulator starts from (accumulator_inits.py)
    FB     the row of scales that a product is multiplied by on its way out
    VIEW   a transpose of an L1 tile, which the way to L0 does for nothing; a window of it (LoadData3D, see `is_window`)
    (what an explicit buffer holds lives where the buffer does)
    FIXP   a cast of an L0C value on its way out, or its product with scales: the fixpipe does it, no buffer is needed

A value of L0C that the Vector unit (or a coupled core's store) needs gets a copy in UB as well: `copied_to_ub`. A value of
UB that becomes an operand of a product gets a place in L1: `staged`.
"""

from __future__ import annotations

import functools

from ...ir.building.buffers import moved
from ...ir.passes.split_cores import VECTOR
from ...ir.program import Op, Program, Region, Value
from .accumulator_inits import BIAS, OTHER, ZERO, bias_load, start_of
from .buffer_spaces import made_in_place
from .layouts import BT, FB, TILE, Definitions
from .uses import WINDOWS, Uses, is_window

UB, L1, L0C, FIXP, VIEW = "UB", "L1", "L0C", "FIXP", "VIEW"
READ_BY_CUBE = ("unpack", "scaled")  # views that products alone read
OUT_CASTS = ("fp16", "bf16", "fp32")


class MemorySpaces(Uses):
    """The memory space of each value of a program.

    fixpipe: False on coupled cores, where L0C leaves through the Vector unit. bias_table: whether there is one.
    added: sums that the Vector unit adds their start to, when they have left L0C, and that start.
    """

    def __init__(
        self, program: Program, definitions: Definitions, fixpipe: bool, bias_table: bool = False
    ) -> None:
        super().__init__(definitions)
        self.program = program
        self.fixpipe = fixpipe
        # What passes between the parts of both cores is cut out of their programs: there a row stays with the Vector core.
        self.bias_table = bias_table and not program.split_builtins
        self.added: dict[int, Value] = {}
        flags, buffers = program.of_kind("sync"), program.of_kind("alloc")
        self.has_dot = bool(program.of_kind("dot")) or any(map(_flag, flags)) or any(map(_of_cube, buffers))
        self.of_value = {v: str(op.attrs["space"]) for v, op in program.buffers.items()}
        self.made_for = made_in_place(
            program, definitions
        )  # moves that have nothing to do, if the spaces are the same
        self.in_place = {m for m in self.made_for if not self.has_dot}
        self.copied_to_ub: set[int] = set()
        self.staged: set[int] = set()
        if self.has_dot:
            self.find_broadcast(program)
            self.collect(program.body)
            self._find_windows(program)
            self._accumulators(program.body)
            for op in program.walk():
                self._classify(op)
            self.in_place = {op.id for op in program.walk() if op.id in self.made_for and self._is_there(op)}
        definitions.settle()

    def space_of(self, v: Value) -> str:
        return self.of_value.get(v.id, UB)

    @functools.cached_property
    def has_vector_work(self) -> bool:
        """Whether any tile has to be in UB, be it one of offsets only, or the scalar unit of a vector core has to help."""
        if not self.has_dot or self.copied_to_ub or self.staged or self.program.split_builtins:
            return True
        return any(self._on_vector_core(op) for op in self.program.walk())

    def _on_vector_core(self, op: Op) -> bool:
        root, kind = self.definitions.root, op.kind
        if kind == "move" and op.id not in self.in_place:
            return True
        if any(r.shape and root(r) is r and self.space_of(r) == UB for r in op.results):
            return True  # also indices that are elements, such as those with a remainder
        v = op.results[0] if kind == "load" else op.args[1] if kind in ("store", "atomic") else None
        if v is None or not v.shape:
            return v is not None and kind != "load"  # a single element leaves through UB
        found = root(v)
        return found is None or self.space_of(found) == UB

    def made_real(self, v: Value) -> Value | None:
        """What the Vector unit has to write for an operand of a product, before the tile can go to L1."""
        found = self.source(v)
        definitions = self.definitions
        real = definitions.root(found) is not None and definitions.form(found) == TILE
        return None if real or found.id not in self.staged else found

    def _find_windows(self, program: Program) -> None:
        """Slices of tiles that were loaded for nothing but products; one that turns out not to be may undo others."""
        slices = {op.results[0].id: op.results[0] for op in program.walk() if is_window(op)}
        self.windows = set(slices)
        while True:
            bad = {i for i in self.windows if not self._loaded_for_products(self.source(slices[i]))}
            if not bad:
                return
            self.windows -= bad

    def _loaded_for_products(self, v: Value) -> bool:
        made = self.definitions.of(v)
        if made is None or made.kind != "load" or _on_vector(made):
            return False
        readers = self.readers(v)
        return bool(readers) and all(self._reads_l1(o, i, made) for o, i in readers)

    def _accumulators(self, region: Region) -> None:
        """A carried value whose next value is a product added to it stays in L0C through the loop."""
        for op in region.ops:
            if op.kind == "for":
                for k in range(len(op.results)):
                    self._accumulator(op, k)
            for inner in op.regions:
                self._accumulators(inner)

    def _accumulator(self, op: Op, k: int) -> None:
        body, r, start = op.regions[0], op.results[k], op.args[3 + k]
        arg = body.args[1 + k]
        if start is None or not self.products_from(body.yields[k], arg):
            return
        how = self._start_of(start)
        self.of_value[arg.id] = self.of_value[r.id] = L0C
        self._leave_l0c(arg, carried=True)
        self._starts(how, start, r)

    def _start_of(self, v: Value) -> str:
        root = self.definitions.root(v)
        return start_of(self, v, "" if root is None else self.space_of(root), self.bias_table)

    def _starts(self, how: str, start: Value, r: Value) -> None:
        """Where a sum goes, and the row that it starts from, by what it starts from."""
        if how == OTHER:
            self.added[r.id] = start
            self.copied_to_ub.add(r.id)
            return
        if how == BIAS:
            self._to_bias_table(start)
        self._leave_l0c(r, carried=False)

    def _to_bias_table(self, start: Value) -> None:
        """The row goes there when it is loaded; a cast of it happens on the way."""
        load = bias_load(self, start)
        if load is None:
            return  # it does already
        row, root = load.results[0], self.definitions.root(start)
        assert root is not None
        self.of_value[row.id] = BT
        if root is not row:
            self.of_value[root.id] = VIEW
            self.definitions.folded.add(root.id)

    def _classify(self, op: Op) -> None:
        if op.kind == "dot":
            r = op.results[0]
            self.of_value[r.id] = L0C
            start = op.args[2]
            self._starts(ZERO if start is None else self._start_of(start), start or r, r)
            for v in self.operands(op):
                self._operand(v)
        elif op.kind == "load" and self._loaded_for_products(op.results[0]):
            self.of_value[op.results[0].id] = L1
            self._fold_transposes(op.results[0])
        elif op.kind in READ_BY_CUBE:
            self.of_value[op.results[0].id] = VIEW
        elif op.kind == "from_l1":
            readers = self.readers(op.results[0])
            if all(o.kind == "dot" and i < 2 for o, i in readers):
                self.of_value[op.results[0].id] = VIEW
                self.definitions.folded.add(op.results[0].id)
                self._fold_transposes(op.results[0])

    def _reads_l1(self, reader: Op, i: int, load: Op) -> bool:
        """A product, or a buffer in L1 that the load goes to."""
        into = reader.kind == "move" and reader.attrs["space"] == L1 and self.made_for.get(reader.id) is load
        return into or (reader.kind == "dot" and i < 2)

    def _is_there(self, move: Op) -> bool:
        """Whether a tile that is made for a buffer lives where the buffer does."""
        return self.space_of(moved(move)) == str(move.attrs["space"])

    def _fold_transposes(self, v: Value) -> None:
        for op, _ in self.users.get(v.id, []):
            if op.kind in ("permute", *WINDOWS) and self.sees_through(op):
                self.of_value[op.results[0].id] = VIEW
                self.definitions.folded.add(op.results[0].id)
            if self.sees_through(op) and not op.results[0].is_pointer:
                self._fold_transposes(op.results[0])

    def _operand(self, v: Value) -> None:
        source = self.source(v)
        if self.space_of(source) == L1:
            return  # a buffer, or loaded for products only
        if not self._loaded_for_products(source):
            self.staged.add(source.id)

    def _leave_l0c(self, v: Value, carried: bool) -> None:
        """Follow an L0C value to its uses: fixpipe casts and stores need no UB, everything else does."""
        for op, i in self.readers(v):
            if op.kind == "dot" and i == 2:
                continue
            if self.fixpipe and _by_fixpipe(op, i):
                continue
            if op.kind == "fixpipe_scaled" and self._scaled_on_the_way_out(op):
                self._to_fixpipe(op.operand(1))
            elif not (op.kind == "cast" and self.fixpipe and self._cast_on_the_way_out(op)):
                self.copied_to_ub.add(v.id)
                continue
            self.of_value[op.results[0].id] = FIXP
            self.definitions.folded.add(op.results[0].id)

    def _scaled_on_the_way_out(self, op: Op) -> bool:
        """Whether the scales are a number, or a row that was loaded for nothing else."""
        scale = op.operand(1)
        there = not scale.shape or self._scales_load(scale) is not None
        return self.fixpipe and there and self._only_stored(op)

    def _scales_load(self, scale: Value) -> Op | None:
        """The load of a row that nothing but the fixpipe reads."""
        root = self.definitions.root(scale)
        made = None if root is None else self.definitions.of(root)
        if made is None or made.kind != "load" or _on_vector(made) or made.results[0].numel != scale.numel:
            return None
        readers = self.readers(made.results[0])
        scales = (o.kind == "fixpipe_scaled" and i == 1 and self._only_stored(o) for o, i in readers)
        return made if all(scales) else None

    def _to_fixpipe(self, scale: Value) -> None:
        load = self._scales_load(scale) if scale.shape else None
        if load is not None:
            self.of_value[load.results[0].id] = FB

    def _cast_on_the_way_out(self, op: Op) -> bool:
        return op.results[0].dtype.name in OUT_CASTS and self._only_stored(op)

    def _only_stored(self, op: Op) -> bool:
        """Whether the fixpipe stores the result, and nothing else reads it."""
        readers = self.readers(op.results[0])
        return bool(readers) and all(_by_fixpipe(o, i) for o, i in readers)


def _on_vector(op: Op) -> bool:
    """Whether a scope puts it on the Vector core."""
    return op.attrs.get("core") == VECTOR


def _by_fixpipe(op: Op, i: int) -> bool:
    """Whether an operation stores its i-th operand as the fixpipe can: a box of the tile at regular addresses."""
    if op.kind not in ("store", "atomic") or i != 1 or _on_vector(op):
        return False
    pointer, mask = op.operand(0), op.args[2]
    whole = mask is None or not mask.shape or mask.static.kind != "dense"
    return whole and (not pointer.shape or pointer.static.affine_offsets)


def _of_cube(op: Op) -> bool:
    """An explicit buffer of the Cube."""
    return bool(op.attrs["space"] != UB)


def _flag(op: Op) -> bool:
    """A flag from one core to the other: both are there."""
    return op.name != "all"
