"""What Ascend has and Triton has not; each family of builtins is a file `extension_*.py` beside this one."""

from __future__ import annotations

import numpy as np

from ....ir.building.promotion import KernelError, Operand, describe
from ....ir.building.registry import Builder, builtin
from ....ir.operations import define, unary
from ....ir.program import Value
from ....units.vector import estimate
from ..libdevice import BUILTINS as _MATHS
from .extension_buffers import (
    FixpipeDMAMode,
    FixpipeDualDstMode,
    FixpipePreQuantMode,
    FixpipePreReluMode,
    ascend_address_space,
    copy,
    copy_from_ub_to_l1,
    fixpipe,
)
from .extension_custom import CORE, MODE, IteratorType, custom, register_custom_op
from .extension_hints import cast, compile_hint, flip, multibuffer, parallel, sort
from .extension_memory import gather_out_to_ub, index_put, index_select_simd, scatter_ub_to_out
from .extension_slices import extract_slice, get_element, insert_slice
from .extension_sync import (
    PIPE,
    scope,
    sub_vec_id,
    sub_vec_num,
    sync_block_all,
    sync_block_set,
    sync_block_wait,
)


def _float(b: Builder, name: str, x: Operand) -> Value:
    v = b.to_value(x)
    if v.dtype.name not in ("fp16", "fp32"):
        raise KernelError(f"{name} takes fp16 or fp32, got {describe(v)}; cast with .to(tl.float32)")
    return v


@builtin
@define(
    unary(
        "rec",
        value=estimate(lambda x: 1.0 / x),
        coarse="the coarse Reciprocal instruction: about 9 bits; 1.0 / x is accurate",
    ),
    name="rec",
)
def reciprocal_estimate(b: Builder, x: Operand) -> Value:
    """1 / x by the coarse Reciprocal instruction: a significand of 9 bits, relative error up to about 3e-3.

    fp16 or fp32. The accurate form is a division: `1.0 / x`.
    """
    return b.unary("rec", _float(b, "reciprocal_estimate", x))


@builtin
@define(
    unary(
        "rsqrt",
        value=estimate(lambda x: 1.0 / np.sqrt(x)),
        coarse="the coarse Rsqrt instruction: about 9 bits; tl.rsqrt(x) is accurate",
    ),
    name="rsqrt",
)
def rsqrt_estimate(b: Builder, x: Operand) -> Value:
    """1 / sqrt(x) by the coarse Rsqrt instruction: a significand of 9 bits, relative error up to about 3e-3.

    fp16 or fp32. The accurate form, a square root and a division, is `tl.rsqrt(x)`.
    """
    return b.unary("rsqrt", _float(b, "rsqrt_estimate", x))


atan2, finitef, isfinited = (_MATHS[name] for name in ("atan2", "finitef", "isfinited"))

__all__ = [
    "CORE",
    "MODE",
    "PIPE",
    "FixpipeDMAMode",
    "FixpipeDualDstMode",
    "FixpipePreQuantMode",
    "FixpipePreReluMode",
    "IteratorType",
    "ascend_address_space",
    "atan2",
    "cast",
    "compile_hint",
    "copy",
    "copy_from_ub_to_l1",
    "custom",
    "extract_slice",
    "finitef",
    "fixpipe",
    "flip",
    "gather_out_to_ub",
    "get_element",
    "index_put",
    "index_select_simd",
    "insert_slice",
    "isfinited",
    "multibuffer",
    "parallel",
    "reciprocal_estimate",
    "register_custom_op",
    "rsqrt_estimate",
    "scatter_ub_to_out",
    "scope",
    "sort",
    "sub_vec_id",
    "sub_vec_num",
    "sync_block_all",
    "sync_block_set",
    "sync_block_wait",
]
