"""What stands for `triton.runtime.jit`: kernels with the attributes that scripts use."""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import AscendtileError, CompileError, EmptyGridError
from ..frontend.kernel_function import KernelFunction
from ..ir.building.promotion import KernelError
from ..ir.building.registry import constexpr
from ..ir.source import Source
from ..jit_function import JitFunction
from .torch_npu.host_memory import refuse


class KernelInterface:
    """What can be launched as `kernel[grid](...)`: a jit function, or a tuner around one."""

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch on `grid`."""
        raise NotImplementedError("a kernel interface needs run(*args, grid=..., warmup=..., **kwargs)")

    def warmup(self, *args: Any, grid: Any, **kwargs: Any) -> Any:
        """Compile for these arguments and check that the tiles fit; nothing runs."""
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)


@dataclass(frozen=True)
class KernelParam:
    """One parameter of a kernel, as `fn.params` lists it."""

    num: int
    parameter: inspect.Parameter
    is_constexpr: bool
    do_not_specialize: bool

    @property
    def name(self) -> str:
        return self.parameter.name

    @property
    def annotation(self) -> Any:
        return "" if self.parameter.annotation is inspect.Parameter.empty else self.parameter.annotation

    @property
    def default(self) -> Any:
        return self.parameter.default

    @property
    def has_default(self) -> bool:
        return self.parameter.default is not inspect.Parameter.empty


class JITFunction(JitFunction, KernelInterface):
    """A kernel as `triton.jit` makes it: that of ascendtile under Triton's names."""

    def __init__(self, fn: Callable[..., Any], options: dict[str, Any] | None = None) -> None:
        super().__init__(fn, options)
        self.signature = inspect.signature(fn)
        self.arg_names = [p.name for p in self.parameters]
        self.params = [self._param(i, p) for i, p in enumerate(self.parameters)]
        self.pre_run_hooks: list[Callable[..., Any]] = []

    def _param(self, i: int, p: inspect.Parameter) -> KernelParam:
        kept = self.options.get("do_not_specialize") or ()
        return KernelParam(i, p, p.name in self.constexprs, i in kept or p.name in kept)

    @property
    def src(self) -> str:
        """Source text of the function, from `def` on."""
        lines = self.source.lines
        first = self.source.tree.lineno + self.source.shift - self.source.first_line
        return inspect.cleandoc("\n".join(["", *lines[first:]]))

    def _unsafe_update_src(self, new_src: str) -> None:
        """Compile `new_src`, from `def` on, from now on; parameters and names from outside stay those of the function.

        Kernels that call this function and were compiled before keep what they have, as in Triton.
        """
        old = self.source
        first = old.tree.lineno + old.shift
        self.source = Source.of_lines(old.file, first, new_src.splitlines(keepends=True), self.name)
        self._programs.clear()

    @property
    def cache_key(self) -> str:
        """SHA-256 of what the source says and of its line, of the functions that it calls, and of the constants that it
        reads from outside. As in Triton neither its file nor how far it is indented matters; comments do not, either.
        """
        return hashlib.sha256("\n".join(_depends_on(self, {})).encode()).hexdigest()

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Call `hook` with the arguments of each launch before it."""
        self.pre_run_hooks.append(hook)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch on `grid`; the result is the `Run`, None for a grid of no programs, which launches nothing as in Triton.

        warmup: only compile, check that the tiles fit, and time.
        """
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        try:
            refuse(self.name, {**dict(zip(self.arg_names, args, strict=False)), **kwargs})
            if warmup:
                return self.time(grid, *args, **kwargs)
            return JitFunction.__getitem__(self, grid)(*args, **kwargs)
        except EmptyGridError:
            return None
        except AscendtileError as e:
            # The message has the kernel's place; frames of ours say nothing.
            raise e.with_traceback(None) from rule_of(e)

    __getitem__ = KernelInterface.__getitem__


def rule_of(e: AscendtileError) -> KernelError | None:
    """The `__cause__` of an error in a kernel's source, as in Triton: what is said, without place and source line."""
    return KernelError(e.error_message) if isinstance(e, CompileError) else None


def _depends_on(fn: KernelFunction, known: dict[int, Any]) -> list[str]:
    """Texts that change when what the function does changes; `known` are the functions that are in already."""
    known[id(fn)] = fn
    out = [str(fn.source.first_line), ast.dump(fn.source.tree)]
    for node in ast.walk(fn.source.tree):
        x = _outside(fn, node)
        if isinstance(x, KernelFunction) and id(x) not in known:
            out += _depends_on(x, known)
        elif isinstance(x, constexpr):
            out.append(f"{ast.unparse(node)} = {x!r}")
    return out


def _outside(fn: KernelFunction, node: ast.AST) -> Any:
    """What a name, or an attribute of one, means outside of the function; None if it is none."""
    if isinstance(node, ast.Attribute):
        return getattr(_outside(fn, node.value), node.attr, None)
    return (fn.lookup(node.id) or (None,))[0] if isinstance(node, ast.Name) else None


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`triton.jit`: `@jit` or `@jit(do_not_specialize=[...], noinline=..., debug=..., repr=..., ...)`."""
    if fn is None:
        return lambda f: jit(f, **options)
    return fn if isinstance(fn, JitFunction) else JITFunction(fn, options)
