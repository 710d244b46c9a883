# mypy: disable-error-code="no-untyped-def"
"""Activations and sums, element by element: arithmetic in FP32, rounded once when a result is stored.

relu(x) = max(x, 0)                                    relu_backward(dy, y) = dy where y > 0, else 0
gelu(x) = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))     the approximation of arXiv 1606.08415, section 2
swiglu(gate, up) = gate / (1 + exp(-gate)) up          arXiv 2002.05202, equation 6
scaled_add(a, b) = a + scale b                         a step of gradient descent with scale = -rate
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .... import simulator as sim
from ....simulator import language as tl
from ...operator.operator import Operator
from ...operator.parallel import float64
from ...operator.parameter import Parameter
from ...operator.plan import Plan, PlanContext, Step
from ...operator.tensors import Arrays, Knobs, Options, Tensors, dtype_of
from .declaring import block_of, glue, same_shapes

TANH_SCALE, TANH_CUBE = 0.7978845608028654, 0.044715  # sqrt(2 / pi); of gelu
FP32_TILES = 5  # that an activation has alive at once, at most


@sim.jit
def relu_tiles(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, tl.maximum(x, 0.0).to(out_ptr.dtype.element_ty), mask=at < n)


@sim.jit
def relu_backward_tiles(dy_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        dy = tl.load(dy_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        y = tl.load(y_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, tl.where(y > 0.0, dy, 0.0).to(out_ptr.dtype.element_ty), mask=at < n)


@sim.jit
def gelu_tiles(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        # x / 2 (1 + tanh u) = x / (1 + exp(-2 u))
        y = x / (1.0 + tl.exp(-2.0 * inner))
        tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), mask=at < n)


@sim.jit
def swiglu_tiles(gate_ptr, up_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        gate = tl.load(gate_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        up = tl.load(up_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        y = gate / (1.0 + tl.exp(-gate)) * up
        tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), mask=at < n)


@sim.jit
def scaled_add_tiles(a_ptr, b_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(out_ptr + at, (a + scale * b).to(out_ptr.dtype.element_ty), mask=at < n)


def _declared(
    name: str,
    summary: str,
    kernel: Any,
    inputs: tuple[str, ...],
    value: Callable[..., np.ndarray],
    options: tuple[Parameter, ...] = (),
) -> Operator:
    """value: of the inputs in float64, in their order, and of the options by name."""

    def plan(tensors: Tensors, given: Options, knobs: Knobs, context: PlanContext) -> Plan:
        first = tensors[inputs[0]]
        out = context.output("out", first.shape, dtype_of(first))
        cores = context.cores(knobs["cores"])
        each = (len(inputs) + 1) * dtype_of(first).itemsize * max(2, knobs["buffers"]) + 4 * FP32_TILES
        block = block_of(first.size, each, knobs, cores, context)
        grid = min(cores, -(-first.size // block))
        pointers = {f"{n}_ptr": x for n, x in (*tensors.items(), ("out", out))}
        rest = {"n": first.size, "BLOCK": block, "multibuffer": knobs["buffers"]}
        step = Step(kernel, grid, {**pointers, **given, **rest})
        return Plan((step,), {"out": out}, {**knobs, "block": block, "cores": grid})

    def formula(arrays: Arrays, given: Options) -> Arrays:
        with np.errstate(all="ignore"):
            return {"out": value(*(float64(arrays[n]) for n in inputs), **given)}

    return glue(name, summary, inputs, ("out",), plan, formula, same_shapes(name), options)


def _gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1.0 + np.tanh(TANH_SCALE * (x + TANH_CUBE * x**3)))


RELU = _declared("relu", "max(x, 0)", relu_tiles, ("x",), lambda x: np.maximum(x, 0.0))
RELU_BACKWARD = _declared(
    "relu_backward",
    "gradient of relu by its result",
    relu_backward_tiles,
    ("dy", "y"),
    lambda dy, y: np.where(y > 0.0, dy, 0.0),
)
GELU = _declared("gelu", "gelu by its tanh approximation", gelu_tiles, ("x",), _gelu)
SWIGLU = _declared(
    "swiglu",
    "gate sigmoid(gate) up",
    swiglu_tiles,
    ("gate", "up"),
    lambda gate, up: gate / (1.0 + np.exp(-gate)) * up,
)
SCALED_ADD = _declared(
    "scaled_add",
    "a + scale b",
    scaled_add_tiles,
    ("a", "b"),
    lambda a, b, scale: a + scale * b,
    (Parameter("scale", "float", 1.0, help="factor of b"),),
)
