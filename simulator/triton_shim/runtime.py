"""Small parts of Triton that scripts import beside the language: errors, the entry of libraries, constexpr functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import errors
from ..ir.building.registry import constexpr, unwrap_all
from . import tuning
from .kernel import KernelInterface


class LibEntry(KernelInterface):
    """A kernel under `libentry()`: launched as it is, since launching costs nothing here."""

    def __init__(self, fn: KernelInterface) -> None:
        self.fn = fn
        self.jit_function = tuning.base_function(fn)
        self.arg_names = self.jit_function.arg_names
        self.__name__ = self.jit_function.name

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch on `grid`."""
        return self.fn.run(*args, grid=grid, warmup=warmup, **kwargs)


def libentry(*_: Any, **__: Any) -> Callable[[Any], LibEntry]:
    """`triton.runtime.libentry.libentry`: shortens launches on a device; here it passes them on."""
    return LibEntry


def libtuner(configs: Any, key: Any = None, strategy: Any = None, **options: Any) -> Any:
    """`libtuner`: `autotune` whose key values may be rounded by a strategy; here each value is its own."""
    return tuning.autotune(configs, key, **options)


def constexpr_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`triton.constexpr_function`: a Python function that kernels may call with compile-time values."""
    fn.__ascendtile_host__ = True  # type: ignore[attr-defined]
    return fn


def must_use_result(fn: Any, reason: Any = True) -> Any:
    """`triton.must_use_result`, with or without a text: a kernel that calls the function for nothing is refused."""
    if isinstance(fn, str):
        return lambda f: must_use_result(f, fn)
    fn.must_use_result = reason if isinstance(reason, str) else ""
    return fn


class NullAllocator:
    """What `triton.set_allocator` begins with on a device: no room for workspace, which is not asked for here."""

    def __call__(self, size: int, alignment: int, stream: int | None) -> Any:
        raise errors.UsageError(
            f"no allocator is set, and {size} bytes are asked for; see triton.set_allocator"
        )


def set_allocator(allocator: Any) -> None:
    """`triton.set_allocator`: workspace of kernels is not in a tensor here, so nobody asks the allocator."""


ERRORS = {
    "CompilationError": errors.CompileError,
    "CompileTimeAssertionFailure": errors.CompileError,
    "UnsupportedLanguageConstruct": errors.CompileError,
    "TritonError": errors.AscendtileError,
    "OutOfResources": errors.BufferOverflowError,
    "InterpreterError": errors.RunError,
    "MLIRCompilationError": errors.AscendtileError,  # what the vendor's compiler refuses: full buffers, operations
}
TOP = {**ERRORS, "must_use_result": must_use_result, "set_allocator": set_allocator}
CORE = {
    "_unwrap_if_constexpr": unwrap_all,
    "constexpr": constexpr,
    "must_use_result": must_use_result,
}
