"""The timeline that a record keeps, and the text of the sources that its lines are in."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from tokenize import TokenError

import numpy as np

from ...ir.source import Source
from ...record.run import LineCost, SourceText, Timeline
from ..engine.engine import REASONS, EngineResult, ProgramGroup
from ..lowering.context import LoweringPlan

LONGEST_LINE = 400
MOST_LINES = 3000  # of all functions of a launch
HEAD = re.compile(r"[ \t]*(async[ \t]+)?def\b")


def source_texts(
    kernel: Source, lines: Iterable[LineCost], texts: Mapping[str, Sequence[str]]
) -> tuple[SourceText, ...]:
    """The kernel, then helpers in the order of their cost; what would be more than 3000 lines is left out.

    texts: of the files, by line.
    """
    found = [SourceText(kernel.file, kernel.first_line, _text(kernel.lines))]
    left = MOST_LINES - len(kernel.lines)
    for cost in lines:
        if any(_holds(x, cost) for x in found):
            continue
        block = _function_at(cost.file, cost.line, tuple(texts[cost.file]))
        left -= 0 if block is None else block.text.count("\n") + 1
        if block is not None and left >= 0:
            found.append(block)
    return tuple(found)


def _holds(text: SourceText, cost: LineCost) -> bool:
    last = text.first_line + text.text.count("\n")
    return text.file == cost.file and text.first_line <= cost.line <= last


def _text(lines: Iterable[str]) -> str:
    return "\n".join(line.rstrip("\r\n")[:LONGEST_LINE] for line in lines)


@lru_cache(maxsize=256)
def _function_at(file: str, line: int, lines: tuple[str, ...]) -> SourceText | None:
    """The function around a line: from the nearest `def` above that reaches it, decorators left out."""
    for first in range(min(line, len(lines)) - 1, -1, -1):
        if HEAD.match(lines[first]):
            try:
                block = inspect.getblock(list(lines[first:]))
            except (SyntaxError, TokenError):
                return None
            if first + len(block) >= line:
                return SourceText(file, first + 1, _text(block))
    return None


FIELDS = ("core", "pipe", "program", "record", "start", "end", "done", "gap")
# What pipes do that have one sort of work each.
WORK = {
    "S": "scalar",
    "V": "vector",
    "M": "mmad",
    "MTE1": "L1 to L0",
    "MTE2": "wait",
    "MTE3": "wait",
    "FIXP": "wait",
}


def whole_cores(result: EngineResult, limit: int) -> list[int]:
    """Cores whose records the timeline has from start to end, as many as `limit` records allow: the slowest, the first, the
    last, then the slowest of the others. The slowest alone where it has more records than that."""
    slowest = [int(c) for c in np.argsort(-result.core_cycles, kind="stable") if result.core_records[c]]
    kept: list[int] = []
    left = limit
    for core in dict.fromkeys([slowest[0], min(slowest), max(slowest), *slowest]):
        if not kept or result.core_records[core] <= left:
            kept.append(core)
            left -= int(result.core_records[core])
    return kept


def timeline_messages(result: EngineResult, limit: int) -> tuple[str, ...]:
    """What a launch says of a timeline that leaves out a part of it."""
    if not limit or len(result.timeline) == result.records_run:
        return ()
    cores, used = whole_cores(result, limit), int((result.core_records > 0).sum())
    records = int(result.core_records[cores].sum())
    what = f"the first {limit:,} of {records:,} records of instructions of core {cores[0]}, the slowest of {used}"
    if records <= limit:
        whose = f"{len(cores)} of {used} cores from start to end, the slowest ({cores[0]}) among them"
        what = f"{records:,} of {result.records_run:,} records of instructions, those of {whose}"
    return (f"timeline: {what} (device option timeline); totals by pipe and line are of all records",)


def launch_timeline(
    plan: LoweringPlan, result: EngineResult, groups: Sequence[ProgramGroup], rank: np.ndarray
) -> Timeline | None:
    """rank: place of each line number of the traces among the lines of the launch."""
    t = result.timeline
    if not len(t):
        return None
    number, channel = _of_records(t, groups)
    name, names = _names(plan, number, channel, t["pipe"])
    complete = len(t) == result.records_run
    rows, pipe, waited = _with_twins(plan, t["pipe"], _rows_of(t))
    fields = {n: t[n][rows] for n in FIELDS} | {"pipe": pipe}
    return Timeline(
        pipes=tuple(n for n, _ in plan.wiring.told),
        line=rank[number][rows],
        complete=complete,
        reason=t["reason"].astype(np.int8)[rows],
        waited=waited,
        bandwidth=t["beyond"][rows],
        bytes=t["amount"][rows],
        name=name[rows],
        reasons=REASONS,
        names=names,
        until=min(result.cycles, result.timeline_until),
        **fields,
    )


def _with_twins(
    plan: LoweringPlan, pipe: np.ndarray, waited: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which row each row that is told is of, a twin's after its own; and the pipe and the awaited row of each."""
    pipes, told = len(plan.wiring.machine.pipes), plan.wiring.told
    twin = np.zeros(pipes, np.int32)
    twin[[p for _, p in told[pipes:]]] = range(pipes, len(told))
    count = 1 + (twin[pipe] > 0)
    rows, place = np.arange(len(pipe)).repeat(count), count.cumsum() - count
    second, what = np.append(False, rows[1:] == rows[:-1]), waited[rows]
    at = np.where(second, twin[pipe[rows]], pipe[rows])
    awaited = np.where(what < 0, -1, place[what] + (second & (count[what] > 1)))
    return rows, at.astype(np.int32), awaited.astype(np.int32)


def _of_records(t: np.ndarray, groups: Sequence[ProgramGroup]) -> tuple[np.ndarray, np.ndarray]:
    """Line number and channel of each row."""
    first, kinds = 0, t["instruction"]
    if len(groups) > 1:
        starts = np.zeros(sum(len(g.programs) for g in groups), np.int64)
        for g in groups:
            starts[g.programs] = first
            first += len(g.trace.instructions)
        kinds = kinds + starts[t["program"]]
    rows = np.concatenate([g.trace.instructions[["line", "channel"]] for g in groups])
    return rows["line"][kinds], rows["channel"][kinds]


def _rows_of(t: np.ndarray) -> np.ndarray:
    """Per row the row of the record that its gap waited for, -1 for none.

    Whatever a kept record waited for is kept, as it was computed earlier; but what delayed its issue may be a transfer that
    had only started.
    """
    program = t["program"].astype(np.int64) << 32
    keys = program | t["record"]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    wanted = program | t["waited"]
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found = (t["waited"] >= 0) & (keys[place] == wanted)
    return np.where(found, order[place], -1).astype(np.int32)


def _names(
    plan: LoweringPlan, number: np.ndarray, channel: np.ndarray, pipe: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Per row the number of its name, and the names: a transfer's path, an operation's own name, or the pipe's work."""
    machine, own = plan.wiring.machine, [name for *_, name in plan.lines]
    pipes, paths = len(machine.pipes), len(machine.channels) + 1
    code = (number.astype(np.int64) * paths + channel + 1) * pipes + pipe
    kinds = np.flatnonzero(np.bincount(code, minlength=1))
    texts = [
        machine.channels[c].name if c >= 0 else own[n] or WORK.get(machine.pipes[p].name, "")
        for n, c, p in ((k // pipes // paths, k // pipes % paths - 1, k % pipes) for k in kinds.tolist())
    ]
    names = tuple(dict.fromkeys(texts))
    place = np.zeros(int(kinds[-1]) + 1, np.int32)
    place[kinds] = [names.index(w) for w in texts]
    return place[code], names
