"""Tensors whose axes change places, and tensors in another type: launches that copy, and compute nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....simulator.errors import UsageError
from ....simulator.products import Product
from ...operator.parallel import float64
from ...operator.parameter import choice, integers
from ...operator.plan import Plan, PlanContext
from ...operator.tensors import Arrays, Knobs, Options, Tensors, dtype_of, element_type
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


def plan_cast(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    x = tensors["x"]
    out = context.output("out", x.shape, element_type(options["to"]))
    step = cast_step(x, out, context.cores(knobs["cores"]), knobs["buffers"])
    return Plan((step,), {"out": out}, {**knobs, "block": step.arguments["BLOCK"], "cores": step.grid})


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
CAST = glue(
    "cast",
    "x in another type, on the Vector units",
    ("x",),
    ("out",),
    plan_cast,
    lambda inputs, options: {"out": float64(inputs["x"])},
    lambda tensors, given, product: (),
    (choice("to", "float32", ("float16", "bfloat16", "float32", "int8"), "type of out"),),
)
