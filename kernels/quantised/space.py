"""Tilings of products of quantised numbers: what is worth trying, which can be, and the choice of one."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.products import Product
from ..operator.layout import up
from ..operator.plan import PlanContext, cores_of
from ..operator.tensors import Columns, Knobs
from .form import FLOAT, INT4, Form, Lengths
from .model import BAND, FRACTAL, NARROWEST, QuantisedWork

ROWS = (16, 32, 64, 96, 128, 192, 256)
COLUMNS = (32, 64, 128, 192, 256, 512)
DEPTHS = (32, 64, 128, 256, 512, 1024)
PARTS = (1, 2, 4, 5, 8, 16)
SHORTEST_PART = 256  # of a sum that is split
L1_KEPT = 4096  # bytes of L1 left to what the system keeps there
SLOTS = 2  # of a tile of weights on its way from UB to L1


def scalings(form: Form, out: str) -> tuple[str, ...]:
    """Who can scale: see the knob."""
    if not form.x8:
        return ("fused", "apart") if form.weight != FLOAT else ("fused",)
    able = not (form.group or form.tokens or form.bias == "after") and out in ("float16", "int8")
    return (("fixpipe",) if able else ()) + (("fused", "apart") if out != "int8" else ())


def axes(form: Form, n: Lengths, out: str) -> dict[str, tuple[Any, ...]]:
    """Values of each knob that are worth trying; products of several experts are one launch, with whole sums."""
    depths = tuple(d for d in DEPTHS if d < 2 * n.k and (not (form.x8 and form.group) or form.group % d == 0))
    parts = PARTS if out != "int8" else (1,)
    known = {
        "block_m": tuple(x for x in ROWS if x < max(n.rows) + FRACTAL) or (FRACTAL,),
        "block_n": tuple(x for x in COLUMNS if x < n.n + NARROWEST) or (NARROWEST,),
        "block_k": depths or (NARROWEST,),
        "split_k": tuple(s for s in parts if s == 1 or n.k // s >= max(SHORTEST_PART, form.group)),
        "scaling": scalings(form, out),
    }
    if n.counts:
        del known["split_k"]
    if form.weight == FLOAT:
        del known["scaling"]
    elif n.counts:
        known["scaling"] = tuple(s for s in known["scaling"] if s != "apart")
    return known


def rules(product: Product, form: Form, n: Lengths, points: Columns, room: float = 1.0) -> Columns:
    """Rule -> which points keep it. room: part of UB and L0C that may be counted on."""
    bm, bn, bk, copies = (points[x] for x in ("block_m", "block_n", "block_k", "buffers"))
    size = 1 if form.x8 else 2
    scaling = np.asarray(points.get("scaling", "fused"))
    apart, fixpipe = scaling == "apart", scaling == "fixpipe"
    fused = (not form.x8) & (form.weight != FLOAT) & ~apart
    weights = np.where(fused, SLOTS, copies) * bn * bk * size
    behind = form.x8 & ~apart & ~fixpipe & (points.get("split_k", 1) == 1)
    in_ub = np.where(fused, _weights_in_ub(form, bk, bn, copies), 0)
    in_ub = np.maximum(in_ub, np.where(behind | (form.x8 & (form.group > 0)), bm * bn * _sums_in_ub(form), 0))
    if product.core_model != "split":  # sums pass through UB
        in_ub = in_ub + bm * bn * 6
    halves = 2 if product.core_model == "split" else 1
    kept = {
        "a tile of weights has scales of one group": (form.group % bk == 0) | apart | (form.group == 0),
        "the accumulator fits in L0C": bm * bn * 4 <= product.l0c_bytes * room,
        "both operand tiles fit in L1": copies * bm * bk * size + weights <= product.l1_bytes - L1_KEPT,
        "tiles of the Vector cores fit in UB": in_ub / halves <= product.ub_bytes * room,
        "a row of scales fits in the fixpipe's buffer": ~fixpipe | (bn * 8 <= (product.fb_bytes or 1 << 30)),
        "sums that are split are scaled by a launch of their own": ~(
            fixpipe & (points.get("split_k", 1) > 1)
        ),
        "the launch of their own scales sums in any case": ~(
            form.x8 & (scaling == "fused") & (points.get("split_k", 1) > 1) & (form.group == 0)
        ),
    }
    return {rule: np.broadcast_to(x, bm.shape) for rule, x in kept.items()}


def _weights_in_ub(form: Form, bk: Any, bn: Any, copies: Any) -> Any:
    """Bytes of a tile of weights as it comes, as FLOAT16, as FP32 where it is BFLOAT16, and scaled, twice."""
    packed = 0.5 if form.weight == INT4 else 1.0
    return bk * bn * (packed * copies + 2 + 4 + 2 * SLOTS)


def _sums_in_ub(form: Form) -> int:
    """Bytes of an element of sums in UB: as int32, FP32 and rounded; and those of all groups."""
    return 16 if form.group else 12


def choose(
    op: str, form: Form, n: Lengths, out: str, written: int, knobs: Knobs, context: PlanContext
) -> dict[str, Any]:
    """Every knob: as given, else of the tilings that fit the one with the least rough time; the first of equals."""
    product = context.product
    cores = cores_of(product, "cube", knobs["cores"])
    known = axes(form, n, out)
    given = {x: (knobs[x],) if knobs.get(x) is not None else v for x, v in known.items()}
    given.setdefault("split_k", (1,))
    _check_scaling(op, form, out, knobs)
    grid = list(itertools.product(*given.values()))
    points = {x: np.array(v) for x, v in zip(given, zip(*grid, strict=True), strict=True)}
    points |= {
        "band": np.full(len(grid), knobs.get("band", BAND)),
        "buffers": np.full(len(grid), knobs["buffers"]),
        "cores": np.full(len(grid), cores),
    }
    kept = np.logical_and.reduce(list(rules(product, form, n, points, context.room).values()))
    rough = QuantisedWork(product, form, n, written, points).rough_us()
    best = int(np.argmin(np.where(kept, rough, np.inf) if kept.any() else rough))
    return {
        **knobs,
        **{x: v[best].item() for x, v in points.items() if x in given and x in knobs},
        "cores": cores,
    }


def _check_scaling(op: str, form: Form, out: str, knobs: Knobs) -> None:
    asked, able = knobs["scaling"], scalings(form, out)
    split = form.x8 and not form.group and (knobs.get("split_k") or 1) > 1
    if split and "apart" not in (able if asked is None else (asked,)):
        raise UsageError(
            f"{op}: split_k={knobs['split_k']} needs scaling=apart, a launch that adds and scales the parts, into "
            "float16 or bfloat16"
        )
    if asked is None or asked in able:
        return
    why = f"{form.name} into {out}"
    if asked == "fixpipe" and form.x8:
        why += ": the fixpipe has one scale for each column and no bias behind it, and makes float16 or int8"
    raise UsageError(f"{op}: scaling={asked} is not possible for {why}; take {' or '.join(able)}")


def depth_of(form: Form, block_k: int, k: int) -> int:
    """The depth that is used: no more than the sum is long, and a part of a group of scales."""
    depth = min(block_k, up(k, NARROWEST))
    if not form.group:
        return depth
    return next(d for d in range(min(depth, form.group), 0, -NARROWEST) if form.group % d == 0)
