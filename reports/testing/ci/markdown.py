"""What changed as Markdown, for the comment of a pull request and for the summary of a job.

Names come from the code of whoever opened the pull request. Each stands in <code>, with all that Markdown or HTML would
read as more than a letter written as a number, so that nothing of it is markup, a link, or a call for somebody (@name).
"""

from __future__ import annotations

from ...facts import texts
from ...facts.advice.causes import causes, causing_waits, moved
from ...facts.differences import FigurePair, RunDifference
from ...facts.tables import as_markdown
from ...terminal.difference_view import MENTIONED
from ..baseline.entry import BaselineEntry
from .changes import SAME, BaselineChanges, KernelChange
from .views import change_text

MOST_CHARACTERS = 60_000  # a comment on GitHub has at most 65 536
LONGEST_NAME = 100
MOST_LINES = 8
PLAIN = frozenset(" .,:;/+-%()='\"")


def changes_markdown(found: BaselineChanges) -> str:
    """A heading, a table of what changed, and what regressions are made of, folded; cut where a comment would end."""
    shown = [c for c in found.changes if c.kind != SAME or c.is_regression(found.above)]
    commits = f"Before: {code(found.before)}, after: {code(found.after)}."
    head = f"### Simulated kernels\n\n{escape(found.summary)}. {commits}\n"
    rows = _fitting([_row(c) for c in shown], MOST_CHARACTERS // 2)
    table = as_markdown(rows, list(rows[0])) if rows else ""
    left = len(shown) - len(rows)
    more = f"\nand {left} more that changed\n" if left else ""
    text = f"{head}\n{table}{more}"
    for c in found.regressions:
        details = _details(c)
        if len(text) + len(details) > MOST_CHARACTERS:
            return f"{text}\nand more regressions than a comment holds\n"
        text += details
    return text


def _fitting(rows: list[dict[str, object]], room: int) -> list[dict[str, object]]:
    kept = []
    for row in rows:
        room -= sum(len(str(x)) + 3 for x in row.values())
        if room < 0:
            break
        kept.append(row)
    return kept


def _row(c: KernelChange) -> dict[str, object]:
    before, after = c.before, c.after
    return {
        "test": code(c.test),
        "kernel": code(c.key),
        "cycles before": before and round(before.cycles),
        "cycles after": after and round(after.cycles),
        "change": change_text(c),
        "UB KiB before": _ub_kib(before),
        "UB KiB after": _ub_kib(after),
        "faults": None if after is None else len(after.faults),
        "why": code(c.cause) if c.cause else None,
    }


def _ub_kib(entry: BaselineEntry | None) -> float | None:
    bytes_ = None if entry is None else entry.ub_bytes
    return None if bytes_ is None else bytes_ / texts.KIB


def _details(c: KernelChange) -> str:
    """A regression: its faults, then lines, pipes and waits that moved."""
    faults = "".join(f"- new fault: {code(text, 2 * LONGEST_NAME)}\n" for text in c.new_faults)
    rows = [_moved(p) for p in _parts(c.difference)]
    table = as_markdown(rows, list(rows[0])) if rows else ""
    title = f"{code(c.key)} in {code(c.test)}: {escape(change_text(c))}"
    return f"\n<details><summary>{title}</summary>\n\n{faults}\n{table}\n</details>\n"


def _parts(d: RunDifference | None) -> list[FigurePair]:
    """What moved enough to be read, as on the page of two runs."""
    if d is None:
        return []
    least = MENTIONED * max(d.time.first or 0.0, d.time.second or 0.0)
    groups = (causes(d), moved(d.busy), causing_waits(d))
    return [p for group in groups for p in group[:MOST_LINES] if abs(p.change) >= least]


def _moved(p: FigurePair) -> dict[str, object]:
    shown = ("-" if x is None else texts.micros(x) for x in (p.first, p.second))
    return {
        "line, pipe or wait": code(p.name),
        **dict(zip(("us before", "us after"), shown, strict=True)),
        "change": texts.signed_micros(p.change),
    }


def code(text: str, width: int = LONGEST_NAME) -> str:
    """A name as code."""
    return f"<code>{escape(texts.clean(text, width))}</code>"


def escape(text: str) -> str:
    """Text whose every character is only that."""
    return "".join(c if (c.isascii() and c.isalnum()) or c in PLAIN else f"&#{ord(c)};" for c in text)
