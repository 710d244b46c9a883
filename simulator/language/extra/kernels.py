"""Kernels that Triton-Ascend ships ready made."""

from __future__ import annotations

from typing import Any

from ... import language as tl
from ...jit_function import jit


@jit
def gather_2d_simd(
    src_ptr: Any,
    index_ptr: Any,
    out_ptr: Any,
    M: Any,
    N: tl.constexpr,
    K: tl.constexpr,
    XBLOCK: tl.constexpr,
    XBLOCK_SUB: tl.constexpr,
) -> None:
    """out[m, k] = src[m, index[m, k]], for contiguous src (M, N), index and out (M, K).

    A program takes XBLOCK rows, XBLOCK_SUB of them at a time, whole: they must fit in UB. The grid is (cdiv(M, XBLOCK),).
    """
    for sub in range(0, XBLOCK, XBLOCK_SUB):
        row = tl.program_id(0) * XBLOCK + sub + tl.arange(0, XBLOCK_SUB)[:, None]
        at, inside = row * K + tl.arange(0, K)[None, :], row < M
        src = tl.load(src_ptr + row * N + tl.arange(0, N)[None, :], mask=inside, other=0)
        index = tl.load(index_ptr + at, mask=inside, other=0)
        tl.store(out_ptr + at, tl.gather(src, index, 1), mask=inside)
