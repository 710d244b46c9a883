"""The integer arithmetic that addresses are made of: found by going back from the pointers of accesses.

Numbers that are taken apart on the way (a remainder, single bits, a shift to the right, what is loaded) are data: hashes and
random numbers wrap on purpose before that.
"""

from __future__ import annotations

from collections.abc import Iterable

from .definitions import makers
from .program import Op, Program, Value

MASKS = {"load": 1, "store": 2, "atomic": 2}  # operand of an access that is its mask
ACCESSES = tuple(MASKS)
ARITHMETIC = ("add", "sub", "mul", "shl")
SUMS = ("reduce", "scan")
SUM = ("sum",)
SHAPES = ("splat", "broadcast", "expand_dims", "reshape", "permute", "addptr", "extract_slice")
_KEEP = (*ARITHMETIC, "floordiv", "max", "min")


def reaching(program: Program, values: Iterable[Value]) -> dict[int, Op]:
    """Operations (by id) whose results are parts of sums and products that give these pointers or indices."""
    made, sources = makers(program.walk())
    out: dict[int, Op] = {}
    seen: set[int] = set()
    wanted = [v.id for v in values]
    while wanted:
        vid = wanted.pop()
        if vid in seen:
            continue
        seen.add(vid)
        wanted.extend(sources.get(vid, ()))
        op = made.get(vid)
        if op is None:
            continue
        if (found := parts(op)) or may_overflow(op):
            out[op.id] = op
        wanted.extend(v.id for v in found)
    return out


def index_arithmetic(program: Program) -> frozenset[int]:
    """Operations (by id) on integers below 64 bits that some address, or the mask of an access, is made of."""
    if program.index_arithmetic is None:
        accesses = [op for kind in ACCESSES for op in program.of_kind(kind)]
        masks = [op.args[MASKS[op.kind]] for op in accesses]
        found = reaching(program, [*(op.operand(0) for op in accesses), *_compared(program, masks)])
        program.index_arithmetic = frozenset(n for n, op in found.items() if may_overflow(op))
    return program.index_arithmetic


def _compared(program: Program, masks: Iterable[Value | None]) -> list[Value]:
    """Integers whose comparisons masks are made of."""
    made, _ = makers(program.walk())
    out: list[Value] = []
    wanted, seen = [v for v in masks if v is not None], set()
    while wanted:
        v = wanted.pop()
        op = made.get(v.id)
        if op is None or v.id in seen:
            continue
        seen.add(v.id)
        args = [x for x in op.args if x is not None]
        if op.kind == "compare":
            out += [x for x in args if x.dtype.is_int()]
        elif op.kind in SHAPES or (op.kind == "binary" and op.name in ("and", "or")):
            wanted += args
    return out


def may_overflow(op: Op) -> bool:
    """Whether an operation adds, multiplies or narrows integers to a type that is narrower than an address.

    A difference of unsigned integers is none: below 0 it wraps on purpose, as in `(x - low).to(tl.uint32) < n`.
    """
    if op.kind not in ("binary", "cast", *SUMS) or not op.results[0].dtype.is_int():
        return False
    dtype = op.results[0].number
    if not (dtype.kind == "int" or (dtype.kind == "uint" and op.name != "sub")) or not 1 < dtype.bits < 64:
        return False
    return narrows(op) if op.kind == "cast" else op.name in (SUM if op.kind in SUMS else ARITHMETIC)


def narrows(op: Op) -> bool:
    """Whether a cast takes integers to a narrower type, where they wrap."""
    v, r = op.operand(0), op.results[0]
    whole = op.kind == "cast" and not (v.is_pointer or r.is_pointer or op.attrs.get("overflow"))
    return whole and v.number.kind in ("int", "uint") and r.number.is_int() and r.number.bits < v.number.bits


def parts(op: Op) -> list[Value]:
    """The operands of which the result is a sum, a product or a copy; none where it is something else."""
    args = [v for v in op.args if v is not None]
    if op.kind in SHAPES or (op.kind == "binary" and op.name in _KEEP):
        return args
    if op.kind == "select":
        return args[1:]
    whole = op.kind == "cast" and all(v.is_pointer or v.number.is_int() for v in (*args, *op.results))
    return args if whole else []
