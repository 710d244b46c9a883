"""The runtime: device, memory, streams. A stream holds what was enqueued and runs it in order when it is synchronised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...simulator.errors import AscendtileError
from .status import RUNTIME_ERROR, SUCCESS, failed
from .tensor import DeviceMemory

ACL_MEM_MALLOC_HUGE_FIRST = 0
ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE = 0, 1
ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEVICE_TO_DEVICE = 2, 3
ACL_OPT_DETERMINISTIC = 0

_options = {ACL_OPT_DETERMINISTIC: 0}
_streams: list[aclrtStream] = []


class aclrtStream:
    """Work in order. time_us: simulated time of what has run."""

    def __init__(self) -> None:
        self.pending: list[Callable[[], float]] = []
        self.time_us = 0.0

    def synchronize(self) -> None:
        """Run what was enqueued; what follows a failure is dropped, as on a device in error."""
        while self.pending:
            work = self.pending.pop(0)
            try:
                self.time_us += work()
            except BaseException:
                self.pending.clear()
                raise


_default = aclrtStream()


def stream_of(stream: aclrtStream | None) -> aclrtStream:
    """The stream, or the default stream of the device for None."""
    return _default if stream is None else stream


def aclInit(configPath: Any = None) -> int:
    """Nothing to set up."""
    return SUCCESS


def aclFinalize() -> int:
    """Drops all streams."""
    _streams.clear()
    _default.pending.clear()
    return SUCCESS


def aclrtSetDevice(deviceId: int) -> int:
    """One device: the current one of `sim.device(...)`, with the number 0."""
    return (
        SUCCESS
        if deviceId == 0
        else failed("aclrtSetDevice", RUNTIME_ERROR, f"device {deviceId}; there is only 0")
    )


def aclrtResetDevice(deviceId: int) -> int:
    """Nothing to undo."""
    return SUCCESS


def aclrtCreateStream() -> tuple[int, aclrtStream]:
    """(status, stream)."""
    stream = aclrtStream()
    _streams.append(stream)
    return SUCCESS, stream


def aclrtDestroyStream(stream: aclrtStream) -> int:
    """Waits for what was enqueued."""
    status = aclrtSynchronizeStream(stream)
    if stream in _streams:
        _streams.remove(stream)
    return status


def aclrtSynchronizeStream(stream: aclrtStream | None) -> int:
    """Run what was enqueued; failures of kernels appear here, with 361001 and their text in aclGetRecentErrMsg.

    None is the default stream.
    """
    try:
        stream_of(stream).synchronize()
    except AscendtileError as e:
        return failed("aclrtSynchronizeStream", RUNTIME_ERROR, str(e))
    return SUCCESS


def aclrtSynchronizeDevice() -> int:
    """Run what was enqueued on every stream: the default one, then in the order in which they were created."""
    return max(aclrtSynchronizeStream(s) for s in (_default, *_streams))


def aclrtMalloc(size: int, policy: int = ACL_MEM_MALLOC_HUGE_FIRST) -> tuple[int, DeviceMemory | None]:
    """(status, device memory of `size` bytes, whatever they hold)."""
    if size <= 0:
        return failed("aclrtMalloc", RUNTIME_ERROR, f"size is {size}; it must be at least 1"), None
    try:
        return SUCCESS, DeviceMemory(size)
    except MemoryError:
        text = f"size is {size} bytes, which this machine cannot give; phase 1 gives times without memory"
        return failed("aclrtMalloc", RUNTIME_ERROR, text), None


def aclrtFree(memory: DeviceMemory) -> int:
    """Refused for memory that was freed before."""
    if memory.freed:
        return failed("aclrtFree", RUNTIME_ERROR, f"{len(memory)} bytes that were freed before")
    memory.freed = True
    return SUCCESS


def aclrtMemcpy(dst: Any, destMax: int, src: Any, count: int, kind: int) -> int:
    """`count` bytes between host arrays and device memory; waits for no stream."""
    for what, x in (("the destination", dst), ("the source", src)):
        if isinstance(x, DeviceMemory) and x.freed:
            return failed("aclrtMemcpy", RUNTIME_ERROR, f"{what} is {len(x)} bytes that were freed before")
    to, of = _bytes(dst), _bytes(src)
    for what, size in (("destMax", destMax), ("the destination", len(to)), ("the source", len(of))):
        if count > size:
            return failed("aclrtMemcpy", RUNTIME_ERROR, f"count is {count} bytes, {what} is {size}")
    to[:count] = of[:count]
    return SUCCESS


def _bytes(x: Any) -> np.ndarray:
    return x.bytes if isinstance(x, DeviceMemory) else np.asarray(x).reshape(-1).view(np.uint8)


def aclrtCtxSetSysParamOpt(opt: int, value: int) -> int:
    """ACL_OPT_DETERMINISTIC: 0 off (the default), 1 to 3 on: sums over cores in a fixed order."""
    if opt not in _options or not 0 <= value <= 3:
        return failed(
            "aclrtCtxSetSysParamOpt",
            RUNTIME_ERROR,
            f"option {opt} with value {value}; known is 0 with 0 to 3",
        )
    _options[opt] = value
    return SUCCESS


def deterministic() -> bool:
    """Whether sums over cores must not depend on the order in which cores finish."""
    return _options[ACL_OPT_DETERMINISTIC] > 0
