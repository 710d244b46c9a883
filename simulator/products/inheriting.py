"""What a product takes over from its base: all figures but those that its file names, some of them as assumptions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ..errors import ProductError
from .figure import Figure
from .quantity import show
from .spec import ASSUMED_GRADE

Figures = Mapping[str, Figure]
REUSED = ("grade", "words", "but")


def inherit(base: Figures, without: object, reused: object, where: str) -> dict[str, Figure]:
    """The figures of `base` for a file that has these two entries.

    without: keys that the product does not have. reused: `{ grade, words, but }`: figures of that grade were found on the
    base alone, so they have grade D here and `words` in their source, except those that `but` lists. A key that ends
    above the data types stands for all of them.
    """
    gone = _keys(base, without, f"{where}: without")
    kept = {key: figure for key, figure in base.items() if key not in gone}
    if reused is None:
        return kept
    grade, words, but = _read_reused(reused, where)
    same = _keys(base, but, f"{where}: reused.but")
    return {
        key: replace(figure, source=f"{figure.source} ({words})", grade=ASSUMED_GRADE)
        if figure.grade == grade and key not in same
        else figure
        for key, figure in kept.items()
    }


def _read_reused(reused: object, where: str) -> tuple[str, str, object]:
    if not isinstance(reused, Mapping) or not {"grade", "words"} <= set(reused) <= set(REUSED):
        raise ProductError(f"{where}: reused must be a table with {', '.join(REUSED)}, got {show(reused)}")
    return str(reused["grade"]), str(reused["words"]), reused.get("but", ())


def _keys(base: Figures, names: object, where: str) -> set[str]:
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ProductError(f"{where} must be a list of keys, got {show(names)}")
    found: set[str] = set()
    for name in names:
        keys = {key for key in base if key == name or key.startswith(f"{name}.")}
        if not keys:
            raise ProductError(f"{where}: the base has no figure {show(name)}")
        found |= keys
    return found


def in_sections(figures: Figures) -> dict[str, Figure]:
    """The same figures, those that the base lacks at the end of their section."""
    sections = list(dict.fromkeys(key.split(".")[0] for key in figures))
    return dict(sorted(figures.items(), key=lambda item: sections.index(item[0].split(".")[0])))


def named_sources(sources: Mapping[str, str], figures: Figures) -> dict[str, str]:
    """Those of the source ids that a figure names."""
    text = " ".join(f"{figure.source} {figure.note or ''}" for figure in figures.values())
    named = set(re.findall(r"\w+", text))
    return {name: what for name, what in sources.items() if name in named}
