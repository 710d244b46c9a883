"""BatchNormReduceBackward: the sums of batch norm's gradient per channel (aclnnBatchNormReduceBackward).

With x and dy as (N, C, S), mean and invstd (C,):

    sum_dy = grad_bias = sum(dy over N and S);  sum_dy_xmu = sum(dy * (x - mean));  grad_weight = sum_dy_xmu * invstd

Sums, not means: training over several devices adds the first two up before they are divided. All arithmetic is FP32.
form centred subtracts the mean before it multiplies; uncentred forms sum(dy * x) - mean * sum(dy) at the end, as the
vendor's chain of kernels does, and loses digits where the mean is large beside the spread.

Strategies: channel_split gives every core channels of its own; batch_split gives every core a part of N and S, hybrid a
part of both, and then parts are combined (two_phase: a second launch in fixed order; atomic). columns is for S = 1. cube
multiplies on the Cube, in the format that cube_math_type says, and has the uncentred form only. vendor is the chain of
launches of the vendor's library. `sums`: how a core adds: lanes (one accumulator per element of a tile, reduced once), tile
(every tile is reduced at once), kahan (lanes with compensation).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .... import simulator as sim
from ....simulator.interpreter.tensors import Shape
from ....simulator.messages import fault
from ....simulator.precision import dtypes as ty
from ....simulator.precision.cube_math import Resolution
from ....simulator.products import Product
from ...operator.beyond import Beyond
from ...operator.declared import read_cases, read_parameters
from ...operator.draw import Draw
from ...operator.messages import check_dtype, refuse
from ...operator.operator import OnCube, Operator, by_name, offered_on
from ...operator.parallel import float64, in_chunks
from ...operator.parameter import Argument, flag_argument
from ...operator.plan import Made, Plan, PlanContext
from ...operator.tensors import (
    DTYPE_NAMES,
    Arrays,
    Knobs,
    Options,
    Sizes,
    Tensors,
    dims,
    dtype_name,
    dtype_of,
    element_type,
)
from ...running.face import python_face
from ...shared.sums import zero_fill_step
from ..column_products import resolution
from ..planes import Planes
from .choice import ChannelTensors, choose, fastest_cycles, sum_steps
from .cube import choose_cube, cube_cycles, cube_steps, resolved
from .space import bound_us, explored, fits
from .vendor import vendor_steps

NAME = "batch_norm_reduce_backward"
OUTPUTS = ("sum_dy", "sum_dy_xmu", "grad_weight", "grad_bias")
FLAG_OF = {"sum_dy": "input_g", "sum_dy_xmu": "input_g", "grad_weight": "weight_g", "grad_bias": "bias_g"}
EPS = 1e-5

# -- shapes ----------------------------------------------------------------------------------------------------------


def describe(sizes: Sizes, dtype: str) -> dict[str, Shape]:
    """grad_out and x (N, C, ...); mean and invstd (C,) in float32."""
    shape = (*dims(sizes["n"]), *dims(sizes["c"]), *dims(sizes.get("space", ())))
    vector = sim.shape(sizes["c"], "float32")
    return {
        "grad_out": sim.shape(shape, dtype),
        "x": sim.shape(shape, dtype),
        "mean": vector,
        "invstd": vector,
    }


def draw(shapes: Mapping[str, Shape], numbers: Draw) -> Arrays:
    """grad_out and x of the run's distribution, x around 0.5; mean and invstd of x (biased variance, eps 1e-5)."""
    x = numbers.signal("x", shapes["x"], center=0.5)
    mean, invstd = statistics_of(x)
    return {
        "grad_out": numbers.signal("grad_out", shapes["grad_out"]),
        "x": x,
        "mean": mean.astype(shapes["mean"].dtype.storage),
        "invstd": invstd.astype(shapes["invstd"].dtype.storage),
    }


