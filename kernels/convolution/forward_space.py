"""What to try for a forward convolution, which of it fits, and bounds: as for the gradient that makes the same image."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.products import Product
from ..operator.plan import PlanContext
from ..operator.tensors import Columns, Options, Tensors, dtype_name
from .bound import Subject, bounds_of
from .forward_launches import as_gradient, begun, by_table, call_of, made
from .space import axes_of, rules_of


def subject(tensors: Tensors, options: Options, product: Product) -> Subject:
    """The forward, as `bound.py` of the gradients takes it."""
    context = PlanContext(product, False)
    call = as_gradient(call_of(tensors, options), dtype_name(tensors["input"]))
    return Subject(
        call,
        lambda knobs: begun(tensors, options, knobs, context)[0],
        lambda knobs: made(tensors, options, knobs, context),
    )


def explored(tensors: Tensors, product: Product, options: Options) -> dict[str, tuple[Any, ...]]:
    """Axes: how taps are met, tiles, one launch or two, and where a bias is added."""
    what = subject(tensors, options, product)
    axes = {**axes_of(what), "launches": ("whole", "apart")}
    asked = {"bias": "table", "taps": "auto", "strategy": "auto"}
    if "bias" in tensors and by_table(what.call, tensors["bias"], asked, product, False):
        axes["bias"] = ("table", "vector")
    return axes


def fits(tensors: Tensors, product: Product, mode: str, points: Columns, options: Options) -> Columns:
    """Rule -> which points keep it: sums in L0C, and one copy of what is loaded in L1."""
    found = rules_of(lambda: subject(tensors, options, product), product, mode, points)
    return {rule.replace("grad_input", "y"): kept for rule, kept in found.items()}


def bound_us(tensors: Tensors, product: Product, mode: str, points: Columns, options: Options) -> np.ndarray:
    """Least time in us of each point, all launches of it."""
    return bounds_of(lambda: subject(tensors, options, product), product, mode, points)
