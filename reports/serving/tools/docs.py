"""The tool `docs`: search in our own pages, docstrings and operators, and read them."""

from __future__ import annotations

from typing import Any

from ....simulator.errors import UsageError
from .tool import Arguments, Tool, number, text

PAGE = 20_000  # characters that one call reads
ABOUT = (
    "Documentation of ascendtile itself: the language of kernels, operators with cases and knobs, what figures mean. "
    "Give query to search, or page (a name that a search or the list gave) to read one; neither lists the pages."
)
PROPERTIES = {
    "query": text("Words to look for.", 400),
    "page": text("A page, a public name or operators/NAME, as the list or a search gave it.", 200),
    "offset": number(
        "Character of the page to begin at; next_offset of the answer before goes on.", 0, 10**9, 0
    ),
    "most": number("Results of a search at most.", 1, 50, 8),
}


def work(arguments: Arguments) -> dict[str, Any]:
    """A search, a part of a page, or the list of pages."""
    from . import library

    if "query" in arguments and "page" in arguments:
        raise UsageError("query searches and page reads; give one of them")
    if "query" in arguments:
        return {
            "query": arguments["query"],
            "results": library.search(arguments["query"], arguments.get("most", 8)),
        }
    if "page" in arguments:
        return _read(arguments["page"], arguments.get("offset", 0))
    return {"pages": list(library.pages()), "names": list(library.docstrings())}


def _read(name: str, offset: int) -> dict[str, Any]:
    from . import library

    found = library.pages().get(name) or library.docstrings().get(name)
    if found is None:
        raise UsageError(f"no page {name!r:.200}; `docs` without arguments lists all, with query it searches")
    end = offset + PAGE
    shown = {"page": name, "text": found[offset:end], "characters": len(found)}
    return shown | {"next_offset": end if end < len(found) else None}


TOOL = Tool("docs", "Documentation", ABOUT, PROPERTIES, work)
