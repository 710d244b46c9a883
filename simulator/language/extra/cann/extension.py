"""What Ascend has and Triton has not; each family of builtins is a file `extension_*.py` beside this one."""

from __future__ import annotations

import numpy as np

from ....ir.building.promotion import KernelError, Operand, describe
from ....ir.building.registry import Builder, builtin
from ....ir.operations import define, unary
from ....ir.program import Value
from ....units.vector import estimate
from ..libdevice import BUILTINS as _MATHS
from . import (
    extension_buffers,
    extension_custom,
    extension_hints,
    extension_memory,
    extension_quantised,
    extension_slices,
    extension_sync,
)
from .extension_buffers import *  # noqa: F403
from .extension_custom import *  # noqa: F403
from .extension_hints import *  # noqa: F403
from .extension_memory import *  # noqa: F403
from .extension_quantised import *  # noqa: F403
from .extension_slices import *  # noqa: F403
from .extension_sync import *  # noqa: F403


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

__all__ = ["atan2", "finitef", "isfinited", "reciprocal_estimate", "rsqrt_estimate"]
__all__ += extension_buffers.__all__
__all__ += extension_custom.__all__
__all__ += extension_hints.__all__
__all__ += extension_memory.__all__
__all__ += extension_quantised.__all__
__all__ += extension_slices.__all__
__all__ += extension_sync.__all__
