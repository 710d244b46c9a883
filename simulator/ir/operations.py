"""The table of operations: one entry says what an operation of the tile program computes, costs, needs and falls back to.

An operation stands under its name if its kind is "unary" or "binary" (`add`, `exp`), else under its kind (`select`, `sort`,
`load`). Its entry stands beside the function that builds it, which is how its type and shape are inferred:

    @builtin
    @define(binary("lrelu", scalar="lrelu", value=rounded(lambda x, slope: np.where(x > 0, x, x * slope))))
    def leaky_relu(b, x, slope): ...

An entry by which nothing can be costed is an ImportError that names it. `timing/costs` has what the cost rules mean,
`timing/placement/scratch.py` the bytes of scratch.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from ..precision.dtypes import DType
from ..products.spec import OPS as ROWS
from ..units.vector import Numerics, UnitFunction
from .program import Op

NAMED = ("unary", "binary")  # kinds whose operations have entries by name

# (row of the product's table, how many of them), each waiting for the last
Steps = tuple[tuple[str, int], ...]

# How the Vector unit's cycles come about; two more take none of them.
FREE = "free"  # a view, a formula, or work of the scalar unit
RECORDED = "recorded"  # lowering records its instructions itself
COSTS = (
    *(
        "unary",
        "binary",
        "divide",
        "exclusive_or",
        "fma",
        "compare",
        "select",
        "cast",
        "reduce",
        "arg_reduce",
    ),
    *("scan", "sort", "permute", "slice", "cat", "gather", "extract_slice", "insert_slice", "get_element"),
    "img2col",
    "fixpipe_scaled",
    "unpack_int4",
    "custom",
)


class Scratch(enum.Flag):
    """What an operation needs in UB besides its operands and its result."""

    NOTHING = 0
    OPERANDS = enum.auto()  # operands that are formulas or broadcast columns; BF16 ones, widened
    SCALARS = enum.auto()  # its scalar operands, as tiles
    FIRST = enum.auto()  # its first operand, where that is a view or a formula
    SECOND = enum.auto()
    COMBINED = enum.auto()  # what a locked atomic stores
    ALL = enum.auto()
    INTO_L1 = enum.auto()  # the tile that goes into L1, where that is a view or a formula
    PARTIALS = enum.auto()  # of a reduction
    OFFSETS = enum.auto()  # of the elements that are gathered
    SLICED = enum.auto()  # offsets of a slice off the blocks of 32 bytes; masks as halves
    PAIRS = enum.auto()  # of value and index, twice: what a sort merges to and fro
    STATED = enum.auto()  # what the operation itself says


class Fallback(NamedTuple):
    """Operations that the scalar unit does, element by element, and why; the text may name the type of the elements.

    compiled: only where the vendor's compiler makes the code; an author of Ascend C does without.
    """

    of: Callable[[Op], bool]
    text: str
    compiled: bool = False


class Place(Protocol):
    """Where an operation stands, for errors."""

    def program(self, number: int) -> str: ...
    def error(self, text: str) -> Exception: ...


class Programs(Protocol):
    """The programs for which an operation is evaluated."""

    active: np.ndarray

    @property
    def programs(self) -> np.ndarray: ...
    def site(self, op: Op) -> Place: ...
    def found_zeros(self, op: Op, zeros: np.ndarray) -> None: ...


class Context(Protocol):
    """What an evaluation knows beside its operands. transposed: permutations (by id) whose tiles need not be copied."""

    @property
    def interpreter(self) -> Programs: ...
    @property
    def numerics(self) -> Numerics: ...
    @property
    def transposed(self) -> frozenset[int]: ...


# (context, operation, operands as arrays (P or 1, *shape)) -> the result, likewise; a list of them for several results
ValueFunction = Callable[..., Any]
Infer = TypeVar("Infer", bound=Callable[..., Any])


@dataclass(frozen=True)
class Operation:
    """One entry of the table.

    cost: one of COSTS, FREE or RECORDED. value: what it computes.
    row: its instruction: a row `vector.op.*` of the product. near: that row only stands in, its own figure is not published.
    steps: instructions that it takes on floating-point elements, in place of `row`.
    scalar: row of the instruction that takes a scalar operand; "": the scalar is written out as a tile first.
    rows: further rows that its cost is made of.
    flops: operations for each element of its result, or of its operand (`of_operand`).
    elementwise: its result may be written over an operand. view: its result is its operand in another shape or order.
    formula: on scalars and index tiles it stays a formula. may_fail: for some numbers it is an error.
    effect: it is there for more than its result.
    flushes: subnormal operands count as zero, where the unit's rules say so.
    castable: integers below 2**31 give the same on int32. coarse: what to say of its low accuracy.
    infer: the function that builds it: it checks the operands and gives type and shape of the result; None for what the
    compiler makes by itself (control flow, transfers between cores, assertions, formulas written out).
    """

    cost: str = ""
    row: str = ""
    value: ValueFunction | None = None
    near: bool = False
    steps: Steps = ()
    scalar: str = ""
    rows: tuple[str, ...] = ()
    scratch: Scratch = Scratch.NOTHING
    flops: int = 0
    of_operand: bool = False
    fallback: tuple[Fallback, ...] = ()
    elementwise: bool = False
    view: bool = False
    formula: bool = False
    may_fail: bool = False
    effect: bool = False
    flushes: bool = False
    castable: bool = False
    coarse: str = ""
    infer: Callable[..., Any] | None = None

    @property
    def all_rows(self) -> set[str]:
        """Rows of the product's table by which it is costed."""
        return {row for row in (self.row, self.scalar, *self.rows, *(row for row, _ in self.steps)) if row}

    @property
    def costed(self) -> bool:
        """Whether its cost is known for some type of elements."""
        if any(f.of is _any for f in self.fallback):
            return True
        return self.cost in (FREE, RECORDED, *COSTS) and (
            self.cost not in NAMED or bool(self.row or self.steps)
        )


