"""What a `for` of a kernel runs over: a range of the program, or one that is unrolled."""

from __future__ import annotations

from typing import Any

from ..program import Value
from .promotion import KernelError, describe
from .registry import unwrap


class StaticRange:
    """tl.static_range: a loop that is unrolled at compile time."""

    def __init__(self, *bounds: int) -> None:
        for x in bounds:
            if isinstance(x, bool) or not isinstance(x, int):
                raise KernelError(f"static_range needs compile-time integers, got {describe(x)}; use range")
        if bounds[2:] == (0,):
            raise KernelError("the step of a static_range must not be zero")
        self.values = range(*bounds)


class DynamicRange:
    """range or tl.range inside a kernel."""

    def __init__(self, *bounds: Any, **hints: Any) -> None:
        if not 1 <= len(bounds) <= 3:
            raise KernelError(f"range takes one to three bounds, got {len(bounds)}")
        self.start, self.stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
        self.step = bounds[2] if len(bounds) == 3 else 1
        self.hints = {k: unwrap(v) for k, v in hints.items() if v is not None}
        if not isinstance(unwrap(self.step), Value) and unwrap(self.step) == 0:
            raise KernelError("the step of a range must not be zero")
