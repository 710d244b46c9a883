# mypy: disable-error-code="no-untyped-def"
"""Cross-entropy of softmax: the mean loss over the rows, and its gradient by the scores.

With scores s and labels t of (rows, classes), each row of t with the sum 1, and p = softmax(s) by rows:

    loss = mean over rows of sum over classes of t (log(sum exp s) - s)        dscores = (p - t) / rows

All arithmetic is FP32. Every core adds the losses of its rows, a second launch adds the cores' sums in a fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.errors import UsageError
from ....simulator.precision.dtypes import float32
from ....simulator.products import Product
from ...operator.layout import up
from ...operator.parallel import float64
from ...operator.plan import Plan, PlanContext, Step
from ...operator.tensors import Arrays, Knobs, Options, Tensors, dtype_of
from ...shared.sums import row_sums, sum_partials_step
from .declaring import glue, same_shapes

NAME = "softmax_loss"
FP32_TILES = 7


@sim.jit
def softmax_loss_rows(
    scores_ptr, labels_ptr, parts_ptr, dscores_ptr, row_count, row_length, scale,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """Rows of ROWS in turn; the program's sum of losses goes to its element of parts. scale: 1 / row_count."""
    row, col = tl.arange(0, ROWS), tl.arange(0, COLS)
    total = tl.zeros((ROWS,), tl.float32)
    for first in range(tl.program_id(0) * ROWS, row_count, tl.num_programs(0) * ROWS):
        inside = (row < row_count - first)[:, None] & (col < row_length)[None, :]
        at = (first + row)[:, None] * row_length + col[None, :]
        s = tl.load(scores_ptr + at, mask=inside, other=-3e38).to(tl.float32)
        t = tl.load(labels_ptr + at, mask=inside, other=0.0).to(tl.float32)
        s = s - tl.max(s, axis=1)[:, None]
        odds = tl.exp(s)
        whole = row_sums(odds)
        total += row_sums(tl.where(inside, t * (tl.log(whole)[:, None] - s), 0.0))
        gradient = (odds / whole[:, None] - t) * scale
        tl.store(dscores_ptr + at, gradient.to(dscores_ptr.dtype.element_ty), mask=inside)
    tl.store(parts_ptr + tl.program_id(0), tl.sum(total, axis=0) * scale)


def check(tensors: Tensors, options: Mapping[str, Any], product: Product) -> tuple[str, ...]:
    """Two axes, one shape, rows that UB holds whole."""
    scores = tensors["scores"].shape
    if len(scores) != 2:
        raise UsageError(f"{NAME}: scores has shape {scores}; it must have 2 axes, rows and classes")
    most = product.ub_bytes // (4 * (FP32_TILES + 6))
    if scores[1] > most:
        raise UsageError(f"{NAME}: a row has {scores[1]} classes; {product.name} holds at most {most} in UB")
    return same_shapes(NAME)(tensors, options, product)


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    scores = tensors["scores"]
    (rows, cols), kind = scores.shape, dtype_of(scores)
    wide, cores = up(cols, 64), context.cores(knobs["cores"])
    each = wide * (3 * kind.itemsize * max(2, knobs["buffers"]) + 4 * FP32_TILES)
    block = max(
        1, min((knobs["block"] or context.ub_bytes) // (wide if knobs["block"] else each), -(-rows // cores))
    )
    grid = min(cores, -(-rows // block))
    outputs = {
        "loss": context.output("loss", (), kind),
        "dscores": context.output("dscores", scores.shape, kind),
    }
    parts = context.tensor((grid, 1), float32)
    arguments = {
        **{"scores_ptr": scores, "labels_ptr": tensors["labels"], "parts_ptr": parts},
        **{"dscores_ptr": outputs["dscores"], "row_count": rows, "row_length": cols, "scale": 1.0 / rows},
        **{"ROWS": block, "COLS": wide, "multibuffer": knobs["buffers"]},
    }
    steps = (
        Step(softmax_loss_rows, grid, arguments),
        sum_partials_step(parts, outputs["loss"], 1, knobs["buffers"]),
    )
    return Plan(steps, outputs, {**knobs, "block": block * wide, "cores": grid})


def formula(inputs: Arrays, options: Options) -> Arrays:
    """loss and dscores in float64."""
    s, t = (float64(inputs[n]) for n in ("scores", "labels"))
    s = s - s.max(axis=1, keepdims=True)
    odds = np.exp(s)
    whole = odds.sum(axis=1, keepdims=True)
    loss = np.asarray(np.sum(t * (np.log(whole) - s)) / len(s))
    return {"loss": loss, "dscores": (odds / whole - t) / len(s)}


SOFTMAX_LOSS = glue(
    NAME,
    "mean cross-entropy of softmax, and its gradient by the scores",
    ("scores", "labels"),
    ("loss", "dscores"),
    plan,
    formula,
    check,
)
