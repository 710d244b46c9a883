"""Which values of a program may hold elements that nobody gave a value: found without running it."""

from __future__ import annotations

from ...ir.operations import operation
from ...ir.passes.core_parts import carried_groups
from ...ir.program import Op, Program, Region, Value

# Kinds that only move elements, and how many of their first operands these come from (None: all of them).
MOVES: dict[str, int | None] = {
    **dict.fromkeys(("splat", "broadcast", "expand_dims", "reshape", "permute", "slice", "extract_slice"), 1),
    **dict.fromkeys(("get_element", "img2col", "subview", "from_l1"), 1),
    "insert_slice": 2,
    "cat": None,
}
MIXING = (
    "reduce",
    "arg_reduce",
    "scan",
    "sort",
    "histogram",
    "dot",
)  # an element of the result comes from many
ELEMENTWISE = ("unary", "binary", "compare", "cast", "bitcast", "fma", "addptr")
OTHERS = ("select", "gather", "move", "alloc", "load", "atomic")


def is_elementwise(op: Op) -> bool:
    """Whether element i of the result comes from elements i of the operands."""
    if op.kind not in ELEMENTWISE and not operation(op).elementwise:
        return False
    return all(v is None or v.shape in ((), op.results[0].shape) for v in op.args)


def moved(op: Op) -> int:
    """How many of the first operands the elements of the result come from; 0 if it does more than move them."""
    if op.kind == "move":
        return 1 if op.attrs["offsets"] is None else 2
    if op.kind not in MOVES:
        return 0
    return MOVES[op.kind] or len(op.args)


def is_source(op: Op) -> bool:
    """Whether an operation makes elements that nobody gave a value."""
    if op.kind == "load":
        return op.args[1] is not None and op.args[2] is None and op.attrs.get("padding") != "zero"
    if op.kind == "atomic":
        return op.args[2] is not None and bool(op.attrs.get("result_used", True))
    return op.kind == "alloc"


class Taint:
    """The values, by id. What an operation of the user makes of its operands is not known, and counts as defined."""

    def __init__(self, program: Program) -> None:
        self.values: set[int] = set()
        if any(is_source(op) for op in program.walk()):
            known = -1
            while known != (known := len(self.values)):  # loops hand values back: until nothing is added
                self._region(program.body)

    def _region(self, region: Region) -> None:
        for op in region.ops:
            for inner in op.regions:
                self._region(inner)
            if op.regions:
                self._carried(op)
            elif is_source(op) or self._follows(op):
                self.values.update(r.id for r in op.results)

    def _carried(self, op: Op) -> None:
        """A loop's argument and result may hold what it starts from or what an iteration hands back."""
        arguments = {a.id for inner in op.regions for a in inner.args}
        for r, *group in carried_groups(op):
            if any(self.has(v) for v in group):
                self.values.update((r.id, *(v.id for v in group if v.id in arguments)))

    def has(self, v: Value | None) -> bool:
        return v is not None and v.id in self.values

    def _follows(self, op: Op) -> bool:
        if op.kind == "load":
            return self.has(op.args[2])
        if op.kind in (*MIXING, "select", "gather") or is_elementwise(op):
            return any([self.has(v) for v in op.args])
        return any([self.has(v) for v in op.args[: moved(op)]])
