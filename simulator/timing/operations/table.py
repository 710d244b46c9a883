"""The table of operations: one entry for each operation of the tile program.

An elementwise operation stands under its name (`add`, `exp`), any other one under its kind (`select`, `sort`, `load`).
Whatever the Vector unit can compute and the interpreter can carry out has an entry: who adds an operation without one gets
an ImportError that names it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...ir.program import Op
from ...precision.dtypes import DType
from ...products.vocabulary import OPS as ROWS
from ...units import vector
from . import sequences
from .sequences import Steps

NAMED = ("unary", "binary")  # kinds whose operations have entries by name


class Scratch(enum.Flag):
    """What an operation needs in UB besides its operands and its result; `placement/scratch.py` has the bytes."""

    NOTHING = 0
    OPERANDS = enum.auto()  # operands that are formulas or stretched columns; BF16 ones, widened
    SCALARS = enum.auto()  # its scalar operands, as tiles
    FIRST = enum.auto()  # its first operand, where that is a view or a formula
    SECOND = enum.auto()
    ALL = enum.auto()
    INTO_L1 = enum.auto()  # the tile that goes into L1, where that is a view or a formula
    PARTIALS = enum.auto()  # of a reduction
    OFFSETS = enum.auto()  # of the elements that are gathered
    SLICED = enum.auto()  # offsets of a slice off the blocks of 32 bytes; masks as halves
    PAIRS = enum.auto()  # of value and index, twice: what a sort merges to and fro
    STATED = enum.auto()  # what the operation itself says


class Fallback(NamedTuple):
    """Elements on which the scalar unit does an operation, one by one, and why; the text may name their type."""

    of: Callable[[DType], bool]
    text: str


@dataclass(frozen=True)
class Operation:
    """What timing knows of an operation.

    cost: function of `timing/costs` that costs it; "": the Vector unit does nothing.
    row: its instruction: a row of the product's table. near: that row only stands in, nobody published its own figure.
    steps: instructions that it takes on floating-point elements, in place of `row`.
    scalar: row of the instruction that takes a scalar operand; "": the scalar is written out as a tile first.
    rows: further rows that its cost is made of.
    flops: operations for each element of its result, or of its operand (`of_operand`).
    elementwise: its result may be written over an operand.
    castable: integers that are small give the same on FP32. coarse: what to say of its low accuracy.
    """

    cost: str = ""
    row: str = ""
    near: bool = False
    steps: Steps = ()
    scalar: str = ""
    rows: tuple[str, ...] = ()
    scratch: Scratch = Scratch.NOTHING
    flops: int = 0
    of_operand: bool = False
    fallback: tuple[Fallback, ...] = ()
    elementwise: bool = False
    castable: bool = False
    coarse: str = ""


# No vector instruction on A2/A3: integer comparison other than what selects need, and 64-bit integer arithmetic
# (Triton-Ascend programming guide, operations that fall back to scalar loops).
WIDE = Fallback(lambda t: t.name in ("int64", "uint64"), "{dtype} arithmetic has no vector instruction")
COMPARISON = Fallback(
    lambda t: t.is_int() and not t.is_bool(), "{dtype} comparison has no vector instruction"
)
DIVISION = Fallback(lambda t: t.is_int(), "integer division has no vector instruction")
SORTING = Fallback(lambda t: not t.is_floating(), "a sort of {dtype} has no vector instruction")

# Conversions: (from, to) -> row. Others go through FP32.
CASTS = {
    ("fp16", "fp32"): "cast_f16_f32",
    ("fp32", "fp16"): "cast_f32_f16",
    ("bf16", "fp32"): "cast_bf16_f32",
    ("fp32", "bf16"): "cast_f32_bf16",
    ("fp32", "int32"): "cast_f32_s32",
    ("int32", "fp32"): "cast_s32_f32",
    ("int8", "fp16"): "cast_s8_f16",
    ("fp32", "int64"): "cast_f32_s64",
    **dict.fromkeys(
        (
            *(("fp16", t) for t in ("int8", "uint8", "int16", "int32")),
            *(("int16", t) for t in ("fp16", "fp32")),
            ("uint8", "fp16"),
            ("int64", "fp32"),
        ),
        "cast_other",
    ),
}
# Rows of the product's table that no operation is costed by, and why they are there.
UNUSED = {
    **dict.fromkeys(
        ("relu", "lrelu", "not", "axpy", "muladddst", "addrelu", "gatherb", "gather_mask_user"),
        "measured, and checked against the boards (kernels/validation); no operation is compiled to it",
    ),
    **dict.fromkeys(
        ("reduce_block_sum", "reduce_pair_sum", "reduce_block_max"),
        "measured, and checked against the boards (kernels/validation); reductions take whole repeats",
    ),
}


def _always(text: str) -> tuple[Fallback, ...]:
    return (Fallback(lambda t: True, text),)


def _unary(row: str = "", **more: Any) -> Operation:
    return Operation("unary", row, scratch=Scratch.OPERANDS, flops=1, elementwise=True, **more)


def _binary(row: str = "", **more: Any) -> Operation:
    given = {"scratch": Scratch.OPERANDS, "fallback": (WIDE,), **more}
    return Operation("binary", row, flops=1, elementwise=True, **given)


def _by_element(make: Callable[..., Operation], name: str) -> Operation:
    return make(fallback=_always(f"{name} has no vector instruction"))


OPERATIONS: dict[str, Operation] = {
    # -- of one operand
    "abs": _unary("abs"),
    "ceil": _unary("cast_f32_s32", near=True),
    "exp": _unary("exp"),
    "floor": _unary("cast_f32_s32", near=True),
    "log": _unary("ln"),
    "neg": _unary("muls"),
    "rec": _unary("rec", coarse="the coarse Reciprocal instruction: about 9 bits; 1.0 / x is accurate"),
    "rsqrt": _unary("rsqrt", coarse="the coarse Rsqrt instruction: about 9 bits; tl.rsqrt(x) is accurate"),
    "sqrt": _unary("sqrt"),
    **{name: _unary(steps=steps) for name, steps in sequences.UNARY.items()},
    **{name: _by_element(_unary, name) for name in ("popc", "clz", "ffs", "brev")},
    # -- of two operands
    "add": _binary("add", scalar="adds", castable=True),
    "sub": _binary("sub", scalar="adds", castable=True, rows=("muls",)),
    "mul": _binary("mul", scalar="muls", castable=True),
    "max": _binary("max", scalar="maxs", castable=True),
    "min": _binary("min", scalar="mins", castable=True),
    "div": _binary("div", scratch=Scratch.OPERANDS | Scratch.SCALARS, rows=("duplicate",)),
    "floordiv": _binary("div", near=True, fallback=(WIDE, DIVISION), castable=True),
    "mod": _binary("div", near=True, fallback=(WIDE, DIVISION), castable=True),
    "and": _binary("and"),
    "or": _binary("or"),
    "xor": _binary("or", near=True),
    "shl": _binary("shift"),
    "shr": _binary("shift"),
    **{name: _binary(steps=steps) for name, steps in sequences.BINARY.items()},
    "umulhi": _by_element(_binary, "umulhi"),
    # -- others on elements
    "fma": Operation(
        "fma",
        steps=(("fusedmuladd", 1),),
        scratch=Scratch.OPERANDS,
        flops=2,
        elementwise=True,
        fallback=(WIDE,),
    ),
    "compare": Operation(
        "compare",
        "compare",
        scalar="compares",
        scratch=Scratch.OPERANDS,
        flops=1,
        fallback=(COMPARISON,),
        castable=True,
    ),
    "select": Operation(
        "select", "select", scratch=Scratch.OPERANDS | Scratch.SCALARS, flops=1, elementwise=True
    ),
    "cast": Operation(
        "cast", rows=tuple(dict.fromkeys(CASTS.values())), scratch=Scratch.FIRST, flops=1, elementwise=True
    ),
    # -- along an axis
    "reduce": Operation(
        "reduce",
        rows=("reduce_repeat_sum", "reduce_repeat_max"),
        scratch=Scratch.PARTIALS | Scratch.FIRST,
        flops=1,
        of_operand=True,
    ),
    "arg_reduce": Operation(
        "arg_reduce",
        rows=("reduce_repeat_max", "compare", "select"),
        scratch=Scratch.PARTIALS | Scratch.FIRST,
        flops=1,
        of_operand=True,
    ),
    "scan": Operation(
        "scan",
        rows=("copy", "transpose_5hd"),
        scratch=Scratch.ALL,
        flops=1,
        of_operand=True,
        fallback=(WIDE,),
    ),
    "sort": Operation(
        "sort",
        rows=("sort32", "mrgsort4", "muls", "gather_mask"),
        scratch=Scratch.ALL | Scratch.PAIRS,
        flops=1,
        of_operand=True,
        fallback=(SORTING,),
    ),
    "histogram": Operation(
        scratch=Scratch.ALL,
        flops=1,
        of_operand=True,
        fallback=_always("a histogram has no vector instruction"),
    ),
    # -- that move elements inside of UB
    "permute": Operation("permute", "transpose_5hd"),
    "slice": Operation("slice", "copy", rows=("gather_mask", "gather"), scratch=Scratch.ALL),
    "cat": Operation("cat", "copy", rows=("gather",), scratch=Scratch.ALL),
    "gather": Operation("gather", "gather", rows=("muls", "add"), scratch=Scratch.ALL | Scratch.OFFSETS),
    "extract_slice": Operation(
        "extract_slice", "copy", rows=("gather", "compares"), scratch=Scratch.FIRST | Scratch.SLICED
    ),
    "insert_slice": Operation(  # a whole tile that is a formula is written straight into the result
        "insert_slice",
        "copy",
        rows=("gather", "select", "compares"),
        scratch=Scratch.SECOND | Scratch.SLICED,
    ),
    "get_element": Operation("get_element", scratch=Scratch.FIRST),
    "custom": Operation("custom", rows=("adds",), scratch=Scratch.ALL | Scratch.STATED),
    # -- a tile that is a formula, written out as an operand of another operation
    "index": Operation(row="adds", near=True, rows=("compares", "copy", "duplicate", "brcb")),
    # -- transfers and the Cube: lowering records them itself
    "load": Operation(rows=("duplicate",)),
    "store": Operation(rows=("brcb",), scratch=Scratch.SECOND),
    "atomic": Operation(scratch=Scratch.SECOND),
    "move": Operation(scratch=Scratch.INTO_L1),
    **dict.fromkeys(("dot", "alloc", "from_l1", "subview", "sync", "send", "receive", "print"), Operation()),
    # -- the scalar unit, views and control flow
    **dict.fromkeys(
        ("const", "program_id", "num_programs", "sub_vec_id", "arange", "addptr", "assert"), Operation()
    ),
    **dict.fromkeys(("splat", "broadcast", "expand_dims", "reshape", "bitcast"), Operation()),
    **dict.fromkeys(("for", "while", "if"), Operation()),
}


def operation(op: Op) -> Operation:
    """The entry of an operation."""
    return OPERATIONS[op.name if op.kind in NAMED else op.kind]


def why_by_element(op: Op) -> str | None:
    """Why an operation runs element by element on the scalar unit, or None."""
    v = op.args[0] if op.args else None
    if v is None or not v.shape or not isinstance(v.dtype, DType):
        return None
    found = (f.text.format(dtype=v.dtype) for f in operation(op).fallback if f.of(v.dtype))
    return next(found, None)


def steps_of(op: Op) -> Steps:
    """The instructions of an operation that is none itself; none where the product's table has a row for it."""
    return operation(op).steps if op.results[0].dtype.is_floating() else ()


