"""What changes of one knob of the dearest launch do to its time: tried where the answer runs, told by the judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ....simulator.call import Call
from ....simulator.errors import AscendtileError
from ....simulator.launch import timed
from ....simulator.observers import quietly
from ....simulator.trials.knobs import trials
from ..answer_log import LaunchLog

MOST_INSTRUCTIONS = 3_000_000  # of a launch that is timed again and again


@dataclass
class LastCalls:
    """The last launch of each kernel and grid, as `watch_calls` tells of them."""

    calls: dict[tuple[str, tuple[int, ...]], Call] = field(default_factory=dict)

    def tell(self, call: Call) -> None:
        """Remember a launch that is about to be made."""
        self.calls[call.kernel.name, call.grid] = call

    def explained(self, launches: Iterable[LaunchLog]) -> tuple[LaunchLog, ...]:
        """The same launches; the first one, the dearest, with what was tried of it."""
        logs = tuple(launches)
        call = self.calls.get((logs[0].kernel, logs[0].grid)) if logs else None
        if call is None or _instructions(logs[0].run) > MOST_INSTRUCTIONS:
            return logs
        return replace(logs[0], run={**logs[0].run, **explained(call)}), *logs[1:]


def _instructions(run: Mapping[str, Any]) -> float:
    return sum(x["instructions"] for x in run.get("launches", ()))


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
