"""What could be changed in an answer that is right, each with the time that it saves: tried in the simulator, or at most.

A launch is read as `run_json` tells it, from the process of the answer: whatever has another form there gives no candidate.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ....simulator.timing.cures import RESCALED
from ...facts import texts
from ..answer_log import LaunchLog
from ..verdict import HostCost

LEAST_SHARE = 0.02  # of the time: what saves less is not worth a change
UNTRIED = 0.5  # of what is saved at most, where nothing was tried: what counts against a change that was
COPIES = "multibuffer"
TRITON = "triton-ascend"
MOST_TEXT = 60
ROOMY = 0.5  # of a buffer in use: there is room for tiles of twice the size
MOVED_TWICE = 1.4  # bytes moved against those of the task
MIB = 1 << 20
LITTLE = 0.05  # of what all lines load
OF_ALL_CORES = ("HBM", "L2", "launch")  # bounds that more cores leave as they are
TRANSFERS = ("HBM", "L2", "MTE2", "MTE3")
SMALL = 0.25  # of UB: what may stay there while other tiles come and go
ONCE = "load it before the loop, or once for a tile of several rows"
WINDOWS = (
    "let larger tiles share it; where windows overlap, combine along one axis first, with a load for each step, then along "
    "the other what is in UB already, with tl.extract_slice of whole rows"
)
LOAD = re.compile(r"\bload\(\s*(\w+)")


class PossibleChange(NamedTuple):
    """saved_us: of the whole call. text: a sentence. tried: whether the time was simulated with the change."""

    saved_us: float
    text: str
    tried: bool = False

    @property
    def weight(self) -> float:
        """By which candidates are ranked."""
        return self.saved_us if self.tried else UNTRIED * self.saved_us


def candidates(
    logs: Sequence[LaunchLog],
    host: Sequence[HostCost],
    time_us: float,
    needed_bytes: int | None,
    calls: int = 1,
) -> list[PossibleChange]:
    """Changes that save at least `LEAST_SHARE` of the time, best first.

    logs: launches of one call of each case, dearest first; calls: how many that are. needed_bytes: of the task's inputs and
    outputs, None where nobody knows.
    """
    found = [*_of_launches(logs, needed_bytes, calls), *_of_host(host)]
    worth = [c for c in found if c.saved_us >= LEAST_SHARE * time_us]
    return sorted(worth, key=lambda c: (-c.weight, c.text))


def _of_launches(logs: Sequence[LaunchLog], needed_bytes: int | None, calls: int) -> Iterator[PossibleChange]:
    if not logs:
        return
    try:
        yield from _of_dearest(logs[0], len({x.kernel for x in logs}) > 1)
        yield from _fused(logs, calls)
        yield from _reread(logs, needed_bytes)
        yield from _loaded_again(logs[0])
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        return  # no record of ours


def _of_dearest(log: LaunchLog, others: bool) -> Iterator[PossibleChange]:
    """others: whether there are other kernels, so that this one is named."""
    yield from _knobs(log, others)
    yield from _slow_lines(log)
    yield from _programs(log)
    yield from _larger_tiles(log)


# ---- knobs that were tried ----


def _knobs(log: LaunchLog, others: bool) -> Iterator[PossibleChange]:
    now = log.time_us / log.count
    how = "timed on a part of its programs" if log.run.get("of_part") else "timed"
    stream = log.run.get("of_part") and "M" not in _units(log)
    least = float(log.run["launches"][0]["bounds"].get("HBM", 0.0)) if stream else 0.0
    for change, timed in log.run.get("changes_us", {}).items():
        us = max(timed, least)  # a part of a stream may find room in L2 for what it writes
        text = _change_text(change, str(log.run.get("compiler") or ""))
        if text and us < now:
            figure = f"{texts.micros(us)} us a launch in place of {texts.micros(now)}, {how}"
            if others:
                text = f"For {texts.clean(log.kernel, 30)}, {text[:1].lower()}{text[1:]}"
            yield PossibleChange((now - us) * log.count, f"{text}: {figure}.", True)


def _change_text(change: str, compiler: str) -> str:
    """ "BLOCK 256 -> 4096, grid 16 -> 1" as an order to a programmer; "" where it cannot be given."""
    first, _, grid = change.partition(", grid ")
    name, before, after = (*first.replace(" -> ", " ").split(" "), "", "", "")[:3]
    name = texts.clean(name, MOST_TEXT)
    if name == COPIES and compiler.startswith(TRITON):
        return {"1": "Launch with multibuffer=False", "2": "Launch with multibuffer=True"}.get(after, "")
    if name == "grid":
        return f"Start {after} programs in place of {before}"
    with_grid = f", with the grid {texts.clean(grid.partition(' -> ')[2], MOST_TEXT)}" if grid else ""
    return f"Set {name} = {texts.clean(after, MOST_TEXT)} (now {before}){with_grid}"


# ---- lines that the compiler makes slow code of ----


def _slow_lines(log: LaunchLog) -> Iterator[PossibleChange]:
    seen: set[int] = set()
    for x in log.run.get("slowing", ()):
        if x["line"] in seen or not x.get("line_time_us") or (x["cure"] == RESCALED and not _roomy(log)):
            continue
        seen.add(x["line"])
        us = float(x["line_time_us"])
        what, cure = texts.clean(x["what"], 160), texts.clean(x["cure"], 200)
        text = f"Line {x['line']} takes {texts.micros(us)} us: {what}; {cure}."
        yield PossibleChange(us * log.count, text)


# ---- programs and cores ----


def _programs(log: LaunchLog) -> Iterator[PossibleChange]:
    launch, now = log.run["launches"][0], log.time_us / log.count
    programs, cores, used = (launch[n] for n in ("programs", "cores", "cores_used"))
    dispatched = min(now - log.run.get("lifted_us", {}).get("dispatch", now), _above_bounds(log))
    if programs > 2 * cores:
        yield PossibleChange(
            dispatched * log.count,
            f"Start {cores} programs, one for each core, and let each go through its share in a loop, for i in "
            f"range(tl.program_id(0), {programs}, tl.num_programs(0)): handing out {programs:,} programs takes "
            f"{texts.micros(dispatched)} us.",
        )
    each = programs / cores
    if each > 1 and each % 1:
        saved = min((now - launch["overhead_us"]) * (1 - each / math.ceil(each)), _above_bounds(log))
        yield PossibleChange(
            saved * log.count,
            f"Start a multiple of {cores} programs, each with whole blocks of 32 bytes, or smaller parts: of {programs:,} "
            f"some cores have {math.ceil(each)} and others one less, which wait at the end (at most "
            f"{texts.micros(saved)} us less).",
        )
    if used < cores:
        saved = min((now - launch["overhead_us"]) * (1 - used / cores), _above_bounds(log, used / cores))
        yield PossibleChange(
            saved * log.count,
            f"Give all {cores} cores work: {programs:,} programs leave {cores - used} of them idle; cut the work into "
            f"more parts, with smaller tiles or along another axis (at most {texts.micros(saved)} us less).",
        )


# ---- transfers ----


def _larger_tiles(log: LaunchLog) -> Iterator[PossibleChange]:
    """A Vector unit that waits for data, in a kernel that leaves UB empty. Products have tiles of their own."""
    launch, ub = log.run["launches"][0], log.run.get("buffers", {}).get("UB")
    if ub is None or "M" in _units(log) or not _roomy(log):
        return
    waits = sum(p["waits"].get("data", 0.0) for n, p in log.run.get("pipes", {}).items() if n.endswith(".V"))
    share = min(1.0, waits / launch["cycles"])
    saved = min(log.time_us / log.count * share, _above_bounds(log))
    yield PossibleChange(
        saved * log.count,
        f"Take larger tiles: the Vector unit waits {texts.percent(share)} of the time for data, and "
        f"{texts.percent(ub['peak_bytes'] / ub['capacity_bytes'])} of UB is in use; let an iteration load several rows at "
        f"once as a tile of two axes, or more of each row (at most {texts.micros(saved)} us less).",
    )


def _roomy(log: LaunchLog) -> bool:
    """Whether UB has room for larger tiles."""
    ub = log.run["buffers"]["UB"]
    return bool(ub["peak_bytes"] <= ROOMY * ub["capacity_bytes"])


def _above_bounds(log: LaunchLog, of_cores: float = 1.0) -> float:
    """What one launch takes beyond its largest bound: no overlap saves more.

    of_cores: used cores of all, where the work goes over all: a bound of a core's own part is less by that.
    """
    bounds = log.run["launches"][0]["bounds"]
    least = (us if name in OF_ALL_CORES else of_cores * us for name, us in bounds.items())
    return max(0.0, log.time_us / log.count - max(least, default=0.0))


def _reread(logs: Sequence[LaunchLog], needed_bytes: int | None) -> Iterator[PossibleChange]:
    """What passes L2 again and again; products read a tile for each other one, and are left out.

    Rows that are no whole lines of memory move more bytes, too: one tensor has to be loaded at several places. What a
    program works on may be more than UB holds: then sums of it and what needs them are two passes.
    """
    places, (fits, share) = max(map(_places_of_one, logs)), _share_of_a_program(logs[0], needed_bytes or 0)
    least = 1 if fits else 2
    if not needed_bytes or places <= least or any("M" in _units(x) for x in logs):
        return
    moved = sum(x.count * x.run["launches"][0]["resources_bytes"].get("L2", 0.0) for x in logs)
    if moved < MOVED_TWICE * needed_bytes:
        return
    time_us = sum(x.time_us for x in logs)
    saved = min(
        time_us * (1 - needed_bytes / moved), time_us * (1 - least / places), sum(map(_above_computing, logs))
    )
    way = (
        "keep a row or a tile in UB from the first use to the last"
        if fits
        else f"a program's share of {_mib(share)} MiB does not fit into UB, so make all sums in one pass over it (such as "
        "those of x and of x * x), and what needs them in a second"
    )
    yield PossibleChange(
        saved,
        f"Load each input {'once' if fits else f'twice, not at {places} places'}: the launches move {_mib(moved)} MiB, the "
        f"task's inputs and outputs are {_mib(needed_bytes)} MiB; {way} (at most {texts.micros(saved)} us less).",
    )


def _loaded_again(log: LaunchLog) -> Iterator[PossibleChange]:
    """The tensor of which one line loads most bytes again; products read a tile for each other one, and are left out."""
    loaded = log.run.get("loaded_bytes")
    if not loaded or "M" in _units(log) or _places_of_one(log) > 1:
        return
    name, (moved, there) = max(loaded.items(), key=lambda item: item[1][0] - item[1][1])
    if moved < MOVED_TWICE * there:
        return
    again = (moved - there) / sum(m for m, _ in loaded.values())
    saved = min(log.time_us * again, _above_computing(log))
    small = there <= SMALL * log.run["buffers"]["UB"]["capacity_bytes"]
    yield PossibleChange(
        saved,
        f"Load less of {texts.clean(name, 30)}: each element is loaded {texts.figure(moved / there)} times; "
        f"{ONCE if small else WINDOWS} (at most {texts.micros(saved)} us less).",
    )


def _share_of_a_program(log: LaunchLog, needed_bytes: int) -> tuple[bool, float]:
    """Whether UB holds what one program works on of the task's inputs and outputs, and how many bytes that is."""
    share = needed_bytes / log.run["launches"][0]["programs"]
    return share <= log.run["buffers"]["UB"]["capacity_bytes"], share


