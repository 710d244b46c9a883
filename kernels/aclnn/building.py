"""Phase 1 in general: contiguous copies, casts, the operator's launches, casts, view copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from ...simulator.device import current_device
from ...simulator.errors import BufferOverflowError, RefusedError, RunError, UsageError
from ...simulator.interpreter.tensors import Shape
from ...simulator.precision import dtypes as ty
from ..operator.notes import call_notes, idle_mode, value_warnings
from ..operator.operator import Operator
from ..operator.plan import PlanContext
from ..operator.tensors import Knobs, Options, Tensor, dtype_name, dtype_of
from ..running.advice import Advice, numbers_of
from ..running.fitting import plan_that_fits
from ..running.run_op import MAX_ELEMENTS
from ..running.strided_copies import copy_step, view_copy_step
from ..shared.casts import cast_step
from .checks import overlap, same_place
from .executor import SYSTEM_BYTES, Arena, Piece, aclOpExecutor
from .status import (
    INNER_NULLPTR,
    INNER_TILING_ERROR,
    NAMES,
    PARAM_INVALID,
    PARAM_NULLPTR,
    SUCCESS,
    Refused,
    failed,
    translated,
)
from .tensor import aclTensor

BUFFERS = 2
MaybeTensor = TypeVar("MaybeTensor", aclTensor, aclTensor | None)

_tilings: ContextVar[Mapping[str, Mapping[str, Any]] | None] = ContextVar("aclnn_tilings", default=None)


@contextmanager
def tiling(**knobs: Knobs) -> Iterator[None]:
    """`with aclnn.tiling(group_norm_backward={"strategy": "vendor"}):` knobs of operators for phase 1 inside."""
    token = _tilings.set({**(_tilings.get() or {}), **knobs})
    try:
        yield
    finally:
        _tilings.reset(token)


@dataclass(frozen=True)
class Interface:
    """An operator's page: the name of phase 2, and the parameters of the C interface by those of the Python face."""

    api: str
    operator: Operator
    names: Mapping[str, str]

    def in_c(self, tensors: Mapping[str, MaybeTensor]) -> dict[str, MaybeTensor]:
        """Tensors by their names there."""
        return {self.names[n]: t for n, t in tensors.items()}


def interface(api: str, operator: Operator, names: str) -> Interface:
    """names: of the Python face, as `x=input` where the C interface has another one."""
    pairs = (x.partition("=") for x in names.split())
    return Interface(
        api, operator, {ours: theirs or ours for ours, _, theirs in pairs} | {operator.name: api}
    )


