"""The schema of a product file: every key a product may have, its kind, unit, range and need, and what each is for.

`product_schema.toml` has it as data. A key is the dotted path of a figure in the file, such as `buffers.ub` or
`vector.op.add.per_repeat.fp16`. The table writes `<path>`, `<op>` and `<dtype>` where one line serves many keys;
`rule_for` finds that line.

>>> needed_by("vector.op.exp.fixed_cycles")
'exp on the Vector unit'
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import tomli

from ..errors import ProductError

FILE = Path(__file__).resolve().parent.parent / "product_schema.toml"
GRADES = ("A", "B", "C", "D")
ASSUMED_GRADE = "D"
KINDS = ("int", "float", "text", "texts", "ints")
BOUNDS = ("positive", "non-negative", "power of two", "multiple of 16")


@dataclass(frozen=True, kw_only=True)
class FigureRule:
    """What one key must look like.

    kind: one of KINDS ("texts" is a tuple of str, "ints" of int). unit: the unit of the stored value. bounds: of numbers
    alone, one of BOUNDS ("multiple of 16": sides of fractals). choices: allowed texts, or () for any. optional: whether a
    product may leave it out.
    """

    kind: str
    unit: str = "text"
    bounds: str = "positive"
    choices: tuple[str, ...] = ()
    optional: bool = False


_SCHEMA = tomli.loads(FILE.read_text(encoding="utf-8"))
DTYPES, PATHS_ALWAYS, PATHS_COUPLED, PATHS_OPTIONAL, PIPES, OPS = (
    tuple(_SCHEMA["names"][n])
    for n in ("dtypes", "paths_always", "paths_coupled", "paths_optional", "pipes", "ops")
)
PATHS = (*PATHS_ALWAYS, *PATHS_COUPLED, *PATHS_OPTIONAL)


def _rules() -> Iterator[tuple[str, FigureRule]]:
    for section, entries in _SCHEMA["figures"].items():
        for name, entry in entries.items():
            yield f"{section}.{name}", _rule(f"{FILE}: {section}.{name}", entry)


def _rule(where: str, entry: dict[str, Any]) -> FigureRule:
    choices = entry.get("choices", ())
    listed = _SCHEMA["names"].get(choices, ()) if isinstance(choices, str) else choices
    try:
        rule = FigureRule(**{**entry, "choices": tuple(listed)})
    except TypeError as error:
        raise ProductError(f"{where}: {error}") from None
    if rule.kind not in KINDS or rule.bounds not in BOUNDS or (choices and not listed):
        raise ProductError(
            f"{where}: {rule} has an unknown kind, unknown bounds or an unknown list of choices"
        )
    return rule


TABLE = dict(_rules())


@lru_cache(maxsize=4096)
def rule_for(key: str) -> FigureRule | None:
    """The line of the table that a concrete key falls under, or None for a key that no product may have."""
    return None if "<" in key else TABLE.get(key) or TABLE.get(_pattern(key.split(".")))


def _pattern(parts: list[str]) -> str:
    """The key as the table writes it."""
    if parts[0] == "path" and len(parts) > 1 and parts[1] in PATHS:
        parts[1] = "<path>"
    if parts[:2] == ["vector", "op"] and len(parts) > 2 and parts[2] in OPS:
        parts[2] = "<op>"
    if parts[-1] in DTYPES:
        parts[-1] = "<dtype>"
    return ".".join(parts)


@lru_cache(maxsize=4)
def required_keys(core_model: str) -> tuple[str, ...]:
    """Every key that a product of this core model ("split" or "coupled") must have, beside data types."""
    paths = (*PATHS_ALWAYS, *PATHS_COUPLED) if core_model == "coupled" else PATHS_ALWAYS
    keys: list[str] = []
    for pattern, rule in TABLE.items():
        if not rule.optional:
            keys += (
                _expand(pattern, "<path>", paths) if "<path>" in pattern else _expand(pattern, "<op>", OPS)
            )
    return tuple(keys)


def _expand(pattern: str, placeholder: str, names: tuple[str, ...]) -> list[str]:
    if placeholder not in pattern:
        return [pattern]
    return [pattern.replace(placeholder, name) for name in names]


def known_keys() -> tuple[str, ...]:
    """Every concrete key except those that end in a data type: the candidates for "did you mean"."""
    keys: list[str] = []
    for pattern in TABLE:
        for path in _expand(pattern, "<path>", PATHS):
            keys += _expand(path, "<op>", OPS)
    return tuple(key for key in keys if "<" not in key)


def needed_by(key: str) -> str:
    """Who needs the figure `key`; empty for a key that nobody knows."""
    if key.startswith("vector.op."):
        return f"{key.split('.')[2]} on the Vector unit"
    uses: dict[str, str] = _SCHEMA["needed_by"]
    found = max((prefix for prefix in uses if key.startswith(prefix)), key=len, default="")
    return uses.get(found, "")


def users_of(keys: list[str]) -> str:
    """'buffers.ub (every tile of the Vector unit), cores.cube_cores (every kernel: ...)'."""
    return ", ".join(f"{key} ({user})" if (user := needed_by(key)) else key for key in keys)
