"""Which core of a split product runs an operation: the Cube's core (AIC) or a Vector core (AIV) beside it.

A scope says it; without one, products, tiles that are loaded only for them and what stores them belong to the Cube's core,
all other work on tiles to the Vector core. Scalars and indices belong to both: each core has a scalar unit.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..operations import operation
from ..program import Loc, Op, Program, Region, Value

CUBE, VECTOR = "cube", "vector"
CORES = (CUBE, VECTOR)
EVENTS = 16  # flags from one kind of core to the other
MODES = ("all", "all_cube", "all_vector", "all_sub_vector")
SUB_VECTOR_CORES = 2  # of all split products
# MTE3 of a Cube core is what leaves it: the fixpipe.
PIPES_OF = {
    CUBE: ("S", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL"),
    VECTOR: ("S", "V", "MTE2", "MTE3", "ALL"),
}
MEMORY = ("load", "store", "atomic")


@dataclass(frozen=True)
class CoreScope:
    """What `with scope(core_mode=...)` enters."""

    core: str


class Cores:
    """The core of each operation of a program."""

    def __init__(self, program: Program) -> None:
        self.made = {r.id: op for op in program.walk() for r in op.results}
        self.readers: dict[int, list[tuple[Op, int]]] = {}
        for op in program.walk():
            for i, v in enumerate(op.args):
                if v is not None:
                    self.readers.setdefault(v.id, []).append((op, i))
        self.products = self._products(program)

    def of(self, op: Op) -> str:
        """ "cube", "vector", or "" for both."""
        if op.kind == "dot":
            return CUBE
        if op.kind == "alloc":
            return ""
        if op.kind == "sync":
            return str(op.attrs.get("core", "")) if op.name != "all" else ""
        tiles = any(v is not None and v.shape and not v.is_pointer for v in (*op.args, *op.results))
        symbolic = all(r.static.kind in ("scalar", "affine", "box", "uniform", "pointer") for r in op.results)
        elements = any(v is not None and v.shape and v.static.kind == "dense" for v in op.args)
        if op.regions or (op.kind not in MEMORY and not elements and symbolic):
            return ""
        if op.attrs.get("core"):
            return str(op.attrs["core"])
        if op.kind == "load":
            return CUBE if tiles and self._operand(op.results[0]) else (VECTOR if tiles else "")
        if op.kind in ("store", "atomic"):
            assert op.args[1] is not None
            return CUBE if self.from_product(op.args[1]) else VECTOR
        return CUBE if _seen_through(op) and self._stays_on_cube(op) else VECTOR

    def from_product(self, v: Value) -> bool:
        """Whether a tile is a product, seen through views and casts."""
        while v.id not in self.products:
            op = self.made.get(v.id)
            if op is None or not _seen_through(op) or op.args[0] is None:
                return False
            v = op.args[0]
        return True

    def _stays_on_cube(self, op: Op) -> bool:
        """A view of an operand, or a product's cast on its way out."""
        if self._operand(op.results[0]):
            assert op.args[0] is not None
            source = self.made.get(op.args[0].id)
            return source is not None and self.of(source) == CUBE
        return self.from_product(op.results[0]) and all(
            o.kind in ("store", "atomic") for o, _ in self._uses(op.results[0])
        )

    def _operand(self, v: Value) -> bool:
        """Whether a tile is used as an operand of products only."""
        uses = self._uses(v)
        return bool(uses) and all(o.kind == "dot" and i < 2 for o, i in uses)

    def _uses(self, v: Value) -> list[tuple[Op, int]]:
        out: list[tuple[Op, int]] = []
        for op, i in self.readers.get(v.id, []):
            if operation(op).view and not op.results[0].is_pointer:
                out += self._uses(op.results[0])
            else:
                out.append((op, i))
        return out

    def _products(self, program: Program) -> set[int]:
        """Products, and values that loops carry for them."""
        found = {op.results[0].id for op in program.walk() if op.kind == "dot"}
        loops = [op for op in program.walk() if op.kind == "for"]
        known = -1
        while known != (known := len(found)):
            for op in loops:
                body = op.regions[0]
                for r, a, y in zip(op.results, body.args[1:], body.yields, strict=True):
                    if y.id in found:
                        found.update((r.id, a.id))
        return found


