"""The integer arithmetic that addresses are made of: found by going back from the pointers of accesses.

Numbers that are taken apart on the way (a remainder, single bits, a shift to the right, what is loaded) are data: hashes and
random numbers wrap on purpose before that.
"""

from __future__ import annotations

from collections.abc import Iterable

from .definitions import makers
from .program import Op, Program, Value

ACCESSES = ("load", "store", "atomic")
ARITHMETIC = ("add", "sub", "mul", "shl")
_SHAPES = ("splat", "broadcast", "expand_dims", "reshape", "permute", "addptr", "extract_slice")
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
        if op is not None and (parts := _parts(op)):
            out[op.id] = op
            wanted.extend(v.id for v in parts)
    return out


def index_arithmetic(program: Program) -> frozenset[int]:
    """Operations (by id) on signed integers below 64 bits that some address of the program is made of."""
    if program.index_arithmetic is None:
        pointers = [op.operand(0) for kind in ACCESSES for op in program.of_kind(kind)]
        found = reaching(program, pointers)
        program.index_arithmetic = frozenset(n for n, op in found.items() if may_overflow(op))
    return program.index_arithmetic


def may_overflow(op: Op) -> bool:
    """Whether an operation adds or multiplies signed integers that are narrower than an address."""
    if op.kind != "binary" or op.name not in ARITHMETIC:
        return False
    dtype = op.results[0].number
    return dtype.kind == "int" and 1 < dtype.bits < 64


def _parts(op: Op) -> list[Value]:
    """The operands of which the result is a sum, a product or a copy; none where it is something else."""
    args = [v for v in op.args if v is not None]
    if op.kind in _SHAPES or (op.kind == "binary" and op.name in _KEEP):
        return args
    if op.kind == "select":
        return args[1:]
    whole = op.kind == "cast" and all(v.is_pointer or v.number.is_int() for v in (*args, *op.results))
    return args if whole else []
