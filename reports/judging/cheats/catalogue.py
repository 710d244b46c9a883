"""The catalogue of cheats: catalogue.toml, read and checked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import tomli

from ....simulator.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class CheatPattern:
    """One way around a task. sources: who described it, in full."""

    name: str
    what: str
    found: str
    instead: str
    sources: tuple[str, ...]


@lru_cache(maxsize=1)
def _read() -> dict[str, CheatPattern]:
    data = tomli.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))
    sources = data["sources"]
    return {
        name: CheatPattern(name=name, **{**p, "sources": tuple(sources[s] for s in p["sources"])})
        for name, p in data["patterns"].items()
    }


CATALOGUE = _read()


def pattern(name: str) -> CheatPattern:
    """The pattern of that name; `UsageError` lists those that there are."""
    if name not in CATALOGUE:
        raise UsageError(f"no cheat is named {name!r}; there are {', '.join(CATALOGUE)}")
    return CATALOGUE[name]
