"""Gradient of binary cross-entropy on logits (aclnnBinaryCrossEntropyWithLogitsBackward).

With logits x, labels t, weight w, weight p of the positive class, gradient g of the loss:

    s = 1 / (1 + exp(-x));  b = (p * t - t + 1) * s - p * t;  out = b * g * w  (/ number of elements of x for "mean")

Elementwise: `reduction` only says which forward reduction is undone. All arithmetic is FP32; out has the shape of x and
the type of t. An absent weight or pos_weight gives the bits of one that is all ones (for finite labels). The plain sigmoid
loses s - 1 where s is near 1 (it gives 0 from x = 17 on for t = 1); stable=1 computes
b = (1 - t) * s - p * t * sigmoid(-x) instead, which loses nothing.

Inputs of one element are scalars to the kernel, inputs in the shape of x are read as they lie, and what broadcasts over
axes (a weight per column or per channel) is read once per tile and broadcast in UB, never written out. Every input
may have a type of its own: it is widened in UB, so that no cast launches are needed. strategy vendor is the vendor's
experimental kernel: casts and writing out what broadcasts are launches of their own, and tiles have one copy.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ... import simulator as sim
from ...simulator.interpreter.tensors import Shape
from ...simulator.products import Product
from ..operator.declared import read_cases, read_parameters
from ..operator.draw import Draw
from ..operator.messages import check_dtype, refuse
from ..operator.operator import Operator, by_name
from ..operator.parallel import float64, in_chunks
from ..operator.parameter import Argument
from ..operator.plan import Plan, PlanContext
from ..operator.tensors import Arrays, Knobs, Options, Sizes, Tensors, dims, dtype_of
from ..running.face import python_face
from .space import bound_us, explored, fits
from .tiles import BROADCAST, choose, make_step, tile_elements
from .vendor import vendor_steps

# -- shapes ----------------------------------------------------------------------------------------------------------

NAME = "bce_with_logits_backward"
MAX_RANK = 8
# As in half-precision training: without it the mean over millions of elements is 0 in float16.
LOSS_SCALE = 2.0**15


def describe(sizes: Sizes, dtype: str) -> dict[str, Shape]:
    """Inputs; grad_output is one element unless its size is given."""
    shape = dims(sizes["shape"])
    out = {"grad_output": sim.shape(dims(sizes.get("grad_output", 1 if shape else ())), dtype)}
    out["x"] = out["target"] = sim.shape(shape, dtype)
    return out | {n: sim.shape(dims(sizes[n]), dtype) for n in ("weight", "pos_weight") if n in sizes}


def draw(shapes: Mapping[str, Shape], numbers: Draw) -> Arrays:
    """Logits with a spread of 2, soft labels, weights around 1; a single grad_output is LOSS_SCALE."""
    of_loss = shapes["grad_output"]
    single = np.full(of_loss.shape, LOSS_SCALE, of_loss.dtype.storage)
    out = {
        "grad_output": single if of_loss.size == 1 else numbers.signal("grad_output", of_loss),
        "x": numbers.signal("x", shapes["x"], scale=2.0),
        "target": numbers.labels("target", shapes["target"]),
    }
    return out | {
        n: numbers.normal(n, shapes[n], scale=0.1, center=1.0) for n in BROADCAST[1:] if n in shapes
    }


def check(tensors: Tensors, options: Options, product: Product) -> tuple[str, ...]:
    """The rules of the operator's page."""
    check_types(tensors, product)
    check_shapes(tensors)
    return ()


def check_types(tensors: Tensors, product: Product, op: str = NAME) -> None:
    """Every tensor in the product's types."""
    here = OPERATOR.dtypes_on(product)
    for n, tensor in tensors.items():
        check_dtype(op, n, tensor, here, product)


def check_shapes(tensors: Tensors, op: str = NAME) -> None:
    """target as x; what may broadcast must broadcast to x."""
    shape = tensors["x"].shape
    if len(shape) > MAX_RANK:
        raise refuse(f"{op}: x has rank {len(shape)}; it must be from 0 to {MAX_RANK}")
    if tensors["target"].shape != shape:
        raise refuse(f"{op}: target has shape {tensors['target'].shape}, x has {shape}; they must be equal")
    for n in BROADCAST:
        if n in tensors and not _broadcasts(tensors[n].shape, shape):
            raise refuse(
                f"{op}: {n} has shape {tensors[n].shape}, which does not broadcast to that of x, "
                f"{shape}: aligned right, every axis must be equal or 1"
            )


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    if len(shape) > len(to):
        return False
    return all(a in (1, b) for a, b in zip(reversed(shape), reversed(to), strict=False))


