"""How much of a product a kernel by hand multiplies: what its loads brought, and not the padding behind it.

At the edges of a problem a mask cuts what is loaded of a tile. An author of Ascend C gives the instructions that load L0 and
multiply the rows, columns and depth that are there, in whole fractals (`SetTail` of `Matmul`, `singleCoreM` of the vendor's
tilings, the actual shape of a block in catlass). What triton-ascend makes of `tl.dot` multiplies whole tiles.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...interpreter.state import Frame
from ...interpreter.values import Box
from ...ir.program import Op, Value
from ..placement.layouts import FRACTAL, Definitions
from ..placement.uses import Uses
from .context import LoweringPlan, Part, Sizes


class Ends(NamedTuple):
    """Where the rows, the columns and the depth of a product end: a number, or one for each lane; None where it is whole."""

    m: Any
    n: Any
    k: Any


WHOLE = Ends(None, None, None)


def masks_of(uses: Uses, op: Op) -> tuple[Value, ...]:
    """What cuts the loads of both operands of a product."""
    loads = (_load(uses, op.operand(side)) for side in (0, 1))
    return tuple(load.operand(1) for load in loads if load is not None)


def ends_of(plan: LoweringPlan, op: Op, frame: Frame) -> Ends:
    """What is there of both operands of a product, for the lanes of a frame."""
    (m, deep), (k, n) = (_ends(plan.spaces, op.operand(side), frame) for side in (0, 1))
    if deep is not None and k is not None:
        k = np.minimum(deep, k)
    k = deep if k is None else k
    return WHOLE if m is None and n is None and k is None else Ends(m, n, k)


def cut(plan: LoweringPlan, op: Op, part: Part, ends: Ends) -> Part | None:
    """One L0 tile as far as the code multiplies it: cycles as numbers, or one for each lane; None where no lane has any."""
    if ends is WHOLE or plan.compiled:
        return part
    blocks = _fractal(plan, op)
    there = [
        _blocks(end, first, size, to)
        for end, first, size, to in zip(ends, part.first, part.sizes, blocks, strict=True)
    ]
    if all(isinstance(n, int) for n in there):
        return _part(plan, op, part, blocks, there) if all(there) else None
    return _by_lane(plan, op, part, blocks, there)


class Multiplied(NamedTuple):
    """Of a product, summed over all its executions: rows, columns, depth and multiplications that are there, multiplications
    that the Cube does, and how often it was executed."""

    m: int = 0
    n: int = 0
    k: int = 0
    there: int = 0
    work: int = 0
    times: int = 0

    def and_of(self, plan: LoweringPlan, op: Op, ends: Ends, lanes: int) -> Multiplied:
        """With one more execution by so many lanes."""
        sizes, to = lengths_of(op), _fractal(plan, op)
        there = [n if end is None else end for n, end in zip(sizes, ends, strict=True)]
        done = [
            -(-n // block) * block for n, block in zip(sizes if plan.compiled else there, to, strict=True)
        ]
        found = (*there, there[0] * there[1] * there[2], done[0] * done[1] * done[2])
        now = (
            int(np.broadcast_to(x, lanes).sum()) for x in found
        )  # whole numbers: however iterations were lowered
        m, n, k, counts, work = (x + y for x, y in zip(self[:5], now, strict=True))
        return Multiplied(m, n, k, counts, work, self.times + lanes)


def _fractal(plan: LoweringPlan, op: Op) -> Sizes:
    """Rows, columns and depth that the Cube multiplies at once."""
    return FRACTAL, FRACTAL, plan.cube.k_block(plan.operand(op))[0]


def lengths_of(op: Op) -> Sizes:
    """M, N and K of a product."""
    a, b = op.operand(0), op.operand(1)
    return a.shape[-2], b.shape[-1], a.shape[-1]


def _load(uses: Uses, v: Value) -> Op | None:
    """The load of an operand, if a mask cuts it and what is cut is 0."""
    op = uses.definitions.of(uses.source(v))
    if op is None or op.kind != "load" or op.args[1] is None or uses.window(v) is not None:
        return None
    return op if op.args[2] is None or _is_zero(uses.definitions, op.operand(2)) else None


def _is_zero(definitions: Definitions, v: Value) -> bool:
    scalar = definitions.scalar_source(v)
    made = None if scalar is None else definitions.of(scalar)
    return made is not None and made.kind == "const" and made.attrs["value"] == 0


def _ends(uses: Uses, v: Value, frame: Frame) -> tuple[Any, Any]:
    """Where the last two axes of an operand end."""
    load = _load(uses, v)
    mask = None if load is None else frame.get(load.operand(1))
    if not isinstance(mask, Box):
        return None, None
    axes = len(v.shape)
    return _end(uses, v, mask, axes - 2), _end(uses, v, mask, axes - 1)


def _end(uses: Uses, v: Value, mask: Box, axis: int) -> Any:
    """Where an axis ends in the load behind views of it; None where a view hides that, or it is whole in all lanes."""
    op = uses.definitions.of(v)
    while op is not None and op.kind != "load":
        inner = op.operand(0)
        if op.kind == "permute":
            axis = op.attrs["order"][axis]
        elif inner.shape != op.results[0].shape:
            return None
        op = uses.definitions.of(inner)
    size, end = mask.shape[axis], mask.highs[axis]
    if isinstance(end, int):
        return None if end >= size else max(end, 0)
    return None if (end >= size).all() else np.clip(end, 0, size)


def _blocks(end: Any, first: int, size: int, to: int) -> Any:
    """Of a tile of that size at `first`, how many blocks of `to` are there."""
    found = -(-(size if end is None else np.clip(end - first, 0, size)) // to)
    return found if isinstance(found, np.ndarray) and found.ndim else int(found)


def _part(plan: LoweringPlan, op: Op, part: Part, blocks: Sizes, there: list[int]) -> Part:
    m, n, k = (min(count * to, size) for count, to, size in zip(there, blocks, part.sizes, strict=True))
    return plan.part_of(op, part.first, (m, n, k))


def _by_lane(plan: LoweringPlan, op: Op, part: Part, blocks: Sizes, there: list[Any]) -> Part | None:
    """Each number of blocks that some lane has is worked out once."""
    _, wide, deep = (-(-size // to) + 1 for size, to in zip(part.sizes, blocks, strict=True))
    codes = (np.asarray(there[0]) * wide + there[1]) * deep + there[2]
    table = np.zeros((int(codes.max()) + 1, 3))
    for code in np.flatnonzero(np.bincount(codes)).tolist():
        counts = [code // deep // wide, code // deep % wide, code % deep]
        if all(counts):
            table[code] = _part(plan, op, part, blocks, counts).cycles
    if not table.any():
        return None
    columns = (c[0] if (c == c[0]).all() else c for c in table[codes].T)
    return Part(part.first, part.sizes, *columns)