def _above_computing(log: LaunchLog) -> float:
    """What the launches of a kernel take beyond the largest bound that no transfer is: fewer bytes save no more."""
    bounds = log.run["launches"][0]["bounds"].items()
    least = max((us for name, us in bounds if name.rpartition(".")[2] not in TRANSFERS), default=0.0)
    return max(0.0, log.time_us - log.count * least)


def _units(log: LaunchLog) -> set[str]:
    pipes = log.run.get("pipes", {})
    return {n.rpartition(".")[2] for n, p in pipes.items() if p["busy_cycles"]}


def _places_of_one(log: LaunchLog) -> int:
    """At how many lines one pointer is loaded, of the one with most; lines that load little do not count."""
    lines = log.run.get("lines", ())
    busy = [sum(n for pipe, n in x["busy_cycles"].items() if pipe.endswith(".MTE2")) for x in lines]
    found = [
        LOAD.search(str(x["source"])) for x, n in zip(lines, busy, strict=True) if n >= LITTLE * sum(busy)
    ]
    return max(Counter(m[1] for m in found if m).values(), default=0)


def _mib(n: float) -> str:
    return texts.micros(n / MIB)


# ---- launches, and what is done beside them ----


def _fused(logs: Sequence[LaunchLog], calls: int) -> Iterator[PossibleChange]:
    """Launches of one call; those of several calls stay several."""
    count = sum(x.count for x in logs)
    overheads = sum(x.count * x.run["launches"][0]["overhead_us"] for x in logs)
    if count <= calls:
        return
    names = ", ".join(dict.fromkeys(texts.clean(x.kernel, 30) for x in logs[:4]))
    saved = overheads * (count - calls) / count
    several = f"{count:,} launches" if calls == 1 else f"launches of each call, {count:,} for {calls:,} cases"
    yield PossibleChange(
        saved,
        f"Make one kernel of the {several} ({names}): each takes {texts.micros(overheads / count)} us to start, "
        "and the next reads again what the one before wrote.",
    )


def _of_host(host: Sequence[HostCost]) -> Iterator[PossibleChange]:
    for x in host:
        place = f"Line {x.line}" if x.line else "The answer"
        times = "once" if x.count == 1 else f"{x.count:,} times"
        yield PossibleChange(
            x.time_us,
            f"{place} calls {texts.clean(x.op, 60)} {times} beside the kernels, {texts.micros(x.time_us)} us on the device: "
            "let the kernel read the tensor as it lies, through its strides, and cast or fill what it loads.",
        )