# -- tiling ----------------------------------------------------------------------------------------------------------

PARAMETERS = read_parameters(__file__, NAME)
OPTIONS = read_parameters(__file__, NAME, "options")


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    x = tensors["x"]
    outputs = {"out": context.output("out", x.shape, dtype_of(tensors["target"]))}
    if x.size and knobs["strategy"] == "vendor":
        steps, used = vendor_steps(tensors, outputs["out"], options, knobs, context)
        return Plan(tuple(steps), outputs, used)
    tiling = choose(tensors, knobs, context)
    if x.size == 0:
        return Plan((), outputs, {**tiling, "cores": 0})
    step = make_step(tensors, outputs["out"], options, tiling)
    return Plan((step,), outputs, {**tiling, "block": tile_elements(step), "cores": step.grid})


# -- reference -------------------------------------------------------------------------------------------------------

CHUNK = 1 << 15  # elements: 256 KiB in float64
LARGEST_EXPONENT = 700.0  # its exponential is still finite, and sigmoid(-700) is 1e-304


def formula(inputs: Arrays, options: Options) -> Arrays:
    """out in float64, without cancellation: b = (1 - t) * sigmoid(x) - p * t * sigmoid(-x)."""
    shape = inputs["x"].shape
    x, t = (inputs[n].reshape(-1) for n in ("x", "target"))
    factors = {n: _spread(inputs[n], shape) for n in BROADCAST if n in inputs}
    scale = 1.0 / max(1, x.size) if options["reduction"] == "mean" else 1.0
    out = np.empty(x.size)

    def one(start: int, stop: int) -> None:
        here = {n: float64(f if f.size == 1 else f[start:stop]) for n, f in factors.items()}
        result = _gradient(float64(x[start:stop]), float64(t[start:stop]), here.get("pos_weight"))
        if "weight" in here:
            result *= here["weight"]
        np.multiply(result, here["grad_output"] * scale, out=out[start:stop])

    in_chunks(x.size, CHUNK, one)
    return {"out": out.reshape(shape)}


def _spread(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """One element, or as many as `shape` has, flat."""
    return x.reshape(-1) if x.size == 1 else np.broadcast_to(x, shape).reshape(-1)


def _gradient(x: np.ndarray, t: np.ndarray, p: np.ndarray | None) -> np.ndarray:
    """b, with sigmoid(-x) as exp(-x) * sigmoid(x); x and t are used up."""
    np.minimum(np.negative(x, out=x), LARGEST_EXPONENT, out=x)
    e = np.exp(x, out=x)
    s: np.ndarray = 1 / (1 + e)
    rest = np.multiply(e, s, out=e)
    rest *= t
    if p is not None:
        rest *= p
    s *= np.subtract(1, t, out=t)
    s -= rest
    return s


# -- the operator ----------------------------------------------------------------------------------------------------


DOC = """Gradient with respect to the logits x, on a product.

x, target: one shape, rank 0 to 8. grad_output, weight, pos_weight: any shape that broadcasts to it. Each may be
float16, bfloat16 or float32 on its own. reduction: "none", "mean" or "sum", or 0, 1, 2: the forward reduction that is
undone. Output: out (shape of x, type of target)."""

OPERATOR = Operator(
    name="bce_with_logits_backward",
    summary="gradient of binary cross-entropy on logits (aclnnBinaryCrossEntropyWithLogitsBackward)",
    required=("grad_output", "x", "target"),
    optional=("weight", "pos_weight"),
    main="x",
    outputs=("out",),
    sizes={
        "shape": "axes of the logits",
        "grad_output": "optional: axes of grad_output; one element if left out",
        "weight": "optional: axes of weight; no weight if left out",
        "pos_weight": "optional: axes of pos_weight; none if left out",
    },
    cases=read_cases(__file__, NAME),
    parameters=PARAMETERS,
    options=OPTIONS,
    arguments=(Argument("reduction", "str | int", "mean"),),
    doc=DOC,
    **by_name(describe, draw, check, plan, formula, explored, fits, bound_us),
    empty=True,
    whole="it is elementwise: a case of fewer elements (--size) has the same errors",
    scaled="grad_output",
)


bce_with_logits_backward = python_face(OPERATOR, __name__)