@dataclass(frozen=True)
class CheckedCall:
    """One call of phase 1 after its checks.

    inputs, outputs: present ones by the names of the Python face. types: of the outputs as the operator writes them. widen:
    type to which inputs are cast first. knobs: of the tiling, by default. notes: warnings of the checks. vendor_bytes:
    workspace that the vendor's kernel asks for, if its formula is known.
    """

    interface: Interface
    inputs: Mapping[str, aclTensor]
    outputs: Mapping[str, aclTensor]
    options: Options
    types: Mapping[str, ty.DType]
    widen: ty.DType | None = None
    knobs: Knobs = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    vendor_bytes: int | None = None

    @property
    def operator(self) -> Operator:
        return self.interface.operator

    @property
    def names(self) -> Mapping[str, str]:
        return self.interface.names

    def build(self, arena: Arena) -> tuple[list[Piece], dict[str, Any]]:
        """All launches, with their tensors in `arena`, and the knobs that were used."""
        if arena.values:
            self._check_memory()
        pieces: list[Piece] = []
        tensors = {n: self._input(n, t, arena, pieces) for n, t in self.inputs.items()}
        given = {n: t.array() for n, t in self.outputs.items() if self._direct(n, t)}
        knobs = self.operator.read_tiling(self.knobs)
        plan = plan_that_fits(self.operator, tensors, self.options, knobs, replace(arena, given=given))
        pieces += [("main", self.operator.name, step) for step in plan.steps]
        for n, t in self.outputs.items():
            if n not in given:
                self._write_back(n, plan.outputs[n], t, arena, pieces)
        return pieces, plan.used

    def check_tensors(self) -> None:
        """What no kernel could be made for."""
        for n, t in (*self.inputs.items(), *self.outputs.items()):
            here = self.names[n]
            if t.destroyed:
                raise Refused(PARAM_NULLPTR, f"{here} was destroyed; it is required")
            if t.size > MAX_ELEMENTS:
                raise Refused(
                    INNER_NULLPTR, f"{here} has {t.size} elements; the kernels reach at most {MAX_ELEMENTS}"
                )

    def beyond(self) -> tuple[str, ...]:
        """Where the call takes more than the document has."""
        tensors = {**self.inputs, **self.outputs}
        strided = [n for n, t in tensors.items() if t.size and not t.contiguous()]
        kinds = {n: dtype_name(t.like) for n, t in tensors.items()}
        found = call_notes(self.operator, kinds, strided, current_device().product)
        return tuple(translated(n, self.names) for n in found)

    def idle_mode(self) -> tuple[str, ...]:
        """That the cubeMathType has no effect on tensors of these types."""
        tensors = {n: t.like for n, t in self.inputs.items()}
        machine = current_device()
        found = idle_mode(self.operator, tensors, machine.product, machine.cube_math_type)
        return tuple(translated(n, self.names) for n in found)

    def in_place(self) -> tuple[str, ...]:
        """Outputs in the memory of inputs. The vendor's library does not look at that, and the kernels run as they are."""
        found = []
        for n, t in self.outputs.items():
            for m, x in self.inputs.items():
                if overlap(t, x):
                    whole = same_place(t, x)
                    how = "is in place of" if whole else "shares memory with a part of"
                    risk = "may be" if whole else "are likely to be"
                    found.append(
                        f"{self.names[n]} {how} {self.names[m]}, which is not checked: a kernel that reads {self.names[m]} "
                        f"after {self.names[n]} is written reads what was written, and results {risk} wrong"
                    )
        return tuple(found)

    def value_notes(self) -> tuple[str, ...]:
        """What becomes of NaN and infinities in the inputs: asked when the kernels run, when the values are there."""
        arrays = {n: x for n, t in self.inputs.items() if isinstance(x := t.array(), np.ndarray)}
        found = value_warnings(self.operator, arrays, current_device())
        return tuple(translated(n, self.names) for n in found)

    def _check_memory(self) -> None:
        """Called when the kernels run: a tensor that they cannot reach is a failure on the device."""
        for n, t in (*self.inputs.items(), *self.outputs.items()):
            if why := t.missing():
                raise RunError(f"{self.interface.api}: {self.names[n]} cannot be reached: {why}")

    def overflow(self, e: BufferOverflowError) -> str:
        """The step that failed inside, both numbers, and what the caller can change: knobs only if they were given."""
        shapes = {n: Shape(t.shape, self.widen or t.dtype) for n, t in self.inputs.items()}
        knobs = self.operator.read_tiling(self.knobs)
        product = current_device().product
        used = self.operator.plan(shapes, self.options, knobs, PlanContext(product, False)).tiling
        asked = _asked(self.operator)
        advice = Advice(self.operator, shapes, self.options, product, used, asked).message(asked)
        inner = f"{INNER_TILING_ERROR} {NAMES[INNER_TILING_ERROR]}"
        return f"the tiling failed ({inner}): {numbers_of(e)}. {translated(advice, self.names)}"

    def _direct(self, name: str, tensor: aclTensor) -> bool:
        return tensor.contiguous() and tensor.dtype == self.types[name]

    def _input(self, name: str, tensor: aclTensor, arena: Arena, pieces: list[Piece]) -> Tensor:
        cores = arena.product.vector_cores
        source = tensor.array()
        found: Tensor = source
        if not tensor.contiguous():
            found = arena.tensor(tensor.shape, tensor.dtype)
            pieces.append(("contiguous", self.names[name], copy_step(source, found, arena.product)))
        if self.widen is not None and tensor.dtype != self.widen:
            wide = arena.tensor(tensor.shape, self.widen)
            pieces.append(("cast", self.names[name], cast_step(found, wide, cores, BUFFERS)))
            found = wide
        return found

    def _write_back(
        self, name: str, found: Tensor, tensor: aclTensor, arena: Arena, pieces: list[Piece]
    ) -> None:
        """A cast if the type differs, a copy into a strided view."""
        cores, here = arena.product.vector_cores, self.names[name]
        if dtype_of(found) != tensor.dtype:
            target = tensor.array() if tensor.contiguous() else arena.tensor(tensor.shape, tensor.dtype)
            pieces.append(("cast", here, cast_step(found, target, cores, BUFFERS)))
            found = target
        if not tensor.contiguous():
            pieces.append(("view copy", here, view_copy_step(found, tensor.array(), arena.product)))


@dataclass(frozen=True)
class Idle:
    """A call that needs no kernel, and notes about it."""

    notes: tuple[str, ...] = ()


Answer = tuple[int, int, aclOpExecutor | None]
LEFT_ALONE = (
    "input is empty: no kernel runs and the outputs keep what they hold, as on the device; the sums are zero"
)


def first_phase(interface: Interface, prepare: Callable[[], CheckedCall | Idle]) -> Answer:
    """(status, workspace size, executor). `prepare` checks and gives the call, or that there is nothing to do.

    What a check refuses has its own status. A tiling that does not fit shows as 561103, an internal step that failed; its
    message names that step's own status, 561002.
    """
    machine, api, names = current_device(), interface.api, interface.names
    try:
        call = prepare()
        if isinstance(call, CheckedCall):
            call.check_tensors()
        notes = tuple(translated(n, names) for n in call.notes)
        if isinstance(call, Idle):
            executor = aclOpExecutor(api, _nothing, machine, notes)
        else:
            notes += (*call.beyond(), *call.idle_mode(), *call.in_place())
            executor = aclOpExecutor(api, _with_knobs(call).build, machine, notes, call.value_notes)
            if call.vendor_bytes is not None:
                executor.vendor_workspace_size = call.vendor_bytes + SYSTEM_BYTES
    except Refused as e:
        return failed(api, e.status, str(e)), 0, None
    except RefusedError as e:
        return failed(api, e.status, translated(e.reason, names)), 0, None
    except BufferOverflowError as e:
        assert isinstance(call, CheckedCall)
        return failed(api, INNER_NULLPTR, _with_knobs(call).overflow(e)), 0, None
    except UsageError as e:
        return failed(api, PARAM_INVALID, translated(str(e), names)), 0, None
    return SUCCESS, executor.workspace_size, executor


def _with_knobs(call: CheckedCall) -> CheckedCall:
    """The call with the knobs of the `tiling` in force: phase 2 uses those of phase 1."""
    return replace(call, knobs={**call.knobs, **_asked(call.operator)})


def _asked(op: Operator) -> Mapping[str, Any]:
    """The knobs of the `tiling` in force."""
    return (_tilings.get() or {}).get(op.name, {})


def _nothing(arena: Arena) -> tuple[list[Piece], dict[str, Any]]:
    return [], {}
