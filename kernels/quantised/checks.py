"""What products of quantised numbers refuse: types, shapes and values of their inputs.

Types and shapes are those of the vendor's interfaces (`hicann/ops-nn`: aclnnQuantMatmulV4,
aclnnWeightQuantBatchMatmulV2, their documents' tables for A2, A3 and the Atlas inference products; `ops-transformer`:
aclnnGroupedMatmulV4); README.md has what is taken beyond them and what is left out.
"""

from __future__ import annotations

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.products import Product
from ..operator.messages import listed, refuse
from ..operator.tensors import Options, Tensor, Tensors, dtype_name
from .form import FLOAT, INT4, LEAST_GROUP, Lengths, form_of, is_transposed, lengths_of, packed, weights_of

LONGEST = 2**31 // 2**14 - 1  # sum of products of two int8 that an int32 holds in any case
COUPLED_TYPES = ("float16", "int8")  # of results where INT8 leaves L0C through the Vector unit


def check(op: str, tensors: Tensors, options: Options, product: Product) -> Lengths:
    """Lengths of the product. Raises `RefusedError` (161002) for types, `UsageError` for shapes and values."""
    _axes(op, tensors)
    weight = weights_of(op, tensors)
    n = lengths_of(tensors, options)
    _lengths(op, tensors, options, n)
    _scales(op, tensors, weight, n)
    _beside(op, tensors, weight, n)
    _types(op, tensors, weight, options, product)
    for name in ("scale", "token_scale", "offset"):
        _values(op, name, tensors.get(name))
    return n


def _axes(op: str, tensors: Tensors) -> None:
    for name, wanted in (("x", 2), ("weight", 3 if op == "grouped_matmul" else 2)):
        shape = tensors[name].shape
        if len(shape) != wanted:
            raise UsageError(f"{op}: {name} has shape {shape}; it must have {wanted} axes")
        if not all(shape):
            raise UsageError(f"{op}: {name} has shape {shape}; every axis needs at least one element")


def _lengths(op: str, tensors: Tensors, options: Options, n: Lengths) -> None:
    shape, pairs = tensors["weight"].shape[-2:], packed(tensors)
    found = shape[1] * pairs if is_transposed(tensors, options) else shape[0]
    if n.k != found:
        kind = f"{dtype_name(tensors['weight'])}{', two int4 a byte' if pairs == 2 else ''}"
        raise UsageError(
            f"{op}: x is {tensors['x'].shape}, weight is {tensors['weight'].shape} of {kind}; sums of {n.k} terms need a "
            f"weight of {n.k} rows, or of {n.k} columns if it is transposed, and this one has {found}"
        )
    if dtype_name(tensors["x"]) == "int8" and n.k > LONGEST:
        raise UsageError(
            f"{op}: sums of {n.k} products of int8 may not fit an int32; {LONGEST} terms at most do"
        )


def _scales(op: str, tensors: Tensors, weight: str, n: Lengths) -> None:
    if weight == FLOAT:
        for name in ("scale", "offset", "token_scale"):
            if name in tensors:
                raise UsageError(f"{op}: {name} is given, but x and weight are not quantised; leave it out")
        return
    if "scale" not in tensors:
        raise UsageError(f"{op}: scale is missing; a weight of type {dtype_name(tensors['weight'])} needs it")
    shape = tensors["scale"].shape
    own = shape[1:] if n.experts > 1 or len(tensors["weight"].shape) == 3 else shape
    if len(tensors["weight"].shape) == 3 and (len(shape) < 2 or shape[0] != n.experts):
        raise _wrong_scale(op, shape, n, weight)
    if len(own) == 2 and own[1] == n.n:
        _group(op, own[0], n.k)
    elif own not in ((1,), (n.n,)):
        raise _wrong_scale(op, shape, n, weight)


def _wrong_scale(op: str, shape: tuple[int, ...], n: Lengths, weight: str) -> UsageError:
    lead = f"{n.experts}, " if op == "grouped_matmul" else ""
    forms = f"({lead}1), ({lead}{n.n}) or ({lead}groups, {n.n})"
    twice = (
        f"; weight holds two int4 a byte, so it has {n.n} columns, an even number" if weight == INT4 else ""
    )
    return UsageError(f"{op}: scale has shape {shape}; it must be {forms}{twice}")


