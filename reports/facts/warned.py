"""The messages of a run by their kind, for pages and as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...simulator.messages import FAULT, KINDS, NOTE, TIME, Message
from ...simulator.record.run import Run

TITLES = {
    FAULT: "faults: wrong or undefined on the device",
    TIME: "what costs time",
    NOTE: "worth knowing",
}


def by_kind(messages: Iterable[Message]) -> dict[str, list[Message]]:
    """Kind -> its messages in their order, the most serious kind first; kinds without any are left out."""
    every = list(messages)
    found = {kind: [m for m in every if m.kind == kind] for kind in KINDS}
    return {kind: those for kind, those in found.items() if those}


def faults_text(run: Run) -> str:
    """ "2 faults: wrong or undefined on the device", "" where there are none."""
    n = len(run.faults)
    return f"{n} fault{'s' * (n > 1)}: wrong or undefined on the device" if n else ""


def message_json(m: Message) -> dict[str, Any]:
    """text: the whole as pages have it, "file:line: what". file and line are null where it is about no line."""
    file, line = m.file_and_line or (None, None)
    return {"text": str(m), "kind": m.kind, "file": file, "line": line, "programs": list(m.programs)}
