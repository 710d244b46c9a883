"""Two tilings of one problem, pipe by pipe: where the time of one goes that the other saves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..kernels.running.run_op import run_op
from ..simulator.device import ASCENDC, current_device
from ..simulator.record.files import picked
from ..simulator.record.lazy_views import PrintedRecord
from ..simulator.record.run import Run, add_up


@dataclass(frozen=True)
class Side:
    """One tiling. pipes: pipe -> (us it is busy, reason -> us it waits), summed over the launches, a mean over the cores."""

    tiling: dict[str, Any]
    time_us: float
    launch_us: float
    bound: str
    pipes: dict[str, tuple[float, dict[str, float]]]
    resources: dict[str, float]
    ub_peak_bytes: int


@dataclass(frozen=True)
class Difference(PrintedRecord):
    """Two tilings of one operator on one case. compiler: who makes the code, as in `Launch`."""

    op: str
    case: str | None
    product: str
    first: Side
    second: Side
    compiler: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `ascendtile explore OP --diff A B --json`."""
        return picked(self, "op case product compiler") | {
            "first": _plain(self.first),
            "second": _plain(self.second),
        }


def _plain(s: Side) -> dict[str, Any]:
    pipes = {p: {"busy_us": busy, "waits_us": waits} for p, (busy, waits) in s.pipes.items()}
    return {**picked(s, "tiling time_us launch_us bound ub_peak_bytes"), "pipes": pipes, "bytes": s.resources}


def difference(op: str, first: Mapping[str, Any], second: Mapping[str, Any], **options: Any) -> Difference:
    """Time two tilings (knobs by name) of an operator. options: of `run_op`, such as case, dtype, product."""
    runs = [run_op(op, tiling=t, values=False, **options).run for t in (first, second)]
    a, b = (_side(r) for r in runs)
    made = current_device().code_by(ASCENDC)
    return Difference(runs[0].op or runs[0].name, runs[0].case, runs[0].product["name"], a, b, made)


def _side(run: Run) -> Side:
    pipes: dict[str, tuple[float, dict[str, float]]] = {}
    for x in run.launches:
        per_us = x.cycles / x.working_us if x.cycles else 1.0
        for n, p in x.pipes.items():
            busy, waits = pipes.get(n, (0.0, {}))
            more = {r: waits.get(r, 0.0) + c / per_us for r, c in p.stalls.items()}
            pipes[n] = (busy + p.busy_cycles / per_us, more)
    longest = max(run.launches, key=lambda x: x.time_us)
    peak = max((x.buffers["UB"].peak_bytes for x in run.launches if "UB" in x.buffers), default=0)
    launch_us = sum(x.overhead_us for x in run.launches)
    moved = add_up(x.resources for x in run.launches)
    return Side(run.tiling, run.time_us, launch_us, longest.bound[0], pipes, moved, peak)
