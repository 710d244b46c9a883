"""aclrtMemcpy: bytes between host arrays and device memory.

A host array is its elements in row-major order, whatever its strides: what C would call a packed buffer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.interpreter.tensors import as_array
from .status import RUNTIME_ERROR, SUCCESS, described, failed, is_whole
from .tensor import DeviceMemory

ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE = 0, 1
ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEVICE_TO_DEVICE = 2, 3
# Kind of copy -> whether the source, and the destination, is memory of the device.
DIRECTIONS = {
    ACL_MEMCPY_HOST_TO_HOST: ("HOST_TO_HOST", False, False),
    ACL_MEMCPY_HOST_TO_DEVICE: ("HOST_TO_DEVICE", False, True),
    ACL_MEMCPY_DEVICE_TO_HOST: ("DEVICE_TO_HOST", True, False),
    ACL_MEMCPY_DEVICE_TO_DEVICE: ("DEVICE_TO_DEVICE", True, True),
}


def aclrtMemcpy(dst: Any, destMax: int, src: Any, count: int, kind: int) -> int:
    """`count` bytes between arrays of numpy or torch (CPU) and device memory; waits for no stream.

    361001 for memory that was freed, a kind that is none or of another direction, and counts beyond either side.
    """
    try:
        _check(dst, destMax, src, count, kind)
        to, of = _bytes("the destination", dst), _bytes("the source", src)
        for what, size in (("destMax", destMax), ("the destination", to.size), ("the source", of.size)):
            if count > size:
                raise UsageError(f"count is {count} bytes, {what} is {size}")
        if isinstance(dst, DeviceMemory):
            to[:count] = of[:count]
        else:
            _fill(dst, to, of[:count])
    except UsageError as e:
        return failed("aclrtMemcpy", RUNTIME_ERROR, str(e))
    return SUCCESS


def _check(dst: Any, most: int, src: Any, count: int, kind: int) -> None:
    for what, x in (("the destination", dst), ("the source", src)):
        if isinstance(x, DeviceMemory) and x.freed:
            raise UsageError(f"{what} is {len(x)} bytes that were freed before")
    for what, n in (("destMax", most), ("count", count)):
        if not is_whole(n) or n < 0:
            raise UsageError(f"{what} is {described(n)}; it must be a whole number, at least 0")
    if not is_whole(kind) or int(kind) not in DIRECTIONS:
        known = ", ".join(f"{k} {name}" for k, (name, _, _) in DIRECTIONS.items())
        raise UsageError(f"kind is {described(kind)}; known are {known}")
    name, of, to = DIRECTIONS[int(kind)]
    for what, x, device in (("the source", src, of), ("the destination", dst, to)):
        if isinstance(x, DeviceMemory) != device:
            have, want = ("host", "device") if device else ("device", "host")
            raise UsageError(
                f"kind is {kind} {name}, {what} is memory of the {have}; it must be of the {want}"
            )


def _bytes(what: str, x: Any) -> np.ndarray:
    if isinstance(x, DeviceMemory):
        return x.bytes
    array = np.asarray(x) if isinstance(x, np.generic) and what == "the source" else as_array(what, x)
    if array is None or array.dtype.hasobject:
        raise UsageError(f"{what} is {described(x)}; it must be device memory, or an array of numbers")
    if what == "the destination" and not array.flags.writeable:
        raise UsageError(f"{what} is a read-only array; it must be writable")
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _fill(dst: Any, packed: np.ndarray, of: np.ndarray) -> None:
    """The first elements of a host array, in row-major order; `packed` has its bytes, or is a copy of them."""
    array = as_array("the destination", dst)
    assert array is not None
    packed[: of.size] = of
    if not np.may_share_memory(packed, array):
        array[...] = packed.view(array.dtype).reshape(array.shape)
