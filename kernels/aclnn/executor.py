"""What phase 1 hands to phase 2: the list of device kernels, each with its launch, and the workspace they need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...simulator.device import Device, device
from ...simulator.errors import RunError
from ...simulator.interpreter.tensors import Shape
from ...simulator.launch import compute
from ...simulator.precision import dtypes as ty
from ...simulator.record.run import Launch
from ..operator.plan import PlanContext, Step
from ..operator.tensors import Tensor
from ..running.launching import call_of, timed_steps
from .runtime import aclrtStream, stream_of, unusable
from .status import INNER, PARAM_INVALID, PARAM_NULLPTR, SUCCESS, Refused, described, failed, is_whole
from .tensor import DeviceMemory

ALIGN = 512  # bytes: tensors of the workspace start on lines of L2
USED = "executor was used before; one phase 1 is for one phase 2, unless it is made repeatable"
DELETED = "executor was deleted before; run phase 1 again"
SYSTEM_BYTES = 16 * 2**20  # kept by the system for every AscendC kernel


@dataclass(frozen=True)
class Arena(PlanContext):
    """Tensors of a plan in a workspace; without one their sizes are only counted."""

    workspace: np.ndarray | None = None
    taken: list[int] = field(default_factory=lambda: [0])

    def mark(self) -> int:
        return self.taken[0]

    def release(self, mark: int) -> None:
        self.taken[0] = mark

    def tensor(self, shape: tuple[int, ...], dtype: ty.DType) -> Tensor:
        like = Shape(shape, dtype)
        start, size = self.taken[0], like.size * dtype.itemsize
        self.taken[0] += -(-size // ALIGN) * ALIGN
        if self.workspace is None:
            return like
        return self.workspace[start : start + size].view(dtype.storage).reshape(shape)


@dataclass(frozen=True)
class DeviceKernel:
    """One launch of an executor. role: "contiguous", "cast", "main" or "view copy", and of which parameter."""

    role: str
    parameter: str
    step: Step
    launch: Launch

    @property
    def name(self) -> str:
        return self.launch.kernel

    @property
    def traffic(self) -> dict[str, float]:
        """Bytes that pass, by resource."""
        return self.launch.resources

    @property
    def time_us(self) -> float:
        return self.launch.time_us


Piece = tuple[str, str, Step]
SecondPhase = Callable[[DeviceMemory | None, int, "aclOpExecutor | None", aclrtStream], int]
Build = Callable[[Arena], tuple[list[Piece], dict[str, Any]]]


class aclOpExecutor:
    """Kernels in order. tiling: every knob of the main kernels as used; notes: messages for the user.

    What concerns the values of inputs (NaN that a product does not keep) joins the notes when the kernels run, at
    synchronisation. It is no failure: the status is 0, and aclGetRecentErrMsg has nothing of it.

    vendor_workspace_size: what the vendor's own kernel would ask for, where its formula is known; None elsewhere.
    """

    def __init__(
        self,
        api: str,
        build: Build,
        machine: Device,
        notes: tuple[str, ...] = (),
        value_notes: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self.api, self.notes, self.repeatable = api, notes, False
        self.gone = ""  # why phase 2 does not take it any more
        self._build, self._machine, self._value_notes = build, machine, value_notes
        counting = Arena(machine.product, False)
        pieces, self.tiling = build(counting)
        launches = launches_of([step for *_, step in pieces], machine)
        self.kernels = tuple(DeviceKernel(*piece, x) for piece, x in zip(pieces, launches, strict=True))
        self.own_bytes = counting.taken[0]
        self.workspace_size = self.own_bytes + SYSTEM_BYTES if pieces else 0
        self.vendor_workspace_size: int | None = None

    @property
    def time_us(self) -> float:
        """Simulated time of all kernels with their launches."""
        return sum(k.time_us for k in self.kernels)

    def run(self, workspace: DeviceMemory | None) -> float:
        """Compute the values; gives the time."""
        if workspace is not None and workspace.freed:
            raise RunError(f"{self.api}: workspace was freed before the kernels ran")
        buffer = np.empty(0, np.uint8) if workspace is None else workspace.bytes
        with device(self._machine.product, **switches_of(self._machine)):
            pieces, _ = self._build(Arena(self._machine.product, True, workspace=buffer))
            self.notes = tuple(dict.fromkeys((*self.notes, *self._value_notes())))
            for _, _, step in pieces:
                compute(call_of(step))
        return self.time_us


def switches_of(machine: Device) -> dict[str, Any]:
    """Fields of a device but for the product."""
    return {n: getattr(machine, n) for n in Device.__dataclass_fields__ if n != "product"}


def launches_of(steps: Sequence[Step], machine: Device) -> tuple[Launch, ...]:
    """Time of each launch."""
    with device(machine.product, **{**switches_of(machine), "values": False, "time": True}):
        return timed_steps(steps)


def aclSetAclOpExecutorRepeatable(executor: aclOpExecutor | None) -> int:
    """Let phase 2 take the executor more than once; refused for one that is used up."""
    api = "aclSetAclOpExecutorRepeatable"
    if executor is None:
        return failed(api, PARAM_NULLPTR, "executor is null")
    if why := _no_executor(executor):
        return failed(api, PARAM_INVALID, why)
    if executor.gone:
        return failed(api, INNER, executor.gone)
    executor.repeatable = True
    return SUCCESS


def aclDestroyAclOpExecutor(executor: aclOpExecutor | None) -> int:
    """A repeatable executor is not consumed by phase 2 and is given back here."""
    if executor is None:
        return failed("aclDestroyAclOpExecutor", PARAM_NULLPTR, "executor is null")
    if why := _no_executor(executor):
        return failed("aclDestroyAclOpExecutor", PARAM_INVALID, why)
    executor.gone = executor.gone or DELETED
    return SUCCESS


def _no_executor(x: object) -> str:
    return (
        "" if isinstance(x, aclOpExecutor) else f"executor is {described(x)}; it must be what phase 1 gives"
    )


def second_phase(
    api: str,
    workspace: DeviceMemory | None,
    workspace_size: int,
    executor: aclOpExecutor | None,
    stream: aclrtStream | None,
) -> int:
    """Enqueue the kernels of an executor; the checks of hicann/opbase, op_executor.cpp, in their order.

    stream None is the default stream of the device.
    """
    try:
        _check(api, workspace, workspace_size, executor)
        if why := unusable(stream):
            raise Refused(PARAM_INVALID, why)
    except Refused as e:
        return failed(api, e.status, str(e))
    assert executor is not None
    if not executor.repeatable:
        executor.gone = USED
    stream_of(stream).pending.append(lambda: executor.run(workspace))
    return SUCCESS


def _check(
    api: str, workspace: DeviceMemory | None, workspace_size: int, executor: aclOpExecutor | None
) -> None:
    """An executor whose workspace is refused is deleted."""
    if executor is None:
        raise Refused(PARAM_NULLPTR, "executor is null")
    if why := _no_executor(executor):
        raise Refused(PARAM_INVALID, why)
    if executor.gone:
        raise Refused(INNER, executor.gone)
    if executor.api != api:
        raise Refused(
            PARAM_INVALID,
            f"executor was made by {executor.api}GetWorkspaceSize, not by {api}GetWorkspaceSize",
        )
    if not is_whole(workspace_size) or workspace_size < 0:
        raise Refused(PARAM_INVALID, f"workspaceSize is {described(workspace_size)}; it must be at least 0")
    if workspace is not None and not isinstance(workspace, DeviceMemory):
        raise Refused(PARAM_INVALID, f"workspace is {described(workspace)}; it must be of aclrtMalloc")
    if workspace_size > 0 and workspace is None:
        executor.gone = DELETED
        raise Refused(
            PARAM_NULLPTR, f"workspace is null, workspaceSize is {workspace_size}; the executor is deleted"
        )
    have = 0 if workspace is None else min(int(workspace_size), len(workspace))
    if have < executor.workspace_size:
        executor.gone = DELETED
        raise Refused(
            PARAM_INVALID,
            f"workspace has {have} bytes; phase 1 asked for {executor.workspace_size}; the executor is deleted",
        )


def second_phase_of(api: str) -> SecondPhase:
    """The function of phase 2, as a page exports it."""

    def phase(
        workspace: DeviceMemory | None,
        workspaceSize: int,
        executor: aclOpExecutor | None,
        stream: aclrtStream,
    ) -> int:
        """Phase 2: enqueue the kernels."""
        return second_phase(api, workspace, workspaceSize, executor, stream)

    phase.__name__ = phase.__qualname__ = api
    return phase
