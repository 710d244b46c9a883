"""Cycles beside the source: every line of the functions that the record holds, highlighted, with what it cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from markupsafe import Markup, escape
from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType

from ...simulator.record.run import SHARED, Launch, LineCost, SourceText
from ..facts import facts, texts
from .writing import render

CLASSES = (
    (Keyword, "tk"), (Operator.Word, "tk"), (Comment, "tc"), (String, "ts"), (Number, "tn"), (Name.Function, "tf"),
    (Name.Decorator, "tf"), (Name.Builtin, "tf"),
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One line of a table. heat: 0 to 1, relative to the dearest."""

    number: int
    code: Markup
    cycles: float = 0.0
    share: float = 0.0
    heat: float = 0.0
    tip: str = ""


def source_tables(launch: Launch) -> Markup:
    """Functions with their costs, then the lines whose text the record does not hold."""
    costs = {(x.file, x.line): x for x in launch.lines}
    most = max((x.cycles for x in launch.lines), default=0.0)
    functions = []
    for text in launch.sources:
        lines = list(_lines(text, costs, launch.cycles, most))
        functions.append((PurePath(texts.clean(text.file)).name, text.first_line, lines))
    ends = [(t, t.first_line + t.text.count("\n") + 1) for t in launch.sources]
    shown = {(t.file, n) for t, end in ends for n in range(t.first_line, end)}
    rest = [x for x in launch.lines if (x.file, x.line) not in shown and x.cycles > 0]
    return render(
        "source.html", functions=functions, rest=rest, cycles=launch.cycles, other=launch.other_cycles
    )


def _lines(
    text: SourceText, costs: dict[tuple[str, int], LineCost], cycles: float, most: float
) -> Iterator[Line]:
    for k, code in enumerate(highlighted(text.text)):
        number = text.first_line + k
        cost = costs.get((text.file, number))
        if cost is None:
            yield Line(number, code)
            continue
        heat = max(0.0, min(1.0, facts.share(cost.cycles, most)))
        yield Line(number, code, cost.cycles, facts.share(cost.cycles, cycles), heat, _tip(cost))


def _tip(cost: LineCost) -> str:
    """What the line keeps busy and what it waits for."""
    busy = ", ".join(f"{texts.clean(n, 20)} {texts.count(c)}" for n, c in cost.busy.items())
    waits = [
        f"{texts.clean(pipe, 20)} {'busy longer' if r == SHARED else 'waits'} {texts.count(c)} for {texts.STALLS.get(r, r)}"
        for pipe, by in cost.stalls.items()
        for r, c in by.items()
        if c >= 1
    ]
    return "\n".join([f"{texts.count(cost.cycles)} cycles", *([f"busy: {busy}"] if busy else []), *waits[:6]])


def highlighted(text: str) -> list[Markup]:
    """Lines of Python with spans around what is highlighted; the text of each stays what it is."""
    lines: list[list[Markup]] = [[]]
    whole = text.replace("\r", " ")  # the lexer would end a line there
    for kind, value in PythonLexer(stripnl=False, ensurenl=False).get_tokens(whole):
        for k, part in enumerate(value.split("\n")):
            if k:
                lines.append([])
            lines[-1].append(_span(kind, part))
    return [Markup("").join(parts) for parts in lines]


def _span(kind: _TokenType, text: str) -> Markup:
    name = next((c for t, c in CLASSES if kind in t), None)
    shown = "".join(c if c.isprintable() else " " for c in text)
    marked = name and shown.strip()
    return Markup('<span class="{}">{}</span>').format(name, shown) if marked else escape(shown)
