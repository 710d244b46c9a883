"""A kernel, its signature, its compiled forms."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import CompileError, UsageError
from ..gc_paused import uncollected
from ..ir.building.promotion import KernelError
from ..ir.building.registry import Kernel, constexpr, unwrap
from ..ir.located_errors import at_line
from ..ir.program import Loc, Program
from ..ir.source import Source
from ..ir.types import AnyType, const
from ..precision.dtypes import BY_SHORT_NAME, DType
from .compiler import compile_kernel

MAX_CACHED_PROGRAMS = 256


class KernelFunction(Kernel):
    """A kernel that can be compiled.

    A parameter annotated `tl.constexpr` is a compile-time value and specialises the program. A number for one that is
    annotated with an element type becomes one of that type at a launch.
    """

    def __init__(self, fn: Callable[..., Any], options: dict[str, Any] | None = None) -> None:
        if not inspect.isfunction(fn):
            raise UsageError(f"jit makes a kernel of a function, got {type(fn).__name__} {fn!r}")
        self.fn = fn
        self.name = fn.__name__
        functools.update_wrapper(self, fn)
        self.options = options or {}
        self.parameters = list(inspect.signature(fn).parameters.values())
        for p in self.parameters:
            stars = "*" if p.kind == p.VAR_POSITIONAL else "**" if p.kind == p.VAR_KEYWORD else ""
            if stars:
                raise UsageError(
                    at_line(
                        _place(fn, p.name), f"{self.name} cannot take {stars}{p.name}: name every parameter"
                    )
                )
        self.constexprs = self._annotated(constexpr)
        self.only_read = self._annotated(const)
        self.annotated = {
            p.name: t
            for p in self.parameters
            if (t := _element_type(p.annotation, fn.__globals__)) is not None
        }
        self._programs: dict[Any, Program] = {}

    def _annotated(self, word: type) -> set[str]:
        """The parameters that are annotated tl.constexpr, or tl.const."""
        return {p.name for p in self.parameters if _is(word, p.annotation, self.fn.__globals__)}

    def __repr__(self) -> str:
        return f"<jit {self.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise UsageError(
            f"{self.name} is a kernel: launch it as {self.name}[grid](...), or call it inside a kernel"
        )

    # -- compilation -------------------------------------------------------------------------------------------------

    def arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Every parameter by name, defaults filled in; `UsageError` names what is missing or too much."""
        names = [p.name for p in self.parameters]
        if len(args) > len(names):
            raise UsageError(
                f"{self.name} takes {len(names)} arguments ({', '.join(names)}), got {len(args)}"
            )
        out = dict(zip(names, args, strict=False))
        for key, x in kwargs.items():
            if key not in names:
                raise UsageError(f"{self.name} has no parameter {key!r}; it has {', '.join(names)}")
            if key in out:
                raise UsageError(f"{self.name}: {key!r} is given twice")
            out[key] = x
        for p in self.parameters:
            if p.name not in out and p.default is not p.empty:
                out[p.name] = p.default
        missing = [n for n in names if n not in out]
        if missing:
            raise UsageError(f"{self.name}: missing {', '.join(missing)}; it takes {', '.join(names)}")
        return {n: unwrap(out[n]) for n in names}

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments of a call inside a kernel. As in Triton a helper's tl.constexpr parameter may be given any value."""
        try:
            bound = self.arguments(args, kwargs)
        except UsageError as e:
            raise KernelError(str(e)) from None
        return bound

    def program(self, types: dict[str, AnyType], constants: dict[str, Any]) -> Program:
        """The tile program for these parameter types and compile-time values, compiled once each."""
        key = (tuple(types.items()), tuple((n, self._constant(n, x)) for n, x in constants.items()))
        found = self._programs.get(key)
        if found is None or _stale(found):
            with uncollected():
                found = compile_kernel(self, types, constants)
            if len(self._programs) >= MAX_CACHED_PROGRAMS:
                self._programs.pop(next(iter(self._programs)))
            self._programs[key] = found
        return found

    def _constant(self, name: str, x: Any) -> Any:
        """A key for a compile-time argument."""
        try:
            return _hashable(x)
        except UsageError:
            text = " ".join(repr(x).split())
            raise UsageError(
                f"{self.name}: {name!r} is a compile-time argument, which must be hashable (number, string, tuple, type); "
                f"got {type(x).__name__} {text if len(text) <= 60 else f'{text[:60]}...'}"
            ) from None

    def lookup(self, name: str) -> tuple[Any] | None:
        """A name from the kernel's closure or module, in a tuple; None if there is none."""
        free = self.fn.__code__.co_freevars
        if name in free and self.fn.__closure__ is not None:
            try:
                return (self.fn.__closure__[free.index(name)].cell_contents,)
            except ValueError:
                return None
        return (self.fn.__globals__[name],) if name in self.fn.__globals__ else None


def _place(fn: Callable[..., Any], name: str) -> Loc:
    """Where a starred parameter of that name stands."""
    try:
        source = Source.of(fn)
    except CompileError:
        return Loc(fn.__code__.co_filename, fn.__code__.co_firstlineno)
    a = source.tree.args
    return next(source.loc(x) for x in (a.vararg, a.kwarg) if x is not None and x.arg == name)


def _is(word: type, annotation: Any, names: dict[str, Any]) -> bool:
    """Whether an annotation, an object or its text, is that word of tl, under whatever name the module knows it."""
    named = isinstance(annotation, str) and annotation.strip("\"' ").rpartition(".")[2] == word.__name__
    return named or _meant(annotation, names) is word


def _element_type(annotation: Any, names: dict[str, Any]) -> DType | None:
    """The element type that an annotation is or names (tl.float16, "fp16"); None for any other."""
    found = _meant(annotation, names)
    found = BY_SHORT_NAME.get(found) if isinstance(found, str) else found
    return found if isinstance(found, DType) else None


def _meant(annotation: Any, names: dict[str, Any]) -> Any:
    """What an annotation that is a text names in its module; the text without quotes if it names nothing there."""
    if not isinstance(annotation, str):
        return annotation
    text = annotation.strip("\"' ")
    first, *rest = text.split(".")
    found = names.get(first)
    for part in rest:
        found = getattr(found, part, None)
    return text if found is None else found


def _stale(program: Program) -> bool:
    """Whether a name from outside of the kernel has another value now than when the program was compiled."""
    return any((now := fn.lookup(name)) is None or not _same(now[0], x) for fn, name, x in program.captured)


def _same(a: Any, b: Any) -> bool:
    a = unwrap(a)
    return a is b or (
        type(a) is type(b) and not isinstance(a, KernelFunction) and _hashable(a) == _hashable(b)
    )


def _hashable(x: Any) -> Any:
    """A key under which 1, 1.0 and True, 0.0 and -0.0, and tuples of them, are different constants."""
    if isinstance(x, tuple):
        return ("tuple", tuple(_hashable(unwrap(e)) for e in x))
    if isinstance(x, float):
        return ("float", x.hex())
    try:
        hash(x)
    except TypeError:
        raise UsageError(
            f"a compile-time argument must be hashable (number, string, tuple, type), got {x!r}"
        ) from None
    return (type(x).__name__, x)
