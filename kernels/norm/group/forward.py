"""Group normalisation, the forward of group_norm_backward: y, and the mean and rstd that the gradient takes.

With x as (N, G, D, S), gamma and beta (C,): mean and rstd = 1 / sqrt(variance + eps) of each group (biased variance, eps
1e-5); y = (x - mean) * rstd * gamma + beta. All arithmetic is FP32; tiles of a group are merged without loss
(norm_statistics.py), and x is read twice. mean and rstd have the type of x, as the gradient wants them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from .... import simulator as sim
from ....simulator.interpreter.tensors import Shape
from ....simulator.products import Product
from ...operator.declared import read_parameters
from ...operator.draw import Draw
from ...operator.layout import even_part, up
from ...operator.messages import check_dtype, check_same_dtype, refuse
from ...operator.operator import Case, Operator, by_name
from ...operator.parallel import float64, in_chunks
from ...operator.parameter import Argument
from ...operator.plan import Plan, PlanContext, Step
from ...operator.tensors import Arrays, Knobs, Options, Sizes, Tensors, dims, dtype_of
from ...running.face import python_face
from ..norm_statistics import group_norm_forward
from ..norm_statistics_space import bound_groups, explored_groups, fits_groups
from ..planes import Planes
from .op import OPERATOR as GRADIENT
from .op import statistics_of

NAME = "group_norm"
EPS = 1e-5


def describe(sizes: Sizes, dtype: str) -> dict[str, Shape]:
    shape = (*dims(sizes["n"]), *dims(sizes["c"]), *dims(sizes.get("space", ())))
    vector = sim.shape(sizes["c"], dtype)
    return {"x": sim.shape(shape, dtype), "gamma": vector, "beta": vector}


def draw(shapes: Mapping[str, Shape], numbers: Draw) -> Arrays:
    """x of the run's distribution, around 0.5; gamma around 1, beta around 0."""
    return {
        "x": numbers.signal("x", shapes["x"], center=0.5),
        "gamma": numbers.normal("gamma", shapes["gamma"], scale=0.1, center=1.0),
        "beta": numbers.normal("beta", shapes["beta"], scale=0.1),
    }


def check(tensors: Tensors, options: Options, product: Product) -> tuple[str, ...]:
    """One type; channels on axis 1, divided by the groups; gamma and beta of one element per channel; not empty."""
    check_dtype(NAME, "x", tensors["x"], OPERATOR.dtypes_on(product), product)
    check_same_dtype(NAME, tensors, "x", ("gamma", "beta"))
    shape, group = tensors["x"].shape, options["group"]
    if not 2 <= len(shape) <= 8:
        raise refuse(f"{NAME}: x has rank {len(shape)}; it must be from 2 to 8")
    if tensors["x"].size == 0:
        raise refuse(f"{NAME}: x has shape {shape} and no elements; there is nothing to normalise")
    if shape[1] % group:
        raise refuse(f"{NAME}: C is {shape[1]}, group is {group}; group must divide C")
    for n in ("gamma", "beta"):
        if tensors[n].shape != (shape[1],):
            raise refuse(
                f"{NAME}: {n} has shape {tensors[n].shape}; it must be ({shape[1]},), one for each channel"
            )
    return ()


PARAMETERS = read_parameters(__file__, NAME)
OPTIONS = read_parameters(__file__, NAME, "options")


def element_bytes(itemsize: int, copies: int) -> int:
    """UB bytes per element of a tile, at most: x and y in their own type, FP32 tiles and the mask."""
    return (2 * itemsize * copies if copies > 1 else 4) + 18


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    x = tensors["x"]
    view = Planes.of(x.shape, options["group"])
    share = -(-view.tasks // min(context.cores(knobs["cores"]), view.tasks))
    budget = (context.ub_bytes - 4096) // element_bytes(dtype_of(x).itemsize, knobs["buffers"])
    cols = min(view.space, knobs["cols"] or even_part(view.space, budget // 16 * 16))
    rows = min(view.depth, knobs["rows"] or even_part(view.depth, max(1, budget // up(cols, 16))))
    tiling = {**knobs, "rows": rows, "cols": cols, "cores": -(-view.tasks // share)}
    of_groups = (view.samples, view.groups)
    shapes = {"y": x.shape, "mean": of_groups, "rstd": of_groups}
    outputs = {n: context.output(n, shape, dtype_of(x)) for n, shape in shapes.items()}
    arguments = {
        **{f"{n}_ptr": t for n, t in tensors.items()},
        **{f"{n}_ptr": t for n, t in outputs.items()},
        **{
            "tasks": view.tasks,
            "tasks_per_core": share,
            "groups": view.groups,
            "D": view.depth,
            "S": view.space,
        },
        "inverse_count": 1.0 / (view.depth * view.space),
        "eps": EPS,
        **{"ROWS": rows, "COLS": cols, "multibuffer": knobs["buffers"]},
    }
    return Plan((Step(group_norm_forward, tiling["cores"], arguments),), outputs, tiling)


def formula(inputs: Arrays, options: Options) -> Arrays:
    """y, mean and rstd in float64."""
    view = Planes.of(inputs["x"].shape, options["group"])
    mean, rstd = statistics_of(inputs["x"], view.tasks)
    gamma, beta = (float64(inputs[n]).reshape(view.groups, view.depth, 1) for n in ("gamma", "beta"))
    x = inputs["x"].reshape(view.tasks, view.depth, view.space)
    y: np.ndarray = np.empty(x.shape)

    def one(start: int, stop: int) -> None:
        at = np.arange(start, stop) % view.groups
        part = (float64(x[start:stop]) - mean[start:stop, None, None]) * rstd[start:stop, None, None]
        y[start:stop] = part * gamma[at] + beta[at]

    in_chunks(view.tasks, max(1, (1 << 16) // (view.depth * view.space)), one)
    of_groups = (view.samples, view.groups)
    return {
        "y": y.reshape(inputs["x"].shape),
        "mean": mean.reshape(of_groups),
        "rstd": rstd.reshape(of_groups),
    }


def _case(gradient: Case) -> Case:
    """The number of groups is an option here, not a size: no input has it."""
    sizes = dict(gradient.sizes)
    return replace(gradient, options={"group": sizes.pop("group")}, sizes=sizes)


DOC = """y (as x), mean and rstd (N, group) of group normalisation with eps 1e-5, all of the type of x.

x: (N, C, ...), rank 2 to 8, float16, bfloat16 or float32; gamma, beta: (C,), of the same type."""

OPERATOR = Operator(
    name=NAME,
    summary="group normalisation: y, and mean and rstd for group_norm_backward (aclnnGroupNorm)",
    required=("x", "gamma", "beta"),
    main="x",
    outputs=("y", "mean", "rstd"),
    sizes={n: help for n, help in GRADIENT.sizes.items() if n != "group"},
    cases={n: _case(c) for n, c in GRADIENT.cases.items()},
    parameters=PARAMETERS,
    options=OPTIONS,
    arguments=(Argument("group", "int"),),
    doc=DOC,
    architectures=GRADIENT.architectures,
    **by_name(describe, draw, check, plan, formula),
    accumulates="space",
    explored=explored_groups,
    fits=fits_groups,
    bound_us=bound_groups,
)


group_norm = python_face(OPERATOR, __name__)
