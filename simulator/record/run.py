"""The Run record: what one run of a kernel (or of an operator of several kernels) found out.

A `Run` holds one `Launch` per kernel launch, in order, and what is known about the whole. Reports only read it. It is plain
data: numbers, strings, lists, and numpy arrays for the timeline; `record/saving.py` saves it as JSON + npz.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..device import TRITON_ASCEND
from ..errors import UsageError
from ..messages import FAULT, Message, as_message
from .frames import data_frame
from .kernel_metadata import KernelMetadata, ub_bits_asked
from .later import made_when_read
from .lazy_views import ShownRecord, write
from .no_assembly import NoAssembly
from .outputs import Written
from .slowing import Slowing

if TYPE_CHECKING:
    from ..precision.metrics import ErrorReport

FIGURES = ("kernel", "time_us", "overhead_us", "cycles", "cores_used", "cores", "programs", "instructions")
INTERVAL_PERCENT = 90  # of measured times lie in the interval that is told
# Begins a launch's note; keys follow.
ASSUMED_FIGURES = "nobody published these figures, they are assumed (grade D): "


@dataclass(frozen=True)
class LineCost:
    """Cycles of one source line.

    cycles: the line's part of a core's elapsed time (mean over the cores that worked): busy pipes share the time evenly,
    while none is busy the last one that was is charged. All lines and `other_cycles` of the launch (dispatch, idle at
    the end) add up to the launch's cycles.
    busy: pipe -> cycles that the line kept the pipe busy (mean over the cores that worked).
    stalls: pipe -> reason -> cycles that the pipe was free before instructions of the line, by what they waited for (mean,
    likewise); "bandwidth" is part of busy. Summed over all lines they are `Pipe.stalls`, but for tail, dispatch and idle.
    """

    file: str
    line: int
    source: str
    cycles: float
    busy: dict[str, float]
    stalls: dict[str, dict[str, float]] = field(default_factory=dict)


SHARED = "bandwidth"  # the reason that is part of busy


@dataclass(frozen=True)
class Pipe:
    """busy_cycles: mean over the cores that worked. share: of the launch's cycles. stalls: reason -> cycles, likewise.

    Reasons are those of `Timeline`; "tail": the pipe has nothing more to do in its program; "dispatch": the core takes its
    next program; "idle": the core is done and others are not. These and busy_cycles add up to the launch's cycles.
    "bandwidth" is part of busy_cycles: what transfers took longer because they shared it. `waits` has the others alone.
    core_busy, core_waits: core by core the busy cycles, and those of data, buffer, flag and issue together; empty where no
    timeline was asked for.
    core_conflicts: of Vector units, core by core the busy cycles that bank conflicts of UB added: "bank group", where the
    sources of an instruction share a group of banks, and "bank", where its result goes to a bank that is being read.
    """

    busy_cycles: float
    share: float
    stalls: dict[str, float] = field(default_factory=dict)
    core_busy: tuple[float, ...] = ()
    core_waits: tuple[float, ...] = ()

    @property
    def waits(self) -> dict[str, float]:
        """Cycles in which the pipe was free, by reason: with `busy_cycles` they add up to the launch's cycles."""
        return {reason: cycles for reason, cycles in self.stalls.items() if reason != SHARED}

    @property
    def shared_cycles(self) -> float:
        """Of `busy_cycles`, what transfers took longer because they shared bandwidth."""
        return self.stalls.get(SHARED, 0.0)

    core_conflicts: dict[str, tuple[float, ...]] = field(default_factory=dict)


MOST_COPIES = 64  # of a value whose places are told: a record may hold any number


@dataclass(frozen=True)
class LiveValue:
    """One value that is alive at a buffer's peak: bytes are for one copy. shape, dtype: empty of a buffer that is no tile of
    the kernel. offset: where it begins; offsets: where each copy does, empty where one follows the other. why: what it is
    there for ("tile", "carried", "scratch", "broadcast", "widened operand", "comparison", "stride padding", "product in UB",
    ...), "" in old records.
    """

    name: str
    file: str
    line: int
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    copies: int
    offset: int
    why: str = ""
    offsets: tuple[int, ...] = ()

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """(first byte, behind the last) of each copy."""
        firsts = self.offsets or tuple(
            self.offset + k * self.bytes for k in range(min(self.copies, MOST_COPIES))
        )
        return tuple((first, first + self.bytes) for first in firsts)