OPERATIONS: dict[str, Operation] = {}

# What the vendor's compiler turns into loops of the scalar unit (AscendNPU-IR, ShouldLowerToScalarLoops.cpp); an author of
# Ascend C has no instruction for it either.
WIDE = Fallback(lambda op: of_type(op, "int64", "uint64"), "{dtype} arithmetic has no vector instruction")

# Rows of the product's table that no operation of this package is costed by, and why they are there.
UNUSED = {
    **dict.fromkeys(
        ("relu", "lrelu", "axpy", "muladddst", "addrelu", "gatherb", "gather_mask_user"),
        "measured, and checked against the boards (kernels/validation); no operation is compiled to it",
    ),
    **dict.fromkeys(
        ("reduce_block_sum", "reduce_pair_sum", "reduce_block_max"),
        "measured, and checked against the boards (kernels/validation); blocks are reduced beside products",
    ),
}


def define(entry: Operation, name: str = "") -> Callable[[Infer], Infer]:
    """Enter an operation in the table. It decorates the function that builds it, whose name it has unless one is given.

    Raises ImportError where it has no cost or no value, where it names a row that no product has, or where another
    operation has its name; the same function defined anew takes the old one's place.
    """

    def enter(infer: Infer) -> Infer:
        known = name or infer.__name__
        old = OPERATIONS.get(known)
        if old is not None and _origin(old.infer) != _origin(infer):
            raise ImportError(
                f"there is an operation {known} already, built by {_origin(old.infer)}; take another name"
            )
        define_all({known: entry}, infer)
        return infer

    return enter


