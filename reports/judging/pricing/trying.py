"""What changes of one knob of the dearest launch do to its time: tried where the answer runs, told by the judge."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ....simulator.call import Call
from ....simulator.errors import AscendtileError
from ....simulator.launch import programs_at_once, timed
from ....simulator.observers import quietly
from ....simulator.record.run import Launch
from ....simulator.trials.knobs import trials
from ..answer_log import CallLog

# Instructions of a launch: up to so many it is timed again and again, beyond that by some rounds of its programs.
MOST_INSTRUCTIONS = 400_000
MOST_OF_PART = 300_000  # of these rounds
MOST_OF_FIXED = 1_500_000  # where the grid is no function: another one is looked for program by program
MOST_OF_ALL = 8_000_000  # beyond that nothing is tried
FIXED = (
    "the launch is long and its grid is fixed; a grid that is a function, such as grid=lambda meta: "
    '(triton.cdiv(n, meta["BLOCK"]),), lets sizes be tried'
)
ROUNDS = 2  # of programs over the cores, of a long launch


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
        if instructions > (MOST_OF_ALL if self.call.grid_asks else MOST_OF_FIXED):
            found: dict[str, Any] = {} if self.call.grid_asks else {"untried": {"grid": FIXED}}
        else:
            long = instructions > MOST_INSTRUCTIONS
            found = explained(self.call, launch.time_us / launch.count if long else None)
        launch = replace(launch, run={**launch.run, **found})
        changed = (replace(first, launches=(launch, *rest)), *others)
        return (*calls[: self.case], changed, *calls[self.case + 1 :])


def _instructions(run: Mapping[str, Any]) -> float:
    return sum(float(x["instructions"]) for x in run.get("launches", ()))


def explained(call: Call, whole_us: float | None = None) -> dict[str, Any]:
    """Keys of `run_json`: changes_us (of one knob, with the time then), untried, lifted_us (time without one limit); and
    of_part, whether some rounds of its programs stand for all; and loaded_bytes (`Trials.loaded`), of these programs.

    whole_us: of a long launch, its time: then only a part of the programs is timed. Empty where that is long, too, and
    where the time depends on data. No value is computed, so another size may be another sum: an answer is judged again.
    """
    device = replace(call.device, values=False, time=True, timeline=0, explain=True, details=False)
    timing = TimedCalls(whole_us is not None)
    with quietly():
        try:
            asked = replace(call, device=device)
            now = timing.launch(asked)
            if now.instructions > MOST_OF_PART:
                return {}
            us = timing.us(asked, now)
            found = trials(asked, us, timing.of, any_sums=True)
        except AscendtileError:
            return {}
    scale = 1.0 if whole_us is None else whole_us / us
    lifted = {n: x * scale * us / now.time_us for n, x in now.lifted.items()}
    changes = {n: x * scale for n, x in found.sorted_changes(us).items()}
    return {
        "changes_us": changes, "untried": found.untried, "lifted_us": lifted, "of_part": whole_us is not None,
        "loaded_bytes": {n: list(x) for n, x in found.loaded.items()},
    }  # fmt: skip


class OneTime(NamedTuple):
    """What a trial asks of a launch."""

    time_us: float


@dataclass(frozen=True)
class TimedCalls:
    """Times launches. of_part: by the first programs, `ROUNDS` for each core; the others take as long."""

    of_part: bool

    def of(self, call: Call) -> Any:
        """The time of a launch, all of it."""
        return OneTime(self.us(call, self.launch(call)))

    def launch(self, call: Call) -> Launch:
        """The launch itself, or the one that stands for it."""
        return timed(self._part(call) if self.of_part else call)[0]

    def us(self, call: Call, launch: Launch) -> float:
        """Of all programs of `call`, when `launch` stands for it."""
        return launch.overhead_us + launch.working_us * math.prod(call.grid) / launch.programs

    @staticmethod
    def _part(call: Call) -> Call:
        most = ROUNDS * programs_at_once(call)
        if math.prod(call.grid) <= most or call.again is None:
            return call
        grid = []
        for n in call.grid:
            grid.append(min(n, max(1, most)))
            most //= grid[-1]
        part = call.again({}, (grid[0], grid[1], grid[2]))
        return replace(part, device=call.device)