@dataclass(frozen=True)
class Buffer:
    """peak_bytes: highest address used when the values are packed, which is what has to fit. peak: the values alive there,
    largest first. steps: bytes alive after each step of the program, as (line, bytes). held: (cycle, bytes that hold a
    value from then on), on the core with most instructions in the timeline and as far as that goes; empty where there is
    none, and of L0A and L0B. placed_bytes: highest address used in fact, as values share no bytes where there is room; 0
    where nobody says. freed: a single change, tried -> peak_bytes with it, least first; empty where not asked for.
    """

    peak_bytes: int
    capacity_bytes: int
    peak: tuple[LiveValue, ...] = ()
    steps: tuple[tuple[int, int], ...] = ()
    held: tuple[tuple[float, int], ...] = ()
    placed_bytes: int = 0
    freed: dict[str, int] = field(default_factory=dict)

    @property
    def used_bytes(self) -> int:
        """Highest address used, in fact or when packed."""
        return max(self.placed_bytes, self.peak_bytes)

    @property
    def alive_bytes(self) -> int:
        """Of the values at the peak; what `peak_bytes` has beyond lies in holes between them."""
        return sum(v.bytes * v.copies for v in self.peak)

    @property
    def holes(self) -> tuple[tuple[int, int], ...]:
        """(first byte, behind the last) of what lies between and above the values at the peak; empty where values are spread
        over more than they need, as their places then are not those of the plan that has to fit."""
        if self.placed_bytes > self.peak_bytes or not self.peak:
            return ()
        out, free = [], 0
        for first, last in sorted(span for v in self.peak if v.bytes for span in v.spans):
            if first > free:
                out.append((free, first))
            free = max(free, last)
        return tuple(out if free >= self.peak_bytes else [*out, (free, self.peak_bytes)])


@dataclass(frozen=True)
class Timeline:
    """Instructions of a launch, in the order in which they were computed: parallel arrays, one entry for each.

    All of them, or those of some cores from start to end: the slowest, the first, the last, then others; where the slowest
    core alone has too many, its first ones. Records of earlier versions have the first ones of all cores.

    pipe indexes `pipes`, line indexes `Launch.lines`, name indexes `names` (the operation, or the path of a transfer).
    start, end: cycles between which the pipe is taken; done: when the result can be used. bytes: of a transfer, else 0.
    program, record: which program of the launch, and which of its instructions.

    gap: cycles for which the pipe had been free before `start`, since its instruction before of the same program (the
    program's start, if there is none). reason indexes `reasons` and says what the gap waited for, -1 where there is no gap:

        data       another instruction's result
        buffer     another instruction that still used the buffer
        flag       a flag, a barrier, or a pipe that has to be done before a flag is set
        issue      the scalar unit, which issues instructions in order into queues of limited length

    waited: the instruction that the gap waited for, as an index of these arrays (so `line[waited[i]]` is its source line and
    `end[waited[i]]` when it was over); -1 if there is no gap, no such instruction, or it is not in the timeline. Of an issue
    it is what the scalar unit had waited for last. bandwidth: cycles at the end of a transfer (part of start to end) that
    sharing bandwidth with others added.

    complete: whether these are all instructions of the launch. until: every instruction of a core in `core` that starts
    before that cycle is here. The arrays from gap on are None in records that an earlier version wrote.
    """

    pipes: tuple[str, ...]
    core: np.ndarray
    pipe: np.ndarray
    program: np.ndarray
    record: np.ndarray
    line: np.ndarray
    start: np.ndarray
    end: np.ndarray
    done: np.ndarray
    complete: bool
    gap: np.ndarray | None = None
    reason: np.ndarray | None = None
    waited: np.ndarray | None = None
    bandwidth: np.ndarray | None = None
    bytes: np.ndarray | None = None
    name: np.ndarray | None = None
    reasons: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    until: float = 0.0

    def select(self, core: int, pipe: int) -> np.ndarray:
        """Indexes of the instructions of one pipe of one core, in the order of time."""
        found = np.flatnonzero((self.core == core) & (self.pipe == pipe))
        return found[np.lexsort((self.record[found], self.program[found], self.start[found]))]


@dataclass(frozen=True)
class Roof:
    """What a launch asks of a unit or of a path to memory. amount: in `unit` ("operations" or "bytes"), all cores together.
    per_us: the most that all cores get there in one us."""

    amount: float
    unit: str
    per_us: float


