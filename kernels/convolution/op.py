"""Gradients of 1D, 2D and 3D convolution (aclnnConvolutionBackward): of input, weight and bias.

With y the output of the forward convolution (see `geometry.py` for transposed ones):

    dx[n, ci, i] = sum over co of its group and o, j with o*stride + j*dilation - padding = i  of dy[n, co, o] w[co, ci, j]
    dw[co, ci, j] = sum over n, o  of dy[n, co, o] x[n, ci, o*stride + j*dilation - padding];  db[co] = sum of dy[n, co, o]

dx and dw are matrix products on the Cube, of shifted images; the Vector cores change layouts before and after, and sum db.
cubeMathType says what the Cube multiplies (`simulator/precision/cube_math.py`). checks.py has the host's checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from ... import simulator as sim
from ...simulator.device import current_device
from ...simulator.errors import UsageError
from ...simulator.interpreter.tensors import Shape
from ...simulator.precision.splits import SPLITS
from ...simulator.products import Product
from ..operator.beyond import Beyond
from ..operator.declared import read_cases
from ..operator.draw import Draw
from ..operator.operator import Operator, by_name
from ..operator.parallel import float64, in_chunks
from ..operator.parameter import Argument, choice, dtype_argument, flags, integers
from ..operator.plan import Plan, PlanContext
from ..operator.tensors import Arrays, Columns, Knobs, Options, Sizes, Tensors, dims, dtype_of
from ..running.face import python_face
from .bound import bound_us as bound_of_modes
from .call import INPUTS, call_of, forward_arguments, forward_options
from .checks import check_call, is_empty
from .geometry import Geometry, geometry
from .plan import plan as plan_of_modes
from .plan import resolution
from .reference import correlated, gradients, weigh
from .slices import space as of_slices
from .slices.gradients import sliced_plan
from .space import explored as explored_of_modes
from .space import fits as fits_of_modes
from .tiling import PARAMETERS

NAME = "convolution_backward"
TYPES = ("auto", "float16", "bfloat16", "float32")
OPTIONS = (
    *forward_options("the forward was a transposed convolution", None),
    integers("output_mask", (1, 1, 1), None, "1 or 0 for grad_input, grad_weight, grad_bias"),
    integers("bias_sizes", None, None, "shape of the bias, its channels; only an empty input needs it"),
    choice("grad_input_dtype", "auto", TYPES, "type of grad_input; auto is that of input"),
    choice("grad_weight_dtype", "auto", TYPES, "type of grad_weight; auto is that of weight"),
    choice("grad_bias_dtype", "auto", TYPES, "type of grad_bias; auto is that of grad_output"),
)


def describe(sizes: Sizes, dtype: str) -> dict[str, Shape]:
    """grad_output (N, Cout, *O), input (N, Cin, *S), weight (Cout, Cin/g, *k)."""
    return {n: sim.shape(dims(sizes[n]), dtype) for n in INPUTS}


def draw(shapes: Mapping[str, Shape], numbers: Draw) -> Arrays:
    """Noise for gradients and input; a weight that keeps the size of what it is multiplied with."""
    found = {n: numbers.signal(n, shapes[n]) for n in ("grad_output", "input")}
    w = shapes["weight"]
    reach = max(1, prod(w.shape[1:]))
    return {**found, "weight": numbers.normal("weight", w, scale=2.0 ** -round(np.log2(reach) / 2))}


def check(tensors: Tensors, options: Options, product: Product) -> tuple[str, ...]:
    """The host's checks in their order; gives warnings."""
    _readable(tensors, options)
    return check_call(call_of(tensors, options), product, current_device().cube_math_type)


def _readable(tensors: Tensors, options: Options) -> None:
    odd = [x for x in options["output_mask"] if x not in (0, 1)]
    if odd:
        raise UsageError(
            f"convolution_backward: output_mask is {options['output_mask']}, its values must be 0 or 1"
        )


def host_bytes(tensors: Tensors) -> int:
    """Each input as stored, as rows in float32 and in float64, and its gradient likewise."""
    return sum(x.size * (2 * dtype_of(x).itemsize + 16) for x in tensors.values())


def formula(inputs: Arrays, options: Options) -> Arrays:
    """The gradients that the mask asks for, in float64."""
    call = call_of(inputs, options)
    if is_empty(call):
        names = ("grad_input", "grad_weight", "grad_bias")
        views = [(n, getattr(call, n)) for n in names]
        return {n: np.zeros(v.shape) for n, v in views if v is not None}
    g = geometry(call)
    found = _products(g, inputs, call.wants)
    if call.wants[2]:
        found["grad_bias"] = _bias(inputs["grad_output"])
    return found


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    """The launches in a mode of the vendor's, or of operands in slices."""
    split = SPLITS.get(current_device().cube_math_type)
    if split is None or is_empty(call_of(tensors, options)):
        return plan_of_modes(tensors, options, knobs, context)
    return sliced_plan(tensors, options, knobs, context, split)


