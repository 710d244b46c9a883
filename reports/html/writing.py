"""One HTML file from what a report shows: template, style sheet and scripts put into one text, and written whole."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

if TYPE_CHECKING:
    from jinja2 import Environment

WEB = files("ascendtile.reports") / "web"


@dataclass(frozen=True)
class Section:
    """One part of a page: an id for links, a title, the content, and a sentence above it."""

    id: str
    title: str
    body: Markup
    lead: str = ""


@dataclass(frozen=True)
class Page:
    """What a page shows. facts: (name, figure, remark) at its top. data: name -> what a script reads as JSON."""

    title: str
    subtitle: str
    summary: Sequence[str | Markup]
    facts: Sequence[tuple[str, str, str]]
    sections: Sequence[Section]
    data: dict[str, Any] = field(default_factory=dict)
    scripts: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Templates of `reports/web`: everything is escaped, and a name that is missing is an error."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    from ..facts import texts

    def text(name: str) -> str:
        return (WEB / name).read_text("utf-8")

    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.loader = FunctionLoader(text)
    made.filters.update(
        clean=texts.clean, count=texts.count, micros=texts.micros, percent=texts.percent, kib=texts.kib, small=texts.small,
        figure=texts.figure, share=texts.share_text, meaning=texts.meaning, place=texts.place,
    )  # fmt: skip
    return made


def render(template: str, **values: Any) -> Markup:
    """A template of `reports/web` filled in."""
    return Markup(environment().get_template(template).render(**values))


def page_text(page: Page) -> str:
    """The whole file. Only the scripts of this version run: the policy names their hashes and allows no request."""
    scripts = [(WEB / name).read_text("utf-8") for name in ("report.js", *page.scripts)]
    hashes = " ".join(f"'sha256-{_digest(s)}'" for s in scripts)
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {hashes}"
    return str(
        render(
            "page.html",
            page=page,
            policy=policy,
            style=Markup((WEB / "report.css").read_text("utf-8")),
            scripts=[Markup(s) for s in scripts],
            data={name: json_block(value) for name, value in page.data.items()},
        )
    )


def json_block(value: Any) -> Markup:
    """JSON that may stand in a script element: no text of a record can end it or begin another."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
