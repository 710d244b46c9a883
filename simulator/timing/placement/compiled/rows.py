"""Which axis of which tiles the two Vector cores of a core share: half of every tile each (5.1 to 5.5).

AscendNPU-IR, lib/Dialect/HIVM/Transforms/TileAndBindSubBlock.cpp, option `enable-auto-bind-sub-block`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ....interpreter.program_order.order import directions
from ....ir.program import Op, Program, Value
from ..memory_spaces import UB, MemorySpaces
from .axes import Axes, Axis

WHOLE = ("custom", "alloc", "sync", "histogram")  # operations with which nothing is cut


class SharedRows(NamedTuple):
    """axis_of: value -> axis of which each Vector core has half; empty where one core does everything, or the kernel itself
    gives both their work. why: one core does.
    """

    axis_of: dict[int, int]
    why: str = ""


def shared_rows(spaces: MemorySpaces) -> SharedRows:
    """What the two Vector cores of a program share."""
    program = spaces.program
    by_hand = program.of_kind("sub_vec_id") or any(_takes_turns(op) for op in program.of_kind("for"))
    if by_hand or not (spaces.has_dot and spaces.fixpipe and spaces.has_vector_work):
        return SharedRows({})
    why = _why_whole(spaces)
    if why:
        return SharedRows({}, why)
    axes, chosen = Axes(spaces.program), set[Axis]()
    leaves = list(_leaves(spaces))
    for v in leaves:
        axis = _choice(axes, v, chosen)
        if axis is None:
            size = " x ".join(map(str, v.shape))
            return SharedRows(
                {}, f"no axis of the tile of {size} in line {v.loc.line} can be cut up to there"
            )
        chosen.add(axes.of(v, axis))
    if not leaves:
        return SharedRows({}, "no tile of theirs is stored or goes to a product")
    rows = _cut(axes, program, chosen)
    return SharedRows(rows, "" if rows else "a tile would be cut along two axes")


def _why_whole(spaces: MemorySpaces) -> str:
    """5.5: what in a program keeps its tiles whole."""
    program = spaces.program
    kind = next((kind for kind in WHOLE if program.of_kind(kind)), "")
    if kind:
        return f"{kind} in line {program.of_kind(kind)[0].loc.line} keeps tiles whole"
    if _turns_rows(spaces):
        return "the Vector unit transposes the last axis of a tile"
    return "what is stored may be loaded again, from the same argument" if _may_meet(program) else ""


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


def _choice(axes: Axes, v: Value, chosen: set[Axis]) -> int | None:
    """5.3: an axis of even length that is nowhere reduced nor mixed; one that is cut already, else the outermost."""
    reduced, blocked = axes.groups
    named = [(k, axes.of(v, k)) for k, n in enumerate(v.shape) if n > 1 and n % 2 == 0]
    open_ = [(name not in chosen, k) for k, name in named if name not in blocked and name not in reduced]
    return min(open_)[1] if open_ else None


def _cut(axes: Axes, program: Program, chosen: set[Axis]) -> dict[int, int]:
    """The axis of each value; nothing is cut if a value has two."""
    out: dict[int, int] = {}
    for v in _values(program):
        mine = [k for k in range(len(v.shape)) if axes.of(v, k) in chosen]
        if len(mine) > 1:
            return {}
        if mine:
            out[v.id] = mine[0]
    return out


def _values(program: Program) -> Iterator[Value]:
    for op in program.walk():
        yield from (v for inner in op.regions for v in inner.args)
        yield from op.results
