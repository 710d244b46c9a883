"""Reads pages for tests: elements, scripts and what they would ask a network for."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Reader(HTMLParser):
    """Elements in order, text of scripts, and whether every element is closed where it should be."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            attrs, text = self.scripts[-1]
            self.scripts[-1] = attrs, text + data
        elif not (self.open and self.open[-1] == "style"):
            self.text.append(data)


def read(page: str) -> Reader:
    """The page, parsed to its end."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def data_of(reader: Reader) -> dict[str, Any]:
    """JSON of the page by name."""
    blocks = [(a, text) for a, text in reader.scripts if a.get("type") == "application/json"]
    return {str(a["id"]).removeprefix("data-"): json.loads(text) for a, text in blocks}


def check_safe(page: str, scripts: int) -> Reader:
    """No element, handler or address is there that we did not put there."""
    reader = read(page)
    assert len([a for a, _ in reader.scripts if "type" not in a]) == scripts
    for tag, attributes in reader.elements:
        assert tag not in ("img", "iframe", "object", "embed", "form", "base"), tag
        assert not [a for a in attributes if a.startswith("on")]
        for name in ("src", "href", "xlink:href", "action", "srcset"):
            assert re.match(r"#|data:,$", attributes.get(name) or "#"), attributes
    return reader
