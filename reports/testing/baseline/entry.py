"""What a baseline keeps of the runs that a test asserts: as much as the difference to later runs needs, and no more.

Figures are those of `Run`; lines have their file's name without folders, so that a baseline is the same on every machine.
Two entries are compared as two runs are (`reports/facts/differences.py`), by lines, pipes, waits, bounds and buffers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import PurePath
from typing import Any

import ascendtile

from ....simulator.errors import UsageError
from ....simulator.messages import Message
from ....simulator.precision.numeric_switches import FIXED, SWITCHES
from ....simulator.record.checks import check_figures
from ....simulator.record.codec import Encoder, decode_plain
from ....simulator.record.run import Buffer, Launch, LineCost, Pipe, Run, add_up
from ...facts import facts, texts
from ...facts.authors import compiler
from ...facts.differences import LEAST_US, RunDifference, said
from ...facts.repeat_command import CHOSEN, OF_FILE

CAUSES = ("buffer", "flag", "bandwidth")  # waits that are more than what follows from other work
USUAL_NUMERICS = {f"option {n}" for n in (*SWITCHES, *FIXED)}
MUCH_THE_SAME = 0.6  # of the characters of two texts: one was edited into the other
LONGEST = 200  # of a text
MOST_FAULTS = 20


@dataclass(frozen=True, kw_only=True)
class BaselineEntry:
    """Figures of one assert: of all its launches together.

    ascendtile: the version that made it. kernel: its name, of several kernels all names. settings: choices and arguments as
    texts, such as {"tiling BLOCK": "4096", "x_ptr": "fp16[100000]"}. lines: "file.py:12  text" -> cycles. busy: pipe ->
    cycles; waits: pipe -> reason -> cycles, of the reasons in `CAUSES`. bounds: in us. buffers: name -> bytes at the
    peak, and bytes that there are. faults: texts of what is wrong or undefined on the device.
    """

    ascendtile: str
    kernel: str
    product: str
    compiler: str
    cycles: float
    time_us: float
    overhead_us: float
    launches: int
    settings: dict[str, str]
    lines: dict[str, float]
    busy: dict[str, float]
    waits: dict[str, dict[str, float]]
    bounds: dict[str, float]
    buffers: dict[str, tuple[int, int]]
    faults: tuple[str, ...]

    @classmethod
    def of(cls, run: Run) -> BaselineEntry:
        """What is kept of a run with times."""
        pipes = run.pipes
        waits = {n: _figures({r: p.stalls.get(r, 0.0) for r in CAUSES}) for n, p in pipes.items()}
        return cls(
            ascendtile=ascendtile.__version__,
            kernel=texts.clean(run.op or run.name, LONGEST),
            product=facts.product_name(run),
            compiler=compiler(run),
            cycles=run.cycles,
            time_us=run.time_us,
            overhead_us=sum(x.overhead_us for x in run.launches),
            launches=len(run.launches),
            settings=_settings(run),
            lines=_figures(add_up({_line(x): x.cycles} for x in run.lines)),
            busy=_figures({n: p.busy_cycles for n, p in pipes.items()}),
            waits={n: w for n, w in waits.items() if w},
            bounds=_figures(run.bounds),
            buffers={n: (b.peak_bytes, b.capacity_bytes) for n, b in run.buffers.items()},
            faults=tuple(map(_fault, run.faults[:MOST_FAULTS])),
        )

    @property
    def ub_bytes(self) -> int | None:
        """Bytes of the Unified Buffer at its peak; None of a kernel that does not use it."""
        return self.buffers["UB"][0] if "UB" in self.buffers else None

    def run(self) -> Run:
        """A record with these figures, for the views of differences. Cores, programs and instructions are not kept: 0."""
        lines = tuple(LineCost(*_place(name), cycles, {}) for name, cycles in self.lines.items())
        pipes = {
            n: Pipe(busy, facts.share(busy, self.cycles), self.waits.get(n, {}))
            for n, busy in self.busy.items()
        }
        launch = Launch(
            kernel=self.kernel,
            grid=(0, 0, 0),
            constants={},
            arguments={},
            cycles=self.cycles,
            time_us=self.time_us,
            overhead_us=self.overhead_us,
            cores_used=0,
            cores=0,
            programs=0,
            instructions=0,
            pipes=pipes,
            buffers={n: Buffer(*sizes) for n, sizes in self.buffers.items()},
            lines=lines,
            other_cycles=self.cycles - sum(self.lines.values()),
            bounds=self.bounds,
            resources={},
            compiler=self.compiler,
        )
        about = {"launches": str(self.launches), **self.settings}
        return Run(self.kernel, {"name": self.product}, {}, (launch,), inputs=about)

    def to_json(self) -> dict[str, Any]:
        """Plain data; `from_json` reads it."""
        plain: dict[str, Any] = Encoder({}).encode(self, BaselineEntry)
        return plain

    @classmethod
    def from_json(cls, data: Any, where: str) -> BaselineEntry:
        """Raises `UsageError`, which names the field below `where`, for data that no run has."""
        entry: BaselineEntry = decode_plain(data, BaselineEntry, where)
        try:
            check_figures(entry.run())
        except UsageError as error:
            raise UsageError(f"{where} {error}") from None
        return entry


def difference(before: BaselineEntry, after: BaselineEntry) -> RunDifference:
    """The parts of the time that came and went. A line that was edited is one line, as it reads now."""
    edited = _edited(before.lines, after.lines)
    first = replace(before, lines={edited.get(name, name): x for name, x in before.lines.items()})
    return RunDifference.of(first.run(), after.run())


def _edited(before: Iterable[str], after: Iterable[str]) -> dict[str, str]:
    """Old name -> new one, of lines that stand between the same neighbours, with texts that are much the same.

    A text that the other side has as well was moved, not edited.
    """
    old, new = _in_order(before), _in_order(after)
    a, b = ([text for _, text in side] for side in (old, new))
    found: dict[str, str] = {}
    for what, i, i_end, j, j_end in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if what == "replace" and i_end - i == j_end - j:
            pairs = zip(old[i:i_end], new[j:j_end], strict=True)
            found |= {was: now for (was, x), (now, y) in pairs if x not in b and y not in a and _alike(x, y)}
    return found


def _in_order(lines: Iterable[str]) -> list[tuple[str, tuple[str, str]]]:
    """Names with file and text, as they stand in the files."""
    placed = sorted((_place(name), name) for name in lines)
    return [(name, (file, text)) for (file, _, text), name in placed]


def _alike(old: tuple[str, str], new: tuple[str, str]) -> bool:
    ratio = SequenceMatcher(None, old[1], new[1], autojunk=False).ratio()
    return old[0] == new[0] and ratio >= MUCH_THE_SAME


def same_figures(a: BaselineEntry, b: BaselineEntry) -> bool:
    """Whether all but the version that made them is equal."""
    return {**a.to_json(), "ascendtile": ""} == {**b.to_json(), "ascendtile": ""}


def same_kernel(a: BaselineEntry, b: BaselineEntry) -> bool:
    """Whether neither choices nor charged lines differ, so that what differs is ascendtile's."""
    sources = ({name.partition("  ")[2] for name in entry.lines} for entry in (a, b))
    return a.settings == b.settings and len({frozenset(s) for s in sources}) == 1


