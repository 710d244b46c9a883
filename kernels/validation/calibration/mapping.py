"""Tasks of a profile as rows of a table of measurements: which op predicts an operator of the vendor, and what it is told.

    @maps("Add", "Sub")
    def _pair(task: ProfiledTask) -> OpCall: ...

A function raises `Unmapped` with the reason where the profile does not say what a prediction needs (a stride, a mask), or
where none of ours is like that operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import prod

from ..settings import BYTES
from .profile import ProfiledTask, ProfiledTensor

FLOATS = ("fp16", "bf16", "fp32")
AI_CORES = ("AI_CORE", "AI_VECTOR_CORE", "AIC", "AIV", "MIX_AIC", "MIX_AIV", "AICORE", "AIVECTORCORE")
TOPICS = ("cube_types", "elementwise_types", "row_types")  # modules that register functions


class Unmapped(Exception):
    """Why a task is not predicted."""


@dataclass(frozen=True)
class OpCall:
    """What a row says of a kernel: op, shapes, dtypes, and keys of its tiling beside the cores."""

    op: str
    shapes: str
    dtypes: str
    tiling: str = ""


Mapper = Callable[[ProfiledTask], OpCall]
_mappers: dict[str, Mapper] = {}


def maps(*types: str) -> Callable[[Mapper], Mapper]:
    """Register a function as what maps operators of these types."""

    def register(function: Mapper) -> Mapper:
        _mappers.update((t.lower(), function) for t in types)
        return function

    return register


def call_of(task: ProfiledTask) -> OpCall:
    """What predicts a task. Raises Unmapped with the reason if nothing does."""
    if task.core and task.core not in AI_CORES:
        raise Unmapped(f"runs on {task.core}, not on the AI Core")
    mapper = _known().get(task.type.lower())
    if mapper is None:
        raise Unmapped("nothing predicts it")
    if task.us <= 0:
        raise Unmapped("no duration")
    if not task.inputs and not task.outputs:
        raise Unmapped("no shapes in the profile")
    if task.odd:
        raise Unmapped(task.odd)
    if any(x.shape is None for x in (*task.inputs, *task.outputs)):
        raise Unmapped("a shape is not known (-1)")
    if task.blocks is None:
        raise Unmapped("no Block Dim in the profile")
    return mapper(task)


def _known() -> dict[str, Mapper]:
    for topic in TOPICS:
        import_module(f"{__package__}.{topic}")
    return _mappers


# ---- what the functions below share ----


def sizes(numbers: Sequence[int]) -> str:
    """Joined by x, as rows have them."""
    return "x".join(map(str, numbers))


def named(ops: Mapping[str, str], task: ProfiledTask) -> str:
    """What a table of operators has for that of a task."""
    return next(op for name, op in ops.items() if name.lower() == task.type.lower())


def typed(operand: ProfiledTensor, allowed: Sequence[str] = tuple(BYTES)) -> str:
    """The element type, if it is one of those."""
    if operand.dtype not in allowed:
        raise Unmapped(f"type {operand.dtype or 'not known'}")
    return operand.dtype


def several(operands: Sequence[ProfiledTensor], least: int, what: str) -> Sequence[ProfiledTensor]:
    """The tensors, if there are so many and none of these is empty."""
    if len(operands) < least:
        raise Unmapped(f"{len(operands)} {what}, {least} are needed")
    if any(x.size == 0 for x in operands[:least]):
        raise Unmapped("an empty tensor")
    return operands


def first_of(task: ProfiledTask) -> tuple[ProfiledTensor, ProfiledTensor]:
    """The first input and output; an output that the profile leaves out is like the input."""
    first = several(task.inputs, 1, "inputs")[0]
    return first, task.outputs[0] if task.outputs else first


def rows_and_columns(shape: tuple[int, ...] | None) -> tuple[int, int]:
    """Rows and columns: all axes but the last one are rows."""
    if not shape:
        raise Unmapped("a scalar")
    return prod(shape[:-1]), shape[-1]
