"""What stands for `triton.runtime.jit`: kernels with the attributes that scripts use."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import AscendtileError, CompileError, EmptyGridError
from ..ir.building.promotion import KernelError
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

    def _param(self, i: int, p: inspect.Parameter) -> KernelParam:
        kept = self.options.get("do_not_specialize") or ()
        return KernelParam(i, p, p.name in self.constexprs, i in kept or p.name in kept)

    @property
    def src(self) -> str:
        """Source text of the function, from `def` on."""
        lines = self.source.lines
        first = self.source.tree.lineno + self.source.shift - self.source.first_line
        return inspect.cleandoc("\n".join(["", *lines[first:]]))

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launch on `grid`; the result is the `Run`, None for a grid of no programs, which launches nothing as in Triton.

        warmup: only compile, check that the tiles fit, and time.
        """
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


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`triton.jit`: `@jit` or `@jit(do_not_specialize=[...], noinline=..., debug=..., repr=..., ...)`."""
    if fn is None:
        return lambda f: jit(f, **options)
    return fn if isinstance(fn, JitFunction) else JITFunction(fn, options)
