"""Matrix product (aclnnMatmul): out (M, N) = a (M, K) b (K, N), in the format that cubeMathType asks for.

The host library looks up the format in a table (`simulator/precision/cube_math.py`), converts operands that are of
another type with a launch each, and then starts the kernel; a mode that the table refuses gives status 161002. The Cube
adds in FP32; what it writes is also in that table. FP32 operands of a product in HF32 stay 32 bits wide in memory: the
Cube rounds them when it reads them. Where tiles are few and K is long, and with USE_FP32_ADD wherever K is long, parts of
the sum are computed side by side and added by a second kernel in a fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt
from typing import Any

import numpy as np

from ... import simulator as sim
from ...simulator.device import CUBE_MATH_TYPES, current_device
from ...simulator.errors import RefusedError, UsageError
from ...simulator.interpreter.tensors import Shape
from ...simulator.precision import dtypes as ty
from ...simulator.precision.cube_math import Resolution
from ...simulator.precision.splits import SPLITS
from ...simulator.products import Product
from ..operator.declared import read_cases, read_parameters
from ..operator.draw import Draw
from ..operator.messages import listed
from ..operator.notes import cube_notes, not_held
from ..operator.operator import EVERYWHERE, Operator, by_name
from ..operator.parallel import float64, in_chunks
from ..operator.parameter import dtype_argument
from ..operator.plan import Plan, PlanContext, Step
from ..operator.tensors import (
    Arrays,
    Knobs,
    Options,
    Sizes,
    Tensor,
    Tensors,
    dtype_name,
    dtype_of,
    element_type,
)
from ..running.face import python_face
from ..shared.casts import converted
from ..shared.sums import sum_partials_step
from .bound import bound_us
from .choice import choose
from .operands import resolve
from .scaled import check_scales, element_name, is_scaled, operands_in_blocks, scaled_product
from .sliced import cut_operands, one_slice, product_of
from .space import explored, fits
from .tiles import product_step

AFFORDED = 2**30  # multiplications of one product of a study: half a second to a second in the Cube's order
GOLDEN_ROWS = 512  # rows of a chunk of the float64 product

# -- inputs ----------------------------------------------------------------------------------------------------------


def describe(sizes: Sizes, dtype: str) -> dict[str, Shape]:
    """a (M, K) and b (K, N)."""
    lengths = {n: sizes[n] for n in "mnk"}
    for axis, x in lengths.items():
        if not isinstance(x, int):
            raise UsageError(f"matmul: size {axis!r} must be one number, got {x}")
    m, n, k = lengths.values()
    return {"a": sim.shape((m, k), dtype), "b": sim.shape((k, n), dtype)}  # type: ignore[arg-type]


def draw(shapes: Mapping[str, Shape], numbers: Draw) -> Arrays:
    """Noise; "cancel" has neighbours of a row of a that nearly cancel, and b with equal rows in pairs."""
    a, b = shapes["a"], shapes["b"]
    if numbers.distribution != "cancel":
        return {n: numbers.signal(n, x) for n, x in shapes.items()}
    half = -(-a.shape[1] // 2)
    pairs = numbers.signal("a", Shape((a.shape[0], 2 * half), a.dtype))
    rows = numbers.normal("b", Shape((half, b.shape[1]), b.dtype))
    left = np.ascontiguousarray(pairs[:, : a.shape[1]])
    return {"a": left, "b": np.ascontiguousarray(np.repeat(rows, 2, axis=0)[: b.shape[0]])}


def check(tensors: Tensors, options: Options, product: Product) -> tuple[str, ...]:
    """Shapes, then the table of modes; gives its warning."""
    a, b = (tensors[n].shape for n in ("a", "b"))
    for n, dims in (("a", a), ("b", b)):
        if len(dims) != 2:
            raise UsageError(f"matmul: {n} has shape {dims}; it must have 2 axes")
    if a[1] != b[0]:
        raise UsageError(f"matmul: a is {a}, b is {b}; the columns of a must be as many as the rows of b")
    if not a[1]:
        raise UsageError(
            f"matmul: K is empty, a is {a} and b is {b}; a sum of nothing needs no kernel: fill out with zeros"
        )
    if not (a[0] and b[1]):
        raise UsageError(f"matmul: a is {a}, b is {b}: the product has no elements; give M and N from 1")
    if is_scaled(tensors):
        check_scales(tensors)
    found = resolve(tensors, product, current_device().cube_math_type)
    if not found.ok:
        raise _refusal(tensors, product, found)
    notes = () if found.warning is None else (f"cubeMathType: {found.warning}",)
    return (*notes, *_not_finite(tensors, product), *not_held(found.split, tensors))


def _not_finite(tensors: Tensors, product: Product) -> tuple[str, ...]:
    """In the saturating mode the Cube reads infinities as the largest finite value and NaN as 0 (pto-isa, page on mad)."""
    if product.text("numerics.overflow_mode") != "saturate":
        return ()
    arrays = {n: x for n, x in tensors.items() if isinstance(x, np.ndarray)}
    odd = [n for n, x in arrays.items() if not np.isfinite(x).all()]
    reads = f"{product.name} reads infinities as the largest finite value and NaN as 0"
    return (f"{listed(odd)} with infinities or NaN: {reads}",) if odd else ()


def _refusal(tensors: Tensors, product: Product, found: Resolution) -> RefusedError:
    name = element_name if is_scaled(tensors) else dtype_name
    types = " and ".join(f"{n} {name(tensors[n])}" for n in ("a", "b"))
    legal, splits = (
        [m for m in every if resolve(tensors, product, m).ok] for every in (CUBE_MATH_TYPES, SPLITS)
    )
    ways = [
        f"take {listed(legal, 'or')}"
        if legal
        else f"take a and b of {listed(EVERYWHERE[product.integer('product.npu_arch')], 'or')}"
    ]
    ways += [f"split FP32 operands by {listed(splits, 'or')}"] if splits else []
    return RefusedError(
        f"matmul: {current_device().cube_math_type} with {types} is refused on {product.name} with status "
        f"{found.status} (parameter invalid): {found.reason}; {listed(ways, ', or')}",
        found.status,
        found.reason,
    )


def host_bytes(tensors: Tensors) -> int:
    """Operands as stored and as float32, both again in float64, and the result in float64 and twice in float32."""
    a, b = tensors["a"], tensors["b"]
    operands = sum(x.size * (dtype_of(x).itemsize + 4 + 8) for x in (a, b))
    return operands + a.shape[0] * b.shape[-1] * (8 + 4 + 4) if len(a.shape) == 2 else operands


def cut(tensors: Tensors, edge: int | None) -> dict[str, tuple[slice, ...]]:
    """The first rows of a and columns of b, `edge` of each or what AFFORDED multiplications allow; K stays whole."""
    (m, k), n = tensors["a"].shape, tensors["b"].shape[-1]
    if edge is None:
        square = isqrt(AFFORDED // max(1, k))
        edge = max(16, square, AFFORDED // max(1, k * max(1, min(m, n)))) // 16 * 16
    if m <= edge and n <= edge:
        return {}
    return {"a": (slice(edge), slice(None)), "b": (slice(None), slice(edge))}


# -- launches --------------------------------------------------------------------------------------------------------

PARAMETERS = read_parameters(__file__, "matmul")
OPTIONS = read_parameters(__file__, "matmul", "options")


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    """Casts to the type that is computed in, the product, and what has to follow it."""
    found = resolve(tensors, context.product, current_device().cube_math_type)
    steps: list[Step] = []
    made = scaled_product if is_scaled(tensors) else _plain if found.split is None else _sliced
    result, tiling = made(tensors, knobs, found, context, steps)
    wanted = _wanted(options, element_type(found.output()), context)
    out = converted(result, wanted, context, steps, knobs["buffers"])
    return Plan(tuple(steps), {"out": out}, tiling, _notes(found, tiling))


def _plain(
    tensors: Tensors, knobs: Knobs, found: Resolution, context: PlanContext, steps: list[Step]
) -> tuple[Tensor, dict[str, Any]]:
    """The product in one launch, and the sum of its parts in another; with the tiling."""
    compute, written = (element_type(n) for n in (found.compute, found.output()))
    a, b = (converted(tensors[n], compute, context, steps, knobs["buffers"]) for n in ("a", "b"))
    tiling = choose(a, b, knobs, context, found)
    shape = (a.shape[0], b.shape[1])
    result = context.tensor(shape, written)
    target = context.tensor((tiling["split_k"], *shape), ty.float32) if tiling["split_k"] > 1 else result
    steps.append(product_step(a, b, target, tiling, found))
    if target is not result:
        steps.append(sum_partials_step(target, result, context.product.vector_cores, tiling["buffers"]))
    return result, tiling


def _sliced(
    tensors: Tensors, knobs: Knobs, found: Resolution, context: PlanContext, steps: list[Step]
) -> tuple[Tensor, dict[str, Any]]:
    """The same of operands in slices."""
    assert found.split is not None
    tiling = choose(*one_slice(tensors, found.split), knobs, context, found)
    return product_of(
        cut_operands(tensors, found.split, context, steps), tiling, found, context, steps
    ), tiling


def _wanted(options: Options, written: ty.DType, context: PlanContext) -> ty.DType:
    name = options["out_dtype"]
    found = written if name == "auto" else element_type(name)
    if found.name not in context.product.texts("dtypes.storage"):
        raise UsageError(f"matmul: out_dtype {name}: {context.product.name} does not store {name}")
    return found


def _notes(found: Resolution, tiling: Knobs) -> tuple[str, ...]:
    notes = cube_notes(found, tiling)
    if tiling["split_k"] > 1:
        notes.append(f"the sum is split into {tiling['split_k']} parts, added in a fixed order (assumed)")
    return tuple(notes)


# -- reference -------------------------------------------------------------------------------------------------------


def formula(inputs: Arrays, options: Options) -> Arrays:
    """out in float64."""
    found = operands_in_blocks(inputs) if is_scaled(inputs) else inputs
    a, b = found["a"], float64(found["b"])
    out = np.empty((a.shape[0], b.shape[1]))

    def one(start: int, stop: int) -> None:
        np.matmul(float64(a[start:stop]), b, out=out[start:stop])

    in_chunks(a.shape[0], GOLDEN_ROWS, one)
    return {"out": out}


# -- the operator ----------------------------------------------------------------------------------------------------


DOC = """out (M, N) of a (M, K) and b (K, N), each float16, bfloat16 or float32, on a product.

out has the type that the Cube writes in this cube_math_type, or `out_dtype`. Raises `RefusedError` (status 161002) for a
mode that the product refuses."""

OPERATOR = Operator(
    name="matmul",
    summary="matrix product on the Cube in every cubeMathType (aclnnMatmul)",
    required=("a", "b"),
    main="a",
    outputs=("out",),
    sizes={"m": "rows of a", "n": "columns of b", "k": "length of the sums"},
    cases=read_cases(__file__, "matmul"),
    parameters=PARAMETERS,
    options=OPTIONS,
    arguments=(dtype_argument("out_dtype"),),
    doc=DOC,
    **by_name(describe, draw, check, plan, formula, host_bytes, resolve, cut, explored, fits, bound_us),
    uses_cube=True,
    formats=True,
    modes=5,
    accumulates="k",
    cancels=True,
    order_knobs=("split_k", "accumulate"),
    sliced={"a": (0, 1), "b": (1, 0)},
)


matmul = python_face(OPERATOR, __name__)
