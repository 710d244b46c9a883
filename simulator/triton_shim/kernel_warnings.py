"""Warnings of launches for scripts that run by themselves: `ascendtile run` has a page for them, `install()` has not."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..record.run import Run

PLACE = re.compile(r"(?P<file>[^:]+):(?P<line>\d+): (?P<text>.*)", re.DOTALL)
_told: dict[Any, Any] = {}


class KernelWarning(UserWarning):
    """What the values of a launch showed, such as two programs that store to one address."""


def tell(run: Run) -> None:
    """Python's own warnings, once for each text and line, for what makes values doubtful."""
    for message in run.value_warnings:
        found = PLACE.match(message)
        if found is None:
            warnings.warn(message, KernelWarning, stacklevel=2)
        else:
            warnings.warn_explicit(
                found["text"], KernelWarning, found["file"], int(found["line"]), registry=_told
            )
