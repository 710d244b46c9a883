# mypy: disable-error-code="no-untyped-def"
"""Binary cross-entropy on logits, the forward of bce_with_logits_backward.

With logits x, labels t, weight w, weight p of the positive class:

    loss = w * ((1 - t) * x + (1 + (p - 1) * t) * (log(1 + exp(-|x|)) + max(-x, 0)))

reduction none gives it for each element, in the type of x; sum and mean (over all elements) one number: every core sums its
tiles, a second launch adds the cores' sums in fixed order. All arithmetic is FP32. Weights broadcast as in the gradient.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.interpreter.tensors import Shape
from ...simulator.precision.dtypes import float32
from ...simulator.products import Product
from ..operator.declared import read_cases, read_parameters
from ..operator.draw import Draw
from ..operator.layout import broadcast_strides, merge_axes, tile_count, tile_of, unravel, up
from ..operator.operator import Operator, by_name
from ..operator.parallel import float64, in_chunks
from ..operator.parameter import Argument
from ..operator.plan import Plan, PlanContext, Step
from ..operator.tensors import Arrays, Knobs, Options, Sizes, Tensors, dims, dtype_of
from ..running.face import python_face
from ..shared.broadcasting import load_broadcast
from ..shared.sums import row_sums, sum_partials_step, zero_fill_step
from .forward_space import bound_us, explored, fits
from .op import OPERATOR as GRADIENT
from .op import check_shapes, check_types

NAME = "bce_with_logits"
WEIGHTS = ("weight", "pos_weight")
LEAST_SHARE = 4096  # elements that are worth waking a core for
CHUNK = 1 << 15

# -- kernel ----------------------------------------------------------------------------------------------------------


@sim.jit
def bce_loss(
    x_ptr, t_ptr, w_ptr, p_ptr, out_ptr, items, scale,
    ROWS: tl.constexpr, COLS: tl.constexpr, LENGTHS: tl.constexpr, STRIDES: tl.constexpr,
    REDUCED: tl.constexpr,
):  # fmt: skip
    """Tiles ROWS x COLS of the last two of the axes LENGTHS in turn; STRIDES of x, w and p (None: absent).

    REDUCED: the program's sum, times scale, goes to element `pid` of out; else every element has its loss there.
    """
    across = (LENGTHS[-1] + COLS - 1) // COLS
    down = (LENGTHS[-2] + ROWS - 1) // ROWS
    total = tl.zeros((ROWS, COLS), tl.float32)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        outer = item // across // down
        rows = item // across % down * ROWS + tl.arange(0, ROWS)
        cols = item % across * COLS + tl.arange(0, COLS)
        mask = (rows < LENGTHS[-2])[:, None] & (cols < LENGTHS[-1])[None, :]
        x = load_broadcast(x_ptr, outer, rows, cols, LENGTHS, STRIDES[0])
        t = load_broadcast(t_ptr, outer, rows, cols, LENGTHS, STRIDES[0])
        rest = tl.log(1.0 + tl.exp(-tl.abs(x))) + tl.maximum(-x, 0.0)
        if p_ptr is not None:
            p = load_broadcast(p_ptr, outer, rows, cols, LENGTHS, STRIDES[2])
            rest = rest * (1.0 + (p - 1.0) * t)
        loss = (1.0 - t) * x + rest
        if w_ptr is not None:
            loss = loss * load_broadcast(w_ptr, outer, rows, cols, LENGTHS, STRIDES[1])
        if REDUCED:
            total += tl.where(mask, loss, 0.0)
        else:
            at = (
                unravel(outer, LENGTHS[:-2], STRIDES[0][:-2]) + rows[:, None] * STRIDES[0][-2] + cols[None, :]
            )
            tl.store(out_ptr + at, loss.to(out_ptr.dtype.element_ty), mask=mask)
    if REDUCED:
        tl.store(out_ptr + tl.program_id(0), tl.sum(row_sums(total), axis=0) * scale)


# -- the operator ----------------------------------------------------------------------------------------------------


def describe(sizes: Sizes, dtype: str) -> dict[str, Shape]:
    shape = sim.shape(dims(sizes["shape"]), dtype)
    return {"x": shape, "target": shape} | {
        n: sim.shape(dims(sizes[n]), dtype) for n in WEIGHTS if n in sizes
    }


def draw(shapes: Mapping[str, Shape], numbers: Draw) -> Arrays:
    """Logits with a spread of 2, soft labels, weights around 1."""
    out = {
        "x": numbers.signal("x", shapes["x"], scale=2.0),
        "target": numbers.labels("target", shapes["target"]),
    }
    return out | {n: numbers.normal(n, shapes[n], scale=0.1, center=1.0) for n in WEIGHTS if n in shapes}


def check(tensors: Tensors, options: Options, product: Product) -> tuple[str, ...]:
    """As the gradient; the mean of nothing is no number."""
    check_types(tensors, product, NAME)
    check_shapes(tensors, NAME)
    empty = tensors["x"].size == 0 and options["reduction"] == "mean"
    return ("x is empty: its mean is NaN",) if empty else ()


PARAMETERS = read_parameters(__file__, NAME)
OPTIONS = read_parameters(__file__, NAME, "options")


def element_bytes(tensors: Tensors, copies: int) -> int:
    """UB bytes per element of a tile, at most: inputs and the output in their own type, and FP32 tiles."""
    loaded = sum(dtype_of(x).itemsize for x in tensors.values()) + dtype_of(tensors["x"]).itemsize
    return loaded * max(2, copies) + 24


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    x, reduced = tensors["x"], options["reduction"] != "none"
    out = context.output("out", () if reduced else x.shape, dtype_of(x))
    if not x.size:
        if options["reduction"] == "mean" and isinstance(out, np.ndarray):
            out[...] = np.nan  # nothing over nothing
        fill = (zero_fill_step(out, 1),) if options["reduction"] == "sum" else ()
        return Plan(fill, {"out": out}, {**knobs, "block": 0, "cores": 0})
    cores = min(context.cores(knobs["cores"]), x.size if knobs["cores"] else -(-x.size // LEAST_SHARE))
    fits = context.ub_bytes // element_bytes(tensors, knobs["buffers"]) // 64 * 64
    block = knobs["block"] or min(fits, up(-(-x.size // cores), 64))
    present = [n for n in WEIGHTS if n in tensors]
    axes = merge_axes(
        x.shape, [broadcast_strides(tensors[n].shape, x.shape) for n in ("x", *present)]
    ).padded()
    strides = dict(zip(("x", *present), axes.strides, strict=True))
    rows, cols = tile_of(axes.lengths[-2], axes.lengths[-1], block)
    items = tile_count(axes.lengths, rows, cols)
    grid = min(cores, items)
    parts = context.tensor((grid, 1), float32) if reduced else out
    arguments = {
        **{
            "x_ptr": x,
            "t_ptr": tensors["target"],
            "w_ptr": tensors.get("weight"),
            "p_ptr": tensors.get("pos_weight"),
        },
        **{"out_ptr": parts, "items": items},
        "scale": 1.0 / x.size if options["reduction"] == "mean" else 1.0,
        **{"ROWS": rows, "COLS": cols, "LENGTHS": axes.lengths, "REDUCED": reduced},
        "STRIDES": (strides["x"], strides.get("weight"), strides.get("pos_weight")),
        "multibuffer": knobs["buffers"],
    }
    steps = [Step(bce_loss, grid, arguments)]
    if reduced:
        steps.append(sum_partials_step(parts, out, 1, knobs["buffers"]))
    return Plan(tuple(steps), {"out": out}, {**knobs, "block": rows * cols, "cores": grid})


def formula(inputs: Arrays, options: Options) -> Arrays:
    """out in float64."""
    shape = inputs["x"].shape
    x, t = (inputs[n].reshape(-1) for n in ("x", "target"))
    weights = {n: np.broadcast_to(inputs[n], shape).reshape(-1) for n in WEIGHTS if n in inputs}
    loss: np.ndarray = np.empty(x.size)

    def one(start: int, stop: int) -> None:
        a, b = float64(x[start:stop]), float64(t[start:stop])
        rest = np.log1p(np.exp(-np.abs(a))) + np.maximum(-a, 0)
        if "pos_weight" in weights:
            rest *= 1 + (float64(weights["pos_weight"][start:stop]) - 1) * b
        found = (1 - b) * a + rest
        if "weight" in weights:
            found *= float64(weights["weight"][start:stop])
        loss[start:stop] = found

    in_chunks(x.size, CHUNK, one)
    if options["reduction"] == "none":
        return {"out": loss.reshape(shape)}
    if options["reduction"] == "sum":
        return {"out": np.asarray(loss.sum())}
    return {"out": np.asarray(loss.sum() / x.size if x.size else np.nan)}


DOC = """The loss of logits x and labels target, in the type of x.

It has the shape of x for reduction "none", and is one number for "mean" and "sum".

x, target: one shape, rank 0 to 8; weight, pos_weight: any shape that broadcasts to it; each float16, bfloat16 or
float32."""

OPERATOR = Operator(
    name=NAME,
    summary="binary cross-entropy on logits (aclnnBinaryCrossEntropyWithLogits)",
    required=("x", "target"),
    optional=WEIGHTS,
    main="x",
    outputs=("out",),
    sizes={n: help for n, help in GRADIENT.sizes.items() if n != "grad_output"},
    cases=read_cases(__file__, NAME),
    parameters=PARAMETERS,
    options=OPTIONS,
    arguments=(Argument("reduction", "str | int", "mean"),),
    doc=DOC,
    **by_name(describe, draw, check, plan, formula, explored, fits, bound_us),
)


bce_with_logits = python_face(OPERATOR, __name__)
