"""What changes of one knob of the dearest launch do to its time: tried where the answer runs, told by the judge."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ....simulator.call import Call
from ....simulator.errors import AscendtileError
from ....simulator.interpreter.program_order.order import directions
from ....simulator.l2.state import LINE_BYTES, LOOP, L2State, ends_of, lines_of
from ....simulator.launch import programs_at_once, timed
from ....simulator.observers import quietly
from ....simulator.record.run import Launch
from ....simulator.trials.knobs import trials
from ....simulator.trials.work import TrialsSpentError
from ..answer_log import CallLog

# Instructions of a launch: up to so many it is timed again and again, beyond that by some rounds of its programs.
MOST_INSTRUCTIONS = 100_000
MOST_OF_PART = 300_000  # of these rounds
MOST_OF_FIXED = 1_500_000  # where the grid is no function: another one is looked for program by program
MOST_OF_ALL = 8_000_000  # beyond that nothing is tried
MOST_TIMED = 1_000_000  # by all trials of a verdict: about 0.25 s; counted, so that it is the same everywhere
MOST_ACCESSES = 3_000  # that trials of a verdict look at to find sizes that do the same work: about 0.4 s
SPENT = f"trials of a verdict time {MOST_TIMED:,} instructions"
FIXED = (
    "the launch is long and its grid is fixed; a grid that is a function, such as grid=lambda meta: "
    '(triton.cdiv(n, meta["BLOCK"]),), lets sizes be tried'
)
ROUNDS = (
    8,
    24,
)  # of programs over the cores, of a long launch: what the second takes longer, all that follow take


@dataclass
class DearestLaunch:
    """The launch that takes longest with all that are like it, over the first calls of all cases.

    calls: the last launch of each kernel and grid of the call that goes on, as `watch_calls` tells of them.
    """

    calls: dict[tuple[str, tuple[int, ...]], Call] = field(default_factory=dict)
    time_us: float = 0.0
    case: int = 0
    call: Call | None = None

    def tell(self, call: Call) -> None:
        """Remember a launch that is about to be made."""
        self.calls[call.kernel.name, call.grid] = call

    def returned(self, case: int, log: CallLog) -> None:
        """A call of a case is over: keep its dearest launch if it is the dearest of all."""
        first = next(iter(log.launches), None)
        if first is not None and log.ended is None and first.time_us > self.time_us:
            self.time_us, self.case = first.time_us, case
            self.call = self.calls.get((first.kernel, first.grid))
        self.calls.clear()

    def explained(self, calls: Sequence[tuple[CallLog, ...]]) -> tuple[tuple[CallLog, ...], ...]:
        """The calls of all cases, where the dearest launch says what was tried of it."""
        if self.call is None:
            return tuple(calls)
        first, *others = calls[self.case]
        launch, *rest = first.launches
        instructions = _instructions(launch.run)
        share = part_share(self.call) if instructions > MOST_INSTRUCTIONS else 1.0
        if instructions > (MOST_OF_ALL if self.call.grid_asks else MOST_OF_FIXED):
            say = share < 1 and not self.call.grid_asks
            found: dict[str, Any] = {"untried": {"grid": FIXED}} if say else {}
        elif instructions * share > MOST_OF_PART:
            found = {}
        else:
            found = explained(self.call, launch.time_us / launch.count if share < 1 else None)
        launch = replace(launch, run={**launch.run, **found})
        changed = (replace(first, launches=(launch, *rest)), *others)
        return (*calls[: self.case], changed, *calls[self.case + 1 :])


def part_share(call: Call) -> float:
    """Part of its programs that stand for a long launch."""
    return min(1.0, sum(ROUNDS) * programs_at_once(call) / math.prod(call.grid))


def _instructions(run: Mapping[str, Any]) -> float:
    return sum(float(x["instructions"]) for x in run.get("launches", ()))


def explained(call: Call, whole_us: float | None = None) -> dict[str, Any]:
    """Keys of `run_json`: changes_us (of one knob, with the time then), untried, lifted_us (time without one limit); and
    of_part, whether some rounds of its programs stand for all; and loaded_bytes (`Trials.loaded`), of these programs.

    whole_us: of a long launch, its time: then only parts of its programs are timed. Empty where the time depends on data.
    No value is computed, so another size may be another sum: an answer is judged again.
    """
    device = replace(call.device, values=False, time=True, timeline=0, explain=True, details=False)
    asked = replace(call, device=device)
    timing = TimedCalls(call if whole_us is not None else None)
    with quietly():
        try:
            now = timing.of(asked)
            found = trials(asked, now.time_us, timing.of, any_sums=True, most_accesses=MOST_ACCESSES)
        except AscendtileError:
            return {}
    scale = 1.0 if whole_us is None else whole_us / now.time_us
    lifted = {n: x * scale for n, x in now.lifted.items()}
    changes = {n: x * scale for n, x in found.sorted_changes(now.time_us).items()}
    return {
        "changes_us": changes, "untried": found.untried, "lifted_us": lifted, "of_part": whole_us is not None,
        "loaded_bytes": {n: list(x) for n, x in found.loaded.items()},
    }  # fmt: skip


class OneTime(NamedTuple):
    """What a trial asks of a launch. lifted: its time without one limit, of the launch as it is."""

    time_us: float
    lifted: dict[str, float]


@dataclass
class TimedCalls:
    """Times launches. of_part: where not None by the first programs, `ROUNDS` for each core.

    It is the launch of which all these are changes: it makes another one with fewer programs. instructions: timed so far.
    """

    of_part: Call | None
    instructions: int = 0

    def of(self, call: Call) -> Any:
        """The time of a launch, all of it."""
        parts = [] if self.of_part is None else self._parts(call, self.of_part)
        if not parts:
            found = self._launch(call)
            return OneTime(found.time_us, dict(found.lifted))
        first, second = map(self._launch, parts)
        more = (math.prod(call.grid) - second.programs) / (second.programs - first.programs)

        def all_us(a: float, b: float) -> float:
            return b + more * max(0.0, b - a)

        lifted = {n: all_us(first.lifted[n], x) for n, x in second.lifted.items() if n in first.lifted}
        return OneTime(all_us(first.time_us, second.time_us), lifted)

    def _launch(self, call: Call) -> Launch:
        if self.instructions > MOST_TIMED:
            raise TrialsSpentError(SPENT)
        found = timed(call)[0]
        self.instructions += found.instructions * (1 + len(found.lifted))
        return found

    def _parts(self, call: Call, first: Call) -> list[Call]:
        """Two parts of different length, where both together are less than all of it; else none."""
        if part_share(call) == 1 or first.again is None:
            return []
        cores = programs_at_once(call)
        device = replace(call.device, l2=_l2_under_way(call))
        parts = [first.again(dict(call.constants), _grid_of(call, n * cores)) for n in ROUNDS]
        parts = [replace(part, device=device) for part in parts]
        return parts if math.prod(parts[0].grid) < math.prod(parts[1].grid) else []


def _grid_of(call: Call, most: int) -> tuple[int, int, int]:
    """The grid of about the first `most` programs."""
    grid = []
    for n in call.grid:
        grid.append(min(n, max(1, most)))
        most //= grid[-1]
    return grid[0], grid[1], grid[2]


def _l2_under_way(call: Call) -> Any:
    """What the programs of a stream find in L2: nothing of theirs, and part of it is to be written.

    Of what fits there, and of products, which read the same again, all that a part reads is there.
    """
    room, l2 = call.device.product.integer("l2.size") // LINE_BYTES, call.device.l2
    if l2 != LOOP or call.program.of_kind("dot") or sum(map(lines_of, call.tensors.values())) <= room:
        return l2
    left = ends_of(call.tensors, directions(call.program), room)
    return L2State(changed=min(1.0, sum(x.changed for x in left) / room))
