"""The integer arithmetic that addresses are made of: found by going back from the pointers of accesses.

Numbers that are taken apart on the way (a remainder, single bits, a shift to the right, what is loaded) are data: hashes and
random numbers wrap on purpose before that. What decides, as the condition of a branch, counts only where it is made of
nothing but indices: random numbers are compared, too.
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
INDICES = ("program_id", "num_programs", "arange", "const", "load")
LARGEST_FACTOR = 1 << 16  # an odd factor in the source beyond that mixes bits
Graph = tuple[dict[int, Op], dict[int, list[int]]]  # see `definitions.makers`
_KEEP = (*ARITHMETIC, "floordiv", "max", "min")


def reaching(program: Program, values: Iterable[Value]) -> dict[int, Op]:
    """Operations (by id) whose results are parts of sums and products that give these pointers or indices."""
    found = _parts_of(makers(program.walk()), values)
    return {op.id: op for op in found if parts(op) or may_overflow(op)}


def _parts_of(graph: Graph, values: Iterable[Value]) -> list[Op]:
    """What makes these values and their parts, down to what is no sum, product or copy."""
    made, sources = graph
    out: list[Op] = []
    seen: set[int] = set()
    wanted = [v.id for v in values]
    while wanted:
        vid = wanted.pop()
        if vid in seen:
            continue
        seen.add(vid)
        wanted.extend(sources.get(vid, ()))
        op = made.get(vid)
        if op is not None:
            out.append(op)
            wanted.extend(v.id for v in parts(op))
    return out


def index_arithmetic(program: Program) -> frozenset[int]:
    """Operations (by id) on integers below 64 bits that an address, the mask of an access, or a decision is made of."""
    if program.index_arithmetic is None:
        accesses = [op for kind in ACCESSES for op in program.of_kind(kind)]
        masks = [op.args[MASKS[op.kind]] for op in accesses]
        found = reaching(
            program, [*(op.operand(0) for op in accesses), *_compared(makers(program.walk())[0], masks)]
        )
        used = frozenset(n for n, op in found.items() if may_overflow(op))
        program.index_arithmetic = used.union(*deciding(program).values())
    return program.index_arithmetic


def decisive(op: Op) -> tuple[list[Value | None], list[Value | None]]:
    """What decides on which way an operation goes: conditions, and the bounds of a range."""
    if op.kind == "for":
        return [], list(op.args[:3])
    if op.kind == "while":
        return [op.regions[0].yields[0]], []
    return ([op.operand(0)], []) if op.kind in ("if", "select") else ([], [])


def deciding(program: Program) -> dict[int, frozenset[int]]:
    """Index arithmetic (by id) that branches, loops and selects (by id) go by."""
    if program.deciding is None:
        graph, program.deciding = makers(program.walk()), {}
        for op in program.walk():
            conditions, bounds = decisive(op)
            numbers = [v for v in bounds if v is not None]
            if conditions:
                numbers += _compared(graph[0], conditions)
            found = frozenset(n for v in numbers for n in _index(graph, v))
            if found:
                program.deciding[op.id] = found
    return program.deciding


def _index(graph: Graph, v: Value) -> list[int]:
    """What of an integer may overflow; nothing where it is made of other things than indices."""
    found = _parts_of(graph, [v])
    out = [op.id for op in found if may_overflow(op)]
    return out if out and all(_is_index(graph, op) for op in found) else []


def _is_index(graph: Graph, op: Op) -> bool:
    """Whether an operation is one that indices are made by. Unsigned integers, products with large odd factors and products
    that a loop multiplies again are hashes and random numbers.
    """
    r = op.results[0]
    if not r.dtype.is_int() or r.number.kind == "uint":
        return False
    if op.kind == "binary" and op.name == "mul":
        return not any(_mixes(graph[0], v) for v in op.args) and op not in _parts_of(graph, parts(op))
    return bool(parts(op)) or op.kind in INDICES or (op.kind == "binary" and op.name == "mod")


def _mixes(made: dict[int, Op], v: Value | None) -> bool:
    """Whether a factor is a number that stands in the source, odd and large."""
    op = made.get(v.id) if v is not None else None
    while op is not None and op.kind in (*SHAPES, "cast"):
        op = made.get(op.operand(0).id)
    if op is None or op.kind != "const" or not isinstance(op.attrs["value"], int):
        return False
    return op.attrs["value"] % 2 == 1 and abs(op.attrs["value"]) > LARGEST_FACTOR


def _compared(made: dict[int, Op], masks: Iterable[Value | None]) -> list[Value]:
    """Integers whose comparisons masks are made of."""
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
