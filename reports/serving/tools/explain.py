"""The tool `explain`: why an operator or a script takes its time, and what would change it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import run
from .scripts import run_text
from .tool import Arguments, Tool, one_of

ABOUT = (
    "Why a kernel takes its time: timed again with one limit lifted at a time (lifted_us: what waits for what) and with one "
    "knob changed at a time (changes_us: what is faster, tried), lines that slow it with what to write instead, and lines "
    "that cost most. Arguments as for run; time only. For an answer to a task, `judge` has the suggestion."
)
LEFT_OUT = ("values", "time", "check")
PROPERTIES = {n: x for n, x in run.PROPERTIES.items() if n not in LEFT_OUT}
TOLD = (
    "op",
    "product",
    "time_us",
    "cycles",
    "bound",
    "lifted_us",
    "changes_us",
    "untried",
    "slowing",
    "lines",
    "notes",
)


def work(arguments: Arguments) -> dict[str, Any]:
    """The run's JSON, cut down to reasons."""
    only_time = {**arguments, "values": False, "explain": True}
    if one_of(arguments, "op", "script") == "op":
        only_time.pop("explain")
        return _reasons(run.work(only_time))
    run.check_kind(arguments, "script")
    found = run_text(only_time)
    head = {
        n: found[n]
        for n in ("script", "status", "error", "product", "launches", "time_us", "kernels", "output")
    }
    return head | {"dearest": found["dearest"] and _reasons(found["dearest"])}


def _reasons(found: Mapping[str, Any]) -> dict[str, Any]:
    return {n: found[n] for n in TOLD}


TOOL = Tool("explain", "Explain the time of a run", ABOUT, PROPERTIES, work, paths={"path": "script"})
