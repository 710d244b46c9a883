"""What a package shows: `dir` lists its public names only, and parts that are seldom used are imported when asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

Attribute = Callable[[str], Any]
Names = Callable[[], list[str]]


def public_names(
    package: str, names: Iterable[str], modules: Iterable[str] = (), later: Mapping[str, str] | None = None
) -> tuple[Attribute, Names]:
    """`__getattr__` and `__dir__` of `package`.

    names: what `dir` lists. modules: modules of the package that it lists, too. later: the module that has a name, relative
    to the package. Modules, and names of `later`, are imported when they are first asked for.
    """
    sources, parts = dict(later or {}), set(modules)

    def attribute(name: str) -> Any:
        if name in parts:
            return import_module(f"{package}.{name}")
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(sources[name], package), name)
        setattr(sys.modules[package], name, found)
        return found

    return attribute, lambda: sorted({*names, *parts})
