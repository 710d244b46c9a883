"""The forward convolution of FP32 operands in slices: a narrower one of as many times the channels, then scales and bias."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....simulator.device import device
from ....simulator.interpreter.tensors import Shape
from ....simulator.precision import dtypes as ty
from ....simulator.precision.splits import Split
from ...operator.notes import split_words
from ...operator.plan import Plan, PlanContext
from ...operator.tensors import Knobs, Options, Tensor, Tensors, dtype_of, part_of
from ..call import ConvolutionCall
from ..forward_launches import PARAMETERS, as_gradient, bias_step, call_of, out_shape
from ..plan import Maker
from ..tiling import PARAMETERS as KNOBS
from .cutting import FIRST, PLAIN, SECOND, Cutter, Products, with_tiles


def operands(
    tensors: Tensors, call: ConvolutionCall, cutter: Cutter, products: Products
) -> dict[str, Tensor]:
    """Input and weight in slices, along the channels that are summed over."""
    weight = (0, call.groups) if call.transposed else (1, 1)
    return {
        "input": cutter.along("input", tensors["input"], products, FIRST, 1, call.groups),
        "weight": cutter.along("weight", tensors["weight"], products, SECOND, *weight),
    }


def image(cut: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Maker:
    """What makes y without its bias, in FP32."""
    kind = ty.int32 if dtype_of(cut["input"]) == ty.int8 else ty.float32
    call = as_gradient(call_of(cut, options), kind.name)
    y = Shape(call.input.shape, dtype_of(cut["input"]))
    tensors = {"grad_output": cut["input"], "input": y, "weight": cut["weight"]}
    with device(cube_math_type=PLAIN):
        maker = Maker(tensors, call, {**{p.name: p.default for p in KNOBS}, **knobs}, context)
    maker.written = kind
    return maker


def sliced_forward(
    tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext, split: Split
) -> Plan:
    """All launches of a checked call."""
    cutter, bias = Cutter(split, context), tensors.get("bias")
    y, used = _sums(tensors, options, knobs, cutter, bias is None)
    y = finished(y, bias, cutter)
    used["bias"] = "none" if bias is None else "vector"
    tiling = {p.name: used[p.name] for p in PARAMETERS}
    return Plan(tuple(cutter.steps), {"y": y}, tiling, (split_words(split),))


def _sums(
    tensors: Tensors, options: Options, knobs: Knobs, cutter: Cutter, last: bool
) -> tuple[Tensor, dict[str, Any]]:
    """y with its scales, of each accumulator if the mode has any, and the tiling. last: nothing is added to y."""
    call, context, scaled = call_of(tensors, options), cutter.context, cutter.split.top is not None
    sums = cutter.sums(out_shape(call)) if scaled else None
    tiling: dict[str, Any] = {}
    whole = {"grad_input": context.given["y"]} if last and "y" in context.given else {}
    for number, products in enumerate(cutter.split.groups):
        cut = operands(tensors, call, cutter, products)
        given = whole if sums is None else {"grad_input": part_of(sums, number)}
        maker = image(cut, options, with_tiles(knobs, tiling), replace(context, given=given))
        y = maker.grad_input()
        cutter.steps += maker.steps
        tiling = tiling or maker.tiling
    return y if sums is None else sums, tiling


def finished(y: Tensor, bias: Tensor | None, cutter: Cutter) -> Tensor:
    """y of its sums: without scales, and with the bias added by the Vector cores."""
    context, kind = cutter.context, ty.float32
    if cutter.split.top is not None:
        sums, shape = y, tuple(y.shape[1:])
        y = context.output("y", shape, kind) if bias is None else context.tensor(shape, kind)
        cutter.whole("input", "weight", sums, y)
    if bias is None:
        return y
    out = context.output("y", y.shape, kind)
    cutter.steps.append(bias_step(y, bias, out, context.product))
    return out
