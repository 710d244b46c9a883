"""Outputs that the user gives: of any strides, and of any float type, which may take a cast and a copy at the end.

One may lie exactly in the place of an input; anything between is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.interpreter.tensors import as_array
from ...simulator.precision import dtypes as ty
from ..operator.messages import near
from ..operator.plan import PlanContext, Step
from ..operator.tensors import Tensor, dtype_of
from ..shared.casts import cast_step
from .strided_copies import view_copy_step

BUFFERS = 2
WORK: Any = 100_000  # candidates that are tried to tell views apart; views that need more count as sharing


def read_outputs(op: str, given: Mapping[str, Any], expected: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    """Arrays (numpy, torch on the CPU) by name, checked against the outputs that the operator has here."""
    out = {}
    for name, x in given.items():
        if name not in expected:
            raise UsageError(f"{op} has no output {name!r} here{near(name, expected)}")
        array = as_array(f"{op}: out {name}", x)
        if array is None:
            raise UsageError(
                f"{op}: out {name!r} is a {type(x).__name__}; give a numpy array or a torch CPU tensor"
            )
        _check(op, name, array, expected[name])
        out[name] = array
    return out


def _check(op: str, name: str, array: np.ndarray, expected: Tensor) -> None:
    if array.shape != expected.shape:
        raise UsageError(f"{op}: out {name!r} has shape {array.shape}; it must be {expected.shape}")
    found = ty.from_numpy(array.dtype)
    if found is None or not found.is_floating() or found.itemsize > 4:
        raise UsageError(f"{op}: out {name!r} holds {array.dtype}; it must hold float16, bfloat16 or float32")
    repeated = any(s == 0 and n > 1 for n, s in zip(array.shape, array.strides, strict=True))
    if not array.flags.writeable or repeated:
        why = "elements that share memory" if repeated else "read-only memory"
        raise UsageError(f"{op}: out {name!r} has {why}; it must be an array that can be written")


def direct(
    given: Mapping[str, np.ndarray], expected: Mapping[str, Tensor], inputs: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Those that the operator can write itself: contiguous, of the type that it writes, and no input.

    A kernel may read an input again after it has written an output, so what is in place of an input is written last.
    """
    return {
        n: x
        for n, x in given.items()
        if x.flags.c_contiguous and dtype_of(x) == dtype_of(expected[n]) and replaced(x, inputs) is None
    }


def write_back(
    given: Mapping[str, np.ndarray],
    found: Mapping[str, Tensor],
    context: PlanContext,
    inputs: Mapping[str, Tensor],
) -> tuple[list[Step], list[str]]:
    """Launches that bring the others into the given arrays, and notes about it."""
    steps: list[Step] = []
    notes = []
    cores = context.product.vector_cores
    for name, array in given.items():
        x = found[name]
        if x is array or not x.size:
            continue
        if dtype_of(x) != dtype_of(array):
            target = array if array.flags.c_contiguous else context.tensor(array.shape, dtype_of(array))
            steps.append(cast_step(x, target, cores, BUFFERS))
            notes.append(f"out {name} is {array.dtype}: a launch of its own casts to it")
            x = target
        if x is not array:
            steps.append(view_copy_step(x, array, context.product))
            why = f"in place of input {replaced(array, inputs)}" if array.flags.c_contiguous else "strided"
            notes.append(f"out {name} is {why}: a launch of its own copies into it")
    return steps, notes


def check_apart(op: str, given: Mapping[str, np.ndarray], inputs: Mapping[str, Any]) -> None:
    """Raise `UsageError` for outputs that share memory with each other or with a part of an input.

    given: outputs by name. inputs: tensors by name; those without data share nothing.
    """
    for (first, a), (second, b) in combinations(given.items(), 2):
        if share(a, b):
            raise UsageError(
                f"{op}: out {second!r} shares memory with out {first!r}; give each an array of its own"
            )
    for name, array in given.items():
        for other, x in inputs.items():
            if isinstance(x, np.ndarray) and share(array, x) and not _same(array, x):
                raise UsageError(
                    f"{op}: out {name!r} shares memory with a part of input {other!r} or lies in it in another order; give "
                    f"an array of its own, or {other!r} itself to write in place"
                )


def kept_inputs(given: Mapping[str, np.ndarray], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs as they are before a run: copies of those that outputs overwrite, the others themselves."""
    return {
        n: x.copy() if isinstance(x, np.ndarray) and any(share(a, x) for a in given.values()) else x
        for n, x in inputs.items()
    }


def replaced(array: np.ndarray, inputs: Mapping[str, Any]) -> str | None:
    """The name of the input whose memory an output takes; None if there is none."""
    return next((n for n, x in inputs.items() if isinstance(x, np.ndarray) and share(array, x)), None)


def share(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays have a byte in common; True where finding out takes too long."""
    try:
        return bool(np.shares_memory(a, b, max_work=WORK))
    except np.exceptions.TooHardError:
        return True


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are one: every element in the same place. Strides of axes of length 1 mean nothing."""
    steps = [[s for n, s in zip(x.shape, x.strides, strict=True) if n > 1] for x in (a, b)]
    place = a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
    return place and a.shape == b.shape and a.itemsize == b.itemsize and steps[0] == steps[1]
