"""Forward convolution in 1D, 2D and 3D, plain or transposed (aclnnConvolution): what convolution_backward takes.

    y[n, co, o] = bias[co] + sum over ci of its group and taps j of  x[n, ci, o*stride + j*dilation - padding] w[co, ci, j]

A plain forward makes the same image as the gradient of a transposed convolution with respect to its input, and the other way
round, so that the kernels are those of convolution_backward. The bias is added by the Vector cores to sums in FP32, which
are rounded once after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from ... import simulator as sim
from ...simulator.device import MATH_MODES, current_device
from ...simulator.interpreter.tensors import Shape
from ...simulator.precision.cube_math import cube_inputs_of
from ...simulator.precision.splits import SPLITS
from ...simulator.products import Product
from ..operator.draw import Draw
from ..operator.messages import check_dtype, check_same_dtype, listed, refuse
from ..operator.operator import Case, Operator, by_name
from ..operator.parallel import float64
from ..operator.plan import Plan, PlanContext
from ..operator.tensors import Arrays, Columns, Knobs, Options, Sizes, Tensor, Tensors, dims, dtype_name
from ..running.face import python_face
from .bound import Subject, bounds_of
from .call import ConvolutionCall, Ints, forward_arguments, forward_options
from .checks import forward_sizes, longest_sum
from .forward_launches import (
    NAME,
    PARAMETERS,
    as_gradient,
    begun,
    by_table,
    call_of,
    made,
    out_channels,
    resolution,
)
from .forward_launches import plan as plan_of_modes
from .geometry import geometry
from .op import OPERATOR as BACKWARD
from .reference import correlated, gradients
from .slices import space as of_slices
from .slices.forward import sliced_forward
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
    mode = current_device().cube_math_type
    if mode in SPLITS:
        return of_slices.explored(of_slices.forward_subjects, tensors, product, options, mode)
    what = subject(tensors, options, product)
    axes = {**axes_of(what), "launches": ("whole", "apart")}
    asked = {"bias": "table", "taps": "auto", "strategy": "auto"}
    if "bias" in tensors and by_table(what.call, tensors["bias"], asked, product, False):
        axes["bias"] = ("table", "vector")
    return axes


def fits(tensors: Tensors, product: Product, mode: str, points: Columns, options: Options) -> Columns:
    """Rule -> which points keep it: sums in L0C, and one copy of what is loaded in L1."""
    if mode in SPLITS:
        found = of_slices.fits(of_slices.forward_subjects, tensors, product, mode, points, options)
    else:
        found = rules_of(lambda: subject(tensors, options, product), product, mode, points)
    return {rule.replace("grad_input", "y"): kept for rule, kept in found.items()}


def bound_us(tensors: Tensors, product: Product, mode: str, points: Columns, options: Options) -> np.ndarray:
    """Least time in us of each point, all launches of it."""
    if mode in SPLITS:
        return of_slices.bound_us(of_slices.forward_subjects, tensors, product, mode, points, options)
    return bounds_of(lambda: subject(tensors, options, product), product, mode, points)


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    """The launches in a mode of the vendor's, or of operands in slices."""
    split = SPLITS.get(current_device().cube_math_type)
    if split is None:
        return plan_of_modes(tensors, options, knobs, context)
    return sliced_forward(tensors, options, knobs, context, split)


OPTIONS = forward_options("a transposed convolution", 1)


def describe(sizes: Sizes, dtype: str) -> dict[str, Shape]:
    """input (N, Cin, *S), weight (Cout, Cin/g, *k), bias (Cout,) if its size is given."""
    return {n: sim.shape(dims(sizes[n]), dtype) for n in ("input", "weight", "bias") if n in sizes}


def draw(shapes: Mapping[str, Shape], numbers: Draw) -> Arrays:
    """Noise, and a weight that keeps the size of what it is multiplied with."""
    reach = max(1, prod(shapes["weight"].shape[1:]))
    found: Arrays = {
        "input": numbers.signal("input", shapes["input"]),
        "weight": numbers.normal("weight", shapes["weight"], scale=2.0 ** -round(np.log2(reach) / 2)),
    }
    if "bias" in shapes:
        found["bias"] = numbers.normal("bias", shapes["bias"], scale=0.1)
    return found


def check(tensors: Tensors, options: Options, product: Product) -> tuple[str, ...]:
    """Types, ranks, numbers of values and their least, channels, sizes."""
    allowed = OPERATOR.dtypes_on(product)
    for n, t in tensors.items():
        check_dtype(NAME, n, t, allowed, product)
    check_same_dtype(NAME, tensors, "input", ("weight",))
    call = call_of(tensors, options)
    _check_ranks(call, product)
    _check_values(call)
    _check_channels(call, tensors.get("bias"))
    sizes = forward_sizes(call)
    if min(sizes) < 1:
        raise refuse(
            f"{NAME}: the output would have spatial sizes {sizes}; the padded input must hold the kernel"
        )
    _check_mode(tensors, product, longest_sum(as_gradient(call, "float32")))
    return ()