def _figures(given: dict[str, float]) -> dict[str, float]:
    """Nine digits: what a difference shows, and a file that reads well. What is 0 but for rounding is left out."""
    return {n: float(f"{x:.9g}") for n, x in given.items() if abs(x) > LEAST_US}


def _line(cost: LineCost) -> str:
    return texts.clean(f"{PurePath(cost.file).name}:{cost.line}  {cost.source.strip()}", LONGEST)


def _place(name: str) -> tuple[str, int, str]:
    """File, line and text of a key of `lines`."""
    place, _, source = name.partition("  ")
    file, _, line = place.rpartition(":")
    if not (file and line.isdecimal() and len(line) < 9):
        raise UsageError(f"lines: {texts.clean(name, 60)!r} is not FILE:LINE and two spaces before the text")
    return file, int(line), source


def _settings(run: Run) -> dict[str, str]:
    """Grid, and what the views of differences name as choices, without what is as usual or has a field of its own."""
    grids = dict.fromkeys("x".join(map(str, x.grid)) for x in run.launches)
    chosen = {n: x for n, x in said(run).items() if x not in ("-", "None") and not _is_usual(n, x)}
    return {n: texts.clean(x, LONGEST) for n, x in {"grid": ", ".join(grids), **chosen}.items()}


def _is_usual(name: str, value: str) -> bool:
    numeric = name in USUAL_NUMERICS and not value.endswith(CHOSEN) and OF_FILE not in value
    return numeric or name in ("product", "compiler", "operator", "option atomic_order", "option errors")


def _fault(message: Message) -> str:
    file_line = message.file_and_line
    place = f"{texts.place(*file_line)}: " if file_line else ""
    return texts.clean(place + message.what, LONGEST)
