"""`jit`: a kernel that can be launched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .frontend.kernel_function import KernelFunction


class JitFunction(KernelFunction):
    """A kernel. `kernel[grid](args...)` runs it; `kernel.time(grid, args...)` only times it.

    A parameter annotated `tl.constexpr` is a compile-time value and specialises the program.
    """

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        from .launch import launch  # with the first launch, since timing and execution take long to import

        return lambda *args, **kwargs: launch(self, grid, args, kwargs)

    def time(self, grid: Any, *args: Any, **kwargs: Any) -> Any:
        """Time only: tensors may be given as `shape((n,), "float16")`, no data is needed or touched."""
        from .launch import time_launch

        return time_launch(self, grid, args, kwargs)


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Make a kernel of a function, as `triton.jit`: `@jit` or `@jit(do_not_specialize=[...])`."""
    if fn is None:
        return lambda f: jit(f, **options)
    if isinstance(fn, JitFunction):
        return fn
    return JitFunction(fn, options)
