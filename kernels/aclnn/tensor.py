"""Device memory, tensors and arrays of the interface: acl data structures in Python.

Views: element i of a tensor lies at base + (offset + sum(i[k] * strides[k])) * size of an element (hicann/ops-nn,
docs/zh/context/non_contiguous_tensor.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TypeVar

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.interpreter.tensors import Shape
from ..operator.layout import contiguous_strides
from ..operator.tensors import element_type
from .status import PARAM_INVALID, PARAM_NULLPTR, SUCCESS, described, failed, is_flag, is_whole


class aclDataType(IntEnum):
    """Element types, with the numbers of the header."""

    ACL_FLOAT = 0
    ACL_FLOAT16 = 1
    ACL_INT8 = 2
    ACL_INT32 = 3
    ACL_UINT8 = 4
    ACL_INT16 = 6
    ACL_INT64 = 9
    ACL_DOUBLE = 11
    ACL_BOOL = 12
    ACL_BF16 = 27


class aclFormat(IntEnum):
    """Formats, with the numbers of the header; those after NCL are private to the device."""

    ACL_FORMAT_NCHW = 0
    ACL_FORMAT_NHWC = 1
    ACL_FORMAT_ND = 2
    ACL_FORMAT_HWCN = 16
    ACL_FORMAT_NDHWC = 27
    ACL_FORMAT_NCDHW = 30
    ACL_FORMAT_NC = 35
    ACL_FORMAT_NCL = 47
    ACL_FORMAT_NC1HWC0 = 3
    ACL_FORMAT_FRACTAL_Z = 4
    ACL_FORMAT_NC1HWC0_C04 = 12
    ACL_FORMAT_FRACTAL_NZ = 29
    ACL_FORMAT_NDC1HWC0 = 32
    ACL_FORMAT_FRACTAL_Z_3D = 33


PRIVATE = frozenset(
    {
        aclFormat.ACL_FORMAT_NC1HWC0,
        aclFormat.ACL_FORMAT_FRACTAL_Z,
        aclFormat.ACL_FORMAT_NC1HWC0_C04,
        aclFormat.ACL_FORMAT_FRACTAL_NZ,
        aclFormat.ACL_FORMAT_NDC1HWC0,
        aclFormat.ACL_FORMAT_FRACTAL_Z_3D,
    }
)
_TYPES = {
    aclDataType.ACL_FLOAT: "fp32", aclDataType.ACL_FLOAT16: "fp16", aclDataType.ACL_INT8: "int8",
    aclDataType.ACL_INT32: "int32", aclDataType.ACL_UINT8: "uint8", aclDataType.ACL_INT16: "int16",
    aclDataType.ACL_INT64: "int64", aclDataType.ACL_DOUBLE: "fp64", aclDataType.ACL_BOOL: "int1",
    aclDataType.ACL_BF16: "bf16",
}  # fmt: skip


class DeviceMemory:
    """Bytes of the device; what aclrtMalloc gives."""

    def __init__(self, size: int) -> None:
        self.bytes = np.empty(size, np.uint8)
        self.freed = False

    def __len__(self) -> int:
        return len(self.bytes)


class aclTensor:
    """A view of device memory: shape, strides and offset in elements, format, storage shape, element type."""

    def __init__(
        self,
        shape: Sequence[int],
        dtype: aclDataType,
        strides: Sequence[int] | None,
        offset: int,
        format: aclFormat,
        storage_shape: Sequence[int],
        data: DeviceMemory | None,
    ) -> None:
        self.shape = wholes("aclCreateTensor: viewDims", shape)
        self.acl_dtype = _known("dataType", aclDataType, dtype)
        self.dtype = element_type(_TYPES[self.acl_dtype])
        steps = contiguous_strides(self.shape) if strides is None else strides
        self.strides = wholes("aclCreateTensor: stride", steps)
        (self.offset,) = wholes("aclCreateTensor: offset", (offset,))
        self.format = _known("format", aclFormat, format)
        self.storage_shape = wholes("aclCreateTensor: storageDims", storage_shape)
        if data is not None and not isinstance(data, DeviceMemory):
            raise UsageError(f"aclCreateTensor: tensorData is {described(data)}; it must be of aclrtMalloc")
        self.data = data
        self.destroyed = False
        self._check()

    def _check(self) -> None:
        """What would let the device read or write outside of the storage."""
        if len(self.strides) != len(self.shape):
            raise UsageError(
                f"aclCreateTensor: {len(self.strides)} strides for {len(self.shape)} dimensions; there must be one for each"
            )
        if any(n < 0 for n in (*self.shape, *self.storage_shape)) or self.offset < 0:
            raise UsageError(
                f"aclCreateTensor: shape {self.shape}, storage shape {self.storage_shape}, offset {self.offset}: none may "
                "be negative"
            )
        ends = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low, high = (self.offset + sum(f(0, e) for e in ends) for f in (min, max))
        have = int(np.prod(self.storage_shape, dtype=np.int64))
        if self.size and (low < 0 or high >= have):
            raise UsageError(
                f"aclCreateTensor: shape {self.shape} with strides {self.strides} and offset {self.offset} reaches elements "
                f"{low} to {high}; the storage {self.storage_shape} has {have}"
            )
        if self.data is not None and self.size and (high + 1) * self.dtype.itemsize > len(self.data):
            raise UsageError(
                f"aclCreateTensor: {(high + 1) * self.dtype.itemsize} bytes are needed, the device memory has "
                f"{len(self.data)}"
            )

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def like(self) -> Shape:
        """Shape and element type."""
        return Shape(self.shape, self.dtype)

    def contiguous(self) -> bool:
        steps = zip(self.shape, self.strides, contiguous_strides(self.shape), strict=True)
        return not self.size or all(n == 1 or s == want for n, s, want in steps)

    def array(self) -> np.ndarray:
        """The elements as a numpy view of the device memory; without memory, strides over nothing, for time only."""
        storage, step = self.dtype.storage, self.dtype.itemsize
        if not self.size:
            return np.empty(self.shape, storage)
        strides = [s * step for s in self.strides]
        if self.data is None:
            return np.lib.stride_tricks.as_strided(np.empty(1, storage), self.shape, strides)
        flat = self.data.bytes[: len(self.data) // step * step].view(storage)
        return np.lib.stride_tricks.as_strided(flat[self.offset :], self.shape, strides)

    def missing(self) -> str:
        """What keeps a kernel from reading or writing it; empty if nothing does."""
        if not self.size:
            return ""
        if self.data is None:
            return "it has no device memory"
        return "its device memory was freed before the kernels ran" if self.data.freed else ""


def wholes(what: str, given: Sequence[int]) -> tuple[int, ...]:
    """Whole numbers as a tuple; `UsageError` for anything that C would not take as int64_t."""
    if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray):
        raise UsageError(f"{what} is {described(given)}; it must be a sequence of whole numbers")
    for x in given:
        if not is_whole(x):
            raise UsageError(f"{what} holds {described(x)}; it must hold whole numbers")
    return tuple(int(x) for x in given)


def _first(api: str, value: Sequence[int], size: int) -> tuple[int, ...]:
    """The first `size` of the numbers."""
    found = wholes(f"{api}: value", value)
    if not is_whole(size) or not 0 <= size <= len(found):
        raise UsageError(
            f"{api}: size is {described(size)}; it must be from 0 to {len(found)}, the length of value"
        )
    return found[: int(size)]


def _forget(api: str, x: object, kind: type) -> int:
    """Mark what was destroyed; 161001 for null, 161002 for what is of another kind."""
    if x is None:
        return failed(api, PARAM_NULLPTR, "null cannot be destroyed")
    if not isinstance(x, kind):
        return failed(api, PARAM_INVALID, f"it is {described(x)}; it must be {kind.__name__}")
    if isinstance(x, aclTensor):
        x.destroyed = True
    return SUCCESS


_Member = TypeVar("_Member", bound=IntEnum)


def _known(what: str, kind: type[_Member], value: int) -> _Member:
    if value not in set(kind):
        names = ", ".join(f"{int(x)} {x.name}" for x in kind)
        raise UsageError(f"aclCreateTensor: {what} is {value}; known are {names}")
    return kind(value)


class aclIntArray(tuple[int, ...]):
    """Whole numbers that an operator takes on the host."""


class aclBoolArray(tuple[bool, ...]):
    """Flags that an operator takes on the host."""


def aclCreateTensor(
    viewDims: Sequence[int],
    viewDimsNum: int,
    dataType: aclDataType,
    stride: Sequence[int] | None,
    offset: int,
    format: aclFormat,
    storageDims: Sequence[int],
    storageDimsNum: int,
    tensorData: DeviceMemory | None,
) -> aclTensor:
    """A tensor over device memory; strides None are those of a contiguous one. `UsageError` if it leaves the storage."""
    for name, dims in (("viewDims", viewDims), ("storageDims", storageDims)):
        wholes(f"aclCreateTensor: {name}", dims)
    if viewDimsNum != len(viewDims) or storageDimsNum != len(storageDims):
        raise UsageError(
            f"aclCreateTensor: viewDimsNum is {viewDimsNum} for {len(viewDims)} dimensions, storageDimsNum is "
            f"{storageDimsNum} for {len(storageDims)}; they must agree"
        )
    return aclTensor(viewDims, dataType, stride, offset, format, storageDims, tensorData)


def aclDestroyTensor(tensor: aclTensor | None) -> int:
    """Forget a tensor; its device memory stays, and kernels that were enqueued with it run."""
    return _forget("aclDestroyTensor", tensor, aclTensor)


def aclCreateIntArray(value: Sequence[int], size: int) -> aclIntArray:
    """The first `size` numbers."""
    return aclIntArray(_first("aclCreateIntArray", value, size))


def aclDestroyIntArray(array: aclIntArray | None) -> int:
    """Python forgets it; null is refused."""
    return _forget("aclDestroyIntArray", array, aclIntArray)


def aclCreateBoolArray(value: Sequence[bool], size: int) -> aclBoolArray:
    """The first `size` flags."""
    found = _first("aclCreateBoolArray", value, size)
    if not all(is_flag(x) for x in found):
        raise UsageError(f"aclCreateBoolArray: value is {found}; it must hold True and False")
    return aclBoolArray(bool(x) for x in found)


def aclDestroyBoolArray(array: aclBoolArray | None) -> int:
    """Python forgets it; null is refused."""
    return _forget("aclDestroyBoolArray", array, aclBoolArray)
