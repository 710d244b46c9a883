"""Which axis of which tiles the two Vector cores of a core share: half of every tile each.

Numbers in brackets are those of the compiler's rules (`../compiled/`): AscendNPU-IR,
lib/Dialect/HIVM/Transforms/TileAndBindSubBlock.cpp, option `enable-auto-bind-sub-block`. An author of Ascend C is taken to
cut along such axes, too, but to know how masked rows and transposes are shared, and to begin with the last store where the
first one's axis does not do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ....interpreter.program_order.order import directions
from ....ir.program import Op, Program, Value
from ..memory_spaces import UB, MemorySpaces
from .axes import Axis, AxisClasses

WHOLE = ("custom", "alloc", "sync", "sub_vec_id", "histogram")  # operations with which nothing is cut


class SharedRows(NamedTuple):
    """axis_of: value -> axis of which each Vector core has half; empty where one core does everything, or the kernel shares
    the work itself. why: one core does.
    """

    axis_of: dict[int, int]
    why: str = ""


def shared_rows(spaces: MemorySpaces, asked: bool | None, compiled: bool) -> SharedRows:
    """What the two Vector cores of a program share.

    asked: False with `enable_auto_bind_sub_block` off, None where a core has one Vector core. compiled: by the compiler,
    which leaves more programs whole.
    """
    if asked is None or _by_hand(spaces.program) or not _is_mixed(spaces):
        return SharedRows({})
    why = _whole(spaces, compiled) if asked else "bind_sub_block (enable_auto_bind_sub_block) is off"
    if why:
        return SharedRows({}, why)
    axes, leaves = AxisClasses(spaces.program, by_formulas=compiled), list(_leaves(spaces))
    found = _shared(spaces.program, axes, leaves)
    if not compiled:
        return found if found.axis_of else _shared(spaces.program, axes, leaves[::-1])
    why = _masked(spaces, found.axis_of)
    return SharedRows({}, why) if why else found


def _shared(program: Program, axes: AxisClasses, leaves: list[Value]) -> SharedRows:
    """leaves: the first one has its outermost axis cut, if that can be."""
    chosen = set[Axis]()
    for v in leaves:
        axis = _choice(axes, v, chosen)
        if axis is None:
            return SharedRows({}, _no_axis(v))
        chosen.add(axes.of(v, axis))
    return _cut(axes, program, chosen)


def _is_mixed(spaces: MemorySpaces) -> bool:
    """Whether there is work for a Cube core and for Vector cores beside it."""
    return spaces.has_dot and spaces.fixpipe and spaces.has_vector_work


def _by_hand(program: Program) -> bool:
    """Whether the kernel says itself which core does what."""
    return bool(program.split_builtins) or any(_takes_turns(op) for op in program.of_kind("for"))


def _no_axis(v: Value) -> str:
    size = " x ".join(map(str, v.shape))
    return f"no axis of the tile of {size} in line {v.loc.line} is even and runs through all operations up to there"


def _whole(spaces: MemorySpaces, compiled: bool) -> str:
    """5.5: what keeps the tiles of a program whole, if anything does."""
    program = spaces.program
    kind = next((kind for kind in WHOLE if program.of_kind(kind)), None)
    if kind is not None:
        return f"line {program.of_kind(kind)[0].loc.line} has an operation that is not cut ({kind})"
    if compiled and _turns_rows(spaces):
        return "the Vector unit transposes the last axis of a tile"
    return "the program loads from a tensor that it stores to" if _may_meet(program) else ""


def _masked(spaces: MemorySpaces, axis_of: dict[int, int]) -> str:
    """Whether a load into UB is masked along the axis that would be cut.

    The size of such a copy is known at run time only, and the cut does not get past it: inferred, not read in the source.
    A product whose operand is made from masked rows took the need in bits of whole rows, and the time of one Vector core
    (mhc-fused-256 of ub_cases.csv, mhc-matmul of triton_times.csv).
    """
    for op in spaces.program.of_kind("load"):
        r, mask = op.results[0], op.args[1]
        axis = axis_of.get(r.id)
        if axis is None or mask is None or spaces.space_of(r) != UB:
            continue
        if mask.static.kind != "box" or axis in mask.static.axes:
            return f"the load in line {op.loc.line} is masked along the rows that they would share"
    return ""


def _takes_turns(loop: Op) -> bool:
    """Whether the kernel itself gives the iterations of a loop to both cores."""
    return bool(loop.attrs.get("hints", {}).get("bind_sub_block"))


def _turns_rows(spaces: MemorySpaces) -> bool:
    """Whether the Vector unit transposes a last axis."""
    turned = (
        op for op in spaces.program.of_kind("permute") if op.attrs["order"][-1] != len(op.attrs["order"]) - 1
    )
    tiles = (op.results[0] for op in turned)
    return any(v.static.kind == "dense" and v.id not in spaces.definitions.folded for v in tiles)


def _may_meet(program: Program) -> bool:
    """Whether a program loads from and stores to the same argument."""
    return any(how == "in out" for how in directions(program).values())


def _leaves(spaces: MemorySpaces) -> Iterator[Value]:
    """5.2: what leaves the Vector part: to GM, or to the Cube."""
    for op in spaces.program.walk():
        if op.kind in ("store", "atomic"):
            v = op.operand(1)
            root = spaces.definitions.root(v) if v.shape else None
            if v.shape and (root is None or spaces.space_of(root) == UB or root.id in spaces.copied_to_ub):
                yield v
        elif op.kind == "dot":
            sources = (spaces.source(v) for v in op.args[:2] if v is not None)
            yield from (v for v in sources if v.id in spaces.staged)


def _choice(axes: AxisClasses, v: Value, chosen: set[Axis]) -> int | None:
    """5.3: an axis of even length that is nowhere reduced nor mixed; one that is cut already, else the outermost."""
    reduced, blocked = axes.groups
    named = [(k, axes.of(v, k)) for k, n in enumerate(v.shape) if n > 1 and n % 2 == 0]
    open_ = [(name not in chosen, k) for k, name in named if name not in blocked and name not in reduced]
    return min(open_)[1] if open_ else None


def _cut(axes: AxisClasses, program: Program, chosen: set[Axis]) -> SharedRows:
    """The axis of each value; nothing is cut if a value has two."""
    out: dict[int, int] = {}
    for v in _values(program):
        mine = [k for k in range(len(v.shape)) if axes.of(v, k) in chosen]
        if len(mine) > 1:
            return SharedRows({}, f"two axes of a tile in line {v.loc.line} would be shared")
        if mine:
            out[v.id] = mine[0]
    return SharedRows(out)


def _values(program: Program) -> Iterator[Value]:
    for op in program.walk():
        yield from (v for inner in op.regions for v in inner.args)
        yield from op.results