@dataclass(frozen=True)
class SourceText:
    """The text of a function, from its first line in the file on."""

    file: str
    first_line: int
    text: str


@made_when_read
@dataclass(frozen=True)
class Launch:
    """One kernel launch. cycles are of the AI Core clock, without the launch overhead; time_us is with it.

    bounds: name -> least time in us that this limit alone would allow. lines: dearest first.
    resources: "HBM", "L2" -> bytes that passed. warnings: messages for the user. notes: cost figures that had to be taken
    from the nearest documented row, and choices of the model that matter for this launch.
    grades: grade of the figures (A document, B measurement, C third party, D assumed) -> us of `time_us` that rest on it.
    low_us, high_us: between them lie `INTERVAL_PERCENT` % of measured times, by the errors of kernels that were measured;
    None where `details` are not asked for. measured_rows: how many of those ran on cores like these; None in older records,
    whose ends are those of what was published for every figure.
    lifted: limit ("HBM", "L2", a pipe, "buffers", "flags", "dispatch", "launch") -> time in us without it and all else the
    same; empty where not asked for.
    roofs: "Vector fp32", "Cube fp16", "HBM", "L2", "GM to UB" ... -> what was asked of it and what it gives at most.
    sources: the functions whose lines were charged; core_cycles: core by core when its last program was done, 0 for a core
    without any. core_bytes: unit and path ("AIV.GM to UB") -> core by core the bytes that it moved. directions: tensor
    argument -> "in", "out" or "in out", what the kernel does with it. All four are empty where no timeline was asked for.
    compiler: who made the code: "triton-ascend 9.0", "triton-ascend 8.5" or "ascendc"; empty in older records.
    l2_left_bytes: what the launch wrote that is still only in L2 at its end: the launches after it have to write it to
    memory. None in older records. slowing: what the compiler makes of lines that costs time, in the order of the source.
    """

    kernel: str
    grid: tuple[int, int, int]
    constants: dict[str, Any]
    arguments: dict[str, str]
    cycles: float
    time_us: float
    overhead_us: float
    cores_used: int
    cores: int
    programs: int
    instructions: int
    pipes: dict[str, Pipe]
    buffers: dict[str, Buffer]
    lines: tuple[LineCost, ...]
    other_cycles: float
    bounds: dict[str, float]
    resources: dict[str, float]
    warnings: tuple[Message, ...] = ()
    notes: tuple[str, ...] = ()
    timeline: Timeline | None = None
    grades: dict[str, float] = field(default_factory=dict)
    low_us: float | None = None
    high_us: float | None = None
    measured_rows: int | None = None
    lifted: dict[str, float] = field(default_factory=dict)
    roofs: dict[str, Roof] = field(default_factory=dict)
    sources: tuple[SourceText, ...] = ()
    core_cycles: tuple[float, ...] = ()
    core_bytes: dict[str, tuple[float, ...]] = field(default_factory=dict)
    directions: dict[str, str] = field(default_factory=dict)
    compiler: str = ""
    l2_left_bytes: float | None = None
    slowing: tuple[Slowing, ...] = ()

    @property
    def working_us(self) -> float:
        """Time without the launch overhead, in us: that of `cycles`."""
        return self.time_us - self.overhead_us

    @property
    def us_per_cycle(self) -> float:
        """Of the AI Core clock; NaN for a launch of 0 cycles."""
        return self.working_us / self.cycles if self.cycles else math.nan

    @property
    def bound(self) -> tuple[str, float]:
        """The largest bound and its time in us."""
        name = max(self.bounds, key=lambda n: self.bounds[n])
        return name, self.bounds[name]

    def record(self) -> dict[str, Any]:
        """Its figures as one line of a table: time, cores, bound, busy cycles of each pipe, peaks of buffers, traffic."""
        out = {n: getattr(self, n) for n in FIGURES} | {"grid": "x".join(map(str, self.grid))}
        out |= {"bound": self.bound[0], "bound_us": self.bound[1]} if self.bounds else {}
        out |= {f"{n}_busy_cycles": p.busy_cycles for n, p in self.pipes.items()}
        out |= {f"{n}_peak_bytes": b.peak_bytes for n, b in self.buffers.items()}
        return out | {f"{n}_bytes": x for n, x in self.resources.items()}