def _check_mode(tensors: Tensors, product: Product, terms: int) -> None:
    mode = current_device().cube_math_type
    found = resolution(tensors, product, mode, terms)
    if not found.ok:
        kind = dtype_name(tensors["input"])
        legal = [m for m in (*MATH_MODES, *SPLITS) if resolution(tensors, product, m, terms).ok]
        way = f"take cubeMathType {listed(legal, 'or')}" if legal else "take inputs of float16"
        raise refuse(f"{NAME}: cubeMathType {mode} with {kind} on {product.name}: {found.reason}; {way}")


def _check_ranks(call: ConvolutionCall, product: Product) -> None:
    x, w = call.input, call.weight
    if not 3 <= len(x.shape) <= 5 or len(w.shape) != len(x.shape):
        raise refuse(
            f"{NAME}: input has rank {len(x.shape)}, weight {len(w.shape)}; both must be 3 (L), 4 (H, W) or 5 (D, H, W)"
        )
    if call.spatial == 3 and "fp32" not in cube_inputs_of(product):
        raise refuse(f"{NAME}: input has 3 spatial axes; {product.name} takes 1 or 2")
    for n, view in (("input", x), ("weight", w)):
        if view.empty:
            raise refuse(f"{NAME}: {n} has shape {view.shape} and no elements; it must have some")


def _check_values(call: ConvolutionCall) -> None:
    n = call.spatial
    for name, least, lengths in (
        ("stride", 1, (n,)),
        ("padding", 0, (2, 4) if n == 2 else (n,)),
        ("dilation", 1, (n,)),
        ("output_padding", 0, (n,)),
    ):
        given: Ints = getattr(call, name)
        if len(given) not in lengths or min(given) < least:
            raise refuse(
                f"{NAME}: {name} is {given}; it must be {' or '.join(map(str, lengths))} values of at least {least}"
            )
    if any(call.output_padding) and not call.transposed:
        raise refuse(f"{NAME}: output_padding is {call.output_padding}; without transposed it must be 0")


def _check_channels(call: ConvolutionCall, bias: Tensor | None) -> None:
    x, w, g = call.input.shape[1], call.weight.shape, call.groups
    want = w[0] if call.transposed else w[1] * g
    if x != want or w[0] % g:
        rule = "the first axis of weight" if call.transposed else f"{w[1]} of weight times groups {g}"
        raise refuse(
            f"{NAME}: input has {x} channels, {rule} is {want}; they must be equal, and groups must divide {w[0]}"
        )
    if bias is not None and tuple(bias.shape) != (out_channels(call),):
        raise refuse(f"{NAME}: bias has shape {tuple(bias.shape)}; it must be ({out_channels(call)},)")


def formula(inputs: Arrays, options: Options) -> Arrays:
    """y in float64."""
    call = as_gradient(call_of(inputs, options), "float32")
    g = geometry(call)
    shape = (g.groups, g.narrow_channels, g.wide_channels, *(a.taps for a in g.axes))
    weight = float64(inputs["weight"]).reshape(shape)
    if g.transposed:
        y: np.ndarray = correlated(g, inputs["input"].reshape(g.batch, -1, *g.wide_sizes), weight)
    else:
        narrow = inputs["input"].reshape(g.batch, -1, *g.narrow_sizes)
        wide = np.broadcast_to(0.0, (g.batch, g.groups * g.wide_channels, *g.wide_sizes))
        y = gradients(g, narrow, wide, weight, True, False)[0]  # type: ignore[assignment]
    y = y.reshape(call.input.shape)
    return {"y": y + float64(inputs["bias"]).reshape(-1, *(1,) * call.spatial) if "bias" in inputs else y}


def _case(case: Case) -> Case:
    """The forward of a layer of which convolution_backward has the gradients."""
    sizes = {n: case.sizes[n] for n in ("input", "weight")}
    mask = case.options.get("output_mask", (1, 1, 1))
    given = {n: v for n, v in case.options.items() if n != "output_mask"}
    if mask[2]:
        sizes["bias"] = (dims(case.sizes["grad_output"])[1],)
    return Case(case.name, case.title, sizes, case.source, given)


DOC = """y (N, Cout, *O) of a convolution, in the type of input.

input (N, Cin, *S), weight (Cout, Cin/groups, *k), transposed (Cin, Cout/groups, *k), with 1, 2 or 3 spatial axes, of one
type of float16, bfloat16 or float32; bias (Cout,) of any of them. Arguments as torch.ops.aten.convolution has them; one
number stands for all axes; padding of 4 numbers in 2D is top, bottom, left, right."""

OPERATOR = Operator(
    name=NAME,
    summary="convolution on the Cube in every cubeMathType, plain or transposed (aclnnConvolution)",
    required=("input", "weight"),
    optional=("bias",),
    main="input",
    outputs=("y",),
    sizes={
        "input": "shape of the input, N C L, N C H W or N C D H W",
        "weight": "shape of the weight",
        "bias": "number of channels of the output, if there is a bias",
    },
    cases={n: _case(c) for n, c in BACKWARD.cases.items()},
    parameters=PARAMETERS,
    options=OPTIONS,
    arguments=forward_arguments(NAME),
    doc=DOC,
    **by_name(describe, draw, check, plan, formula, explored, fits, bound_us),
    uses_cube=True,
    resolve=resolution,
    order_knobs=("accumulate",),
    sliced={"input": (0, None), "weight": (1, None)},
    scaled="input",
)


convolution = python_face(OPERATOR, __name__)
