"""The messages of a run by their kind, for pages and as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...simulator.messages import FAULT, KINDS, NOTE, TIME, Message
from ...simulator.record.run import Run

TITLES = {
    FAULT: "faults: wrong or undefined on the device",
    TIME: "what costs time",
    NOTE: "worth knowing",
}
WHAT_IF_KIND = "what-if"  # of pages; the kind of the message is that of a fault
WHAT_IF_TITLE = "what-ifs: no board of this product computes them"


def by_kind(messages: Iterable[Message]) -> dict[str, list[Message]]:
    """Kind -> its messages in their order, the most serious kind first; kinds without any are left out."""
    every = list(messages)
    found = {kind: [m for m in every if m.kind == kind] for kind in KINDS}
    return {kind: those for kind, those in found.items() if those}


def headed(messages: Iterable[Message]) -> Iterator[tuple[str, str, list[Message]]]:
    """(kind, heading, messages) in the order of `by_kind`; what-ifs have a heading of their own after the other faults."""
    for kind, found in by_kind(messages).items():
        parts = {
            (kind, TITLES[kind]): [m for m in found if not m.is_what_if],
            (WHAT_IF_KIND, WHAT_IF_TITLE): [m for m in found if m.is_what_if],
        }
        yield from ((*head, those) for head, those in parts.items() if those)


def faults_text(run: Run) -> str:
    """ "2 faults: wrong or undefined on the device", "" where there are none; what-ifs are not counted."""
    n = len(run.faults) - len(run.what_ifs)
    return f"{how_many(n, 'fault')}: wrong or undefined on the device" if n else ""


def what_ifs_text(run: Run) -> str:
    """ "1 what-if: no board of this product computes it", "" where there are none."""
    n = len(run.what_ifs)
    return (
        f"{how_many(n, 'what-if')}: no board of this product computes {'it' if n == 1 else 'them'}"
        if n
        else ""
    )


def how_many(n: int, what: str) -> str:
    """ "no faults", "1 fault", "2 faults"."""
    return f"{n or 'no'} {what}{'s' * (n != 1)}"


def message_json(m: Message) -> dict[str, Any]:
    """text: the whole as pages have it, "file:line: what". file and line are null where it is about no line. A what-if is of
    kind "fault", and its text begins with "what-if: "."""
    file, line = m.file_and_line or (None, None)
    return {"text": str(m), "kind": m.kind, "file": file, "line": line, "programs": list(m.programs)}
