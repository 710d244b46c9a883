"""Small parts of Triton that scripts import beside the language: errors, the entry of libraries, constexpr functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import errors
from ..ir.building.promotion import KernelError
from ..ir.building.registry import constexpr, unwrap_all
from ..ir.program import Program
from ..record.no_assembly import NoAssembly
from . import tuning
from .element_types import str_to_ty
from .kernel import JITFunction, KernelInterface
from .kernel_warnings import KernelWarning


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


@dataclass(frozen=True)
class ASTSource:
    """`triton.compiler.ASTSource`: a kernel with the types of its parameters.

    signature: of each parameter a short name of a type ("i32", "*fp16"), or "constexpr". constexprs: values of the constexpr
    ones, by name, by number or by path (number,); those of others make them constants, too.
    """

    fn: JITFunction
    signature: Mapping[str, str]
    constexprs: Mapping[Any, Any] = field(default_factory=dict)
    attrs: Any = None

    def program(self) -> Program:
        """The tile program of these types."""
        given = {self._name(key): x for key, x in self.constexprs.items()}
        bound = self.fn.arguments([], {**dict.fromkeys(self.signature), **given})
        named = {n: t for n, t in self.signature.items() if n not in given and t != "constexpr"}
        types = {n: str_to_ty(t) for n, t in named.items()}
        return self.fn.program(types, {n: x for n, x in bound.items() if n not in types})

    def _name(self, key: Any) -> str:
        number = key[0] if isinstance(key, tuple) else key
        return number if isinstance(number, str) else self.fn.arg_names[number]


@dataclass(frozen=True)
class CompiledKernel:
    """What `triton.compile` gives: the tile program; `asm` says that no code of a device is made."""

    name: str
    program: Program

    @property
    def asm(self) -> NoAssembly:
        return NoAssembly(self.name)


def compile(src: Any, target: Any = None, options: Any = None) -> CompiledKernel:
    """`triton.compile` of an `ASTSource`, for the simulated device; nothing runs, no tile is placed.

    Errors in the kernel's source are worded as Triton words them: line and column from `def` on, the message last.
    `UsageError` for files of an IR, and for a target that is no NPU.
    """
    if not isinstance(src, ASTSource):
        raise errors.UsageError(
            f"triton.compile takes an ASTSource here, got {src!r}: a file of TTIR or TTGIR is not read; "
            "compile the kernel's source, or launch it"
        )
    if target is not None and target.backend != "npu":
        raise errors.UsageError(
            f"triton.compile for {target.backend!r}: no code of another device is made here; leave the target out"
        )
    try:
        program = src.program()
    except errors.CompileError as e:
        raise _in_triton(e) from _causes(e)
    for text in program.warnings:
        warnings.warn(str(text), KernelWarning, stacklevel=2)
    return CompiledKernel(src.fn.name, program)


def _in_triton(e: errors.CompileError) -> errors.CompileError:
    """An error of the kernel as Triton writes it: the innermost place has the message."""
    return errors.CompileError("\n".join((*e.places[-1:], *(() if e.places[1:] else (e.error_message,)))))


def _causes(e: errors.CompileError) -> Exception:
    """What an error in a kernel came from: the rule that was broken, or the error in the helper that was called."""
    if len(e.places) < 2:
        return KernelError(e.error_message)
    inner = errors.CompileError(str(e), e.error_message, e.places[:-1])
    out = _in_triton(inner)
    out.__cause__ = _causes(inner)
    return out


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
COMPILER = {**ERRORS, "ASTSource": ASTSource, "CompiledKernel": CompiledKernel, "compile": compile}
TOP = {**ERRORS, "compile": compile, "must_use_result": must_use_result, "set_allocator": set_allocator}
CORE = {
    "_unwrap_if_constexpr": unwrap_all,
    "constexpr": constexpr,
    "must_use_result": must_use_result,
}
