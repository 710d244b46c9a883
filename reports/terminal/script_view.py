"""What the launches of a script took: a row for each kernel, grid and constants.

`us` and `share` are of all launches of the row; `bound` and the use of the buffers are those of its dearest launch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from ...simulator.messages import Message
from ...simulator.record.files import picked
from ...simulator.record.run import Run
from ...simulator.triton_shim.scripts.collecting import Collector, LaunchGroup
from ..facts import facts, json_view, texts
from ..facts.advice.slowing import slowing_json
from ..facts.authors import compiler, script_text
from ..facts.texts import clean
from ..facts.warned import headed, how_many, message_json
from . import advice_view, sections, tables

if TYPE_CHECKING:
    from ...simulator.triton_shim.scripts.script import ScriptOutcome

MOST_ROWS = 24
MOST_SLOW, MOST_SLOW_LINES = 3, 2  # rows that are explained, and lines of each
COLUMNS = (("kernel", 23), (">grid", 9), (">count", 6), (">us", 8), (">share", 5), ("bound", 8))
BUFFERS = ((">UB", 5), (">L1", 4), (">L0", 4))
NOTHING = "no kernel was launched"


def script_page(script: str, found: Collector) -> RenderableType:
    """The table of launches and the sums."""
    title = Text(f"launches of {clean(script, 50)}", style="bold")
    if not found.count:
        return Group(Text(), title, Text(NOTHING))
    dearest = found.dearest
    title.append(f" on {facts.product_name(dearest)}" if dearest else "", style="not bold")
    table = tables.make_table(*COLUMNS, *BUFFERS)
    groups = found.by_time
    for group in groups[:MOST_ROWS]:
        tables.add_row(table, *_cells(group, found.time_us))
    rest = groups[MOST_ROWS:]
    spent = texts.micros(sum(g.time_us for g in rest))
    more = [Text(f"  and {len(rest)} more rows, {spent} us", style="dim")]
    code = script_text(g.dearest for g in groups)
    made = [tables.fact("code", code)] if code else []
    wrong = [part for g in found.faulty for part in _faults(g)]
    slow = [part for g in groups[:MOST_SLOW] for part in _slowing(g)]
    below = (*_sums(found), *_errors(groups), *slow, *wrong)
    return Group(Text(), title, *made, table, *(more if rest else []), *below)


def _slowing(group: LaunchGroup) -> sections.Block:
    """What slows the dearest launch of a row."""
    grid = f" grid {grid_text(group.grid)}" if group.grid else ""
    return advice_view.slowing(group.dearest, f"what slows {clean(group.kernel, 40)}{grid}", MOST_SLOW_LINES)


def _errors(groups: list[LaunchGroup]) -> sections.Block:
    """Of each row the errors of the launch that took longest, where they were asked for."""
    shown = [(g, n, e) for g in groups[:MOST_ROWS] for n, e in g.dearest.errors.items()]
    if not shown:
        return []
    against = f"error against {facts.error_reference(shown[0][0].dearest)}"
    table = tables.make_table((against, 23), ("output", 16), (">max abs", 9), (">max ulp", 9), (">bits", 6))
    for g, name, e in shown:
        sizes = (texts.small(e.max_abs), texts.figure(e.max_ulp), texts.figure(e.effective_bits))
        tables.add_row(table, g.kernel, clean(name, 16), *sizes)
    return [Text(), table]


def check_page(script: str, found: Collector) -> RenderableType:
    """The faults of the launches, row by row, and how many there are."""
    dearest = found.dearest
    title = Text(f"checked {clean(script, 50)}", style="bold")
    title.append(f" on {facts.product_name(dearest)}" if dearest else "", style="not bold")
    wrong = [part for g in found.faulty for part in _faults(g)]
    return Group(title, *wrong, *([Text()] if wrong else []), Text(_verdict(found), style="bold"))


def _verdict(found: Collector) -> str:
    if not found.count:
        return NOTHING
    told = [m for g in found.faulty for m in g.faults]
    lacking = sum(m.is_what_if for m in told)
    also = f" and {how_many(lacking, 'what-if')}" if lacking else ""
    return f"{how_many(len(told) - lacking, 'fault')}{also} in {_many(found)}"


def _faults(group: LaunchGroup) -> sections.Block:
    """Those of one row: which launches they are of, then place and text of each."""
    grid = f" grid {grid_text(group.grid)}" if group.grid else ""
    launches = f"{texts.count(group.count)} launch{'es' * (group.count > 1)}"
    out: sections.Block = []
    for kind, _, found in headed(group.faults):
        title = f"{kind}s of {clean(group.kernel, 40)}{grid}, {launches}"
        every = [_in_how_many(m, group) for m in found]
        out += sections.remarked(title, kind, every, sections.STYLES[kind])
    return out


def _in_how_many(m: Message, group: LaunchGroup) -> str:
    n = group.faults[m]
    return m if n == group.count else f"{m} (in {texts.count(n)} of the launches)"


def _sums(found: Collector) -> list[RenderableType]:
    many = _many(found)
    if not found.timed:
        return [Text(f"{many}; time was not asked for"), *_processes(found)]
    took = f"{texts.micros(found.time_us)} us ({texts.count(found.cycles)} cycles)"
    return [
        Text(f"{many} take{'s' * (found.count == 1)} {took}", style="bold"),
        Text("host code and torch take no simulated time", style="dim"),
        *_processes(found),
    ]


def _many(found: Collector) -> str:
    """ "3 launches of 1 kernel"."""
    kernels = len({g.kernel for g in found.groups.values()})
    return f"{texts.count(found.count)} launch{'es' * (found.count > 1)} of {kernels} kernel{'s' * (kernels > 1)}"


def _processes(found: Collector) -> list[RenderableType]:
    """Of the processes that the script started."""
    if not found.processes:
        return []
    many = f"{found.processes} process{'es' * (found.processes > 1)} that the script started"
    out = [Text(f"the launches of {many} are among them", style="dim")]
    if found.unread_processes:
        out.append(Text(f"{found.unread_processes} ended while a launch was written down: it is lacking"))
    return list(out)


def _cells(group: LaunchGroup, total_us: float) -> tuple[str, ...]:
    run = group.dearest
    bound = facts.binding(run)
    fills = buffer_shares(run)
    return (
        group.kernel,
        "various" if group.various else grid_text(group.grid),
        texts.count(group.count),
        texts.micros(group.time_us) if run.launches else "",
        texts.percent(facts.share(group.time_us, total_us)) if run.launches else "",
        bound.name if bound else "",
        *(texts.percent(fills[n]) if fills.get(n) else "" for n in ("UB", "L1", "L0")),
    )


def grid_text(grid: tuple[int, int, int] | None) -> str:
    """512, 64x8: axes of one program at the end are left out."""
    if grid is None:
        return ""
    x, y, z = grid
    return f"{x}x{y}x{z}" if z > 1 else f"{x}x{y}" if y > 1 else str(x)


def buffer_shares(run: Run) -> dict[str, float]:
    """How full UB, L1 and the fullest of the L0 buffers were."""
    out: dict[str, float] = {}
    for name, buffer in run.buffers.items():
        kind = "L0" if name.startswith("L0") else name
        out[kind] = max(out.get(kind, 0.0), facts.share(buffer.peak_bytes, buffer.capacity_bytes))
    return out


def script_json(script: str, outcome: ScriptOutcome, found: Collector, record: str | None) -> dict[str, Any]:
    """All of it as plain data; `dearest` is the launch that took longest, as `run_json` has it.

    error: what ended the script early, else None; the launches are those before it. processes: how many that the script
    started have launches among them. faults: of all launches, each once for a row of `kernels`, with the number of its
    launches that have it.
    """
    dearest, timed = found.dearest, found.timed
    return {
        "script": script,
        **picked(outcome, "status error"),
        **picked(found, "processes unread_processes"),
        "product": facts.product_name(dearest) if dearest else None,
        "launches": found.count,
        "time_us": found.time_us if timed else None,
        "cycles": found.cycles if timed else None,
        "kernels": [_row(g) for g in found.by_time],
        "faults": [
            {"kernel": g.kernel, "grid": list(g.grid) if g.grid else None, "launches": n, **message_json(m)}
            for g in found.faulty
            for m, n in g.faults.items()
        ],
        "dearest": json_view.run_json(dearest, record) if dearest else None,
    }


def _row(group: LaunchGroup) -> dict[str, Any]:
    run = group.dearest
    bound = facts.binding(run)
    return {
        "kernel": group.kernel,
        "compiler": compiler(run) or None,
        "grid": list(group.grid) if group.grid else None,
        "constants": {
            n: x if x is None or isinstance(x, bool | int | str) else str(x) for n, x in run.tiling.items()
        },
        "count": group.count,
        "time_us": group.time_us if run.launches else None,
        "cycles": group.cycles if run.launches else None,
        "bound": bound.name if bound else None,
        "buffer_shares": buffer_shares(run),
        "slowing": slowing_json(run),
        "warnings": [message_json(m) for m in run.warnings],
    }
