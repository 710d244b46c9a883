"""A matrix product for each expert (aclnnGroupedMatmulV4 and V5, rows in groups): out (M, N) = x (M, K) weight (E, K, N).

Rows of x belong to the experts in their order; `group_list` says where the rows of each end ("cumsum"), or how many it has
("count"). What is multiplied in which numbers is as in quant_matmul (op.py), with scales, offsets and a bias of each expert;
float16 or bfloat16 of x and weight are multiplied as they are. One launch makes all products: programs share the tiles
of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.interpreter.tensors import Shape
from ...simulator.products import Product
from ..operator.declared import read_cases, read_parameters
from ..operator.messages import listed
from ..operator.operator import Operator, by_name
from ..operator.parameter import Argument, dtype_argument
from ..operator.plan import Plan, PlanContext, Step
from ..operator.tensors import Arrays, Columns, Knobs, Options, Sizes, Tensors, dtype_name, element_type
from ..running.face import python_face
from . import checks
from .drawing import SIZES, described, draw, read_sizes
from .form import Form, Lengths, form_of, is_transposed, lengths_of
from .grouped_tiles import grouped_tiles
from .launches import pointers
from .model import QuantisedWork
from .op import OWN_DTYPES, notes, transposed_argument
from .reference import product_in_float64
from .space import axes, choose, depth_of, rules

NAME = "grouped_matmul"
OF_EXPERT = ("weight", "scale", "offset", "bias")  # inputs with an axis of experts


def describe(sizes: Sizes, dtype: str) -> dict[str, Shape]:
    """x (M, K), weight (E, K, N), and what quantised ones have beside them."""
    given = {n: x for n, x in sizes.items() if n != "experts"}
    experts = sizes["experts"]
    if not isinstance(experts, int) or experts < 1:
        raise UsageError(f"{NAME}: size 'experts' is {experts}; it must be one number from 1")
    return described(read_sizes(NAME, {"x_bits": 16, "w_bits": 16, **given}), dtype, (experts,))


# -- groups ----------------------------------------------------------------------------------------------------------


def counts_of(tensors: Tensors, options: Options) -> tuple[int, ...]:
    """Rows of each expert. Raises `UsageError` for a list of another length, one that descends, or that does not add up."""
    rows, experts = tensors["x"].shape[0], tensors["weight"].shape[0]
    given = options["group_list"]
    if given is None:
        return tuple(rows // experts + (e < rows % experts) for e in range(experts))
    if len(given) != experts:
        raise UsageError(
            f"{NAME}: group_list has {len(given)} entries, weight has {experts} experts; give one for each"
        )
    counts = tuple(given)
    if options["group_list_type"] == "cumsum":
        counts = tuple(int(b - a) for a, b in zip((0, *given), given, strict=False))
        if min(counts) < 0:
            at = next(e for e, c in enumerate(counts) if c < 0)
            raise UsageError(
                f"{NAME}: group_list descends from {given[at - 1]} to {given[at]} at entry {at}; ends of groups never do "
                "(for sizes of groups take group_list_type='count')"
            )
    if sum(counts) != rows:
        what = "ends at" if options["group_list_type"] == "cumsum" else "adds up to"
        raise UsageError(
            f"{NAME}: group_list {what} {sum(counts)}, x has {rows} rows; every row belongs to an expert"
        )
    return counts


def _problem(tensors: Tensors, options: Options) -> tuple[Form, Lengths, str]:
    """The form, the lengths with the rows of each expert, and the type of the result."""
    n = lengths_of(tensors, options)._replace(counts=counts_of(tensors, options))
    return form_of(NAME, tensors, options), n, checks.result_type(tensors, options)


def check(tensors: Tensors, options: Options, product: Product) -> tuple[str, ...]:
    checks.check(NAME, tensors, options, product)
    counts_of(tensors, options)
    return ()


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    """One launch."""
    form, n, out_type = _problem(tensors, options)
    kind = element_type(out_type)
    tiling = choose(NAME, form, n, out_type, kind.itemsize, knobs, context)
    tiling["block_k"] = depth_of(form, tiling["block_k"], n.k)
    out = context.output("out", (n.m, n.n), kind)
    if form.x8 and tiling["scaling"] == "fixpipe":
        form = form._replace(where="fixpipe")
    bm, bn, bk = (tiling[f"block_{x}"] for x in "mnk")
    items = sum(-(-c // bm) for c in n.rows) * -(-n.n // bn)
    scales = int(np.prod(tensors["scale"].shape[1:])) if "scale" in tensors else 0
    even = not (any(c % bm for c in n.rows) or n.n % bn or n.k % bk)
    arguments = {
        **pointers(tensors),
        **{"out_ptr": out, "N": n.n, "K": n.k, "items": items, "GROUPS": _groups(n, bm, bn)},
        **{
            "scales": scales,
            "band": tiling["band"],
            "BM": bm,
            "BN": bn,
            "BK": bk,
            "FORM": form._replace(even=even),
        },
        "multibuffer": tiling["buffers"],
    }
    step = Step(grouped_tiles, min(items, tiling["cores"]), arguments)
    idle = sum(not c for c in n.counts)
    told = (f"{idle} of {n.experts} experts have no rows",) if idle else ()
    return Plan((step,), {"out": out}, tiling, (*notes(form, tiling, context.product), *told))


def _groups(n: Lengths, block_m: int, block_n: int) -> tuple[tuple[int, int, int, int], ...]:
    """See `grouped_tiles`."""
    found, first, tiles = [], 0, 0
    for expert, count in enumerate(n.counts):
        if count:
            found.append((expert, first, first + count, tiles))
        first += count
        tiles += -(-count // block_m) * -(-n.n // block_n)
    return tuple(found)


def formula(inputs: Arrays, options: Options) -> Arrays:
    """out in float64, expert by expert; int8 as in quant_matmul."""
    transposed, first, parts = is_transposed(inputs, options), 0, []
    for expert, count in enumerate(counts_of(inputs, options)):
        own = {n: x[expert] if n in OF_EXPERT else x for n, x in inputs.items()}
        rows = {n: x[first : first + count] if n in ("x", "token_scale") else x for n, x in own.items()}
        parts.append(product_in_float64(rows, transposed))
        first += count
    out = np.concatenate(parts)
    if checks.result_type(inputs, options) == "int8":
        out = np.clip(np.rint(out), -128, 127)
    return {"out": out}


def host_bytes(tensors: Tensors) -> int:
    """Operands as stored, as float32 and in float64, and the result in float64 and twice in float32."""
    x, weight = tensors["x"], tensors["weight"]
    pairs = 2 if dtype_name(weight) == "uint8" else 1
    return int(x.size * 14 + weight.size * 14 * pairs + x.shape[0] * max(weight.shape[1:]) * pairs * 16)


# -- tilings ---------------------------------------------------------------------------------------------------------


def explored(tensors: Tensors, product: Product, options: Options) -> Mapping[str, tuple[Any, ...]]:
    """Edges and depth of tiles, who scales, copies."""
    form, n, out = _problem(tensors, options)
    return {**axes(form, n, out), "buffers": (2, 3)}


def fits(
    tensors: Tensors, product: Product, mode: str, points: Columns, axes: Knobs, options: Options
) -> Columns:
    """Rule -> which points keep it."""
    form, n, _ = _problem(tensors, options)
    return rules(product, form, n, points)


def bound_us(tensors: Tensors, product: Product, mode: str, points: Columns, options: Options) -> np.ndarray:
    """Least time in us of each point."""
    form, n, out = _problem(tensors, options)
    return QuantisedWork(product, form, n, element_type(out).itemsize, points).bound_us()


# -- the operator ----------------------------------------------------------------------------------------------------


def _read_list(given: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    if given is not None and (np.ndim(given) != 1 or np.asarray(given).dtype.kind not in "iu"):
        raise UsageError(f"{NAME}: group_list must be a list of integers, one for each expert, got {given!r}")
    return {"group_list": None if given is None else tuple(int(x) for x in given)}


DOC = f"""out (M, N) of x (M, K) and weight (E, K, N): the rows of each expert times its weights.

