"""GroupNormBackward: gradient of group normalisation (aclnnGroupNormBackward).

With dy and x as (N, G, D, S): G groups of D channels, S elements of a channel, m = D * S; mean, rstd (N, G), gamma (C,):

    xh = (x - mean) * rstd;  dbeta = sum(dy over N, S);  dgamma = sum(dy * xh over N, S)
    c1 = sum(dy * gamma over D, S) / m;  c2 = sum(dy * gamma * xh over D, S) / m;  dx = rstd * (dy * gamma - c1 - xh * c2)

All arithmetic is FP32. form xhat makes xh first; sums adds up dy * x and dy alone, as PyTorch's CPU kernel does: less to do,
but digits are lost where the mean is large beside the spread.

Strategies: resident keeps whole groups in UB and reads dy and x once. streamed gives every core whole groups and sweeps
twice over each. shared cuts finer than groups: one launch makes the sums of channels, one dx, one dgamma and dbeta.
vectors is for S = 1, tiles along the channels. cube makes the sums of channels by products with ones and diagonals on the
Cube, in the format that cube_math_type says and in form sums; the rest is as in shared. vendor is the tiling of the
vendor's kernel on A2 and A3 (it narrows dx half away from zero and not to even, which no builtin of the language does:
values differ in ties). dgamma and dbeta over N: two_phase (a row for each sample, summed by a second launch), pairwise (two
samples add to a row atomically, any order of two gives the same), atomic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .... import simulator as sim
from ....simulator.interpreter.tensors import Shape
from ....simulator.messages import fault
from ....simulator.precision.cube_math import Resolution
from ....simulator.products import Product
from ...operator.beyond import Beyond
from ...operator.declared import read_cases, read_parameters
from ...operator.draw import Draw
from ...operator.messages import check_dtype, check_same_dtype, refuse
from ...operator.operator import OnCube, Operator, by_name, offered_on
from ...operator.parallel import float64, in_chunks
from ...operator.parameter import NULLPTR, Argument, flags
from ...operator.plan import Plan, PlanContext
from ...operator.tensors import Arrays, Knobs, Options, Sizes, Tensors, dims, dtype_of
from ...running.face import python_face
from ...shared.sums import zero_fill_step
from ..column_products import resolution
from ..planes import Planes
from .chain import chain_tiling
from .choice import GroupTensors, choose, kernel_of, stays_in_l2
from .launches import TRAINING, make_steps
from .space import bound_us, explored, fits

NAME = "group_norm_backward"
OUTPUTS = ("grad_input", "grad_gamma", "grad_beta")
EPS = 1e-5
MAX_RANK = 8
DEEPEST, WIDEST = 8000, 240_000  # channels of a group, and in all, on A2 and A3

# -- shapes ----------------------------------------------------------------------------------------------------------


def describe(sizes: Sizes, dtype: str) -> dict[str, Shape]:
    """grad_out and x (N, C, ...), mean and rstd (N, groups), gamma (C,), all of one type."""
    (n,), (c,), (group,) = (_one(sizes, k) for k in ("n", "c", "group"))
    _check_groups(c, group)
    whole = sim.shape((n, c, *dims(sizes.get("space", ()))), dtype)
    return {
        "grad_out": whole,
        "x": whole,
        "mean": sim.shape((n, group), dtype),
        "rstd": sim.shape((n, group), dtype),
        "gamma": sim.shape(c, dtype),
    }


def draw(shapes: Mapping[str, Shape], numbers: Draw) -> Arrays:
    """grad_out and x of the run's distribution, x around 0.5; gamma around 1; mean and rstd of x (eps 1e-5)."""
    x = numbers.signal("x", shapes["x"], center=0.5)
    mean, rstd = statistics_of(x, shapes["mean"].size)
    storage = shapes["mean"].dtype.storage
    return {
        "grad_out": numbers.signal("grad_out", shapes["grad_out"]),
        "x": x,
        "mean": mean.reshape(shapes["mean"].shape).astype(storage),
        "rstd": rstd.reshape(shapes["rstd"].shape).astype(storage),
        "gamma": numbers.normal("gamma", shapes["gamma"], scale=0.1, center=1.0),
    }


