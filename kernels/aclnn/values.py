"""What Python may hand to functions of C: whole numbers, flags, and how messages name anything else."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_whole(x: Any) -> bool:
    """Whether C would take it as an integer without a change: 2, True, numpy's integers; not 2.0."""
    return isinstance(x, bool | int | np.integer | np.bool_)


def is_flag(x: Any) -> bool:
    """Whether it is a bool of C: True, False, 1 or 0."""
    return is_whole(x) and x in (0, 1)


def described(x: Any) -> str:
    """A value in a message: its text where it is short, else its type."""
    if x is None:
        return "null"
    if isinstance(x, bool | int | float | str | np.generic):
        return repr(x.item() if isinstance(x, np.generic) else x)
    return f"of the Python type {type(x).__name__}"
