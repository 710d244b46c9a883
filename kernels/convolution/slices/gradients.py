"""Gradients of a convolution of FP32 operands in slices (`precision/splits`), by the launches of narrower ones.

A sum over products of slices is one longer sum: for grad_input over as many times the channels of grad_output, for
grad_weight over as many times the batch. So slices are written side by side, once for each product that they are in, and
what multiplies them is a convolution of that many channels or samples, which leaves the Cube in FP32. Products of INT8
digits of one power of two are such a convolution, which leaves it in INT32. Each tensor has one scale, as positions and
channels are summed over. grad_bias is what it is in every mode.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....simulator.device import device
from ....simulator.interpreter.tensors import Shape
from ....simulator.precision import dtypes as ty
from ....simulator.precision.splits import Split
from ...operator.notes import split_words
from ...operator.plan import Plan, PlanContext
from ...operator.tensors import Knobs, Options, Tensor, Tensors, element_type, part_of
from ..call import RESULTS, ConvolutionCall, call_of
from ..plan import Maker
from .cutting import FIRST, PLAIN, SECOND, Cutter, Products, with_tiles

OTHER = {"grad_input": "weight", "grad_weight": "input"}  # what grad_output is multiplied with
OF_WEIGHT = ("weight_", "combine")  # knobs that only grad_weight has


def operands(
    result: str, tensors: Tensors, call: ConvolutionCall, cutter: Cutter, products: Products
) -> dict[str, Tensor]:
    """The tensors of the call that makes one sum of products of one result, those that are multiplied in slices."""
    dy, kind = tensors["grad_output"], element_type(cutter.split.slices)
    if result == "grad_weight":
        cut = {n: cutter.along(n, tensors[n], products, k, 0) for k, n in enumerate(("grad_output", "input"))}
        return {**cut, "weight": Shape(tensors["weight"].shape, kind)}
    weight = (
        (1, 1) if call.transposed else (0, call.groups)
    )  # its axis of channels of grad_output, groups in it
    return {
        "grad_output": cutter.along("grad_output", dy, products, FIRST, 1, call.groups),
        "weight": cutter.along("weight", tensors["weight"], products, SECOND, *weight),
        "input": Shape(tensors["input"].shape, kind),
    }


def one_result(
    result: str,
    tensors: Tensors,
    options: Options,
    knobs: Knobs,
    context: PlanContext,
    dtype: str = "float32",
) -> Maker:
    """What makes one result, of that type, of FP32 or INT32 sums of operands in slices."""
    call = call_of_result(result, tensors, options, dtype)
    with device(cube_math_type=PLAIN):
        maker = Maker(tensors, call, knobs, context)
    maker.written = ty.int32 if maker.compute == ty.int8 else ty.float32
    return maker


def call_of_result(result: str, tensors: Tensors, options: Options, dtype: str) -> ConvolutionCall:
    """The call that asks for that result only."""
    mask = tuple(int(n == result) for n in RESULTS)
    return call_of(tensors, {**options, "output_mask": mask, f"{result}_dtype": dtype, "bias_sizes": None})


def as_slices(tensors: Tensors, split: Split) -> dict[str, Tensor]:
    """Shapes of tensors in the format of slices, for what does not multiply."""
    return {n: Shape(x.shape, element_type(split.slices)) for n, x in tensors.items()}


def sliced_plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext, split: Split) -> Plan:
    """All launches of a checked call that is not empty."""
    call, cutter = call_of(tensors, options), Cutter(split, context)
    outputs: dict[str, Tensor] = {}
    tiling: dict[str, Any] = {}
    for result, wanted in zip(RESULTS, call.wants, strict=True):
        if wanted and result != "grad_bias":
            outputs[result], used = _made(result, tensors, call, options, knobs, cutter)
            tiling |= {n: x for n, x in used.items() if n not in tiling or n.startswith(OF_WEIGHT)}
    if call.wants[2]:
        outputs["grad_bias"], used = _bias(tensors, options, knobs, cutter)
        tiling = tiling or used
    return Plan(tuple(cutter.steps), outputs, tiling, (split_words(split),))


def _made(
    result: str, tensors: Tensors, call: ConvolutionCall, options: Options, knobs: Knobs, cutter: Cutter
) -> tuple[Tensor, dict[str, Any]]:
    """A result, by launches added to the cutter's; with the tiling of its first sum, which the others have, too."""
    scaled, view = cutter.split.top is not None, getattr(call, result)
    sums = cutter.sums(view.shape) if scaled else None
    tiling: dict[str, Any] = {}
    for number, products in enumerate(cutter.split.groups):
        cut = operands(result, tensors, call, cutter, products)
        given = cutter.context.given if sums is None else {result: part_of(sums, number)}
        maker = one_result(
            result,
            cut,
            options,
            with_tiles(knobs, tiling),
            replace(cutter.context, given=given),
            of_sums(result, call, cutter),
        )
        out: Tensor = getattr(maker, result)()
        cutter.steps += maker.steps
        tiling = tiling or maker.tiling
    return unscaled(result, call, cutter, out if sums is None else sums), tiling


def of_sums(result: str, call: ConvolutionCall, cutter: Cutter) -> str:
    """The type of the sums: that of the result, but what the Cube adds in where scales are still to be undone."""
    return str(getattr(call, result).dtype) if cutter.split.top is None else cutter.kind.name


def unscaled(result: str, call: ConvolutionCall, cutter: Cutter, sums: Tensor) -> Tensor:
    """The result of its sums, which have the scales of two tensors if the mode has any."""
    if cutter.split.top is None:
        return sums
    view = getattr(call, result)
    out = cutter.context.output(result, view.shape, element_type(view.dtype))
    cutter.whole("grad_output", OTHER[result], sums, out)
    return out


def _bias(tensors: Tensors, options: Options, knobs: Knobs, cutter: Cutter) -> tuple[Tensor, dict[str, Any]]:
    """grad_bias of the tensors as they are, which the Vector cores sum whatever the Cube multiplies."""
    maker = one_result("grad_bias", as_slices(tensors, cutter.split), options, knobs, cutter.context)
    maker.tensors, maker.call = tensors, call_of(tensors, options)
    out = maker.grad_bias()
    cutter.steps += maker.steps
    return out, maker.tiling