x and weight: float16 or bfloat16, or quantised as quant_matmul takes them, with scale and offset of (E, 1), (E, N) or
(E, groups, N), token_scale of (M,) and bias of (E, N). group_list: for each expert where its rows end, or with
group_list_type="count" how many it has, which may be none; even parts if left out. out_dtype and transpose_weight: as of
quant_matmul, the latter for weights of (E, N, K). Raises `UsageError` for shapes, values and a {listed(["group_list"])} that
descends or does not add up to M, `RefusedError` (161002) for types."""

OPERATOR = Operator(
    name=NAME,
    summary="a matrix product for each expert, also of quantised numbers (aclnnGroupedMatmulV4)",
    dtypes=("float16", "bfloat16"),
    required=("x", "weight"),
    optional=("scale", "token_scale", "offset", "bias"),
    own_dtypes=OWN_DTYPES,
    main="x",
    outputs=("out",),
    sizes={
        "experts": "matrices of weights",
        **SIZES,
        "x_bits": "optional: 16 (the type of the run) or 8 (int8) bits of an element of x; 16 if left out",
        "w_bits": "optional: 16 (the type of the run), 8 or 4 bits of a weight; 16 if left out",
    },
    cases=read_cases(__file__, NAME),
    parameters=read_parameters(__file__, NAME),
    options=read_parameters(__file__, NAME, "options"),
    arguments=(
        Argument("group_list", "Sequence[int] | None", None, _read_list, keyword=True),
        Argument("group_list_type", "str", "cumsum", keyword=True),
        transposed_argument(),
        dtype_argument("out_dtype"),
    ),
    architectures={2201: ("float16", "bfloat16")},
    doc=DOC,
    **by_name(describe, draw, check, plan, formula, host_bytes, explored, fits, bound_us),
    uses_cube=True,
    accumulates="k",
    whole="scales belong to rows, columns and groups of it",
    order_knobs=("scaling",),
)


grouped_matmul = python_face(OPERATOR, __name__)
