"""What is multiplied in which numbers: read from the types of x and weight, and the constant that the kernels are made
for."""

from __future__ import annotations

from typing import NamedTuple

from ..operator.messages import refuse
from ..operator.tensors import Options, Tensors, dtype_name

INT8, INT4, FLOAT = "int8", "int4", "float"
# Types of x and of weight as they are stored -> what the weights are. An int4 is half a byte, the first of a pair in the low
# four bits, as the vendor's INT4 tensors have it (aclnnConvertWeightToINT4Pack).
WEIGHTS = {
    **{(x, w): kind for x in ("float16", "bfloat16") for w, kind in (("int8", INT8), ("uint8", INT4))},
    **{(x, x): FLOAT for x in ("float16", "bfloat16")},
    ("int8", "int8"): INT8,
}
NAMES = {(True, INT8): "W8A8", (False, INT8): "W8A16", (False, INT4): "W4A16", (False, FLOAT): "W16A16"}
LEAST_GROUP = 32  # elements of K with scales of their own: 32 or a multiple (aclnnWeightQuantBatchMatmulV2)


class Form(NamedTuple):
    """What a kernel is made for.

    weight: INT8, INT4 or FLOAT, as it is stored. x8: x is int8, too, so that sums are int32. group: elements of K with
    scales of their own, 0 where a column has one. scale: "row", "number" or "none". where: scales are multiplied into
    the weights before the product ("weights"), into the sums by the "fixpipe" or on the "vector" cores, or not here
    ("nowhere"). tokens, offset: whether rows have scales, weights have offsets. bias: "none", sums "start" from it, or
    it is added "after". transposed: weights lie in memory column by column, as (N, K). even: no tile is cut short.
    """

    weight: str
    x8: bool
    group: int
    scale: str
    where: str
    tokens: bool
    offset: bool
    bias: str
    transposed: bool = False
    even: bool = False

    @property
    def name(self) -> str:
        """As the field calls it: bits of the weights and of x."""
        return NAMES[self.x8, self.weight]


class Lengths(NamedTuple):
    """Of the product: rows of x, columns of the result, terms of a sum; `experts` matrices of weights, and the rows of x
    that each of them multiplies (empty: one matrix, all rows)."""

    m: int
    n: int
    k: int
    experts: int = 1
    counts: tuple[int, ...] = ()

    @property
    def rows(self) -> tuple[int, ...]:
        """Of the products that have any."""
        return tuple(c for c in self.counts if c) or (self.m,)


def weights_of(op: str, tensors: Tensors) -> str:
    """What the weights are. Raises `RefusedError` (161002) for types that nobody multiplies."""
    kinds = dtype_name(tensors["x"]), dtype_name(tensors["weight"])
    if kinds not in WEIGHTS or (op == "quant_matmul" and WEIGHTS[kinds] == FLOAT):
        known = [f"{x} and {w}" for (x, w), kind in WEIGHTS.items() if kind != FLOAT or op != "quant_matmul"]
        raise refuse(
            f"{op}: x is {kinds[0]}, weight is {kinds[1]}; the pairs are {', '.join(known)} (uint8 holds two int4 a byte)"
        )
    return WEIGHTS[kinds]


def lengths_of(tensors: Tensors, options: Options) -> Lengths:
    """Lengths of checked tensors; the weights of several experts lie behind each other."""
    (m, k), shape = tensors["x"].shape, tensors["weight"].shape
    columns = shape[-2] if is_transposed(tensors, options) else shape[-1] * packed(tensors)
    return Lengths(m, columns, k, shape[0] if len(shape) == 3 else 1)


def packed(tensors: Tensors) -> int:
    """Weights in an element as it is stored."""
    return 2 if dtype_name(tensors["weight"]) == "uint8" else 1


def is_transposed(tensors: Tensors, options: Options) -> bool:
    """Whether the weights lie as (N, K): as said, else where their columns, and not their rows, are as long as a sum."""
    asked = options["transpose_weight"]
    if asked != "auto":
        return bool(asked == "yes")
    k, (rows, columns) = tensors["x"].shape[1], tensors["weight"].shape[-2:]
    return bool(rows != k and columns * packed(tensors) == k)


def form_of(op: str, tensors: Tensors, options: Options) -> Form:
    """The form of a product, with scales where they come first: on the weights, or behind the sums on the Vector cores."""
    weight, x8 = weights_of(op, tensors), dtype_name(tensors["x"]) == "int8"
    groups, scale = groups_of(tensors)
    bias = "none"
    if "bias" in tensors:
        bias = "after" if x8 and dtype_name(tensors["bias"]) != "int32" else "start"
    return Form(
        weight=weight,
        x8=x8,
        group=tensors["x"].shape[1] // groups if groups > 1 else 0,
        scale=scale,
        where="vector" if x8 else "weights" if weight != FLOAT else "nowhere",
        tokens="token_scale" in tensors,
        offset="offset" in tensors,
        bias=bias,
        transposed=is_transposed(tensors, options),
    )


def groups_of(tensors: Tensors) -> tuple[int, str]:
    """Groups of K, and whether a group has a number or a row of scales; the weights of experts have an axis more."""
    if "scale" not in tensors:
        return 1, "none"
    shape = tensors["scale"].shape
    own = shape[1:] if len(tensors["weight"].shape) == 3 else shape
    return (own[0] if len(own) == 2 else 1), "number" if own in ((1,), ()) else "row"
