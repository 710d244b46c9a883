"""What attention and its gradients share: heads and lengths of the tensors, checks, scores in float64."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ... import simulator as sim
from ...simulator.device import current_device
from ...simulator.errors import UsageError
from ...simulator.interpreter.tensors import Shape
from ...simulator.precision.cube_math import Resolution, resolve_matmul
from ...simulator.products import Product
from ..operator.declared import read_cases, read_parameters
from ..operator.messages import check_dtype, check_same_dtype, refuse
from ..operator.operator import offered_on
from ..operator.parameter import Argument, flag_argument
from ..operator.plan import PlanContext, Step
from ..operator.tensors import Arrays, Knobs, Options, Sizes, Tensors, dtype_name, dtype_of, element_type
from ..shared.casts import converted

FORWARD = "flash_attention"  # the entry of both in cases.toml and knobs.toml
WHERE = offered_on(2201)  # the vendor has FlashAttentionScore and its gradient on A2 and A3
CASES = read_cases(__file__, FORWARD)
PARAMETERS = read_parameters(__file__, FORWARD)
OPTIONS = read_parameters(__file__, FORWARD, "options")
SIZES = {
    "b": "batches",
    "n": "heads of queries",
    "s": "queries of a head",
    "d": "length of a query, a key and a value",
    "n_kv": "optional: heads of keys and values, of which n is a multiple; n if left out",
    "s_kv": "optional: keys of a head; s if left out",
}
WIDEST = 1 << 24  # positions are compared as FP32


def arguments(name: str) -> tuple[Argument, ...]:
    """causal and scale, as the Python face takes them."""
    return flag_argument(name, "causal", False), Argument("scale", "float | None", None)


class Heads(NamedTuple):
    """Sizes of a call: heads of queries in all, how many share one of keys, queries, keys, length of a row."""

    total: int
    group: int
    m: int
    n: int
    d: int


def heads_of(tensors: Tensors) -> Heads:
    """Of tensors that have been checked."""
    (b, heads, m, d), (_, of_keys, n, _) = tensors["q"].shape, tensors["k"].shape
    return Heads(b * heads, heads // of_keys, m, n, d)


def resolve(tensors: Tensors, product: Product, mode: str) -> Resolution:
    """What a cubeMathType means: as for matmul (assumed: the vendor's attention has none), but sums stay whole and results
    have the type of the inputs."""
    kind = dtype_of(tensors["q"]).name
    return replace(resolve_matmul(product, (kind, kind), mode), grouped=False, outputs=(), warning=None)


def operands(
    names: Iterable[str], tensors: Tensors, knobs: Knobs, context: PlanContext
) -> tuple[Resolution, Tensors, list[Step]]:
    """The cubeMathType, the tensors with those of these names in the type that it multiplies, and the casts to it."""
    found = resolve(tensors, context.product, current_device().cube_math_type)
    compute, casts = element_type(found.compute), list[Step]()
    cast = {n: converted(tensors[n], compute, context, casts, knobs["buffers"]) for n in names}
    return found, {**tensors, **cast}, casts


def scale_of(tensors: Tensors, options: Options) -> float:
    """The factor of the scores."""
    given = options["scale"]
    return float(tensors["q"].shape[-1] ** -0.5 if given is None else given)


def shapes_of(sizes: Sizes, dtype: str) -> dict[str, Shape]:
    """q (B, N, S, D), k and v (B, Nkv, Skv, D) of a case."""
    number: dict[str, int] = {}
    for n, x in sizes.items():
        if not isinstance(x, int):
            raise UsageError(f"attention: size {n!r} must be one number, got {x}")
        number[n] = x
    b, n_q, s, d = (number[x] for x in ("b", "n", "s", "d"))
    keys = (b, number.get("n_kv", n_q), number.get("s_kv", s), d)
    return {"q": sim.shape((b, n_q, s, d), dtype), "k": sim.shape(keys, dtype), "v": sim.shape(keys, dtype)}


def check_heads(name: str, tensors: Tensors, like_q: Sequence[str], product: Product) -> None:
    """One type; four axes; heads of keys that divide those of queries; what is like q has its shape."""
    check_dtype(name, "q", tensors["q"], WHERE[product.integer("product.npu_arch")], product)
    check_same_dtype(name, tensors, "q", ("k", "v", *like_q))
    for x in ("q", "k", "v"):
        if len(tensors[x].shape) != 4:
            raise refuse(f"{name}: {x} has shape {tensors[x].shape}; it must be (B, N, S, D)")
        if tensors[x].size == 0:
            raise refuse(f"{name}: {x} has shape {tensors[x].shape} and no elements; give every size from 1")
    _check_alike(name, tensors, {"v": "k", **dict.fromkeys(like_q, "q")})
    mode = current_device().cube_math_type
    found = resolve(tensors, product, mode)
    if not found.ok:
        raise refuse(f"{name}: cube_math_type {mode} is refused: {found.reason}")
    q, k = tensors["q"].shape, tensors["k"].shape
    if (q[0], q[3]) != (k[0], k[3]):
        raise refuse(f"{name}: q has shape {q}, k has {k}; B and D must be equal")
    if q[1] % k[1]:
        raise refuse(f"{name}: q has {q[1]} heads, k has {k[1]}; the first must be a multiple of the second")
    if max(q[2], k[2]) > WIDEST:
        raise refuse(
            f"{name}: {max(q[2], k[2])} rows of a head; positions are compared as FP32, up to {WIDEST}"
        )


def _check_alike(name: str, tensors: Tensors, pairs: dict[str, str]) -> None:
    for x, like in pairs.items():
        if tensors[x].shape != tensors[like].shape:
            raise refuse(
                f"{name}: {x} has shape {tensors[x].shape}, {like} has {tensors[like].shape}; they must be equal"
            )


def check_lse(name: str, tensors: Tensors) -> None:
    """lse is float32, one for each query."""
    lse, wanted = tensors["lse"], tensors["q"].shape[:3]
    if lse.shape != wanted or dtype_name(lse) != "float32":
        raise refuse(
            f"{name}: lse is {dtype_name(lse)} {lse.shape}; it must be float32 {wanted}, as q without D"
        )


def host_bytes(tensors: Tensors) -> int:
    """Tensors as stored and twice in float64, and the scores of two heads in float64, four times."""
    scores = tensors["q"].shape[-2] * tensors["k"].shape[-2] if len(tensors["q"].shape) > 1 else 0
    return sum(x.size * (dtype_of(x).itemsize + 16) for x in tensors.values()) + 2 * 4 * 8 * scores


def scores(q: np.ndarray, k: np.ndarray, scale: float, causal: bool) -> np.ndarray:
    """(M, N) of a head in float64; minus infinity where a query does not see a key."""
    s = q @ k.T * scale
    return np.where(np.tri(*s.shape) > 0, s, -np.inf) if causal else np.asarray(s)


def by_head(inputs: Arrays, names: Iterable[str]) -> list[np.ndarray]:
    """Inputs as one array of heads each."""
    return [inputs[n].reshape(-1, *inputs[n].shape[2:]) for n in names]
