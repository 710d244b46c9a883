"""What changes of one knob of the dearest launch do to its time: tried where the answer runs, told by the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ....simulator.call import Call
from ....simulator.errors import AscendtileError
from ....simulator.launch import timed
from ....simulator.observers import quietly
from ....simulator.trials.knobs import trials
from ..answer_log import CallLog

MOST_INSTRUCTIONS = 1_500_000  # of a launch that is timed again and again


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
        if _instructions(launch.run) > MOST_INSTRUCTIONS:
            return tuple(calls)
        launch = replace(launch, run={**launch.run, **explained(self.call)})
        changed = (replace(first, launches=(launch, *rest)), *others)
        return (*calls[: self.case], changed, *calls[self.case + 1 :])


def _instructions(run: Mapping[str, Any]) -> float:
    return sum(float(x["instructions"]) for x in run.get("launches", ()))


def explained(call: Call) -> dict[str, Any]:
    """Keys of `run_json`: changes_us (of one knob, with the time then), untried, lifted_us (time without one limit).

    No value is computed, so that another size may be another sum: who takes the advice is judged again.
    """
    device = replace(call.device, values=False, time=True, timeline=0, explain=True, details=False)
    asked = replace(call, device=device)
    with quietly():
        try:
            now = timed(asked)[0]
            found = trials(asked, now.time_us, lambda other: timed(other)[0], any_sums=True)
        except AscendtileError:
            return {}  # its time depends on data
    changes = found.sorted_changes(now.time_us)
    return {"changes_us": changes, "untried": found.untried, "lifted_us": dict(now.lifted)}
