# mypy: disable-error-code="no-untyped-def"
"""Knobs and launches of the forward convolution: those of the gradient that makes the same image, and the bias.

The bias is what sums in L0C start from, by the bias table (BT), where y then leaves the Cube as rows of channels, which one
launch transposes; or Vector cores add it to sums in FP32. Either way y is rounded once.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.interpreter.tensors import Shape
from ...simulator.precision import dtypes as ty
from ...simulator.precision.cube_math import Resolution
from ...simulator.products import Product
from ..operator.declared import read_parameters
from ..operator.messages import listed, refuse
from ..operator.plan import Plan, PlanContext, Step
from ..operator.tensors import Knobs, Options, Tensor, Tensors, dtype_name, dtype_of
from .call import ConvolutionCall, Ints, TensorView
from .checks import forward_sizes
from .geometry import as_patches, geometry
from .plan import Maker
from .plan import resolution as gradient_resolution
from .tiling import PARAMETERS as KNOBS

NAME = "convolution"
NO_TENSOR = TensorView((), "")  # in the place of grad_output, until `as_gradient` has one
BIAS_TILE = 8192  # elements
TABLE_TYPES = ("float16", "float32")  # what the bias table takes (DOC Mmad)
# Up to so many one launch less is more than what FP32 sums take on their way through memory.
FEW_OUTPUTS = 1 << 22
PARAMETERS = (
    *(p for p in KNOBS if not p.name.startswith(("weight_", "combine"))),
    *read_parameters(__file__, NAME),
)


@sim.jit
def add_bias(y_ptr, bias_ptr, out_ptr, items, C, P, BC: tl.constexpr, BP: tl.constexpr):
    """out (N, C, P) = y (N, C, P) fp32 + bias (C,), in the type of out; tiles of BC channels and BP positions."""
    across, down = tl.cdiv(P, BP), tl.cdiv(C, BC)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        n = item // (across * down)
        c = item // across % down * BC + tl.arange(0, BC)
        p = item % across * BP + tl.arange(0, BP)
        inside = (c < C)[:, None] & (p < P)[None, :]
        at = n * C * P + c[:, None] * P + p[None, :]
        bias = tl.load(bias_ptr + c, mask=c < C, other=0.0).to(tl.float32)
        y = tl.load(y_ptr + at, mask=inside, other=0.0) + bias[:, None]
        tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), mask=inside)


def call_of(tensors: Tensors, options: Options) -> ConvolutionCall:
    """The forward as a call with the output y in the place of grad_output; attributes left out change nothing."""
    x, w = (TensorView(tuple(tensors[n].shape), dtype_name(tensors[n])) for n in ("input", "weight"))
    rank = len(x.shape) - 2
    given = {n: options[n] for n in ("stride", "padding", "dilation", "output_padding")}
    values: dict[str, Any] = {
        n: tuple(v) if v is not None else ((1,) if n in ("stride", "dilation") else (0,)) * rank
        for n, v in given.items()
    }
    transposed = options["transposed"] == "true"
    mask = (True, False, False)
    return ConvolutionCall(
        NO_TENSOR, x, w, output_mask=mask, transposed=transposed, groups=options["groups"], **values
    )


def out_channels(call: ConvolutionCall) -> int:
    return call.weight.shape[1] * call.groups if call.transposed else call.weight.shape[0]


def out_shape(call: ConvolutionCall) -> Ints:
    return (call.input.shape[0], out_channels(call), *forward_sizes(call))


def as_gradient(call: ConvolutionCall, dtype: str) -> ConvolutionCall:
    """The call of convolution_backward whose grad_input is y: x stands for grad_output, and plain for transposed."""
    y = TensorView(out_shape(call), dtype)
    return replace(call, grad_output=call.input, input=y, grad_input=y, transposed=not call.transposed)


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    """The launches of grad_input of the other convolution; the bias in its sums or after them."""
    maker, steps = made(tensors, options, knobs, context)
    tiling = {p.name: maker.tiling[p.name] for p in PARAMETERS}
    return Plan(steps, maker.outputs, tiling, maker.notes())


def begun(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> tuple[Maker, str]:
    """What makes y, and where it gets its bias: none, table or vector."""
    x, bias = tensors["input"], tensors.get("bias")
    call = as_gradient(call_of(tensors, options), dtype_name(x))
    shape = call.input.shape
    table = bias is not None and by_table(call, bias, knobs, context.product)
    how = "none" if bias is None else "table" if table else "vector"
    if how == "vector":
        call = as_gradient(call_of(tensors, options), "float32")
    stand_in = {"grad_output": x, "input": Shape(shape, dtype_of(x)), "weight": tensors["weight"]}
    given = {"grad_input": context.given["y"]} if "y" in context.given and how != "vector" else {}
    rest = {p.name: p.default for p in KNOBS}
    maker = Maker(stand_in, call, {**rest, **knobs}, replace(context, given=given), bias if table else None)
    maker.tiling["bias"] = how
    if how == "vector":
        maker.written = ty.float32
    return maker, how


def made(
    tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext
) -> tuple[Maker, tuple[Step, ...]]:
    """All launches of y."""
    maker, how = begun(tensors, options, knobs, context)
    y = maker.grad_input()
    if how != "vector":
        maker.outputs["y"] = y
        return maker, maker.steps
    out = maker.outputs["y"] = context.output("y", y.shape, dtype_of(tensors["input"]))
    return maker, (*maker.steps, bias_step(y, tensors["bias"], out, context.product))


def by_table(
    call: ConvolutionCall, bias: Tensor, knobs: Knobs, product: Product, refusing: bool = True
) -> bool:
    """Whether the bias of `as_gradient` goes through the table: what it takes, for sums each of which has a product."""
    if knobs["bias"] in ("vector", "none") or product.core_model != "split" or not product.bt_bytes:
        return False
    g = geometry(call)
    every = g.transposed or all(a.met == a.stride for a in g.axes)
    fits = dtype_name(bias) in TABLE_TYPES and every and knobs["strategy"] != "vendor"
    fits = fits and not as_patches(g, knobs["taps"], True)
    if knobs["bias"] != "table":
        return fits and prod(call.input.shape) > FEW_OUTPUTS
    if not fits and refusing:
        raise refuse(
            f"{NAME}: tiling bias=table takes a bias of {listed(TABLE_TYPES, 'or')}, taps for every position, no patches "
            f"and not strategy=vendor; here the bias is {dtype_name(bias)}; take bias=vector or auto"
        )
    return fits


def bias_step(y: Tensor, bias: Tensor, out: Tensor, product: Product) -> Step:
    """Launch that adds the bias to FP32 sums."""
    batch, channels, positions = y.shape[0], y.shape[1], prod(y.shape[2:])
    bp = min(positions, BIAS_TILE)
    bc = min(channels, max(1, BIAS_TILE // bp))
    items = batch * -(-channels // bc) * -(-positions // bp)
    arguments = {
        **{"y_ptr": y, "bias_ptr": bias, "out_ptr": out, "items": items, "C": channels, "P": positions},
        **{"BC": bc, "BP": bp, "multibuffer": 2},
    }
    return Step(add_bias, min(product.vector_cores, items), arguments)


def resolution(tensors: Tensors, product: Product, mode: str, terms: int = 0) -> Resolution:
    """As for the gradients of a convolution of these types."""
    x, w = tensors["input"], tensors["weight"]
    return gradient_resolution({"grad_output": x, "input": x, "weight": w}, product, mode, terms)
