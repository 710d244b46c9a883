"""Batch norm's statistics, the forward of batch_norm_reduce_backward: mean and invstd of each channel.

With x as (N, C, S): mean = mean(x over N, S); invstd = 1 / sqrt(mean((x - mean)^2) + eps), the biased variance, eps 1e-5.
All arithmetic is FP32; every core has channels of its own, whose tiles are merged without loss (see norm_statistics.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from .... import simulator as sim
from ....simulator.interpreter.tensors import Shape
from ....simulator.precision.dtypes import float32
from ....simulator.products import Product
from ...operator.declared import read_parameters
from ...operator.draw import Draw
from ...operator.layout import even_part, up
from ...operator.messages import check_dtype, refuse
from ...operator.operator import Operator, by_name
from ...operator.plan import Plan, PlanContext, Step
from ...operator.tensors import Arrays, Knobs, Options, Sizes, Tensors, dims, dtype_of
from ...running.face import python_face
from ..norm_statistics import channel_statistics, column_statistics
from ..norm_statistics_space import bound_channels, explored_channels, fits_channels
from ..planes import Planes
from .op import OPERATOR as GRADIENT
from .op import statistics_of

NAME = "batch_norm_statistics"
EPS = 1e-5


def describe(sizes: Sizes, dtype: str) -> dict[str, Shape]:
    shape = (*dims(sizes["n"]), *dims(sizes["c"]), *dims(sizes.get("space", ())))
    return {"x": sim.shape(shape, dtype)}


def draw(shapes: Mapping[str, Shape], numbers: Draw) -> Arrays:
    """x of the run's distribution, around 0.5."""
    return {"x": numbers.signal("x", shapes["x"], center=0.5)}


def check(tensors: Tensors, options: Options, product: Product) -> tuple[str, ...]:
    """Rank 2 to 8, channels on axis 1, not empty."""
    check_dtype(NAME, "x", tensors["x"], OPERATOR.dtypes_on(product), product)
    shape = tensors["x"].shape
    if not 2 <= len(shape) <= 8:
        raise refuse(f"{NAME}: x has rank {len(shape)}; it must be from 2 to 8")
    if tensors["x"].size == 0:
        raise refuse(f"{NAME}: x has shape {shape} and no elements; there is no mean of nothing")
    return ()


PARAMETERS = read_parameters(__file__, NAME)


def element_bytes(itemsize: int, copies: int) -> int:
    """UB bytes per element of a tile, at most: x in its own type, FP32 tiles and the mask."""
    return (itemsize * copies if copies > 1 else 4) + 18


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    x = tensors["x"]
    view = Planes.of(x.shape)
    share = -(-view.channels // min(context.cores(knobs["cores"]), view.channels))
    budget = (context.ub_bytes - 4096) // element_bytes(dtype_of(x).itemsize, knobs["buffers"])
    outputs = {n: context.output(n, (view.channels,), float32) for n in ("mean", "invstd")}
    common = {
        **{"x_ptr": x, "mean_ptr": outputs["mean"], "invstd_ptr": outputs["invstd"]},
        **{"samples": view.samples, "channels": view.channels},
        "inverse_count": 1.0 / (view.samples * view.space),
        "eps": EPS,
        "multibuffer": knobs["buffers"],
    }
    if view.space == 1:
        share = min(view.channels, up(share, 16))
        cols = min(share, knobs["cols"] or even_part(share, budget))
        rows = min(view.samples, knobs["rows"] or even_part(view.samples, max(1, budget // up(cols, 16))))
        kernel, own = column_statistics, {}
    else:
        cols = min(view.space, knobs["cols"] or even_part(view.space, budget // 16 * 16))
        rows = min(share, knobs["rows"] or even_part(share, max(1, budget // up(cols, 16))))
        kernel, own = channel_statistics, {"space": view.space}
    tiling = {**knobs, "rows": rows, "cols": cols, "cores": -(-view.channels // share)}
    arguments = {**common, **own, "channels_per_core": share, "ROWS": rows, "COLS": cols}
    return Plan((Step(kernel, tiling["cores"], arguments),), outputs, tiling)


def formula(inputs: Arrays, options: Options) -> Arrays:
    """mean and invstd in float64."""
    mean, invstd = statistics_of(inputs["x"])
    return {"mean": mean, "invstd": invstd}


DOC = """mean and invstd (C,), float32, of x (N, C, ...), rank 2 to 8, float16, bfloat16 or float32."""

OPERATOR = Operator(
    name=NAME,
    summary="batch norm's mean and 1 / standard deviation per channel, for batch_norm_reduce_backward",
    required=("x",),
    main="x",
    outputs=("mean", "invstd"),
    sizes=GRADIENT.sizes,
    cases=GRADIENT.cases,
    parameters=PARAMETERS,
    doc=DOC,
    architectures=GRADIENT.architectures,
    **by_name(describe, draw, check, plan, formula),
    accumulates="n",
    explored=explored_channels,
    fits=fits_channels,
    bound_us=bound_channels,
)


batch_norm_statistics = python_face(OPERATOR, __name__)
