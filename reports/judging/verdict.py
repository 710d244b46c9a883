"""What a judge says of an answer: one record, a superset of KernelBench's result, and its JSON.

    verdict = ascendtile.judge("1_matmul.py", "answer.py")
    verdict.verdict, verdict.time_us, verdict.suggestion
    Verdict.from_json(verdict.to_json()) == verdict

Two judgements of the same task, answer and options are equal byte for byte: no wall time, path of the machine or
number of a process is in it. The form is in schema.json beside this file (JSON Schema 2020-12). JSON has no NaN and no
infinity: such figures are the texts "NaN", "Infinity", "-Infinity".
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

from ...simulator.errors import UsageError
from ...simulator.record.codec import Encoder, decode_plain

SCHEMA = "ascendtile-verdict/1"

CORRECT, SO_FAR, TIMED = "correct", "correct_so_far", "timed"
WRONG, CHEAT, NOT_COMPILED, NO_FIT = "wrong", "cheat", "not_compiled", "does_not_fit"
FAILED, DEFERRED = "failed", "deferred"
ACCEPTED = (CORRECT, SO_FAR, TIMED)
# From the worst to the best: of several cases the worst one is the verdict.
VERDICTS = (CHEAT, NOT_COMPILED, NO_FIT, FAILED, WRONG, DEFERRED, TIMED, SO_FAR, CORRECT)


@dataclass(frozen=True, kw_only=True)
class Cheat:
    """A way around the task, by its name in the catalogue of `ascendtile.reports.judging.cheats`."""

    name: str
    message: str  # what was done, in a sentence
    line: int | None = None  # of the answer's file
    evidence: str = ""  # the text of the line, or the figures that show it


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """When an output passes: |got - want| <= atol + rtol |want| in all elements but a share of `outside`.

    absolute_below: where |want| is at most that, |got - want| <= rtol is enough, too. any_form: whether shape and dtype may
    be others than the task's, as long as there are as many elements.
    """

    rtol: float
    atol: float
    outside: float  # 0 to 1; 0: every element must pass
    absolute_below: float = 0.0
    any_form: bool = False
    source: str  # whose rule it is


@dataclass(frozen=True, kw_only=True)
class ComparedOutput:
    """Errors of one output against the reference in float64. Figures are over all judged calls.

    dtype: of the answer's output, in numpy's words. max_ulp: in units in the last place of that dtype; null for integers
    and booleans. worst: index of the element with the largest absolute error, and `got` and `want` there. outside: how
    many of the `checked` elements are beyond the tolerance. message: what is wrong with shape, dtype or values; of one that
    passed what its benchmark lets pass, else "".
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    elements: int
    checked: int
    tolerance: Tolerance
    passed: bool
    max_abs: float | None = None
    max_rel: float | None = None
    mean_abs: float | None = None
    max_ulp: float | None = None
    worst: tuple[int, ...] | None = None
    got: float | None = None
    want: float | None = None
    outside: int = 0
    message: str = ""

    @classmethod
    def from_json(cls, data: Any) -> ComparedOutput:
        """As it is within the JSON of a verdict."""
        found: ComparedOutput = decode_plain(data, cls, "output")
        return found


@dataclass(frozen=True, kw_only=True)
class ReferencePart:
    """One operator of the task. kind: "vendor" (our cost of the vendor's kernel) or "floor" (no kernel can be faster)."""

    op: str
    time_us: float
    kind: str
    source: str


