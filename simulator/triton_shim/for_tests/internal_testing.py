"""`triton._internal_testing`: lists of types, random arrays, and what kind of device this is: neither of the GPUs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch

from ...precision.dtypes import DType
from .. import knobs
from ..driver import ActiveDriver, GPUTarget
from ..element_types import TensorWrapper, reinterpret, str_to_ty, type_canonicalisation_dict

int_dtypes = ["int8", "int16", "int32", "int64"]
uint_dtypes = [f"u{name}" for name in int_dtypes]
integral_dtypes = int_dtypes + uint_dtypes
float_dtypes = ["float16", "float32", "float64"]
float_dtypes_with_bfloat16 = [*float_dtypes, "bfloat16"]
dtypes = integral_dtypes + float_dtypes
dtypes_with_bfloat16 = [*dtypes, "bfloat16"]
torch_float8_dtypes = ["float8_e4m3fn", "float8_e5m2"]
torch_dtypes = ["bool", *int_dtypes, "uint8", *float_dtypes, "bfloat16"]
tma_dtypes = sorted(name for name in dtypes_with_bfloat16 if not name.endswith("64"))


def get_current_target() -> GPUTarget:
    """Back end "npu" and the product's name."""
    return ActiveDriver().get_current_target()


def get_arch() -> str:
    return str(get_current_target().arch)


def _no(what: str) -> Callable[[], bool]:
    def asked() -> bool:
        return False

    asked.__name__, asked.__doc__ = f"is_{what}", f"Whether this is {what}: no."
    return asked


OTHERS = """
    interpreter cuda ampere_or_newer hopper hopper_or_newer blackwell hip hip_cdna hip_cdna2 hip_cdna3 hip_cdna4 hip_gfx11
    hip_gfx12 xpu
"""
for _what in OTHERS.split():
    globals()[f"is_{_what}"] = _no(_what)


def supports_tma(byval_only: bool = False) -> bool:
    """Whether there is the copy engine of one GPU: no."""
    return False


def tma_skip_msg(byval_only: bool = False) -> str:
    return "needs the TMA unit of a GPU"


requires_tma = pytest.mark.skipif(not supports_tma(), reason=tma_skip_msg())


def numpy_random(
    shape: Any,
    dtype_str: str,
    rs: np.random.RandomState | None = None,
    low: int | None = None,
    high: int | None = None,
) -> np.ndarray:
    """An array of random elements, the same in each run unless `rs` is given.

    Integers are from `low` to below `high` within their type, and never 0. Floats are normal; those of bfloat16 are float32
    with the lower half of their bits 0. A float8 is its bits as int8.
    """
    rs = rs or np.random.RandomState(17)
    found: np.ndarray
    if dtype_str in integral_dtypes:
        limits = np.iinfo(dtype_str)
        least = limits.min if low is None else max(low, limits.min)
        end = limits.max if high is None else min(high, limits.max)
        found = rs.randint(least, end, shape, dtype=np.dtype(dtype_str).type)
        return np.where(found == 0, np.ones_like(found), found)
    if "float8" in dtype_str:
        found = rs.randint(20, 40, shape, dtype=np.int8)
        return found
    normal = np.asarray(rs.normal(0, 1, shape))
    if dtype_str == "bfloat16":
        return (normal.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return normal > 0 if dtype_str in ("bool", "int1", "bool_") else normal.astype(dtype_str)


def to_triton(x: np.ndarray, device: Any, dst_type: str | None = None) -> Any:
    """The array as a tensor for a kernel; dst_type: an element type that numpy has not ("bfloat16", "float8e5")."""
    name = x.dtype.name
    if name in uint_dtypes:
        return reinterpret(torch.tensor(x.view(name[1:]), device=device), str_to_triton_dtype(name))
    tensor = torch.tensor(x, device=device)
    if dst_type and "float8" in dst_type:
        return reinterpret(tensor, str_to_triton_dtype(dst_type))
    return tensor.bfloat16() if (name, dst_type) == ("float32", "bfloat16") else tensor


def to_numpy(x: Any) -> np.ndarray:
    """The elements of a tensor, wrapped or not; bfloat16 as float32."""
    if isinstance(x, TensorWrapper):
        return np.asarray(x.base.cpu().numpy().astype(torch_dtype_name(x.dtype)))
    if not isinstance(x, torch.Tensor):
        raise ValueError(f"expected a tensor, got {type(x).__name__}")
    x = x.cpu()
    return np.asarray((x.float() if x.dtype is torch.bfloat16 else x).numpy())


def unwrap_tensor(t: Any) -> Any:
    """The torch tensor behind a wrapped one."""
    return t.base if isinstance(t, TensorWrapper) else t


def str_to_triton_dtype(x: str) -> Any:
    """The element type of such a name: "int8", "float16", "bfloat16" ..."""
    return str_to_ty(type_canonicalisation_dict[x])


def torch_dtype_name(dtype: Any) -> str:
    """ "int64" of torch.int64 and of tl.int64."""
    if not isinstance(dtype, DType | torch.dtype):
        raise TypeError(f"expected an element type, got {dtype!r}")
    return dtype.name if isinstance(dtype, DType) else str(dtype).removeprefix("torch.")


def default_alloc_fn(size: int, align: int, _: Any) -> torch.Tensor:
    """Room of `size` bytes, as `triton.set_allocator` takes it."""
    return torch.empty(size, dtype=torch.int8)


def _fresh_knobs_impl(skipped_attr: set[str] | None = None) -> tuple[Callable[[], Any], Callable[[], None]]:
    """A function that sets every set of knobs but the skipped ones to its defaults, and one that takes it back."""
    stack = ExitStack()

    def fresh() -> Any:
        triton: Any = import_module("triton")
        for name in sorted(knobs.SETS.keys() - (skipped_attr or set())):
            stack.enter_context(knobs.SETS[name].scope())
            knobs.SETS[name].reset()
        return triton.knobs

    return fresh, stack.close


# All that is defined above: a script asks `dir` of the module.
globals()["__all__"] = [
    name
    for name, x in globals().items()
    if name in ("TensorWrapper", "reinterpret", "requires_tma")
    or (name[0] != "_" and getattr(x, "__module__", "") == __name__)
    or isinstance(x, list)
]
