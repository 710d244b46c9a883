"""FlashAttention (aclnnFlashAttentionScore): out = softmax(scale q k^T) v without the matrix of scores in memory.

q is (B, N, S, D), k and v (B, Nkv, Skv, D); head n of the queries goes with head n // (N / Nkv) of the keys. causal is
what torch's scaled_dot_product_attention calls is_causal: query i sees the keys 0 to i, counted from the first of both,
also where S and Skv differ (the vendor's sparse_mode 2; its mode 3 counts from the last). Beside out goes lse, the
logarithm of each row's sum of exponentials, in FP32: the gradient takes it. The vendor hands out the maximum m and the sum
t instead, 8 times each; lse = m + log t.

The Cube multiplies in the type of the inputs and adds in FP32; scale, softmax and the weighted sum are FP32; probabilities
are rounded to the type of the inputs before they are multiplied with v, as the vendor does. cubeMathType counts as for
matmul: float32 may be multiplied as HF32, or as float16 after casts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...simulator.interpreter.tensors import Shape
from ...simulator.precision.dtypes import float32
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
    FORWARD,
    OPTIONS,
    PARAMETERS,
    SIZES,
    WHERE,
    arguments,
    by_head,
    check_heads,
    heads_of,
    host_bytes,
    operands,
    resolve,
    scale_of,
    scores,
    shapes_of,
)
from .space import FORWARD_WORK, choose, explored, one_loop
from .tiles import forward_tiles


def describe(sizes: Sizes, dtype: str) -> dict[str, Shape]:
    return shapes_of(sizes, dtype)


def draw(shapes: Mapping[str, Shape], numbers: Draw) -> Arrays:
    return {n: numbers.signal(n, x) for n, x in shapes.items()}


def check(tensors: Tensors, options: Options, product: Product) -> tuple[str, ...]:
    check_heads(FORWARD, tensors, (), product)
    return ()


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    """Casts that the cubeMathType asks for, and one launch."""
    q, heads, causal = tensors["q"], heads_of(tensors), bool(options["causal"])
    outputs = {
        "out": context.output("out", q.shape, dtype_of(q)),
        "lse": context.output("lse", q.shape[:3], float32),
    }
    found, seen, casts = operands("qkv", tensors, knobs, context)
    tiling = choose(FORWARD_WORK, seen, knobs, context)
    arguments = {
        **{f"{n}_ptr": x for n, x in (*seen.items(), *outputs.items())},
        **{"M": heads.m, "N": heads.n, "heads": heads.total, "scale": scale_of(tensors, options)},
        **{"GROUP": heads.group, "CAUSAL": causal, "D": heads.d},
        "STAGGER": tiling["starts"] == "apart",
        "ONE_LOOP": one_loop(heads, tiling, causal),
        **{"BM": tiling["block_m"], "BN": tiling["block_n"], "multibuffer": tiling["buffers"]},
    }
    grid = min(tiling["cores"], heads.total * -(-heads.m // tiling["block_m"]))
    step = Step(forward_tiles, grid, arguments, {"hf32_round": found.hf32_round})
    return Plan((*casts, step), outputs, tiling, tuple(cube_notes(found, tiling)))


def formula(inputs: Arrays, options: Options) -> Arrays:
    """out and lse in float64."""
    (q, k, v), heads = by_head(inputs, "qkv"), heads_of(inputs)
    out, lse = np.empty(q.shape), np.empty(q.shape[:2])

    def one(h: int, _: int) -> None:
        of_keys = h // heads.group
        s = scores(float64(q[h]), float64(k[of_keys]), scale_of(inputs, options), bool(options["causal"]))
        most = s.max(axis=1, keepdims=True)
        p = np.exp(s - most)
        total = p.sum(axis=1, keepdims=True)
        out[h] = p @ float64(v[of_keys]) / total
        lse[h] = (most + np.log(total))[:, 0]

    in_chunks(heads.total, 1, one)
    shape = inputs["q"].shape
    return {"out": out.reshape(shape), "lse": lse.reshape(shape[:3])}


DOC = """out (as q) and lse (B, N, S, float32) of softmax(scale q k^T) v.

q: (B, N, S, D), k and v: (B, Nkv, Skv, D) with N a multiple of Nkv; float16, bfloat16 or float32, all of one type.
causal: query i sees the keys 0 to i (torch's is_causal, sparse_mode 2 of aclnnFlashAttentionScore). scale: 1 / sqrt(D) if
None. lse: logarithm of the sum of exponentials of each row of scores; `flash_attention_grad` takes it."""

fits, bound_us = FORWARD_WORK.fits, FORWARD_WORK.bound_us

OPERATOR = Operator(
    name=FORWARD,
    summary="attention in one pass over the keys: out, and lse for the gradient (aclnnFlashAttentionScore)",
    required=("q", "k", "v"),
    main="q",
    outputs=("out", "lse"),
    sizes=SIZES,
    cases=CASES,
    parameters=PARAMETERS,
    options=OPTIONS,
    arguments=arguments(FORWARD),
    doc=DOC,
    architectures=WHERE,
    **by_name(describe, draw, check, plan, formula, host_bytes, explored, fits, bound_us, resolve),
    uses_cube=True,
    modes=5,
    one_dtype=True,
    accumulates="s_kv",
    order_knobs=("block_m", "block_n", "cores", "starts"),
    whole="every query needs all keys",
)


flash_attention = python_face(OPERATOR, __name__)