def explored(tensors: Tensors, product: Product, options: Options) -> dict[str, tuple[Any, ...]]:
    """Axes of the space of tilings in the mode of the device."""
    mode = current_device().cube_math_type
    if mode in SPLITS:
        return of_slices.explored(of_slices.gradient_subjects, tensors, product, options, mode)
    return explored_of_modes(tensors, product, options)


def fits(tensors: Tensors, product: Product, mode: str, points: Columns, options: Options) -> Columns:
    """Rule -> which points keep it."""
    if mode in SPLITS:
        return of_slices.fits(of_slices.gradient_subjects, tensors, product, mode, points, options)
    return fits_of_modes(tensors, product, mode, points, options)


def bound_us(tensors: Tensors, product: Product, mode: str, points: Columns, options: Options) -> np.ndarray:
    """Least time in us of each point."""
    if mode in SPLITS:
        return of_slices.bound_us(of_slices.gradient_subjects, tensors, product, mode, points, options)
    return bound_of_modes(tensors, product, mode, points, options)


def bias_gradient(inputs: Arrays, options: Options) -> Arrays:
    """grad_bias in float64, if the mask asks for it: the sum on the Vector cores knows no cubeMathType."""
    wanted = options["output_mask"][2] and not is_empty(call_of(inputs, options))
    return {"grad_bias": _bias(inputs["grad_output"])} if wanted else {}


def _products(g: Geometry, inputs: Arrays, wants: tuple[bool, bool, bool]) -> Arrays:
    wide, narrow = inputs["input"], inputs["grad_output"]
    if g.transposed:
        wide, narrow = narrow, wide
    images = [x.reshape(g.batch, -1, *s) for x, s in ((wide, g.wide_sizes), (narrow, g.narrow_sizes))]
    shape = (g.groups, g.narrow_channels, g.wide_channels, *(a.taps for a in g.axes))
    weight = float64(inputs["weight"]).reshape(shape)
    out: Arrays = {}
    if g.transposed:
        dx = correlated(g, images[0], weight) if wants[0] else None
        dw = weigh(g, images[1], images[0]) if wants[1] else None
    else:
        dx, dw = gradients(g, images[1], images[0], weight, wants[0], wants[1])
    if dx is not None:
        out["grad_input"] = dx.reshape(inputs["input"].shape)
    if dw is not None:
        out["grad_weight"] = dw.reshape(inputs["weight"].shape)
    return out


def _bias(dy: np.ndarray) -> np.ndarray:
    rows = dy.reshape(dy.shape[0], dy.shape[1], -1)
    parts = in_chunks(
        len(rows), max(1, (1 << 20) // rows[0].size), lambda a, b: float64(rows[a:b]).sum(axis=(0, 2))
    )
    return np.sum(parts, axis=0)  # type: ignore[no-any-return]


DOC = """grad_input, grad_weight and grad_bias of a convolution, on a product.

grad_output (N, Cout, *O), input (N, Cin, *S), weight (Cout, Cin/groups, *k), transposed (Cin, Cout/groups, *k), with 1,
2 or 3 spatial axes; each float16, bfloat16 or float32. Arguments as torch.ops.aten.convolution_backward has them; one
number stands for all axes; padding of 4 numbers in 2D is top, bottom, left, right. output_padding has an effect only
with transposed; bias_sizes may be left out. Types of results are those of input, weight and grad_output unless given,
and may be any of the three: aclnnConvolutionBackward takes only the higher type of input (weight) and grad_output, and
that of grad_output; like `grad_input_dtype`, results of any strides and float type in `out` go beyond the document.
Raises `RefusedError` with the status of the host's checks.

Beyond the operator's document: the Atlas A3 series, which newer ones have. `notes` of the result say so."""

OPERATOR = Operator(
    name=NAME,
    summary="gradients of convolution on the Cube in every cubeMathType (aclnnConvolutionBackward)",
    required=INPUTS,
    main="input",
    outputs=("grad_input", "grad_weight", "grad_bias"),
    sizes={
        "input": "shape of the forward's input, N C L, N C H W or N C D H W",
        "weight": "shape of the weight",
        "grad_output": "shape of the gradient of the forward's output",
    },
    cases=read_cases(__file__, NAME),
    parameters=PARAMETERS,
    options=OPTIONS,
    arguments=(
        Argument("bias_sizes", "Sequence[int] | None", None),
        *forward_arguments(NAME),
        Argument(
            "output_mask",
            "Sequence[bool]",
            (True, True, True),
            lambda given, inputs: {"output_mask": flags(NAME, "output_mask", given)},
        ),
        *(dtype_argument(n) for n in ("grad_input_dtype", "grad_weight_dtype", "grad_bias_dtype")),
    ),
    doc=DOC,
    **by_name(describe, draw, check, plan, formula, host_bytes, explored, fits, bound_us),
    empty=True,
    uses_cube=True,
    resolve=resolution,
    beside_cube=bias_gradient,
    order_knobs=("weight_parts", "accumulate"),
    sliced={"grad_output": (0, None), "input": (1, None), "weight": (1, None)},
    scaled="grad_output",
    whole="grad_weight and grad_bias sum over all samples and positions",
    beyond=Beyond(a3=True),
)


convolution_backward = python_face(OPERATOR, __name__)
