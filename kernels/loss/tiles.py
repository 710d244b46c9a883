# mypy: disable-error-code="no-untyped-def"
"""Tile kernels of the gradient of binary cross-entropy on logits, what they need of UB, and the choice of a tiling.

The mathematics is in op.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import simulator as sim
from ...simulator import language as tl
from ..operator.layout import Axes, broadcast_strides, merge_axes, tile_count, tile_of, unravel, up
from ..operator.plan import PlanContext, Step, bank_switches
from ..operator.tensors import Knobs, Options, Tensor, Tensors, dtype_of
from ..shared.broadcasting import load_broadcast

# -- kernels ---------------------------------------------------------------------------------------------------------


@sim.jit
def gradient(x, t, p, STABLE: tl.constexpr, LEAST: tl.constexpr):
    """b of logits x, labels t and positive weight p (None: 1), fp32. LEAST: lower logits count as it (None: as they are).

    p * t - t comes before the 1 is added: for p = 1 it is 0, and the bits are those of s - t, without p.
    """
    if LEAST is not None:
        x = tl.maximum(x, LEAST)
    s = 1.0 / (1.0 + tl.exp(-x))
    if STABLE:
        positive = t if p is None else t * p
        return (1.0 - t) * s - positive * (1.0 / (1.0 + tl.exp(x)))
    if p is None:
        return s - t
    pt = p * t
    return (pt - t + 1.0) * s - pt


@sim.jit
def bce_flat(
    g_ptr, x_ptr, t_ptr, w_ptr, p_ptr, out_ptr, n, scale,
    BLOCK: tl.constexpr, FULL: tl.constexpr, SCALED: tl.constexpr, STABLE: tl.constexpr,
    LEAST: tl.constexpr,
):  # fmt: skip
    """Blocks of consecutive elements in turn. FULL: which of g, w, p have an element for each of x (None: is absent).

    scale: 1 / n for the mean. What has one element is multiplied into one factor; SCALED: whether there is any.
    """
    factor = scale
    if FULL[0] is False:
        factor = factor * tl.load(g_ptr).to(tl.float32)
    if FULL[1] is False:
        factor = factor * tl.load(w_ptr).to(tl.float32)
    one = tl.load(p_ptr).to(tl.float32) if FULL[2] is False else None
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        mask = at < n
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        t = tl.load(t_ptr + at, mask=mask, other=0.0).to(tl.float32)
        p = tl.load(p_ptr + at, mask=mask, other=0.0).to(tl.float32) if FULL[2] else one
        out = gradient(x, t, p, STABLE, LEAST)
        if FULL[0]:
            out = out * tl.load(g_ptr + at, mask=mask, other=0.0).to(tl.float32)
        if FULL[1]:
            out = out * tl.load(w_ptr + at, mask=mask, other=0.0).to(tl.float32)
        if SCALED:
            out = out * factor
        tl.store(out_ptr + at, out.to(out_ptr.dtype.element_ty), mask=mask)


@sim.jit
def bce_stretched(
    g_ptr, x_ptr, t_ptr, w_ptr, p_ptr, out_ptr, items, scale,
    ROWS: tl.constexpr, COLS: tl.constexpr, LENGTHS: tl.constexpr, STRIDES: tl.constexpr,
    KEPT: tl.constexpr, SCALED: tl.constexpr, STABLE: tl.constexpr, LEAST: tl.constexpr,
):  # fmt: skip
    """Tiles ROWS x COLS of the last two of the common axes LENGTHS in turn; STRIDES of g, w, p, x along all of them.

    Strides are () for an input of one element, None for one that is absent; factor and SCALED as in bce_flat. KEPT: which
    of g, w, p are the same for every tile, and loaded once.
    """
    factor = scale
    if STRIDES[0] == ():
        factor = factor * tl.load(g_ptr).to(tl.float32)
    if STRIDES[1] == ():
        factor = factor * tl.load(w_ptr).to(tl.float32)
    one = tl.load(p_ptr).to(tl.float32) if STRIDES[2] == () else None
    row, col = tl.arange(0, ROWS), tl.arange(0, COLS)
    one_g = load_broadcast(g_ptr, 0, row, col, LENGTHS, STRIDES[0]) if KEPT[0] else None
    one_w = load_broadcast(w_ptr, 0, row, col, LENGTHS, STRIDES[1]) if KEPT[1] else None
    one_p = load_broadcast(p_ptr, 0, row, col, LENGTHS, STRIDES[2]) if KEPT[2] else one
    across = (LENGTHS[-1] + COLS - 1) // COLS
    down = (LENGTHS[-2] + ROWS - 1) // ROWS
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        outer = item // across // down
        rows = item // across % down * ROWS + row
        cols = item % across * COLS + col
        x = load_broadcast(x_ptr, outer, rows, cols, LENGTHS, STRIDES[3])
        t = load_broadcast(t_ptr, outer, rows, cols, LENGTHS, STRIDES[3])
        p, g, w = one_p, one_g, one_w
        if STRIDES[2] and not KEPT[2]:
            p = load_broadcast(p_ptr, outer, rows, cols, LENGTHS, STRIDES[2])
        out = gradient(x, t, p, STABLE, LEAST)
        if STRIDES[0]:
            if not KEPT[0]:
                g = load_broadcast(g_ptr, outer, rows, cols, LENGTHS, STRIDES[0])
            out = out * g
        if STRIDES[1]:
            if not KEPT[1]:
                w = load_broadcast(w_ptr, outer, rows, cols, LENGTHS, STRIDES[1])
            out = out * w
        if SCALED:
            out = out * factor
        at = unravel(outer, LENGTHS[:-2], STRIDES[3][:-2]) + rows[:, None] * STRIDES[3][-2] + cols[None, :]
        mask = (rows < LENGTHS[-2])[:, None] & (cols < LENGTHS[-1])[None, :]
        tl.store(out_ptr + at, out.to(out_ptr.dtype.element_ty), mask=mask)


# -- what fits -------------------------------------------------------------------------------------------------------

BROADCAST = ("grad_output", "weight", "pos_weight")  # the inputs that may broadcast to the shape of x
BLOCK = 8192  # elements of a tile where UB allows
# Elements that are worth waking a core for: the vendor's table gives 65536 elements to 16 cores (hicann/ops-nn, tiling
# of the experimental kernel), and the model agrees, since a launch costs more the more cores it wakes.
LEAST_SHARE = 4096
LEAST_BLOCK = 64


def element_bytes(tensors: Tensors, copies: int, stable: bool) -> int:
    """UB bytes per element of a tile, at most (checked against the placement by a test).

    What is read element by element and the output, in their own type, `copies` each; FP32 temporaries: 3 tiles, less
    what is computed on where it was loaded (target if it is FP32, then x too unless pos_weight comes between); one more
    for pos_weight, one for the stable form, and one for each input that is kept for all tiles.
    """
    several = [x for n, x in tensors.items() if n not in BROADCAST or x.size > 1]
    loaded = sum(dtype_of(x).itemsize for x in several) + dtype_of(tensors["target"]).itemsize
    weighted = "pos_weight" in tensors
    kept = sum(1 < x.size < tensors["x"].size for n, x in tensors.items() if n in BROADCAST)
    temporaries = 3 + weighted + stable + kept
    if copies > 1 and dtype_of(tensors["target"]).itemsize == 4:
        temporaries -= 2 if dtype_of(tensors["x"]).itemsize == 4 and not weighted else 1
    return (loaded * copies if copies > 1 else 0) + 4 * temporaries


def choose(tensors: Tensors, knobs: Knobs, context: PlanContext) -> dict[str, Any]:
    """Every knob: as given, or by the rules here.

    cores: as many as get LEAST_SHARE elements. buffers: see `_copies`. block: as large as fits, up to BLOCK, in equal
    blocks for a core; two of them at least where a core has much to do, so that copies and arithmetic overlap.
    """
    copies = knobs["buffers"] or _copies(tensors)
    n = max(1, tensors["x"].size)
    cores = min(context.cores(knobs["cores"]), n if knobs["cores"] else -(-n // LEAST_SHARE))
    fits = context.ub_bytes // element_bytes(tensors, copies, bool(knobs["stable"]))
    share = -(-n // cores)
    most = max(LEAST_BLOCK, min(BLOCK, fits // LEAST_BLOCK * LEAST_BLOCK))
    iterations = max(-(-share // most), 2 if share > LEAST_SHARE else 1)
    block = knobs["block"] or up(-(-share // iterations), LEAST_BLOCK)
    return {**knobs, "block": block, "cores": cores, "buffers": copies}


def _copies(tensors: Tensors) -> int:
    """One where everything is narrow: a tile is widened at once, which frees it for the next load; else two."""
    return 1 if all(dtype_of(x).itemsize == 2 for x in tensors.values()) else 2


# -- launches --------------------------------------------------------------------------------------------------------


def make_step(
    tensors: Tensors, out: Tensor, options: Options, tiling: Knobs, least: float | None = None
) -> Step:
    """The launch: flat where every input is full or one element, else over the common axes.

    least: logits below it count as it; None: there is no such limit.
    """
    axes, mean = common_axes(tensors), options["reduction"] == "mean"
    arguments = {
        **{"g_ptr": tensors["grad_output"], "x_ptr": tensors["x"], "t_ptr": tensors["target"]},
        **{"w_ptr": tensors.get("weight"), "p_ptr": tensors.get("pos_weight"), "out_ptr": out},
        "scale": 1.0 / tensors["x"].size if mean else 1.0,
        "SCALED": mean or any(n in tensors and tensors[n].size == 1 for n in BROADCAST[:2]),
        **{"STABLE": bool(tiling["stable"]), "LEAST": least, "multibuffer": tiling["buffers"]},
    }
    if axes.flat():
        return _flat_step(tensors, arguments, tiling)
    return _broadcast_step(tensors, axes.padded(), arguments, tiling)


def tile_elements(step: Step) -> int:
    """Elements of the tile of a launch."""
    given: dict[str, int] = step.arguments
    return given["BLOCK"] if "BLOCK" in given else given["ROWS"] * given["COLS"]


def common_axes(tensors: Tensors) -> Axes:
    """Axes of g, w, p and x together, those of them that have more than one element."""
    shape = tensors["x"].shape
    several = [tensors[n].shape for n in BROADCAST if n in tensors and tensors[n].size > 1]
    return merge_axes(shape, [broadcast_strides(s, shape) for s in (*several, shape)])


def _flat_step(tensors: Tensors, arguments: Mapping[str, Any], tiling: Knobs) -> Step:
    n, block = tensors["x"].size, tiling["block"]
    full = tuple(tensors[name].size > 1 if name in tensors else None for name in BROADCAST)
    own = {"n": n, "BLOCK": block, "FULL": full}
    return Step(bce_flat, min(tiling["cores"], -(-n // block)), {**arguments, **own}, bank_switches(tiling))


def _broadcast_step(tensors: Tensors, axes: Axes, arguments: Mapping[str, Any], tiling: Knobs) -> Step:
    strides = iter(axes.strides)
    each = [None if n not in tensors else () if tensors[n].size == 1 else next(strides) for n in BROADCAST]
    rows, cols = tile_of(axes.lengths[-2], axes.lengths[-1], tiling["block"])
    items = tile_count(axes.lengths, rows, cols)
    own = {
        "items": items,
        "ROWS": rows,
        "COLS": cols,
        "LENGTHS": axes.lengths,
        "STRIDES": (*each, next(strides)),
        "KEPT": tuple(bool(s and not any(s[:-1])) and cols == axes.lengths[-1] for s in each),
    }
    return Step(bce_stretched, min(tiling["cores"], items), {**arguments, **own}, bank_switches(tiling))
