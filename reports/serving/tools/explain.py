"""The tool `explain`: why an operator, a script or an answer takes its time, and what would change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....simulator.errors import UsageError
from . import judge, run
from .scripts import run_text
from .tool import Arguments, Tool, one_of

if TYPE_CHECKING:
    from ...judging.answer_log import LaunchLog
    from ...judging.judged_case import JudgedCase
    from ...judging.processes.limits import Limits
    from ...judging.processes.pool import Job

ABOUT = (
    "Why a kernel takes its time: timed again with one limit lifted at a time (lifted_us: what waits for what) and with one "
    "knob changed at a time (changes_us: what is faster, tried), lines that slow it with what to write instead, and lines "
    "that cost most. Give op or script as for run, or task and answer as for judge: of these the dearest launch. Time only."
)
KINDS = ("op", "script", "task")
LEFT_OUT = ("values", "time", "check", "full", "seed")
PROPERTIES = {n: x for n, x in (judge.PROPERTIES | run.PROPERTIES).items() if n not in LEFT_OUT}
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
JUDGED = ("verdict", "message", "time_us", "floor_us", "bound", "distance", "suggestion")


def work(arguments: Arguments) -> dict[str, Any]:
    """Of an operator or a script: the run's JSON, cut down to reasons."""
    only_time = {**arguments, "values": False}
    if _kind(arguments) == "op":
        return _reasons(run.work(only_time))
    run.check_kind(arguments, "script")
    found = run_text({**only_time, "explain": True})
    head = {
        n: found[n]
        for n in ("script", "status", "error", "product", "launches", "time_us", "kernels", "output")
    }
    return head | {"dearest": found["dearest"] and _reasons(found["dearest"])}


def of_answer(arguments: Arguments, job: Job, limits: Limits, below: Path) -> dict[str, Any]:
    """Of an answer to a task: what its verdict says of time, and the reasons of the launch that takes longest."""
    _kind(arguments)
    seen: list[JudgedCase] = []
    verdict = judge.judged({**arguments, "values": False}, job, limits, below, seen.extend)
    return {n: verdict[n] for n in JUDGED} | {"dearest": _dearest(seen)}


def _kind(arguments: Arguments) -> str:
    """What is to be explained; no argument of another kind."""
    kind = one_of(arguments, *KINDS)
    taken, what = (judge.PROPERTIES, "task and answer") if kind == "task" else (run.PROPERTIES, kind)
    for name in arguments:
        if name not in taken:
            raise UsageError(f"{name} is not for {what}; leave it out")
    if kind == "task" and "answer" not in arguments:
        raise UsageError("answer must be given beside task, or answer_path")
    return kind


def _dearest(cases: Sequence[JudgedCase]) -> dict[str, Any] | None:
    launches: list[LaunchLog] = [x for case in cases for call in case.calls[:1] for x in call.launches]
    if not launches:
        return None
    longest = max(launches, key=lambda x: x.time_us)
    of_all = {"kernel": longest.kernel, "grid": list(longest.grid), "count": longest.count}
    return of_all | _reasons(longest.run)


def _reasons(found: Mapping[str, Any]) -> dict[str, Any]:
    return {n: found[n] for n in TOLD}


PATHS = {"path": "script", **judge.PATHS}
TOOL = Tool("explain", "Explain the time of a kernel", ABOUT, PROPERTIES, work, of_answer, paths=PATHS)
