"""Outputs in the memory of inputs: exactly in place of one is taken, anything between is refused."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from ...simulator.errors import UsageError

WORK: Any = 100_000  # candidates that are tried to tell views apart; views that need more count as sharing


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
