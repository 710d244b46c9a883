"""The runtime: device, memory, streams; copies are in copying.py.

A stream holds what was enqueued and runs it in order when it is synchronised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...simulator.errors import AscendtileError
from .status import RUNTIME_ERROR, SUCCESS, described, failed, is_whole
from .tensor import DeviceMemory

ACL_MEM_MALLOC_HUGE_FIRST = 0
ACL_OPT_DETERMINISTIC = 0

_options = {ACL_OPT_DETERMINISTIC: 0}
_streams: list[aclrtStream] = []


class aclrtStream:
    """Work in order. time_us: simulated time of what has run."""

    def __init__(self) -> None:
        self.destroyed = False
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


def unusable(stream: object) -> str:
    """Why nothing can be enqueued to a stream; empty if it can. None is the default stream."""
    if stream is None:
        return ""
    if not isinstance(stream, aclrtStream):
        return f"stream is {described(stream)}; it must be of aclrtCreateStream"
    return "stream was destroyed before" if stream.destroyed else ""


def aclInit(configPath: Any = None) -> int:
    """Nothing to set up."""
    return SUCCESS


def aclFinalize() -> int:
    """Drops all streams."""
    for stream in _streams:
        stream.destroyed = True
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


def aclrtDestroyStream(stream: aclrtStream | None) -> int:
    """Waits for what was enqueued; afterwards the stream takes nothing. The default stream cannot be destroyed."""
    if stream is None:
        return failed("aclrtDestroyStream", RUNTIME_ERROR, "stream is null; the default stream stays")
    if why := unusable(stream):
        return failed("aclrtDestroyStream", RUNTIME_ERROR, why)
    status = aclrtSynchronizeStream(stream)
    stream.destroyed = True
    if stream in _streams:
        _streams.remove(stream)
    return status


def aclrtSynchronizeStream(stream: aclrtStream | None) -> int:
    """Run what was enqueued; failures of kernels appear here, with 361001 and their text in aclGetRecentErrMsg.

    None is the default stream.
    """
    if why := unusable(stream):
        return failed("aclrtSynchronizeStream", RUNTIME_ERROR, why)
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
    if not is_whole(size) or size <= 0:
        return failed(
            "aclrtMalloc", RUNTIME_ERROR, f"size is {size!r}; it must be a whole number, at least 1"
        ), None
    try:
        return SUCCESS, DeviceMemory(int(size))
    except MemoryError:
        text = f"size is {size} bytes, which this machine cannot give; phase 1 gives times without memory"
        return failed("aclrtMalloc", RUNTIME_ERROR, text), None


def aclrtFree(memory: DeviceMemory | None) -> int:
    """Refused for memory that was freed before, and for what aclrtMalloc did not give."""
    if not isinstance(memory, DeviceMemory):
        return failed("aclrtFree", RUNTIME_ERROR, f"memory is {described(memory)}; it must be of aclrtMalloc")
    if memory.freed:
        return failed("aclrtFree", RUNTIME_ERROR, f"{len(memory)} bytes that were freed before")
    memory.freed = True
    return SUCCESS


def aclrtCtxSetSysParamOpt(opt: int, value: int) -> int:
    """ACL_OPT_DETERMINISTIC: 0 off (the default), 1 to 3 on: sums over cores in a fixed order."""
    if opt not in _options or not is_whole(value) or not 0 <= value <= 3:
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
