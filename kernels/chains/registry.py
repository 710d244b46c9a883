"""The chains that come with this package, and those of files: a Python file that defines `CHAIN`."""

from __future__ import annotations

import importlib
import pkgutil
from functools import lru_cache

from ...simulator.errors import UsageError
from ..operator.messages import near
from . import named
from .chain import Chain


@lru_cache(maxsize=1)
def _found() -> dict[str, Chain]:
    modules = (
        importlib.import_module(f"{named.__name__}.{m.name}") for m in pkgutil.iter_modules(named.__path__)
    )
    found = [module.CHAIN for module in modules]
    return {chain.name: chain for chain in sorted(found, key=lambda chain: chain.name)}


def chains() -> dict[str, Chain]:
    """All chains by name."""
    return dict(_found())


def get_chain(which: str | Chain) -> Chain:
    """The chain of that name. Raises `UsageError` with the names that are near."""
    if isinstance(which, Chain):
        return which
    found = _found().get(which) if isinstance(which, str) else None
    if found is None:
        raise UsageError(f"unknown chain {which!r}{near(which, _found())}")
    return found