@dataclass(frozen=True, kw_only=True)
class ReferenceTime:
    """Time of the task's own operators, one after another. kind: "vendor", "floor", or "mixed" where its parts differ."""

    time_us: float
    kind: str
    parts: tuple[ReferencePart, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NearestBound:
    """The lower bound of the run that is nearest to its time. share: bound / time, 0 to 1."""

    name: str
    time_us: float
    share: float


@dataclass(frozen=True, kw_only=True)
class BufferFit:
    """The Unified Buffer at its worst point over all launches; message: the vendor's words, or "" where it fits."""

    bits: int
    available_bits: int
    peak_bytes: int
    fits: bool
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class DearLine:
    """The line of the answer that costs most. share: of the time of all launches, 0 to 1; why: what it waits for or does."""

    file: str  # name without folder
    line: int
    text: str
    share: float
    us: float
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class LaunchTime:
    """Launches of one kernel with one grid and one time. time_us, cycles: of one of them; count: how many there were."""

    kernel: str
    grid: tuple[int, ...]
    time_us: float
    cycles: int
    count: int


@dataclass(frozen=True, kw_only=True)
class HostCost:
    """What the answer does beside its launches: kind is "create", "view", "move" or "compute"; time_us: of all `count`."""

    op: str
    count: int
    time_us: float
    kind: str
    line: int | None = None


@dataclass(frozen=True, kw_only=True)
class CaseVerdict:
    """One case of the task. inputs: shapes and dtypes in words; message: why, in a sentence."""

    index: int
    inputs: str
    verdict: str
    message: str = ""
    time_us: float | None = None
    reference_us: float | None = None
    floor_us: float | None = None
    outputs: tuple[ComparedOutput, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the judge says of an answer to a task.

    verdict: one of `VERDICTS`. "correct": all values of all cases; "correct_so_far": at the positions that were looked at;
    "timed": no values were asked; "wrong": values, shape or dtype; "cheat": refused, see `cheats`; "not_compiled";
    "does_not_fit": a buffer overflows; "failed": it raised, hung, was killed or went over a limit; "deferred": the model
    does not know.

    Keys of KernelBench (KernelExecResult in src/kernelbench/eval.py at 423217d9) with their meanings: compiled;
    correctness (null where it was not judged); metadata; runtime, ref_runtime in ms as its timing.py gives them, -1.0
    without; runtime_stats, ref_runtime_stats (mean, std, min, max in ms, num_trials, hardware, device).

    time_us: launches and host operations of one call, summed over the cases; interval_us: where a board's time is
    expected; cycles: of the launches; speedup: reference / time. floor_us: no kernel on this product can be faster;
    distance: time / bound. faults: what is wrong or undefined on the device. confidence: "high", "medium", "low" or
    "defer" (ask a board). suggestion: one sentence. Names without unit have none; null is what there is no figure for.
    """

    verdict: str
    message: str
    compiled: bool
    product: str
    correctness: bool | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    runtime: float = -1.0
    runtime_stats: dict[str, Any] = field(default_factory=dict)
    ref_runtime: float = -1.0
    ref_runtime_stats: dict[str, Any] = field(default_factory=dict)
    time_us: float | None = None
    interval_us: tuple[float, float] | None = None
    cycles: int | None = None
    speedup: float | None = None
    reference: ReferenceTime | None = None
    floor_us: float | None = None
    bound: NearestBound | None = None
    distance: float | None = None
    outputs: tuple[ComparedOutput, ...] = ()
    ub: BufferFit | None = None
    line: DearLine | None = None
    faults: tuple[str, ...] = ()
    cheats: tuple[Cheat, ...] = ()
    confidence: str = "defer"
    confidence_reason: str = ""
    suggestion: str = ""
    launches: tuple[LaunchTime, ...] = ()
    host_ops: tuple[HostCost, ...] = ()
    cases: tuple[CaseVerdict, ...] = ()
    schema: str = SCHEMA

    @property
    def accepted(self) -> bool:
        """Whether nothing speaks against the answer: exit status 0 of `ascendtile judge`, 1 otherwise."""
        return self.verdict in ACCEPTED

    def to_json(self) -> dict[str, Any]:
        """As plain data for JSON, the schema first."""
        data: dict[str, Any] = Encoder({}).encode(self, Verdict)
        return {"schema": data.pop("schema"), **data}

    @classmethod
    def from_json(cls, data: Any) -> Verdict:
        """What `to_json` wrote; `UsageError` names what does not fit."""
        found = data.get("schema") if isinstance(data, dict) else None
        if found != SCHEMA:
            raise UsageError(f"a verdict must be an object with schema {SCHEMA!r}, this one has {found!r}")
        verdict: Verdict = decode_plain(data, cls, "")
        if verdict.verdict not in VERDICTS:
            raise UsageError(f"verdict is {verdict.verdict[:40]!r}; it must be one of {', '.join(VERDICTS)}")
        return verdict


@lru_cache(maxsize=1)
def verdict_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of `Verdict.to_json`."""
    schema: dict[str, Any] = json.loads(files(__package__).joinpath("schema.json").read_text("utf-8"))
    return schema
