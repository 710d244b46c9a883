"""What a builtin of the kernel language is: a documented Python function whose body builds operations.

    @builtin
    def exp(b: Builder, x):
        "Exponential of each element ..."
        return b.unary("exp", x)

Inside a kernel the compiler calls `exp.build(builder, ...)`; called from ordinary Python a builtin raises, as in Triton.
`@builtin(method=True)` also makes it a method of tiles: `x.exp()`.
"""

from __future__ import annotations

import functools
import inspect
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, overload

from ...errors import UsageError
from ..source import Source
from .builder import Builder as Builder
from .promotion import KernelError

METHODS: dict[str, Builtin] = {}
# Python function -> the builtin that it is in a kernel, as in Triton; filled by the language.
OF_PYTHON: dict[Any, Builtin] = {}
# Functions of Python's math -> the builtin that takes values of the program instead; filled by the language.
INSTEAD_OF: dict[Any, str] = {}


class Kernel(ABC):
    """What the compiler asks of a jit function."""

    fn: Callable[..., Any]
    name: str
    constexprs: set[str]
    options: dict[str, Any]  # those of `jit`

    @functools.cached_property
    def source(self) -> Source:
        return Source.of(self.fn)

    @abstractmethod
    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments of a call inside a kernel, by name."""

    @abstractmethod
    def lookup(self, name: str) -> tuple[Any] | None:
        """A name from the kernel's closure or module, in a tuple; None if there is none."""


class Builtin:
    """One name of the kernel language."""

    def __init__(self, build: Callable[..., Any], name: str) -> None:
        functools.update_wrapper(self, build)
        self.build = build
        self.name = name

    def __repr__(self) -> str:
        return f"<builtin {self.name}>"

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """What a kernel writes between the parentheses: the builder left out, types left to the docstring."""
        _, *taken = inspect.signature(self.build).parameters.values()
        return inspect.Signature([p.replace(annotation=p.empty) for p in taken])

    @functools.cached_property
    def _plain(self) -> tuple[tuple[str, ...], int, bool, tuple[str, ...]] | None:
        """(names by place or by name, how many of them must be given, whether any number may follow by place, names that are
        keywords only and need not be given); None if some parameter is none of these."""
        taken = self.signature.parameters.values()
        either = [p for p in taken if p.kind == p.POSITIONAL_OR_KEYWORD]
        only = [p for p in taken if p.kind == p.KEYWORD_ONLY and p.default is not p.empty]
        more = [p for p in taken if p.kind == p.VAR_POSITIONAL]
        if len(either) + len(only) + len(more) < len(taken):
            return None
        least = sum(p.default is p.empty for p in either)
        return tuple(p.name for p in either), least, bool(more), tuple(p.name for p in only)

    def _fits(self, count: int, named: Collection[str]) -> bool:
        """Whether so many arguments by place and those by name are right; where in doubt `bind` is asked."""
        if self._plain is None:
            return False
        names, least, more, only = self._plain
        by_name = (*names[count:], *only)
        return (
            (more or count <= len(names))
            and all(n in by_name for n in named)
            and all(n in named for n in names[count:least])
        )

    def check(self, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Raise `KernelError` if the arguments do not fit the signature."""
        if self._fits(len(args), kwargs):
            return
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as e:
            raise KernelError(f"{self.name}{self.signature}: {e}") from None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise UsageError(
            f"{self.name} is a builtin of the kernel language: it can only be called inside a @jit function"
        )


@dataclass(frozen=True)
class BoundBuiltin:
    """`x.sum` before it is called."""

    builtin: Builtin
    value: Any


@overload
def builtin(build: Callable[..., Any]) -> Builtin: ...
@overload
def builtin(*, method: bool = False, name: str | None = None) -> Callable[[Callable[..., Any]], Builtin]: ...


def builtin(build: Callable[..., Any] | None = None, *, method: bool = False, name: str | None = None) -> Any:
    """Make a builtin of a function `(builder, ...)`."""

    def make(f: Callable[..., Any]) -> Builtin:
        return named(name or f.__name__, f, f.__doc__, method)

    return make if build is None else make(build)


def named(name: str, build: Callable[..., Any], says: str | None, method: bool = False) -> Builtin:
    """A builtin of a function that may serve several; `says` is what `help` shows."""
    made = Builtin(build, name)
    made.__doc__, made.__name__ = says, name  # type: ignore[attr-defined]
    if method:
        METHODS[name] = made
    return made


class constexpr:
    """Marks a kernel parameter or a local as known at compile time; `constexpr(3).value == 3`.

    Arithmetic, comparisons, indexing and calls of a `constexpr` are those of its value, and give a `constexpr` again.
    """

    def __init__(self, value: Any) -> None:
        self.value: Any = value.value if isinstance(value, constexpr) else value

    def __repr__(self) -> str:
        return f"constexpr[{self.value!r}]"

    def __index__(self) -> int:
        return int(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == unwrap(other))

    def __hash__(self) -> int:
        return hash(self.value)

    def __getitem__(self, index: Any) -> Any:
        return constexpr(self.value[unwrap(index)])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return constexpr(self.value(*map(unwrap, args), **{k: unwrap(x) for k, x in kwargs.items()}))


def _of_values(operation: Callable[..., Any], swapped: bool = False) -> Callable[..., Any]:
    """A method of `constexpr` that works on the values and wraps the result."""

    def method(self: constexpr, *others: Any) -> constexpr:
        values = (self.value, *map(unwrap, others))
        return constexpr(operation(*(values[::-1] if swapped else values)))

    return method


OPERATORS = "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift"
for _name in OPERATORS.split():
    _operation = getattr(operator, _name)
    setattr(constexpr, f"__{_name.strip('_')}__", _of_values(_operation))
    setattr(constexpr, f"__r{_name.strip('_')}__", _of_values(_operation, swapped=True))
for _name in ("lt", "le", "gt", "ge", "neg", "pos", "invert"):
    setattr(constexpr, f"__{_name}__", _of_values(getattr(operator, _name)))


def unwrap(x: Any) -> Any:
    """The Python value behind a `constexpr`."""
    return x.value if isinstance(x, constexpr) else x


def unwrap_all(x: Any) -> Any:
    """The Python value behind a `constexpr`, also inside of tuples and lists."""
    x = unwrap(x)
    if not isinstance(x, tuple | list):
        return x
    parts = [unwrap_all(e) for e in x]
    if all(new is old for new, old in zip(parts, x, strict=True)):
        return x
    return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
