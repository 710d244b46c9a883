"""The operators of this folder: every module with an `OPERATOR`."""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache
from pathlib import Path

from ..simulator.errors import UsageError
from .operator import Operator
from .words import near


@lru_cache(maxsize=1)
def _found() -> dict[str, Operator]:
    package = __name__.rpartition(".")[0]
    names = sorted(m.name for m in pkgutil.iter_modules([str(Path(__file__).parent)]))
    modules = [importlib.import_module(f"{package}.{n}") for n in names]
    found = [m.OPERATOR for m in modules if isinstance(getattr(m, "OPERATOR", None), Operator)]
    return {op.name: op for op in found}


def operators() -> dict[str, Operator]:
    """All operators by name."""
    return dict(_found())


def get_operator(name: str | Operator) -> Operator:
    """The operator of that name. Raises `UsageError` with the names that are near."""
    if isinstance(name, Operator):
        return name
    found = _found().get(name)
    if found is None:
        raise UsageError(f"unknown operator {name!r}{near(name, _found())}")
    return found
