"""What a kernel's author can write instead of what the compiler makes slow code of."""

from __future__ import annotations

from ..ir.operations import in_fp32, operation
from ..ir.program import Op
from .placement.layouts import Definitions

DISCRETE = (
    "let neighbours in the tile be neighbours in memory (last axis with stride 1), or load whole rows and pick from them "
    "with tl.gather"
)
ROWS = "load more of each row at once, or take rows that follow each other as one tile"
STRIDED = (
    "let the last axis of the tile be the one with stride 1 in memory, or transpose the data once before"
)
MASK = "compare offsets with bounds, axis by axis (offsets < n); choose by other conditions with tl.where after the load"
ROW = "take a last axis of whole blocks of 32 bytes, or make it the first axis"
PRODUCT = "take tiles nearer to the sizes of the data"
INSERT = "insert into a tile that is not read afterwards, so that it changes in place"
FORMULA = "make it once before the loop, where it is the same in every iteration, or load it"
BROADCAST = (
    "work on the small tile first, and broadcast in arithmetic, which takes rows and columns as they are"
)
OPERAND = (
    "what is only loaded goes to L1 directly: prepare the operand in a kernel before, or take larger tiles"
)
OTHER = "give the load this value as other= in place of the tl.where behind it"
RESULT = "where products are only added up, tl.dot(a, b, acc) keeps the sum in L0C until the loop is over"
RESCALED = (
    "a sum that is scaled between products has to come to UB for each: let each iteration add up more, with a larger tile "
    "along the axis that is summed"
)
INT32 = "take int32, .to(tl.int32), where the values stay below 2**31"
FLOAT32 = (
    "compute in float32, .to(tl.float32), which is exact for integers up to 2**24, or do it before the kernel"
)
RANDOM = "make random numbers or masks before, in a kernel of their own, and load them"
FIRST_AXIS = (
    "load several rows as one tile and let it run along the first axis, over tl.trans of the tile: the Vector unit then "
    "takes all rows at once"
)
FIRST_INDEX = "take the first of equal elements (tie_break_left=True), in a tile of at most two axes"
FEWER = "do it on fewer elements, outside of the loop, or in the host program"
WIDEN = "cast once, .to(tl.float32) after the load, compute in float32, and cast back before the store"


def scalar_cure(op: Op) -> str:
    """For an operation that runs element by element on the scalar unit."""
    if op.kind == "atomic":
        return "add int32 or float32, which memory adds by itself"
    if op.name == "umulhi":
        return RANDOM
    if (operation(op).castable or op.kind == "scan") and str(op.operand(0).dtype) in ("int64", "uint64"):
        return INT32
    if op.kind == "scan":
        return FIRST_AXIS
    if op.kind == "arg_reduce" and op.operand(0).dtype.is_floating():
        return FIRST_INDEX
    return FLOAT32 if op.kind in ("binary", "compare", "arg_reduce", "sort") else FEWER


def fills_load(definitions: Definitions, select: Op) -> bool:
    """Whether a select puts one number where the mask of its load left nothing, which the load can do by itself."""
    mask, chosen, fill = select.args[:3]
    made = None if chosen is None else definitions.of(chosen)
    while made is not None and made.kind == "cast":
        made = definitions.of(made.operand(0))
    filled = None if fill is None else definitions.of(fill)
    while filled is not None and filled.kind in ("splat", "cast", "broadcast"):
        filled = definitions.of(filled.operand(0))
    constant = filled is not None and filled.kind == "const"
    return constant and made is not None and made.kind == "load" and mask is not None and made.args[1] is mask


def cast_text(op: Op) -> str:
    """What the compiler casts around an operation; empty where it casts nothing."""
    if not in_fp32(op) or not op.operand(0).shape:
        return ""
    what, stored = op.name or op.kind, op.operand(0).dtype
    back = " and back" if op.results[0].dtype == stored else ""
    return f"{what} of {stored} is computed in float32: the compiler casts to it{back}"
