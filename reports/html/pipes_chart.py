"""Where the cycles of each pipe went, and the ladder of lower bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from markupsafe import Markup

from ...simulator.record.run import Pipe, Run
from ..facts import facts, texts
from ..facts.advice.tried import untried
from ..facts.intervals import interval_text
from .writing import render

# In the order in which a bar shows them; bandwidth is a part of busy.
MEANINGS = {
    "busy": "busy",
    "bandwidth": "busy longer: shared bandwidth",
    "data": "waits for data",
    "buffer": "waits for a free buffer",
    "flag": "waits for a flag",
    "issue": "waits for the scalar issue",
    "dispatch": "next program is handed out",
    "tail": "nothing more to do in its program",
    "idle": "its core is done",
}
PARTS = tuple(MEANINGS)


@dataclass(frozen=True)
class BarPart:
    """A piece of a bar."""

    name: str
    cycles: float
    share: float
    colour: int


def pipe_table(run: Run) -> Markup:
    """A row for each pipe, the busiest first; those that were never used are named."""
    used = {n: p for n, p in run.pipes.items() if p.busy_cycles > 0}
    rows = [
        (n, p, parts_of(p, run.cycles), facts.main_stall_text(p, run.cycles))
        for n, p in sorted(used.items(), key=lambda i: -i[1].busy_cycles)
    ]
    present = [n for n in PARTS if any(x.name == n for *_, parts, _ in rows for x in parts)]
    idle = [n for n in run.pipes if n not in used]
    legend = [(MEANINGS[n], PARTS.index(n)) for n in present]
    lost = [(name, n, cycles, facts.share(cycles, run.cycles)) for name, n, cycles in conflicts(run)]
    return render(
        "pipes.html", rows=rows, legend=legend, idle=idle, meanings=MEANINGS, parts=PARTS[1:], lost=lost
    )


def conflicts(run: Run) -> list[tuple[str, str, float]]:
    """(pipe, sort of bank conflict, cycles that it added, mean over the cores that worked), of all launches together."""
    found: dict[tuple[str, str], float] = {}
    for launch in run.launches:
        for name, pipe in launch.pipes.items():
            for n, cycles in pipe.core_conflicts.items():
                mean = sum(cycles) / max(1, launch.cores_used)
                found[name, n] = found.get((name, n), 0.0) + mean
    return [(*key, cycles) for key, cycles in found.items() if 0 < cycles < math.inf]


def parts_of(pipe: Pipe, cycles: float) -> list[BarPart]:
    """Pieces of a pipe's time; what takes less than a thousandth is left out."""
    shared = max(0.0, min(pipe.stalls.get("bandwidth", 0.0), pipe.busy_cycles))
    found = {"busy": pipe.busy_cycles - shared, **pipe.stalls, "bandwidth": shared}
    named = ((k, n, found.get(n, 0.0)) for k, n in enumerate(PARTS))
    return [BarPart(n, c, s, k) for k, n, c in named if 0.001 <= (s := facts.share(c, cycles)) < math.inf]


def bounds_ladder(run: Run) -> Markup:
    """Lower bounds beside the time, and what was found by lifting a limit or turning a knob."""
    total = run.time_us
    rungs = [
        (texts.bound_meaning(n), us, facts.share(us, total))
        for n, us in run.bounds.items()
        if math.isfinite(us)
    ]
    lifted = [(texts.meaning(n), us, 1 - facts.share(us, total)) for n, us in run.lifted.items()]
    changes = [(texts.clean(n, 60), us, facts.share(us, total) - 1) for n, us in run.changes.items()]
    rungs.sort(key=lambda x: -x[1])
    timed = {"lifted": lifted, "changes": changes, "untried": untried(run)}
    return render("bounds.html", rungs=rungs, total=total, interval=interval_text(run), **timed)
