"""Warnings of launches for scripts that run by themselves: `ascendtile run` has a page for them, `install()` has not."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..record.run import Run

_told: dict[Any, Any] = {}


class KernelWarning(UserWarning):
    """What makes the values of a launch doubtful, such as two programs that store to one address."""


def tell(run: Run) -> None:
    """Python's own warnings, once for each text and line: faults, and what the values showed."""
    for message in dict.fromkeys((*run.faults, *run.value_warnings)):
        place = message.file_and_line
        if place is None:
            warnings.warn(message, KernelWarning, stacklevel=2)
        else:
            warnings.warn_explicit(message.what, KernelWarning, *place, registry=_told)
