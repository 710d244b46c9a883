"""Matrix product of quantised numbers: out (M, N) = x (M, K) weight (K, N), in INT8 or with weights of 8 or 4 bits.

W8A8, x and weight int8 (aclnnQuantMatmulV4 and V5), sums in INT32 on the Cube:

    out = (x weight + bias) scale token_scale       bias int32, added to the sums
    out = x weight scale token_scale + bias         bias of a floating-point type

scale is of all columns, of each, or of each and every group of K terms; token_scale is of rows. A scale of columns alone is
multiplied by the fixpipe on the way out of L0C into float16 or int8, with 11 bits of it; all others by the Vector cores
in FP32.

W8A16 and W4A16, x float16 or bfloat16 and weight int8 or two int4 a byte (aclnnWeightQuantBatchMatmulV2):

    out = x ((weight + offset) scale) + bias

The Vector cores make weights of the type of x of them, on the way to the Cube or in a launch before it. README.md
compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.interpreter.tensors import Shape
from ...simulator.products import Product
from ..operator.declared import read_cases, read_parameters
from ..operator.operator import Operator, by_name
from ..operator.parameter import Argument, dtype_argument
from ..operator.plan import Plan, PlanContext
from ..operator.tensors import Arrays, Columns, Knobs, Options, Sizes, Tensors, dtype_of, element_type
from ..running.face import python_face
from . import checks
from .drawing import SIZES, described, draw, read_sizes
from .form import Form, form_of, is_transposed, lengths_of
from .launches import product_steps
from .model import QuantisedWork
from .reference import product_in_float64
from .space import axes, choose, rules

NAME = "quant_matmul"
# Types that an input may come in, which it keeps.
OWN_DTYPES = {
    "x": ("int8", "float16", "bfloat16"),
    "weight": ("int8", "uint8", "float16", "bfloat16"),
    "scale": ("float32", "float16", "bfloat16"),
    "token_scale": ("float32",),
    "offset": ("float16", "bfloat16"),
    "bias": ("int32", "float32", "float16", "bfloat16"),
}


def describe(sizes: Sizes, dtype: str) -> dict[str, Shape]:
    """x (M, K), weight (K, N), transposed or two in a byte, scale (N,) or (groups, N), and token_scale (M,)."""
    return described(read_sizes(NAME, {"w_bits": 8, **sizes}), dtype)


def check(tensors: Tensors, options: Options, product: Product) -> tuple[str, ...]:
    checks.check(NAME, tensors, options, product)
    return ()


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    """The product, and what comes before or after it."""
    form, n = form_of(NAME, tensors, options), lengths_of(tensors, options)
    name = checks.result_type(tensors, options)
    kind = element_type(name)
    tiling = choose(NAME, form, n, name, kind.itemsize, knobs, context)
    out = context.output("out", (n.m, n.n), kind)
    steps = product_steps(tensors, out, form, n, tiling, context)
    return Plan(tuple(steps), {"out": out}, tiling, notes(form, tiling, context.product))


def notes(form: Form, tiling: Knobs, product: Product) -> tuple[str, ...]:
    """What is multiplied in which numbers, and by whom scales are."""
    out = "the fixpipe" if product.core_model == "split" else "the Vector unit on the way out of L0C"
    who = {
        "fixpipe": f"{out} (11 bits of a scale)",
        "fused": "the Vector cores",
        "apart": "a launch of its own",
    }
    what = "sums" if form.x8 else "weights"
    found = [f"{form.name}: {what} are scaled by {who[tiling['scaling']]}"] if form.scale != "none" else []
    if (tiling.get("split_k") or 1) > 1:
        found.append(f"the sum is split into {tiling['split_k']} parts, added in a fixed order")
    return tuple(found)


# -- reference -------------------------------------------------------------------------------------------------------


def formula(inputs: Arrays, options: Options) -> Arrays:
    """out in float64: of the quantised inputs, with all bits of the scales; int8 rounded to whole numbers in its range."""
    out = product_in_float64(inputs, is_transposed(inputs, options))
    if checks.result_type(inputs, options) == "int8":
        out = np.clip(np.rint(out), -128, 127)
    return {"out": out}


def host_bytes(tensors: Tensors) -> int:
    """Operands as stored, as float32 and in float64, and the result in float64 and twice in float32."""
    x, weight = tensors["x"], tensors["weight"]
    wide = 2 if weight.dtype == np.uint8 or getattr(dtype_of(weight), "name", "") == "uint8" else 1
    operands = x.size * (dtype_of(x).itemsize + 12) + weight.size * (1 + 12 * wide)
    return int(operands + x.shape[0] * weight.shape[-1] * wide * 16)


# -- tilings ---------------------------------------------------------------------------------------------------------


def explored(tensors: Tensors, product: Product, options: Options) -> Mapping[str, tuple[Any, ...]]:
    """Edges and depth of tiles, parts of the sum, who scales, copies."""
    form, n = form_of(NAME, tensors, options), lengths_of(tensors, options)
    return {**axes(form, n, checks.result_type(tensors, options)), "buffers": (2, 3)}


def fits(
    tensors: Tensors, product: Product, mode: str, points: Columns, axes: Knobs, options: Options
) -> Columns:
    """Rule -> which points keep it."""
    form, n = form_of(NAME, tensors, options), lengths_of(tensors, options)
    return rules(product, form, n, points)


def bound_us(tensors: Tensors, product: Product, mode: str, points: Columns, options: Options) -> np.ndarray:
    """Least time in us of each point, all launches of it."""
    form, n = form_of(NAME, tensors, options), lengths_of(tensors, options)
    written = element_type(checks.result_type(tensors, options)).itemsize
    return QuantisedWork(product, form, n, written, points).bound_us()


# -- the operator ----------------------------------------------------------------------------------------------------


def transposed_argument() -> Argument:
    """Of the Python faces: True, False, or None for what the shapes say."""

    def read(given: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        if given is not None and not isinstance(given, bool):
            raise UsageError(f"transpose_weight is {given!r}; it must be True, False or None")
        return {"transpose_weight": "auto" if given is None else "yes" if given else "no"}

    return Argument("transpose_weight", "bool | None", None, read, keyword=True)


DOC = """out (M, N) of x (M, K) and weight (K, N), of which one or both are quantised.

