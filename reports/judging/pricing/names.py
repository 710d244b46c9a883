"""Names of aten's operations by what they do with data, from operations.toml."""

from __future__ import annotations

from pathlib import Path

import tomli

_LISTS = tomli.loads(Path(__file__).with_name("operations.toml").read_text(encoding="utf-8"))


def _names(*lists: str) -> frozenset[str]:
    return frozenset(name for n in lists for name in _LISTS[n].split())


ALIASES = _names("views")
VIEWS = _names("views", "metadata")
UNWRITTEN = _names("unwritten")
CREATIONS = _names("unwritten", "written")
MOVES = _names("moves")
OVERWRITING = _names("overwriting")
PICKING = _names("picking")
WHOLE_VIEWS = _names("whole_views")
RANDOM = _names("random")
ELEMENTWISE = _names("elementwise")
JOINING = _names("joining")
PRODUCTS = _names("products")
