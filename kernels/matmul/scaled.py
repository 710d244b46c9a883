# mypy: disable-error-code="no-untyped-def"
"""The product of operands in blocks with a scale each (MX, NVFP4): its kernel, its launch, and what they stand for.

No Cube of the products here reads scales: a what-if, with values and time as of `tl.dot_scaled`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.errors import UsageError
from ...simulator.precision import dtypes as ty
from ...simulator.precision.code_tables import unpack
from ...simulator.precision.cube_math import Resolution
from ...simulator.precision.formats import get_format
from ..operator.blocks import FACTOR, PACKED, scale_of
from ..operator.layout import up
from ..operator.parallel import float64
from ..operator.plan import PlanContext, Step
from ..operator.tensors import Arrays, Knobs, Tensor, Tensors, dtype_name, dtype_of
from .choice import choose

GROUPS = {"uint8": 32, "e4m3": 16}  # elements of the sum that share a scale of that type
CODES = "e2m1"  # what bytes hold two of
E8M0_BIAS, E8M0_NAN = 127, 255


@sim.jit
def matmul_scaled(
    a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, factor_ptr, c_ptr, M, N, K, depth, groups, items, group,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr, EACH: tl.constexpr,
    LEFT: tl.constexpr, RIGHT: tl.constexpr, FACTOR: tl.constexpr,
):  # fmt: skip
    """c (M, N) = a (M, K) b (K, N), each element times the scale of its G neighbours along K, and all of it times a factor
    where there is one. depth: stored elements along K, EACH of which holds so many; groups: scales along K."""
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        first = item // (group * across) * group
        height = tl.minimum(down - first, group)
        rows = (first + item % (group * across) % height) * BM + tl.arange(0, BM)
        cols = item % (group * across) // height * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            deep, scale = k // EACH + tl.arange(0, BK // EACH), k // G + tl.arange(0, BK // G)
            in_a, in_b = (rows < M)[:, None], (cols < N)
            a = tl.load(
                a_ptr + rows[:, None] * depth + deep[None, :], mask=in_a & (deep < depth)[None, :], other=0
            )
            b = tl.load(
                b_ptr + deep[:, None] * N + cols[None, :],
                mask=(deep < depth)[:, None] & in_b[None, :],
                other=0,
            )
            kept = (scale < groups)[:, None]
            x = tl.load(
                a_scale_ptr + scale[:, None] * M + rows[None, :], mask=kept & (rows < M)[None, :], other=0
            )
            y = tl.load(
                b_scale_ptr + scale[:, None] * N + cols[None, :], mask=kept & (cols < N)[None, :], other=0
            )
            acc = tl.dot_scaled(a, tl.trans(x), LEFT, b, tl.trans(y), RIGHT, acc)
        if FACTOR:
            acc = acc * tl.load(factor_ptr)
        at = c_ptr + rows[:, None] * N + cols[None, :]
        tl.store(at, acc, mask=(rows < M)[:, None] & (cols < N)[None, :])


def is_scaled(tensors: Mapping[str, Any]) -> bool:
    """Whether the operands come with scales."""
    return scale_of("a") in tensors or scale_of("b") in tensors


def element_name(tensor: Tensor) -> str:
    """The format of an operand's elements."""
    found = dtype_of(tensor)
    return CODES if found is ty.uint8 else found.format.name


def check_scales(tensors: Tensors) -> None:
    """Both operands have scales, of one kind and of the shapes that their groups need."""
    names = [scale_of(n) for n in ("a", "b")]
    missing = [n for n in names if n not in tensors]
    if missing:
        raise UsageError(f"matmul: {missing[0]} is missing; operands in blocks have scales both")
    kinds = {n: dtype_name(tensors[n]) for n in names}
    if kinds[names[0]] != kinds[names[1]] or kinds[names[0]] not in GROUPS:
        raise UsageError(
            f"matmul: scales are {' and '.join(kinds.values())}; both are uint8 (powers of two, for 32 of K) or e4m3 (for "
            "16)"
        )
    _check_shapes(tensors, kinds[names[0]])


