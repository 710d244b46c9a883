"""Tensors whose axes change places, and tensors in another type: launches that copy, and compute nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from ....simulator.errors import UsageError
from ....simulator.precision.dtypes import DType
from ....simulator.products import Product
from ...operator.operator import Operator
from ...operator.parallel import float64
from ...operator.parameter import integers
from ...operator.plan import Plan, PlanContext
from ...operator.tensors import Arrays, Knobs, Options, Tensors, dtype_of
from ...running.strided_copies import permuted_copy_step
from ...shared.casts import cast_step
from .declaring import glue


def _axes(given: Mapping[str, Any], rank: int) -> tuple[int, ...]:
    """The axes asked for; without, the last two change places."""
    return given["axes"] or (*range(rank - 2), rank - 1, rank - 2)


def check_axes(tensors: Tensors, given: Mapping[str, Any], product: Product) -> tuple[str, ...]:
    shape = tensors["x"].shape
    axes = _axes(given, len(shape))
    if sorted(axes) != list(range(len(shape))) or len(shape) < 2:
        raise UsageError(f"permute: axes {axes} of x {shape}; they must be every axis of x once, 2 at least")
    return ()


def plan_permute(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    x = tensors["x"]
    axes = _axes(options, len(x.shape))
    out = context.output("out", tuple(x.shape[a] for a in axes), dtype_of(x))
    step = permuted_copy_step(x, axes, out, context.product)
    return Plan((step,), {"out": out}, {n: None for n in knobs})


def permuted(inputs: Arrays, options: Options) -> Arrays:
    x = float64(inputs["x"])
    return {"out": np.ascontiguousarray(np.transpose(x, _axes(options, x.ndim)))}


@lru_cache(maxsize=256)
def cast_to(dtype: DType) -> Operator:
    """The operator that brings a tensor into an element type, which may be any number format."""

    def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
        x = tensors["x"]
        out = context.output("out", x.shape, dtype)
        step = cast_step(x, out, context.cores(knobs["cores"]), knobs["buffers"])
        return Plan((step,), {"out": out}, {**knobs, "block": step.arguments["BLOCK"], "cores": step.grid})

    def formula(inputs: Arrays, options: Options) -> Arrays:
        return {"out": float64(inputs["x"])}

    return glue(f"cast to {dtype}", "x in another type", ("x",), ("out",), plan, formula, lambda *_: ())


PERMUTE = glue(
    "permute",
    "x with its axes in another order",
    ("x",),
    ("out",),
    plan_permute,
    permuted,
    check_axes,
    (integers("axes", (), 0, "axes of x in their new order; the last two change places if left out"),),
)
