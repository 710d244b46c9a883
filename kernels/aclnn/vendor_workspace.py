"""Bytes of workspace that the vendor's kernels ask for, beside what the system keeps: formulas of their tilings.

Ours ask for what their own strategies need (`aclOpExecutor.workspace_size`); these are to compare with.
"""

from __future__ import annotations

from ..norm.rms.choice import BLOCK_BYTES, VENDOR_CHUNK, VENDOR_FULL_ROW
from ..operator.layout import up

FP32 = 4
FLAGS = 8  # FP32 elements that a core sets at a barrier
# Bytes of dy and x from which on the workspace stays below this part of them.
LARGE_INPUTS, MOST_PART = 500 * 10**6, 0.05


def rms_norm_grad_bytes(rows: int, cols: int, itemsize: int, cores: int, deterministic: bool) -> int:
    """hicann/ops-nn, rms_norm_grad/op_host/rms_norm_grad_tiling.cpp: flags of the cores, or a row of dgamma for each.

    Of long rows of large inputs the columns are taken in chunks, multiples of 4096, so that the rows stay below 5 % of the
    inputs; which chunk is not told: the largest that does is assumed, 4096 at least.
    """
    used = -(-rows // -(-rows // cores))
    if not deterministic:
        return FLAGS * used * FP32
    wide = up(cols, BLOCK_BYTES // itemsize)
    inputs = 2 * rows * cols * itemsize
    most = int(MOST_PART * inputs)
    if wide > VENDOR_FULL_ROW and inputs >= LARGE_INPUTS and (wide + FLAGS) * used * FP32 > most:
        wide = max(VENDOR_CHUNK, (most // (used * FP32) - FLAGS) // VENDOR_CHUNK * VENDOR_CHUNK)
    return (wide + FLAGS) * used * FP32


def group_norm_backward_bytes(samples: int, channels: int, itemsize: int) -> int:
    """hicann/ops-nn, group_norm_grad/op_host/group_norm_grad_tiling.cpp (A2, A3): rows of dgamma and dbeta in FP32.

    Up to two samples add to the outputs, or if these are narrow to one row; more share a row by pairs.
    """
    if samples <= 2:
        return 0 if itemsize == FP32 else 2 * channels * FP32
    return 2 * -(-samples // 2) * channels * FP32
