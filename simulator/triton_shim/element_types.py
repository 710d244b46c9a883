"""Tensors that are read as another type, and element types by the short names that Triton's launches have for them."""

from __future__ import annotations

from typing import Any

from ..ir.types import ConstexprType, PointerType
from ..precision import dtypes as ty
from ..precision.dtypes import DType


class TensorWrapper:
    """A torch tensor whose memory a kernel takes as elements of `dtype`, one of as many bits as its own."""

    def __init__(self, base: Any, dtype: DType) -> None:
        self.base = base
        self.dtype = dtype

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "base":
            raise AttributeError(name)
        return getattr(self.base, name)  # shape, device, stride() and the like

    def __str__(self) -> str:
        return f"TensorWrapper[{self.dtype}]({self.base})"

    def copy_(self, other: TensorWrapper) -> None:
        self.base.copy_(other.base)

    def cpu(self) -> TensorWrapper:
        return TensorWrapper(self.base.cpu(), self.dtype)

    def clone(self) -> TensorWrapper:
        return TensorWrapper(self.base.clone(), self.dtype)

    def to(self, device: Any) -> TensorWrapper:
        return TensorWrapper(self.base.to(device), self.dtype)

    def new_empty(self, sizes: Any) -> TensorWrapper:
        return TensorWrapper(self.base.new_empty(sizes), self.dtype)


def reinterpret(tensor: Any, dtype: Any) -> Any:
    """`triton.reinterpret`: the same memory as elements of `dtype`; torch's own type of it gives the tensor itself."""
    base = tensor.base if isinstance(tensor, TensorWrapper) else tensor
    if not hasattr(base, "data_ptr"):
        raise TypeError(f"reinterpret takes a tensor, got {type(tensor).__name__}")
    return base if dtype == base.dtype else TensorWrapper(base, dtype)


# By each name that a type has in Triton, in numpy, torch or C.
type_canonicalisation_dict = {
    **{name: t.short_name for t in ty.EVERY.values() for name in (t.name, t.long_name, t.short_name)},
    **dict(bool="i1", int="i32", half="fp16", float="fp32", double="fp64"),
    **dict(
        float8_e4m3fn="fp8e4nv", float8_e4m3fnuz="fp8e4b8", float8_e5m2="fp8e5", float8_e5m2fnuz="fp8e5b16"
    ),
}


def str_to_ty(name: str, c: Any = None) -> Any:
    """The type of a short name ("i32", "fp16"), of a pointer to it ("*fp16", "*kfp16": const), or of the constexpr `c`."""
    if name.startswith("*"):
        const = name.startswith("*k")
        return PointerType(str_to_ty(name[2 if const else 1 :], c), const=const)
    if name.startswith("constexpr"):
        return ConstexprType(c)
    if name not in ty.BY_SHORT_NAME:
        raise KeyError(f"there is no element type {name!r}; there are {', '.join(ty.BY_SHORT_NAME)}")
    return ty.BY_SHORT_NAME[name]


JIT = {
    "TensorWrapper": TensorWrapper,
    "reinterpret": reinterpret,
    "type_canonicalisation_dict": type_canonicalisation_dict,
}
