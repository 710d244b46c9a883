"""What is to be run: the tensors of a case, or what the user gave, checked for names and types, and the memory it needs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...simulator.device import Device
from ...simulator.errors import UsageError
from ...simulator.interpreter.tensors import Shape, as_array
from ...simulator.precision import dtypes as ty
from ...simulator.precision.rounding import encode
from ..operator.draw import Draw
from ..operator.messages import listed, near
from ..operator.operator import Case, Operator
from ..operator.tensors import DTYPE_NAMES, Options, Tensor, dtype_name, element_type

GIB = 2**30
CODES = ("uint8", "fp8e4nv", "float32")  # types of what comes with operands in blocks
TIME_ONLY = "ask for time only (values=False, --no-values), or study a sample (ascendtile precision --sample)"
SMALLER = "take a smaller case, or fewer rows of a sample (--sample; the length of the sums stays whole)"


def available_bytes() -> int | None:
    """Memory that can still be had on this machine; None where it does not say."""
    try:
        with open("/proc/meminfo") as lines:
            found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
        return int(found[0]) * 1024
    except (OSError, IndexError, ValueError):
        return _physical_bytes()


def _physical_bytes() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def require_memory(op: Any, tensors: Mapping[str, Any], way_out: str = TIME_ONLY) -> None:
    """Raise `UsageError` if values and errors of an operator on these tensors need more memory than there is."""
    need = op.host_bytes(tensors) if op.host_bytes is not None else 0
    have = available_bytes()
    if have is not None and need > have:
        shapes = ", ".join(f"{n} {list(x.shape)}" for n, x in tensors.items())
        raise UsageError(
            f"{op.name}: values of {shapes} need about {need / GIB:.3g} GiB of memory, {have / GIB:.3g} GiB are "
            f"available; {way_out}"
        )


@dataclass(frozen=True)
class OpInputs:
    """What is to be run: tensors by name, options, and how the record names it."""

    tensors: Mapping[str, Tensor]
    options: dict[str, Any]
    dtype: str
    case: str | None = None
    made: Mapping[str, Any] = field(default_factory=dict)  # what the inputs of a case were made from


def problem_of_case(
    op: Operator,
    case: Case,
    dtype: str | None,
    machine: Device,
    seed: int,
    distribution: str,
    options: Options,
) -> OpInputs:
    Draw(seed, distribution)  # refuses what is wrong with them also where no numbers are drawn
    here = op.dtypes_on(machine.product)
    name = op.dtype(dtype or here[0])
    op.require(machine.product, name)
    if machine.values:
        require_memory(op, op.shapes(case, name))
    tensors: Mapping[str, Tensor]
    tensors = op.inputs(case, name, seed, distribution) if machine.values else op.shapes(case, name)
    made = {"seed": seed, "distribution": distribution} if machine.values else {}
    return OpInputs(tensors, op.read_options({**case.options, **options}), name, case.name, made)


def problem_of_inputs(
    op: Operator, inputs: Mapping[str, Any], dtype: str | None, options: Options
) -> OpInputs:
    present = {n: x for n, x in inputs.items() if x is not None}
    _check_names(op, present)
    name = None if dtype is None else op.dtype(dtype)
    tensors = {
        n: _tensor(op, n, present[n], name)
        for n in (*op.required, *op.optional, *op.block_inputs)
        if n in present
    }
    return OpInputs(tensors, op.read_options(options), name or dtype_name(tensors[op.main]))


def _check_names(op: Operator, present: Mapping[str, Any]) -> None:
    known = (*op.required, *op.optional, *(n for n in op.block_inputs if n in present))
    for n in present:
        if n not in known:
            raise UsageError(f"{op.name} has no input {n!r}{near(n, known)}")
    missing = [n for n in op.required if n not in present]
    if missing:
        raise UsageError(f"{op.name}: input {listed(missing)} missing; it takes {listed(known)}")


def _tensor(op: Operator, name: str, x: Any, dtype: str | None) -> Tensor:
    """An input as array or shape; converted if `dtype` is given, except where the operator fixes the type."""
    own = CODES if name in op.block_inputs or _is_bytes(op, x) else op.own_dtypes.get(name, ())
    target = None if dtype is None or own else element_type(op.fixed_dtypes.get(name, dtype))
    if isinstance(x, Shape):
        return Shape(x.shape, target) if target else x
    array = _scalar(x) if isinstance(x, int | float | np.generic) else as_array(f"{op.name}: {name}", x)
    if array is None:
        raise UsageError(
            f"{op.name}: {name!r} is a {type(x).__name__}; give a numpy array or a torch CPU tensor"
        )
    found = ty.from_numpy(array.dtype.newbyteorder("="))
    plain = found is not None and found.is_floating() and (target is not None or _taken(op, found))
    if not (plain and not own) and (found is None or DTYPE_NAMES.get(found.name, found.name) not in own):
        raise UsageError(
            f"{op.name}: {name!r} holds {array.dtype}; it must hold {listed(own or op.dtypes, 'or')}"
            + ("; cast the array first" if found is not None and found.is_floating() else "")
        )
    if target is not None and array.dtype != target.storage:
        return encode(array, target.name)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _is_bytes(op: Operator, x: Any) -> bool:
    """Whether an operand is what `blocks.py` packs; its own check asks for the scales."""
    return op.formats and getattr(x, "dtype", None) == np.uint8


def _taken(op: Operator, found: ty.DType) -> bool:
    """Whether an input may be of that type as it comes."""
    return found.name in DTYPE_NAMES or (op.formats and found.is_foreign)


def _scalar(x: Any) -> np.ndarray:
    """A Python number is fp32; a numpy number keeps its type."""
    return np.asarray(x if isinstance(x, np.generic) else np.float32(x))
