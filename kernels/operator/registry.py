"""The operators: every module of `kernels/`, in whatever family, that defines an `OPERATOR`."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from ...simulator.errors import UsageError
from .messages import near
from .operator import Operator

DEFINES = re.compile(r"^OPERATOR\b", re.MULTILINE)


@lru_cache(maxsize=1)
def _found() -> dict[str, Operator]:
    found = [importlib.import_module(name).OPERATOR for name in _modules()]
    return {op.name: op for op in sorted(found, key=lambda op: op.name)}


def _modules() -> Iterator[str]:
    """Names of the modules whose source defines an operator; only these are imported."""
    root = Path(__file__).parents[1]
    package = __name__.rpartition(".operator.")[0]
    for path in sorted(root.rglob("*.py")):
        if DEFINES.search(path.read_text(encoding="utf-8")):
            yield ".".join((package, *path.relative_to(root).with_suffix("").parts))


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