def _group(op: str, groups: int, k: int) -> None:
    if k % groups:
        raise UsageError(f"{op}: scale has {groups} groups, which do not divide the {k} terms of a sum")
    if groups > 1 and (k // groups) % LEAST_GROUP:
        raise UsageError(
            f"{op}: scale has groups of {k // groups} terms; they must be of {LEAST_GROUP} or a multiple of it"
        )


def _beside(op: str, tensors: Tensors, weight: str, n: Lengths) -> None:
    """Offset, scales of rows, bias."""
    of_weights = dtype_name(tensors["x"]) != "int8"
    if "offset" in tensors:
        if not of_weights:
            raise UsageError(f"{op}: offset is of weights that are multiplied in floating point; x is int8")
        if tensors["offset"].shape != tensors["scale"].shape:
            raise UsageError(
                f"{op}: offset is {tensors['offset'].shape}, scale is {tensors['scale'].shape}; they must be of one shape"
            )
    if "token_scale" in tensors:
        if of_weights:
            raise UsageError(f"{op}: token_scale is of rows of an int8 x; x is {dtype_name(tensors['x'])}")
        if tensors["token_scale"].shape != (n.m,):
            raise UsageError(
                f"{op}: token_scale has shape {tensors['token_scale'].shape}; it must be ({n.m},)"
            )
    if "bias" in tensors:
        wanted = (n.experts, n.n) if op == "grouped_matmul" else (n.n,)
        if tensors["bias"].shape != wanted:
            raise UsageError(f"{op}: bias has shape {tensors['bias'].shape}; it must be {wanted}")


def _types(op: str, tensors: Tensors, weight: str, options: Options, product: Product) -> None:
    kinds = {n: dtype_name(x) for n, x in tensors.items()}
    storage = product.texts("dtypes.storage")
    for name, kind in kinds.items():
        if kind == "bfloat16" and "bf16" not in storage:
            raise refuse(f"{op}: {name} is bfloat16, which {product.name} does not store; take float16")
    if weight == INT4 and product.core_model != "split":
        raise refuse(
            f"{op}: weight is int4; on {product.name} weights are int8 (aclnnWeightQuantBatchMatmulV2)"
        )
    x8 = kinds["x"] == "int8"
    allowed = {
        "scale": ("float32", "bfloat16") if x8 else (kinds["x"],),
        "offset": (kinds["x"],),
        "token_scale": ("float32",),
        "bias": ("int32", "float32", "float16", "bfloat16") if x8 else ("float32", "float16"),
    }
    for name, kind in kinds.items():
        if name in allowed and kind not in allowed[name]:
            raise refuse(
                f"{op}: {name} is {kind}; with x of type {kinds['x']} it must be {listed(allowed[name], 'or')}"
            )
    if form_of(op, tensors, options).group and kinds.get("bias") == "int32":
        raise refuse(f"{op}: bias is int32, but sums are scaled group by group; give it as float32")
    out = result_type(tensors, options)
    _result(op, out, x8, tensors, product)


def _result(op: str, out: str, x8: bool, tensors: Tensors, product: Product) -> None:
    if out == "int8" and (not x8 or "token_scale" in tensors or dtype_name(tensors["scale"]) != "float32"):
        raise refuse(
            f"{op}: out_dtype int8 is what the fixpipe makes of int8 operands with float32 scales of columns alone"
        )
    if not x8 and out != dtype_name(tensors["x"]):
        raise refuse(f"{op}: out_dtype is {out}, x is {dtype_name(tensors['x'])}; they must be of one type")
    if product.core_model != "split" and out not in COUPLED_TYPES:
        raise refuse(f"{op}: out_dtype is {out}; on {product.name} it must be {listed(COUPLED_TYPES, 'or')}")


def result_type(tensors: Tensors, options: Options) -> str:
    """The type of the result: as asked for, else that of a floating-point x, that of a bfloat16 scale, or float16."""
    asked = options["out_dtype"]
    if asked != "auto":
        return str(asked)
    of = dtype_name(tensors["x"])
    if of == "int8":
        return "bfloat16" if dtype_name(tensors["scale"]) == "bfloat16" else "float16"
    return of


def _values(op: str, name: str, x: Tensor | None) -> None:
    if not isinstance(x, np.ndarray) or not x.size:
        return
    wide = x.astype(np.float32)
    bad = ~np.isfinite(wide) if name == "offset" else ~(np.isfinite(wide) & (wide > 0))
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        rule = "finite" if name == "offset" else "finite and above 0"
        raise UsageError(f"{op}: {name}{list(at)} is {wide[at]}; it must be {rule}")