def statistics_of(x: np.ndarray, tasks: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and 1 / sqrt(variance + eps) of each of `tasks` groups, in float64."""
    rows = x.reshape(tasks, x.size // max(1, tasks))
    mean, rstd = np.empty(tasks), np.empty(tasks)

    def one(start: int, stop: int) -> None:
        part = float64(rows[start:stop])
        mean[start:stop] = part.sum(axis=1) / max(1, part.shape[1])
        part -= mean[start:stop, None]
        rstd[start:stop] = 1 / np.sqrt(np.einsum("ij,ij->i", part, part) / max(1, part.shape[1]) + EPS)

    in_chunks(tasks, max(1, CHUNK // max(1, rows.shape[1])), one)
    return mean, rstd


def view_of(tensors: Mapping[str, Any], options: Options) -> Planes:
    """N, C, HxW and the number of groups: as given, or from the shapes of x (N, C, ...) and mean."""
    x = tensors["x"].shape
    space = 1
    for length in x[2:]:
        space *= length
    n = options["n"] if options["n"] is not None else (x[0] if x else 1)
    c = options["c"] if options["c"] is not None else (x[1] if len(x) > 1 else 1)
    hxw = options["hxw"] if options["hxw"] is not None else space
    group = options["group"]
    if group is None:
        group = max(1, tensors["mean"].size // max(1, n))
    _check_groups(c, group)
    return Planes(n, group, c // group, hxw)


def _check_groups(c: int, group: int) -> None:
    if group < 1 or c % group:
        raise refuse(f"{NAME}: C is {c}, group is {group}; group must be at least 1 and divide C")


def _one(sizes: Sizes, name: str) -> tuple[int, ...]:
    """The one number of a size, as dimensions."""
    found = dims(sizes[name])
    if len(found) != 1:
        raise refuse(f"{NAME}: size {name!r} is {'x'.join(map(str, found))}; it must be one number")
    return found


def check(tensors: Tensors, options: Options, product: Product) -> tuple[str, ...]:
    """The rules of the operator's page, in its order; gives warnings."""
    check_types(tensors, product)
    return check_sizes(tensors, view_of(tensors, options), product)


def check_types(tensors: Tensors, product: Product) -> None:
    """grad_out in the product's types, all others as grad_out."""
    check_dtype(NAME, "grad_out", tensors["grad_out"], OPERATOR.dtypes_on(product), product)
    check_same_dtype(NAME, tensors, "grad_out", ("x", "mean", "rstd", "gamma"))


def check_sizes(
    tensors: Tensors, view: Planes, product: Product, outputs: Tensors | None = None
) -> tuple[str, ...]:
    """Limits of the groups on A2 and A3, ranks, then numbers of elements of the inputs, whatever the shapes are."""
    if product.integer("product.npu_arch") == 2201:
        _check_limit("C / group", view.depth, DEEPEST, product)
        _check_limit("C", view.channels, WIDEST, product)
    for n, x in {**tensors, **(outputs or {})}.items():
        if len(x.shape) > MAX_RANK:
            raise refuse(f"{NAME}: {n} has rank {len(x.shape)}; it must be from 0 to {MAX_RANK}")
    whole = view.samples * view.channels * view.space
    sizes = {"grad_out": whole, "x": whole, "mean": view.tasks, "rstd": view.tasks, "gamma": view.channels}
    rules = {"mean": "N * group", "rstd": "N * group", "gamma": "C"}
    for n, want in sizes.items():
        if n in tensors and tensors[n].size != want:
            raise refuse(
                f"{NAME}: {n} has {tensors[n].size} elements in shape {tensors[n].shape}; it must have "
                f"{rules.get(n, 'N * C * HxW')} = {want} (N {view.samples}, C {view.channels}, HxW {view.space}, "
                f"group {view.groups})"
            )
    if whole == 0:
        return (
            fault("x is empty: the sums are zero here; the vendor's library leaves its outputs as they were"),
        )
    return ()


def _check_limit(what: str, found: int, most: int, product: Product) -> None:
    if found > most:
        raise refuse(f"{NAME}: {what} is {found}; on {product.name} it must be at most {most}")


# -- tiling ----------------------------------------------------------------------------------------------------------

PARAMETERS = read_parameters(__file__, NAME)
OPTIONS = read_parameters(__file__, NAME, "options")


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    view, dtype = view_of(tensors, options), dtype_of(tensors["x"])
    gamma = tensors.get("gamma")
    of_channels = (view.channels,) if gamma is None else gamma.shape
    shapes = {"grad_input": tensors["x"].shape, "grad_gamma": of_channels, "grad_beta": of_channels}
    masks = dict(zip(OUTPUTS, ("input_mask", "gamma_mask", "beta_mask"), strict=True))
    outputs = {n: context.output(n, shapes[n], dtype) for n in OUTPUTS if options[masks[n]]}
    if not outputs or not tensors["x"].size:
        fills = [zero_fill_step(out, context.product.vector_cores) for out in outputs.values() if out.size]
        return Plan(tuple(fills), outputs, _idle(knobs))
    dx, dgamma, dbeta = (outputs.get(n) for n in OUTPUTS)
    dy, x, mean, rstd = (tensors[n] for n in ("grad_out", "x", "mean", "rstd"))
    given = GroupTensors(dy, x, mean, rstd, gamma, dx, dgamma, dbeta)
    chain = knobs["strategy"] == "vendor" and context.product.integer("product.npu_arch") == TRAINING
    if chain:
        tiling = chain_tiling(view, knobs, context.cores(knobs["cores"]))
    else:
        tiling = choose(view, dtype.itemsize, knobs, context)
    in_l2 = kernel_of(view, tiling) in ("shared", "cube") and stays_in_l2(
        view, dtype.itemsize, context.product
    )
    notes = (IN_L2,) if in_l2 and dx is not None else ()
    on_cube = tiling["strategy"] == "cube"
    return Plan(tuple(make_steps(given, view, tiling, context)), outputs, tiling, notes, on_cube)


IN_L2 = "the launch of dx finds dy and x in L2, where the launch of the sums left them"


def _idle(knobs: Knobs) -> dict[str, Any]:
    """Knobs of a run in which there is nothing to do."""
    strategy = "resident" if knobs["strategy"] == "auto" else knobs["strategy"]
    return {**knobs, "strategy": strategy, "groups": 0, "rows": 0, "cols": 0, "parts": 0, "cores": 0}


# -- reference -------------------------------------------------------------------------------------------------------

CHUNK = 1 << 16  # elements: 512 KiB in float64


def formula(inputs: Arrays, options: Options) -> Arrays:
    """The outputs that are wanted, in float64."""
    return _formula(inputs, (inputs["grad_out"], inputs["x"]), options)


def _formula_seen(inputs: Arrays, options: Options, seen: Callable[[np.ndarray], np.ndarray]) -> Arrays:
    """Strategy cube makes the sums of channels from what it multiplies, dx from them and the inputs as they are."""
    return _formula(inputs, (seen(inputs["grad_out"]), seen(inputs["x"])), options)


def _resolve(tensors: Tensors, product: Product, mode: str) -> Resolution:
    return resolution(dtype_of(tensors["x"]), product, mode)


def _formula(inputs: Arrays, summed: tuple[np.ndarray, np.ndarray], options: Options) -> Arrays:
    """The outputs with the sums over channels of the gradient and the input in `summed`."""
    view = view_of(inputs, options)
    gamma = inputs.get("gamma")
    of_channels = (view.channels,) if gamma is None else gamma.shape
    weights: np.ndarray = np.ones(view.channels) if gamma is None else float64(gamma).reshape(-1)
    weights = weights.reshape(view.groups, view.depth, 1)
    shape = (view.tasks, view.depth, view.space)
    dy, x, dy_of_sums, x_of_sums = (a.reshape(shape) for a in (inputs["grad_out"], inputs["x"], *summed))
    mean, rstd = (np.reshape(float64(inputs[n]), (-1, 1, 1)) for n in ("mean", "rstd"))
    dx: np.ndarray = np.empty(shape)
    db, dg = np.zeros((2, view.tasks, view.depth))

    def normalised(
        of_dy: np.ndarray, of_x: np.ndarray, start: int, stop: int
    ) -> tuple[np.ndarray, np.ndarray]:
        part, xh = float64(of_dy[start:stop]), float64(of_x[start:stop])
        xh -= mean[start:stop]
        xh *= rstd[start:stop]
        return part, xh

    def one(start: int, stop: int) -> None:
        scale = rstd[start:stop]
        part, xh = normalised(dy_of_sums, x_of_sums, start, stop)
        db[start:stop] = part.sum(axis=2)
        dg[start:stop] = np.einsum("ijk,ijk->ij", part, xh)
        if summed[1] is not inputs["x"]:
            part, xh = normalised(dy, x, start, stop)
        gammas = weights[np.arange(start, stop) % view.groups]
        c1 = (db[start:stop] * gammas[:, :, 0]).sum(axis=1)[:, None, None] / (view.depth * view.space)
        c2 = (dg[start:stop] * gammas[:, :, 0]).sum(axis=1)[:, None, None] / (view.depth * view.space)
        part *= gammas
        part -= c1
        part -= np.multiply(xh, c2, out=xh)
        np.multiply(part, scale, out=dx[start:stop])

    if dx.size:
        in_chunks(view.tasks, max(1, CHUNK // (view.depth * view.space)), one)
    sums = {
        n: a.reshape(view.samples, view.channels).sum(axis=0).reshape(of_channels)
        for n, a in (("dg", dg), ("db", db))
    }
    found = (dx.reshape(inputs["x"].shape), sums["dg"], sums["db"])
    masks = (options["input_mask"], options["gamma_mask"], options["beta_mask"])
    return {n: a for n, a, wanted in zip(OUTPUTS, found, masks, strict=True) if wanted}


# -- the operator ----------------------------------------------------------------------------------------------------


def _masks(given: Any, inputs: Mapping[str, Any]) -> dict[str, int]:
    """output_mask as the three options that it stands for."""
    wanted = flags(NAME, "output_mask", given)
    if len(wanted) != 3:
        raise refuse(f"{NAME}: output_mask has {len(wanted)} entries; it must have 3", NULLPTR)
    return dict(zip(("input_mask", "gamma_mask", "beta_mask"), wanted, strict=True))


DOC = """Gradient of group normalisation, on a product.

grad_out, x: n * c * hxw elements in any shape of rank 0 to 8, read as (n, c, hxw); mean, rstd: n * group elements;
gamma: c elements, or None for ones; all float16, bfloat16 or float32, of one type. n, c, hxw are taken from x (N,
C, ...), group from the size of mean, where they are left out. Outputs that output_mask asks for: grad_input (shape
of x), grad_gamma, grad_beta (shape of gamma, or (c,)). Raises `RefusedError` (status 161002) for what the operator
does not take.

Beyond the operator's document: the Atlas A3 series, which newer ones have. `notes` of the result say so."""

OPERATOR = Operator(
    name=NAME,
    summary="gradient of group normalisation: dx, dgamma, dbeta (aclnnGroupNormBackward)",
    required=("grad_out", "x", "mean", "rstd"),
    optional=("gamma",),
    main="x",
    outputs=OUTPUTS,
    sizes={
        "n": "samples",
        "c": "channels",
        "space": "optional: axes after the channels; none if left out",
        "group": "groups of a sample",
    },
    cases=read_cases(__file__, NAME),
    parameters=PARAMETERS,
    options=OPTIONS,
    arguments=(
        *(Argument(n, "int | None", None) for n in ("n", "c", "hxw", "group")),
        Argument("output_mask", "Sequence[bool]", (True, True, True), _masks),
    ),
    doc=DOC,
    architectures=offered_on(2201, 1001),
    **by_name(describe, draw, check, plan, formula, explored, fits, bound_us),
    empty=True,
    accumulates="space",
    scaled="grad_out",
    order_knobs=("strategy", "parts", "combine", "form"),
    on_cube=OnCube("strategy", "cube", _resolve, _formula_seen, OUTPUTS),
    whole="grad_gamma and grad_beta sum over all samples, grad_input needs the sums of its whole group",
    beyond=Beyond(a3=True),
)


group_norm_backward = python_face(OPERATOR, __name__)
