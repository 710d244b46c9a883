"""Our own pages, docstrings, operators and the list of cheats, by name: what the tool `docs` reads and searches.

A name is a key of a dict: there is no way from it to another file.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import metadata
from pathlib import Path

FIRST_PAGE, CHEATS = "README.md", "cheats"
FOLDERS = ("simulator", "kernels", "tiling", "reports")
# Packages whose public names have docstrings that answer questions.
DOCUMENTED = (
    "ascendtile.simulator",
    "ascendtile.simulator.language",
    "ascendtile.simulator.language.extra.cann",
    "ascendtile.simulator.precision",
    "ascendtile.kernels",
    "ascendtile.tiling",
)
HEADING = re.compile(r"^#{1,4} +(.+)$", re.M)
WORD = re.compile(r"[a-z0-9_]+")
IN_HEADING = 3  # a word in a heading counts as much as this many in the text
EXCERPT = 400  # characters


@dataclass(frozen=True)
class PageSection:
    """A part of a page under one heading; of a docstring the whole."""

    page: str
    heading: str
    text: str

    @property
    def words(self) -> frozenset[str]:
        return frozenset(WORD.findall(self.text.lower()))

    @property
    def title_words(self) -> frozenset[str]:
        return frozenset(WORD.findall(f"{self.page} {self.heading}".lower().replace(".", " ")))


@cache
def pages() -> dict[str, str]:
    """Name -> text of every page, the first one first."""
    root = Path(import_module("ascendtile.simulator").__path__[0]).parent
    files = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.md"))]
    first = str(metadata("ascendtile").json.get("description", ""))
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in files}
    return {FIRST_PAGE: first} | texts | {CHEATS: _cheats()} | _operators()


@cache
def docstrings() -> dict[str, str]:
    """Public name -> its docstring, signature first."""
    return {f"{package}.{name}": text for package in DOCUMENTED for name, text in _documented(package)}


def _documented(package: str) -> Iterator[tuple[str, str]]:
    module = import_module(package)
    for name in sorted(getattr(module, "__all__", ())):
        found = getattr(module, name)
        text = inspect.getdoc(found)
        if text and not inspect.ismodule(found) and (callable(found) or isinstance(found, type)):
            yield name, f"{name}{_signature(found)}\n\n{text}"


def _signature(found: object) -> str:
    try:
        return str(inspect.signature(found))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""


def _cheats() -> str:
    """What the judge refuses by name, and what to write instead."""
    from ...judging.cheats.catalogue import CATALOGUE

    told = (f"## {p.name}\n\n{p.what}\nShown by: {p.found}\nInstead: {p.instead}" for p in CATALOGUE.values())
    return "\n\n".join(["# What the judge refuses", *told])


def _operators() -> dict[str, str]:
    """What `ascendtile ops` tells of each operator, a page each."""
    from ....kernels import operators
    from ...terminal.ops_view import ops_json

    found = ops_json(operators().values())["ops"]
    return {
        f"operators/{name}": f"# operator {name}\n\n{json.dumps(x, indent=1)}" for name, x in found.items()
    }


@cache
def sections() -> tuple[PageSection, ...]:
    """All of it in the order of the pages."""
    split = [part for page, text in pages().items() for part in _split(page, text)]
    return (*split, *(PageSection(name, name, text) for name, text in docstrings().items()))


def _split(page: str, text: str) -> Iterator[PageSection]:
    heads = list(HEADING.finditer(text))
    ends = [*(h.start() for h in heads[1:]), len(text)]
    if not heads:
        yield PageSection(page, "", text)
    for head, end in zip(heads, ends, strict=True) if heads else ():
        yield PageSection(page, head[1].strip(), text[head.start() : end].strip())


def search(query: str, most: int) -> list[dict[str, object]]:
    """Sections with the most words of the query; among equals the shorter, then the earlier one."""
    wanted = set(WORD.findall(query.lower()))
    scored = [(_score(s, wanted), s) for s in sections()]
    best = sorted((x for x in scored if x[0]), key=lambda x: (-x[0], len(x[1].text)))[:most]
    return [{"page": s.page, "section": s.heading, "text": _excerpt(s.text, wanted)} for _, s in best]


def _score(section: PageSection, wanted: set[str]) -> int:
    return len(wanted & section.words) + IN_HEADING * len(wanted & section.title_words)


def _excerpt(text: str, wanted: set[str]) -> str:
    """The part around the first word of the query."""
    lower = text.lower()
    at = min((lower.find(w) for w in wanted if w in lower), default=0)
    begin = max(0, text.rfind("\n", 0, max(at - EXCERPT // 4, 0)) + 1) if at > EXCERPT // 2 else 0
    return text[begin : begin + EXCERPT].strip()