def statistics_of(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and 1 / sqrt(variance + eps) of each channel, in float64."""
    view = Planes.of(x.shape)
    count = max(1, view.samples * view.space)
    mean = channel_sums(x, view, lambda part, _: part) / count
    squares = channel_sums(x, view, lambda part, at: (part - mean[at]) ** 2)
    return mean, 1 / np.sqrt(squares / count + EPS)


def check(tensors: Tensors, options: Options, product: Product) -> tuple[str, ...]:
    """The rules of the operator's page, in its order; gives warnings."""
    check_types(tensors, product)
    return check_shapes(tensors)


def check_types(tensors: Tensors, product: Product) -> None:
    """Every tensor in the product's types, grad_out as x; mean, invstd and weight may each differ."""
    here = OPERATOR.dtypes_on(product)
    for n, tensor in tensors.items():
        check_dtype(NAME, n, tensor, here, product)
    if dtype_name(tensors["grad_out"]) != dtype_name(tensors["x"]):
        raise refuse(
            f"{NAME}: grad_out is {dtype_name(tensors['grad_out'])}, x is {dtype_name(tensors['x'])}; "
            "they must be of one type"
        )


def check_shapes(tensors: Tensors) -> tuple[str, ...]:
    """Ranks 2 to 8, channels on axis 1, vectors of one element per channel."""
    x = tensors["x"].shape
    for n in ("grad_out", "x"):
        rank = len(tensors[n].shape)
        if not 2 <= rank <= 8:
            raise refuse(f"{NAME}: {n} has rank {rank}; it must be from 2 to 8")
    if x[1] == 0:
        raise refuse(f"{NAME}: x has shape {x}; axis 1, the channels, is 0 and must be at least 1")
    if tensors["grad_out"].shape != x:
        raise refuse(f"{NAME}: grad_out has shape {tensors['grad_out'].shape}, x has {x}; they must be equal")
    for n in ("mean", "invstd", "weight"):
        if n in tensors and tensors[n].shape != (x[1],):
            raise refuse(
                f"{NAME}: {n} has shape {tensors[n].shape}; it must be ({x[1]},), one element for each channel of x"
            )
    if tensors["x"].size == 0:
        return (
            fault("x is empty: the sums are zero here; the vendor's library leaves its outputs as they were"),
        )
    return ()


# -- tiling ----------------------------------------------------------------------------------------------------------

PARAMETERS = read_parameters(__file__, NAME)
OPTIONS = read_parameters(__file__, NAME, "options")


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    view = Planes.of(tensors["x"].shape)
    dtype = output_dtype(tensors, options)
    wanted = [n for n in OUTPUTS if options[FLAG_OF[n]]]
    outputs = {n: context.output(n, (view.channels,), dtype) for n in wanted}
    notes = _beyond(tensors, dtype)
    if not wanted or not tensors["x"].size:
        fills = [zero_fill_step(out, context.product.vector_cores) for out in outputs.values()]
        return Plan(tuple(fills), outputs, _idle(knobs), notes)
    with_x = "sum_dy_xmu" in outputs or "grad_weight" in outputs
    given = ChannelTensors(
        tensors["grad_out"],
        tensors["x"] if with_x else None,
        tensors["mean"] if with_x else None,
        tensors["invstd"] if with_x else None,
        tuple(outputs.get(n) for n in OUTPUTS),
    )
    steps, tiling = _steps(given, view, knobs, context)
    return Plan(tuple(steps), outputs, tiling, notes, tiling["strategy"] == "cube")


def _beyond(tensors: Tensors, dtype: ty.DType) -> tuple[str, ...]:
    if dtype == (kind := dtype_of(tensors["x"])):
        return ()
    names = tuple(DTYPE_NAMES[k.name] for k in (dtype, kind))
    return (f"{NAME}: outputs of type {names[0]}: its document has those of the input, {names[1]}",)


def _steps(given: ChannelTensors, view: Planes, knobs: Knobs, context: PlanContext) -> Made:
    if knobs["strategy"] == "vendor":
        return vendor_steps(given, view, knobs, context)
    if given.x is None:
        knobs = {**knobs, "form": "uncentred"}
    if knobs["strategy"] == "cube" or _cube_pays(given, view, knobs, context):
        return cube_steps(given, view, knobs, context)
    tiling = choose(view, dtype_of(given.dy).itemsize, given.x is not None, knobs, context)
    return sum_steps(given, view, tiling, context), tiling


def _cube_pays(given: ChannelTensors, view: Planes, knobs: Knobs, context: PlanContext) -> bool:
    """Whether auto leaves the sums to the Cube: where the form is the one it has, the operands stay what they are, and it is
    the faster one by the counts of both."""
    product, dtype = context.product, dtype_of(given.dy)
    free = knobs["strategy"] == "auto" and knobs["form"] == "uncentred" and knobs["sums"] == "lanes"
    if not free or product.core_model != "split" or view.space == 1 or knobs["cores"] is not None:
        return False
    found = resolved(given.dy, product)
    if not found.ok or found.operand != dtype.name:
        return False
    with_x = given.x is not None
    tiling = choose_cube(view, dtype.itemsize, with_x, knobs, product)
    cube = cube_cycles(view, dtype.itemsize, with_x, tiling, product)
    return cube < fastest_cycles(view, dtype.itemsize, with_x, knobs, context)


def _idle(knobs: Knobs) -> dict[str, Any]:
    """Knobs of a run in which nothing is summed."""
    strategy = "channel_split" if knobs["strategy"] == "auto" else knobs["strategy"]
    return {**knobs, "strategy": strategy, "samples": 0, "rows": 0, "cols": 0, "parts": 0, "cores": 0}


def output_dtype(tensors: Tensors, options: Options) -> ty.DType:
    """The option, or the type of x."""
    name = options["out_dtype"]
    return dtype_of(tensors["x"]) if name == "auto" else element_type(name)


# -- reference -------------------------------------------------------------------------------------------------------

CHUNK = 1 << 16  # elements: 512 KiB in float64


def channel_sums(x: np.ndarray, view: Planes, make: Any, *others: np.ndarray) -> np.ndarray:
    """Sum over N and S of make(x, at, *others) in float64; `at` indexes (C, 1) vectors by the rows of a chunk."""
    rows = view.samples * view.channels
    flat = [a.reshape(rows, view.space) for a in (x, *others)]
    out = np.zeros((view.samples, view.channels))
    # Chunks of whole samples where a sample is small, so that `at` is a plain slice.
    whole = max(1, view.channels)
    step = (
        max(1, CHUNK // max(1, view.space * whole)) * whole
        if view.space < 512
        else max(1, CHUNK // view.space)
    )
    sums = out.reshape(-1)

    def one(start: int, stop: int) -> None:
        at = np.arange(start, stop)[:, None] % view.channels
        parts = [float64(a[start:stop]) for a in flat]
        sums[start:stop] = make(parts[0], at, *parts[1:]).sum(axis=1)

    in_chunks(rows, step, one)
    return np.asarray(out.sum(axis=0))


def formula(inputs: Arrays, options: Options) -> Arrays:
    """The outputs that are wanted, in float64, by the centred form."""
    view = Planes.of(inputs["x"].shape)
    mean, invstd = (float64(inputs[n]) for n in ("mean", "invstd"))
    sum_dy = channel_sums(inputs["grad_out"], view, lambda dy, _: dy)
    xmu = channel_sums(
        inputs["x"],
        view,
        lambda x, at, dy: np.multiply(np.subtract(x, mean[at], out=x), dy, out=x),
        inputs["grad_out"],
    )
    found = {"sum_dy": sum_dy, "sum_dy_xmu": xmu, "grad_weight": xmu * invstd, "grad_bias": sum_dy.copy()}
    return {n: x for n, x in found.items() if options[FLAG_OF[n]]}


def _formula_seen(inputs: Arrays, options: Options, seen: Callable[[np.ndarray], np.ndarray]) -> Arrays:
    """Strategy cube multiplies grad_out and x; mean and invstd come in FP32 at the end."""
    return formula({**inputs, **{n: seen(inputs[n]) for n in ("grad_out", "x")}}, options)


def _resolve(tensors: Tensors, product: Product, mode: str) -> Resolution:
    return resolution(dtype_of(tensors["x"]), product, mode)


# -- the operator ----------------------------------------------------------------------------------------------------


DOC = """Sums of batch norm's gradient per channel, on a product.

grad_out, x: one shape, rank 2 to 8, channels on axis 1, float16, bfloat16 or float32; mean, invstd: (C,), each of any of
these types; weight: (C,) or None, without influence. Outputs that the flags ask for: sum_dy, sum_dy_xmu (input_g),
grad_weight, grad_bias, each (C,) of `out_dtype` ("auto": as x). Raises `RefusedError` (status 161002) for what the
operator does not take.

Beyond the operator's document: bfloat16 and the Atlas A3 series (newer documents have both), outputs of another type
than x (out_dtype). `notes` of the result say so."""

OPERATOR = Operator(
    name=NAME,
    summary="sums of batch norm's gradient per channel (aclnnBatchNormReduceBackward)",
    required=("grad_out", "x", "mean", "invstd"),
    optional=("weight",),
    without_influence=("weight",),
    main="x",
    fixed_dtypes={"mean": "float32", "invstd": "float32"},
    outputs=OUTPUTS,
    sizes={"n": "samples", "c": "channels", "space": "optional: axes after the channels; none if left out"},
    cases=read_cases(__file__, NAME),
    parameters=PARAMETERS,
    options=OPTIONS,
    arguments=(
        *(flag_argument(NAME, n) for n in ("input_g", "weight_g", "bias_g")),
        Argument("out_dtype", "str", "auto", keyword=True),
    ),
    doc=DOC,
    architectures=offered_on(2201, 1001),
    **by_name(describe, draw, check, plan, formula, explored, fits, bound_us),
    empty=True,
    accumulates="n",
    scaled="grad_out",
    order_knobs=("strategy", "parts", "combine", "sums", "form"),
    on_cube=OnCube("strategy", "cube", _resolve, _formula_seen, OUTPUTS),
    whole="each output sums over all samples and space of a channel",
    beyond=Beyond(dtypes=("bfloat16",), a3=True),
)


batch_norm_reduce_backward = python_face(OPERATOR, __name__)