@dataclass(frozen=True)
class Run(ShownRecord):
    """One run. `launches` is empty when only values were asked for; `errors` when only time was.

    product: the product's data (`Product.to_dict()`); options: every choice that the numbers depend on;
    of those that are seldom made (`l0_tile`, `unit_flag`, `tile_mix_cube_loop`, ...) the unusual ones.
    changes: change of one knob of an operator ("rows 1 -> 2") -> time in us with it, best first; empty unless asked for.
    untried: knob, or knob with a value ("ROWS=64"), -> why that was not timed; likewise.
    outputs are not saved.
    """

    name: str
    product: dict[str, Any]
    options: dict[str, Any]
    launches: tuple[Launch, ...]
    errors: dict[str, ErrorReport] = field(default_factory=dict)
    changes: dict[str, float] = field(default_factory=dict)
    untried: dict[str, str] = field(default_factory=dict)
    op: str | None = None
    case: str | None = None
    dtype: str | None = None
    cube_math_type: str = "KEEP_DTYPE"
    tiling: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    values_seconds: float | None = None
    time_seconds: float | None = None
    # What the values showed, such as two programs storing to one address.
    value_warnings: tuple[Message, ...] = ()
    # Output -> "file:line" -> share of its error that the roundings of that line make up; they add up to one.
    error_lines: dict[str, dict[str, float]] = field(default_factory=dict)

    def wrote(self, tensors: Written) -> Run:
        """The same record, which knows the tensors that its launch wrote."""
        object.__setattr__(self, "_written", tensors)
        return self

    @property
    def written(self) -> tuple[str, ...]:
        """Names of the tensors that the launch wrote; none of a run that was loaded or only timed."""
        return tuple((getattr(self, "_written", None) or Written()).kept)

    def compare_with(self, **right: Any) -> Run:
        """Put errors against references of your own into `errors`; gives the run.

        Args:
            right: an array of the tensor's shape (float64, say) by the name of the parameter that the kernel writes:
                `run.compare_with(out=expected)`. Compared is what the tensor holds now. Lines in `error_lines` are those of
                errors against float64, so of these tensors they are dropped.

        Raises `UsageError` for a name that the kernel does not write, another shape, a run that was loaded or only timed.
        """
        known: Written = getattr(self, "_written", None) or Written()
        self.errors.update(known.errors(self.name, right))
        for name in right:
            self.error_lines.pop(name, None)
        self.options["errors"] = "against the reference that was given"
        return self

    @property
    def cycles(self) -> float:
        """Cycles of all launches."""
        return sum(x.cycles for x in self.launches)

    @property
    def time_us(self) -> float:
        """Time of all launches with their overheads, in us."""
        return sum(x.time_us for x in self.launches)

    @property
    def l2_left_bytes(self) -> float | None:
        """What is only in L2 when the last launch is over; None where nobody says."""
        return self.launches[-1].l2_left_bytes if self.launches else None

    @property
    def grades(self) -> dict[str, float]:
        """Grade of the figures -> us of the time of all launches that rest on it."""
        return add_up(x.grades for x in self.launches)

    @property
    def interval_us(self) -> tuple[float, float] | None:
        """What `INTERVAL_PERCENT` % of measured times lie in; None unless all launches know: of a what-if none
        does, nor do older records.

        Launches of one run rest on the same figures, so their errors are taken to go the same way: their ends add up.
        """
        ends = [(x.low_us, x.high_us) for x in self.launches if x.measured_rows is not None]
        low, high = [a for a, _ in ends if a is not None], [b for _, b in ends if b is not None]
        return (sum(low), sum(high)) if low and len(low) == len(high) == len(self.launches) else None

    @property
    def measured_rows(self) -> int:
        """How many kernels were measured on cores like these, by whose errors the interval was made."""
        return min((x.measured_rows or 0 for x in self.launches), default=0)

    @property
    def lifted(self) -> dict[str, float]:
        """Limit -> time of all launches in us without it, least first; empty unless all launches know."""
        if not all(x.lifted for x in self.launches):
            return {}
        names = dict.fromkeys(n for x in self.launches for n in x.lifted)
        times = {n: sum(x.lifted.get(n, x.time_us) for x in self.launches) for n in names}
        return dict(sorted(times.items(), key=lambda item: item[1]))

    @property
    def bounds(self) -> dict[str, float]:
        """Bound by bound, the sum over the launches in us."""
        return add_up(x.bounds for x in self.launches)

    @property
    def bound(self) -> tuple[str, float]:
        """The largest bound and its time in us."""
        bounds = self.bounds
        name = max(bounds, key=lambda n: bounds[n])
        return name, bounds[name]

    @property
    def pipes(self) -> dict[str, Pipe]:
        """Pipe by pipe, cycles summed over the launches; shares are of `cycles`."""
        busy = add_up({n: p.busy_cycles for n, p in x.pipes.items()} for x in self.launches)
        total = self.cycles or 1.0
        stalls = {n: add_up(x.pipes[n].stalls for x in self.launches if n in x.pipes) for n in busy}
        return {n: Pipe(b, b / total, stalls[n]) for n, b in busy.items()}

    @property
    def buffers(self) -> dict[str, Buffer]:
        """Each buffer at the launch where its peak is highest."""
        out: dict[str, Buffer] = {}
        for x in self.launches:
            for n, b in x.buffers.items():
                if n not in out or b.peak_bytes > out[n].peak_bytes:
                    out[n] = b
        return out

    @property
    def lines(self) -> tuple[LineCost, ...]:
        """Source lines of all launches, dearest first."""
        return tuple(sorted((y for x in self.launches for y in x.lines), key=lambda y: -y.cycles))

    @property
    def warnings(self) -> tuple[Message, ...]:
        """What the launches and their values are warned of, each text once."""
        every = (*(w for x in self.launches for w in x.warnings), *self.value_warnings)
        return tuple(dict.fromkeys(map(as_message, every)))

    @property
    def faults(self) -> tuple[Message, ...]:
        """The warnings of what is wrong or undefined on the device, `what_ifs` among them."""
        return tuple(w for w in self.warnings if w.kind == FAULT)

    @property
    def what_ifs(self) -> tuple[Message, ...]:
        """Those of `faults` that say what the product lacks: no board of it computes this run."""
        return tuple(w for w in self.faults if w.is_what_if)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the launches note, each once; the assumed figures of all of them in one note."""
        every = dict.fromkeys(w for x in self.launches for w in x.notes)
        assumed = [w for w in every if w.startswith(ASSUMED_FIGURES)]
        keys = dict.fromkeys(k for w in assumed for k in w.removeprefix(ASSUMED_FIGURES).split(", "))
        together = (f"{ASSUMED_FIGURES}{', '.join(keys)}",) if keys else ()
        return (*(w for w in every if w not in assumed), *together)

    def to_dataframe(self) -> Any:
        """A pandas DataFrame with a row for each launch (see `Launch.record`); needs the extra `tables`."""
        return data_frame([x.record() for x in self.launches])

    def trace(self, path: str | Path, style: str = "perfetto", **choice: Any) -> None:
        """Write the timeline to `path` as JSON for a trace viewer.

        Args:
            style: "perfetto" (ui.perfetto.dev, chrome://tracing) or "insight" (MindStudio Insight).
            choice: `window_us` (from, to): only what runs then; `limit`: at most so many instructions.
        """
        write("trace", self, path, style, **choice)

    @property
    def asm(self) -> NoAssembly:
        """Empty, where Triton has the stages of compilation; asking for one says what to use instead."""
        return NoAssembly(self.name)

    @property
    def metadata(self) -> KernelMetadata:
        """Of the first launch, as Triton's compiled kernels have it. Raises `UsageError` for a run that was not timed."""
        if not self.launches:
            raise UsageError(f"{self.name}.metadata: the run was not timed (time=False); launch it with time")
        launch = self.launches[0]
        told = ub_bits_asked() and launch.compiler.startswith(TRITON_ASCEND) and "UB" in launch.buffers
        bits = 8 * launch.buffers["UB"].used_bytes if told else 0
        return KernelMetadata(launch.kernel, launch.kernel, bits)

    def save(self, path: str | Path) -> None:
        """Write the record to `path`; an existing file is replaced only once the new one is whole."""
        from .saving import save_run  # not before: a launch does not need it

        save_run(self, path)

    def __repr__(self) -> str:
        """One line; `print(run)` shows the whole."""
        about = (self.op or self.name, self.case, self.dtype, f"on {self.product.get('name')}")
        took = f": {self.time_us:.4g} us" if self.launches else ""
        return f"<Run {' '.join(w for w in about if w)}{took}>"


def add_up(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Name by name, the sum of the parts that have it; names in the order in which they are met."""
    out: dict[str, float] = {}
    for part in parts:
        for n, x in part.items():
            out[n] = out.get(n, 0.0) + x
    return out
