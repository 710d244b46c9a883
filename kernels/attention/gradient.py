"""The gradients of attention (aclnnFlashAttentionScoreGrad): dq, dk and dv without the matrix of scores in memory.

With p = exp(scale q k^T - lse) from what the forward pass kept, dp = dout v^T and delta = sum(dout * out over D):

    ds = p * (dp - delta)          dq = scale ds k          dk = scale ds^T q          dv = p^T dout

dk and dv are sums over the queries, of all heads that share the keys; dq is a sum over the keys: two launches, the first
with a program for blocks of queries (it makes delta, too), the second for blocks of keys. No two programs write to the same
place, nothing is atomic, and the results are the same every time. The vendor computes scores once and adds to dq in memory
by atomics; deterministic takes its other kernel. p and ds are rounded to the type of the inputs before they are multiplied.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...simulator.interpreter.tensors import Shape
from ...simulator.precision.dtypes import float32
from ...simulator.precision.rounding import encode
from ...simulator.products import Product
from ..operator.draw import Draw
from ..operator.notes import cube_notes
from ..operator.operator import Operator, by_name
from ..operator.parallel import float64, in_chunks
from ..operator.plan import Plan, PlanContext, Step
from ..operator.tensors import Arrays, Knobs, Options, Sizes, Tensors, dtype_of
from ..running.face import python_face
from .heads import (
    CASES,
    OPTIONS,
    PARAMETERS,
    SIZES,
    WHERE,
    arguments,
    by_head,
    check_heads,
    check_lse,
    heads_of,
    host_bytes,
    operands,
    resolve,
    scale_of,
    scores,
    shapes_of,
)
from .op import formula as forward
from .space import GRADIENT_WORK, choose, explored, one_loop
from .tiles import key_tiles, query_tiles

NAME = "flash_attention_grad"
MULTIPLIED = ("q", "k", "v", "dout")


def describe(sizes: Sizes, dtype: str) -> dict[str, Shape]:
    found = shapes_of(sizes, dtype)
    q = found["q"]
    return {**found, "attention_out": q, "lse": Shape(q.shape[:3], float32), "dout": q}


def draw(shapes: Mapping[str, Shape], numbers: Draw) -> Arrays:
    """q, k, v and dout of the run's distribution; attention_out and lse of them without a mask."""
    found = {n: numbers.signal(n, shapes[n]) for n in ("q", "k", "v", "dout")}
    kept = forward(found, {"scale": None, "causal": 0})
    kept["attention_out"] = kept.pop("out")
    return {**found, **{n: encode(x, shapes[n].dtype.name) for n, x in kept.items()}}


def check(tensors: Tensors, options: Options, product: Product) -> tuple[str, ...]:
    check_heads(NAME, tensors, ("attention_out", "dout"), product)
    check_lse(NAME, tensors)
    return ()


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    """Casts that the cubeMathType asks for, dq and delta, then dk and dv."""
    heads, causal = heads_of(tensors), bool(options["causal"])
    outputs = {f"d{n}": context.output(f"d{n}", tensors[n].shape, dtype_of(tensors[n])) for n in "qkv"}
    found, seen, casts = operands(MULTIPLIED, tensors, knobs, context)
    tiling = choose(GRADIENT_WORK, seen, knobs, context)
    common = {
        **{f"{n}_ptr": seen[n] for n in ("q", "k", "v", "dout", "lse")},
        "delta_ptr": context.tensor(tensors["lse"].shape, float32),
        **{"M": heads.m, "N": heads.n, "scale": scale_of(tensors, options)},
        **{"GROUP": heads.group, "CAUSAL": causal, "D": heads.d},
        "STAGGER": tiling["starts"] == "apart",
        **{"BM": tiling["block_m"], "BN": tiling["block_n"], "multibuffer": tiling["buffers"]},
    }
    of_keys = heads.total // heads.group
    queries = {"out_ptr": tensors["attention_out"], "dq_ptr": outputs["dq"], "heads": heads.total}
    queries["ONE_LOOP"] = one_loop(heads, tiling, causal)
    keys = {"dk_ptr": outputs["dk"], "dv_ptr": outputs["dv"], "heads": of_keys}
    grids = (
        heads.total * -(-heads.m // tiling["block_m"]),
        of_keys * -(-heads.n // tiling["block_n"]),
    )
    rounding = {"hf32_round": found.hf32_round}
    steps = (
        Step(query_tiles, min(tiling["cores"], grids[0]), {**common, **queries}, rounding),
        Step(key_tiles, min(tiling["cores"], grids[1]), {**common, **keys}, rounding),
    )
    return Plan((*casts, *steps), outputs, tiling, tuple(cube_notes(found, tiling)))


def formula(inputs: Arrays, options: Options) -> Arrays:
    """dq, dk and dv in float64."""
    q, k, v, out, lse, dout = by_head(inputs, ("q", "k", "v", "attention_out", "lse", "dout"))
    heads, scale = heads_of(inputs), scale_of(inputs, options)
    dq, dk, dv = np.zeros(q.shape), np.zeros(k.shape), np.zeros(v.shape)

    def one(h: int, _: int) -> None:  # a head of keys, and those of queries that share it
        keys, values = float64(k[h]), float64(v[h])
        for i in range(h * heads.group, (h + 1) * heads.group):
            queries, given = float64(q[i]), float64(dout[i])
            s = scores(queries, keys, scale, bool(options["causal"]))
            p = np.exp(s - float64(lse[i])[:, None])
            delta = (given * float64(out[i])).sum(axis=1, keepdims=True)
            ds = p * (given @ values.T - delta) * scale
            dq[i] = ds @ keys
            dk[h] += ds.T @ queries
            dv[h] += p.T @ given

    in_chunks(len(k), 1, one)
    return {f"d{n}": x.reshape(inputs[n].shape) for n, x in zip("qkv", (dq, dk, dv), strict=True)}


DOC = """dq, dk and dv (as q, k and v) of `flash_attention`, for the gradient dout of out.

q, k, v, causal and scale: as there; attention_out and lse: its out and lse; dout: as out."""

fits, bound_us = GRADIENT_WORK.fits, GRADIENT_WORK.bound_us

OPERATOR = Operator(
    name=NAME,
    summary="gradients of attention: dq, dk and dv (aclnnFlashAttentionScoreGrad)",
    required=("q", "k", "v", "attention_out", "lse", "dout"),
    main="q",
    fixed_dtypes={"lse": "float32"},
    outputs=("dq", "dk", "dv"),
    sizes=SIZES,
    cases=CASES,
    parameters=PARAMETERS,
    options=OPTIONS,
    arguments=arguments(NAME),
    doc=DOC,
    architectures=WHERE,
    **by_name(describe, draw, check, plan, formula, host_bytes, explored, fits, bound_us, resolve),
    uses_cube=True,
    modes=5,
    one_dtype=True,
    multiplied=MULTIPLIED,
    accumulates="s",
    scaled="dout",
    order_knobs=("block_m", "block_n", "cores", "starts"),
    whole="dk and dv sum over all queries",
)


flash_attention_grad = python_face(OPERATOR, __name__)