def check(program: Program) -> tuple[str, Loc] | None:
    """What a scope asks of a core that cannot do it, with its place; None if nothing."""
    for op in program.walk():
        given = op.attrs.get("core")
        if given == VECTOR and op.kind == "dot":
            return (
                'dot: the vector core cannot multiply matrices; put it under scope(core_mode="cube")',
                op.loc,
            )
        if given == CUBE and op.name == "fixpipe":
            continue  # what leaves L0C is the Cube's work; whether there is a path to UB is the product's business
        if given == CUBE and not _of_any_core(op) and _needs_vector(program, op):
            what = op.name or op.kind
            return (
                f'{what}: the cube core has no vector unit; put it under scope(core_mode="vector")',
                op.loc,
            )
    return SubCores(program).wrong(program.body) if has_sub_vectors(program) else None


def _of_any_core(op: Op) -> bool:
    return bool(op.regions) or op.kind in ("dot", "sync", *MEMORY)


def _seen_through(op: Op) -> bool:
    """Whether a result belongs to the core that has the operand."""
    return operation(op).view or op.kind == "cast"


def _needs_vector(program: Program, op: Op) -> bool:
    dense = any(r.shape and r.static.kind == "dense" for r in op.results)
    if (
        not dense
        or operation(op).view
        or op.kind == "alloc"
        or (op.kind == "move" and op.attrs["space"] != "UB")
    ):
        return False
    return not (op.kind == "cast" and Cores(program).from_product(op.results[0]))


def barrier_cores(mode: str) -> tuple[str, ...]:
    """Kinds of cores that the mode of a barrier names."""
    return {"all": (CUBE, VECTOR), "all_cube": (CUBE,)}.get(mode, (VECTOR,))


class SubCores:
    """What depends on `sub_vec_id`: the Cube's part runs once for both Vector cores and must not."""

    def __init__(self, program: Program) -> None:
        self.cores = Cores(program)
        self.depends: set[int] = set()
        known = -1
        while known != (known := len(self.depends)):  # loops hand values back: until nothing is added
            self._region(program.body, False)

    def _region(self, region: Region, under: bool) -> None:
        for op in region.ops:
            mine = under or self.touches(op) or op.kind == "sub_vec_id"
            inside = under or (bool(op.regions) and self._steers(op))
            for inner in op.regions:
                self._enter(op, inner)
                self._region(inner, inside)
                mine |= any(y.id in self.depends for y in inner.yields)
            if mine:
                self.depends.update(r.id for r in op.results)

    def touches(self, op: Op) -> bool:
        """Whether an operation reads something that depends on it."""
        return any(v is not None and v.id in self.depends for v in op.args)

    def _steers(self, op: Op) -> bool:
        if op.kind == "while":
            return any(y.id in self.depends for y in op.regions[0].yields)
        steering = op.args[: 3 if op.kind == "for" else 1]
        return any(v is not None and v.id in self.depends for v in steering)

    def _enter(self, op: Op, inner: Region) -> None:
        if op.kind not in ("for", "while"):
            return
        first = 3 if op.kind == "for" else 0
        carried = inner.args[1:] if op.kind == "for" else inner.args
        for k, a in enumerate(carried):
            initial = op.args[first + k]
            if (initial is not None and initial.id in self.depends) or op.regions[-1].yields[
                k
            ].id in self.depends:
                self.depends.add(a.id)

    def wrong(self, region: Region, under: bool = False) -> tuple[str, Loc] | None:
        """The first operation of the Cube's part that depends on it."""
        for op in region.ops:
            if self.cores.of(op) == CUBE and op.kind in ("dot", "sync", *MEMORY):
                what = op.kind if op.kind != "sync" else f"sync_block_{op.name}"
                if under or self.touches(op):
                    return f"{what}: the cube core runs it once, so it must not depend on sub_vec_id", op.loc
                if op.kind == "atomic" and op.attrs["result_used"]:
                    return f"{what}: the old values of an atomic of the cube core cannot be used here", op.loc
            if op.kind == "sync" and under:
                return (
                    f"sync_block_{op.name} under a condition on sub_vec_id: both vector cores must pass it",
                    op.loc,
                )
            for inner in op.regions:
                found = self.wrong(inner, under or self._steers(op))
                if found is not None:
                    return found
        return None


def has_sub_vectors(program: Program) -> bool:
    """Whether a program asks which of the Vector cores it runs on."""
    return "sub_vec_id" in program.split_builtins
