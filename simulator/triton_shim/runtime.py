"""Small parts of Triton that scripts import beside the language: errors, the entry of libraries, constexpr functions."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from .. import errors
from ..ir.building.registry import constexpr, unwrap
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


def unwrap_if_constexpr(x: Any) -> Any:
    """The Python value behind a constexpr, also inside of tuples and lists."""
    if isinstance(x, tuple | list):
        return type(x)(map(unwrap_if_constexpr, x))
    return unwrap(x)


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
ALLOCATOR = {"set_allocator": set_allocator}
CORE = {"_unwrap_if_constexpr": unwrap_if_constexpr, "constexpr": constexpr}
KNOBS = {
    "runtime": SimpleNamespace(interpret=False, jit_cache_hook=None, jit_post_compile_hook=None, debug=False),
    "compilation": SimpleNamespace(always_compile=False, disable_line_info=False),
    "autotuning": SimpleNamespace(print=False, cache=False),
}