x: int8, float16 or bfloat16. weight: int8, or uint8 of (K, N / 2), two int4 a byte, the first in the low four bits. scale:
(1,), (N,) or (groups, N), float32 or bfloat16 for an int8 x, else of the type of x; finite and above 0. token_scale: (M,)
float32, of rows of an int8 x. offset: of the shape of scale, added to weights that are multiplied in floating point before
they are scaled. bias: (N,); int32 starts the sums of int8, a floating-point one is added at the end. out_dtype: "auto",
"float16", "bfloat16" or "int8", which the fixpipe makes of int8 operands. transpose_weight: whether weight is (N, K), or
(N, K / 2) of int4; None: as its shape says, (K, N) where it could be both. Raises `UsageError` for shapes and values,
`RefusedError` (161002) for types."""

OPERATOR = Operator(
    name=NAME,
    summary="matrix product in INT8, or with weights of 8 or 4 bits (aclnnQuantMatmulV4, aclnnWeightQuantBatchMatmulV2)",
    dtypes=("float16", "bfloat16"),
    required=("x", "weight", "scale"),
    optional=("token_scale", "offset", "bias"),
    own_dtypes=OWN_DTYPES,
    main="x",
    outputs=("out",),
    sizes=SIZES,
    cases=read_cases(__file__, NAME),
    parameters=read_parameters(__file__, NAME),
    options=read_parameters(__file__, NAME, "options"),
    arguments=(dtype_argument("out_dtype"), transposed_argument()),
    architectures={2201: ("float16", "bfloat16"), 2002: ("float16",)},
    doc=DOC,
    **by_name(describe, draw, check, plan, formula, host_bytes, explored, fits, bound_us),
    uses_cube=True,
    accumulates="k",
    whole="scales belong to rows, columns and groups of it",
    order_knobs=("split_k", "scaling"),
)


quant_matmul = python_face(OPERATOR, __name__)
