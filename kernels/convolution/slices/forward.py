"""The forward convolution of FP32 operands in slices: a 16-bit one of as many times the channels, then scales and bias."""

from __future__ import annotations

from dataclasses import replace

from ....simulator.device import device
from ....simulator.interpreter.tensors import Shape
from ....simulator.precision import dtypes as ty
from ....simulator.precision.splits import Split
from ...operator.notes import split_words
from ...operator.plan import Plan, PlanContext
from ...operator.tensors import Knobs, Options, Tensor, Tensors, dtype_of
from ..call import ConvolutionCall
from ..forward_launches import PARAMETERS, as_gradient, bias_step, call_of
from ..plan import Maker
from ..tiling import PARAMETERS as KNOBS
from .cutting import FIRST, PLAIN, SECOND, Cutter


def operands(tensors: Tensors, call: ConvolutionCall, cutter: Cutter) -> dict[str, Tensor]:
    """Input and weight in slices, along the channels that are summed over."""
    weight = (0, call.groups) if call.transposed else (1, 1)
    return {
        "input": cutter.along("input", tensors["input"], FIRST, 1, call.groups),
        "weight": cutter.along("weight", tensors["weight"], SECOND, *weight),
    }


def image(cut: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Maker:
    """What makes y without its bias, in FP32."""
    call = as_gradient(call_of(cut, options), "float32")
    y = Shape(call.input.shape, dtype_of(cut["input"]))
    tensors = {"grad_output": cut["input"], "input": y, "weight": cut["weight"]}
    with device(cube_math_type=PLAIN):
        maker = Maker(tensors, call, {**{p.name: p.default for p in KNOBS}, **knobs}, context)
    maker.written = ty.float32
    return maker


def sliced_forward(
    tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext, split: Split
) -> Plan:
    """All launches of a checked call."""
    cutter, bias = Cutter(split, context), tensors.get("bias")
    cut = operands(tensors, call_of(tensors, options), cutter)
    last = bias is None and split.top is None and "y" in context.given
    given = {"grad_input": context.given["y"]} if last else {}
    maker = image(cut, options, knobs, replace(context, given=given))
    y = maker.grad_input()
    cutter.steps += maker.steps
    y = finished(y, bias, cutter)
    maker.tiling["bias"] = "none" if bias is None else "vector"
    tiling = {p.name: maker.tiling[p.name] for p in PARAMETERS}
    return Plan(tuple(cutter.steps), {"y": y}, tiling, (split_words(split),))


def finished(y: Tensor, bias: Tensor | None, cutter: Cutter) -> Tensor:
    """y of its sums: without scales, and with the bias added by the Vector cores."""
    context, kind = cutter.context, ty.float32
    if cutter.split.top is not None:
        sums, y = y, context.output("y", y.shape, kind) if bias is None else context.tensor(y.shape, kind)
        cutter.whole("input", "weight", sums, y)
    if bias is None:
        return y
    out = context.output("y", y.shape, kind)
    cutter.steps.append(bias_step(y, bias, out, context.product))
    return out
