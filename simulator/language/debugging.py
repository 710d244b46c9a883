"""Checks and prints at compile time."""

from __future__ import annotations

from typing import Any

from ..frontend.program import Value
from ..frontend.rules import KernelError
from ..frontend.words import Builder, word


@word
def static_assert(b: Builder, cond: Any, msg: str = "") -> None:
    """Refuse to compile unless `cond`, a compile-time value, holds."""
    if isinstance(cond, Value):
        raise KernelError("static_assert needs a compile-time condition; use an `assert` statement")
    if not cond:
        raise KernelError(f"static_assert failed{': ' + msg if msg else ''}")


@word
def static_print(b: Builder, *values: Any) -> None:
    """Print compile-time values while the kernel is compiled."""
    print(*values)