def define_all(entries: dict[str, Operation], infer: Callable[..., Any] | None = None) -> None:
    """Enter operations by name, all built by one function unless they say more; ImportError as in `define`."""
    for name, entry in entries.items():
        if not entry.costed:
            raise ImportError(
                f"no cost for {name}: its entry in the table of operations needs a cost rule ({', '.join(COSTS)}) with a "
                "row of the product's table or steps, or a fallback for all types; see simulator/README.md"
            )
        if entry.cost not in (FREE, RECORDED) and entry.value is None:
            raise ImportError(
                f"no value for {name}: its entry in the table of operations says what it costs only"
            )
        if entry.all_rows - set(ROWS):
            raise ImportError(
                f"the entry of {name} names {', '.join(sorted(entry.all_rows - set(ROWS)))}, which no product has a row for"
            )
        OPERATIONS[name] = replace(entry, infer=entry.infer or infer)


def _origin(infer: Callable[..., Any] | None) -> str:
    return "the compiler" if infer is None else f"{infer.__module__}.{infer.__qualname__}"


def _any(op: Op) -> bool:
    return True


def of_type(op: Op, *names: str) -> bool:
    """Whether the elements of the first operand are of one of these types."""
    return str(op.operand(0).dtype) in names


def by_element(name: str) -> tuple[Fallback, ...]:
    """Fallback of an operation that has no instruction for any type."""
    return (Fallback(_any, f"{name} has no vector instruction"),)


def elements(compute: UnitFunction) -> ValueFunction:
    """The value of an operation from a function of its result's type, the numerics and the operands."""
    return lambda at, op, *operands: compute(result_type(op), at.numerics, *operands)


def unary(row: str = "", *, value: UnitFunction, **more: Any) -> Operation:
    """Entry of an operation on each element of one tile; `Builder.unary` builds it. value: see units/vector.py."""
    given = {"scratch": Scratch.OPERANDS, "flops": 1, **more}
    return Operation("unary", row, elements(value), elementwise=True, flushes=True, **given)


def binary(row: str = "", *, value: UnitFunction, **more: Any) -> Operation:
    """Entry of an operation on elements of two tiles, or of a tile and a scalar; `Builder.binary` builds it."""
    given = {"scratch": Scratch.OPERANDS, "flops": 1, "fallback": (WIDE,), **more}
    return Operation("binary", row, elements(value), elementwise=True, flushes=True, **given)


def name_of(op: Op) -> str:
    """What an operation stands under in the table."""
    return op.name if op.kind in NAMED else op.kind


def operation(op: Op) -> Operation:
    """The entry of an operation."""
    return OPERATIONS[name_of(op)]


def result_type(op: Op) -> DType:
    """The element type of the result."""
    t = op.results[0].dtype
    assert isinstance(t, DType)
    return t


def why_by_element(op: Op, compiled: bool = False) -> str | None:
    """Why an operation runs element by element on the scalar unit, or None. compiled: by the vendor's compiler."""
    v = op.args[0] if op.args else None
    if v is None or not v.shape or not isinstance(v.dtype, DType):
        return None
    found = (
        f.text.format(dtype=v.dtype) for f in operation(op).fallback if f.compiled <= compiled and f.of(op)
    )
    return next(found, None)


def steps_of(op: Op) -> Steps:
    """The instructions of an operation that is none itself; none where the product's table has a row for it."""
    return operation(op).steps if op.results[0].dtype.is_floating() else ()


# Operations on FP16 that the vendor's compiler computes in FP32, whoever writes them (HFusion's NormalizeF16ReduceSum,
# NormalizeCumOpF16ToF32Type and NormalizeF16ToF32Type in AscendNPU-IR; CANN's ReduceSum does the same).
IN_FP32 = {("reduce", "sum"), ("scan", "sum"), ("scan", "mul"), ("unary", "log")}


def in_fp32(op: Op) -> bool:
    """Whether an operation on halves is computed in FP32 and rounded once, at its end.

    Of BF16 all are, for which the unit has no arithmetic; of FP16 logarithms, sums, and running sums and products.
    """
    v = op.args[0] if op.args else None
    name = "" if v is None else str(v.dtype)
    return name == "bf16" or (name == "fp16" and (op.kind, op.name) in IN_FP32)


def used_rows() -> set[str]:
    """Rows of the product's table by which some operation is costed."""
    return set().union(*(o.all_rows for o in OPERATIONS.values()))
