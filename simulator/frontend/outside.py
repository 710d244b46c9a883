"""Constants that a kernel reads from outside: which of them Triton takes, and whether they have changed since."""

from __future__ import annotations

import inspect
import os
from typing import TYPE_CHECKING, Any

from ..ir.building.registry import Kernel, constexpr
from ..precision.dtypes import DType

if TYPE_CHECKING:
    from ..ir.building.builder import Builder

ALLOWED_BY = "TRITON_ALLOW_NON_CONSTEXPR_GLOBALS"
CONSTANT = (bool, int, float, str, tuple, DType, type(None))
OURS = __name__.partition(".")[0] + "."  # builtins of the language do not change


class Attributes:
    """The attributes of a module, a class or an object, as `JitFunction.lookup` gives names."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def lookup(self, name: str) -> tuple[Any] | None:
        try:
            return (getattr(self.owner, name),)
        except AttributeError:
            return None


def capture_attribute(b: Builder, owner: Any, name: str, x: Any) -> None:
    """Remember a constant that is an attribute, so that a change compiles the kernel anew."""
    if not (inspect.ismodule(owner) or isinstance(owner, type) or hasattr(owner, "__dict__")):
        return
    module = owner.__name__ if inspect.ismodule(owner) else getattr(owner, "__module__", "")
    if isinstance(x, CONSTANT) and not isinstance(owner, DType) and not f"{module}.".startswith(OURS):
        key = (id(owner), name)
        b.captured.setdefault(key, (Attributes(owner), name, x))


def capture_global(b: Builder, fn: Kernel, name: str, given: Any, x: Any) -> None:
    """Remember a constant of the module or of the function around the kernel; warn where Triton would refuse it.

    given: what the name holds; x: the value without `constexpr`. Triton 3.5 takes instances of `constexpr` only, not names
    that are annotated so (its compiler, lookup of global names).
    """
    if not b.capture(fn, name, x) or isinstance(given, constexpr) or not _refused(x):
        return
    annotated = (
        "annotated as constexpr, which Triton 3.5 does not take" if _annotated(fn, name) else "no constexpr"
    )
    b.warn(
        f'{name!r} is a name from outside of the kernel and {annotated}: Triton stops with "Cannot access global variable '
        f'{name}"; write {name} = tl.constexpr({x!r}), or pass it as an argument. Here its value {x!r} is taken '
        f"({ALLOWED_BY}=1 allows it in Triton, too)"
    )


def _refused(x: Any) -> bool:
    """Whether Triton refuses such a value: types of the language, named tuples and jit functions it takes."""
    if os.environ.get(ALLOWED_BY, "").lower() in ("1", "true", "on", "yes", "y"):
        return False
    plain = isinstance(x, CONSTANT) and not isinstance(x, DType)
    return plain and not (isinstance(x, tuple) and hasattr(x, "_fields"))


def _annotated(fn: Kernel, name: str) -> bool:
    found = fn.fn.__globals__.get("__annotations__", {}).get(name)
    return found is constexpr or (isinstance(found, str) and found.rpartition(".")[2] == "constexpr")