def _check_shapes(tensors: Tensors, kind: str) -> None:
    groups = -(-_depth(tensors) // GROUPS[kind])
    for n, rows in (("a", tensors["a"].shape[0]), ("b", tensors["b"].shape[1])):
        found = tensors[scale_of(n)].shape
        if found != (groups, rows):
            raise UsageError(
                f"matmul: {scale_of(n)} has shape {found}; {n} of shape {tensors[n].shape} needs {(groups, rows)}, a scale "
                f"for each {GROUPS[kind]} of K"
            )
    if FACTOR in tensors and tensors[FACTOR].shape != (1,):
        raise UsageError(f"matmul: {FACTOR} has shape {tensors[FACTOR].shape}; it must be (1,)")


def _depth(tensors: Tensors) -> int:
    """Length of the sums: of packed elements as many as their bytes hold."""
    return int(tensors["a"].shape[1]) * (2 if dtype_of(tensors["a"]) is ty.uint8 else 1)


def scaled_product(
    tensors: Tensors, knobs: Knobs, found: Resolution, context: PlanContext, steps: list[Step]
) -> tuple[Tensor, dict[str, Any]]:
    """The launch, and its tiling: every tile of the output whole, no operand kept in L1."""
    for n, usual in (("split_k", 1), ("keep", "none")):
        if knobs[n] not in (None, 0, usual):
            raise UsageError(
                f"matmul: {n}={knobs[n]}: operands in blocks are multiplied with {n}={usual} only"
            )
    a, b = tensors["a"], tensors["b"]
    each, groups = _depth(tensors) // a.shape[1], tensors[scale_of("a")].shape[0]
    whole = max(GROUPS.values())
    asked = up(knobs["block_k"] or 0, whole) // each  # of stored elements, which are what the choice counts
    tiling = choose(a, b, {**knobs, "keep": "none", "split_k": 1, "block_k": asked}, context, found)
    tiling["block_k"] = up(tiling["block_k"] * each, whole)
    c = context.tensor((a.shape[0], b.shape[1]), ty.float32)
    steps.append(_step(tensors, c, tiling, each, groups))
    return c, tiling


def _step(tensors: Tensors, c: Tensor, tiling: Knobs, each: int, groups: int) -> Step:
    a, b = tensors["a"], tensors["b"]
    (m, depth), n = a.shape, b.shape[1]
    items = -(-m // tiling["block_m"]) * -(-n // tiling["block_n"])
    grid = items if tiling["schedule"] == "per_tile" else min(items, tiling["cores"])
    factor = tensors.get(FACTOR)
    arguments = {
        **{
            "a_ptr": a,
            "a_scale_ptr": tensors[scale_of("a")],
            "b_ptr": b,
            "b_scale_ptr": tensors[scale_of("b")],
        },
        **{"factor_ptr": c if factor is None else factor, "c_ptr": c, "FACTOR": factor is not None},
        **{
            "M": m,
            "N": n,
            "K": depth * each,
            "depth": depth,
            "groups": groups,
            "items": items,
            "group": tiling["group"],
        },
        **{"BM": tiling["block_m"], "BN": tiling["block_n"], "BK": tiling["block_k"], "EACH": each},
        **{
            "G": GROUPS[dtype_name(tensors[scale_of("a")])],
            "LEFT": element_name(a),
            "RIGHT": element_name(b),
        },
        "multibuffer": tiling["buffers"],
    }
    base = tuple(tiling[f"base_{axis}"] for axis in "mnk")
    switches = {"l0_tile": base if all(base) else None, "accumulate": tiling["accumulate"]}
    return Step(matmul_scaled, grid, arguments, switches)


# ---- what they stand for ----


def operands_in_blocks(inputs: Arrays) -> Arrays:
    """a and b in float64: elements times scales, and a times the factor."""
    out = {n: _values(inputs[n], inputs[scale_of(n)], axis) for n, axis in (("a", 1), ("b", 0))}
    return {**out, "a": out["a"] * float64(inputs[FACTOR])} if FACTOR in inputs else out


def _values(codes: np.ndarray, scales: np.ndarray, axis: int) -> np.ndarray:
    rows = np.moveaxis(codes, axis, -1)
    if codes.dtype == np.uint8:
        found = unpack(np.ascontiguousarray(rows), PACKED, 2 * rows.shape[-1])
        elements = np.asarray(get_format(CODES).values, np.float64)[found]
    else:
        elements = float64(np.ascontiguousarray(rows))
    wide = np.repeat(_factors(scales).T, GROUPS["uint8" if scales.dtype == np.uint8 else "e4m3"], axis=1)
    return np.moveaxis(elements * wide[:, : elements.shape[1]], -1, axis)


def _factors(scales: np.ndarray) -> np.ndarray:
    """Scales in float64."""
    if scales.dtype != np.uint8:
        return float64(scales)
    return np.where(scales == E8M0_NAN, np.nan, np.ldexp(1.0, scales.astype(np.int32) - E8M0_BIAS))