def used_rows() -> set[str]:
    """Rows of the product's table by which some operation is costed."""
    out = {
        row for o in OPERATIONS.values() for row in (o.row, o.scalar, *o.rows, *(row for row, _ in o.steps))
    }
    return out - {""}


def require(names: Iterable[str], who: str) -> None:
    """Raise ImportError for operations without an entry. who: what can make them."""
    missing = sorted(set(names) - set(OPERATIONS))
    if missing:
        raise ImportError(
            f"no cost for {', '.join(missing)}: {who} knows it, the table of operations does not; give it an entry in "
            "simulator/timing/operations/table.py, with the row of the product's table that it is costed by"
        )


def _check_rows() -> None:
    """Raise ImportError for entries by which nothing can be costed."""
    unknown = (used_rows() | set(UNUSED)) - set(ROWS)
    if unknown:
        raise ImportError(
            f"the table of operations names {', '.join(sorted(unknown))}, which no product has a row for"
        )
    for name in vector.UNARY | vector.BINARY:
        entry = OPERATIONS[name]
        if not (
            entry.row or entry.steps or (entry.fallback[:1] and entry.fallback[0] not in (WIDE, DIVISION))
        ):
            raise ImportError(
                f"no cost for {name}: its entry in the table of operations has neither a row nor steps"
            )


require(vector.UNARY | vector.BINARY, "the Vector unit (simulator/units/vector.py)")
_check_rows()
