"""What a run of a chain found: time by step, errors by tensor, and whether a need is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...simulator.messages import WHAT_IF
from ...simulator.precision.metrics import ErrorReport, json_value
from ...simulator.precision.need import Kept, KeptByOutput, Need
from ...simulator.record.files import picked
from ...simulator.record.lazy_views import PrintedRecord
from ..operator.messages import listed
from .assignment import USUAL_FORMAT, USUAL_MODE, Assignment
from .blame import ChainBlame
from .lowering import ChainCast

PLACE = ", which "  # in the message of a launch, behind what the product lacks
FIGURES = "effective_bits max_abs max_rel mean_rel rmse max_ulp nan_mismatch inf_mismatch"


@dataclass(frozen=True)
class TimedCast:
    """A launch that brings a tensor into another type, and its time."""

    cast: ChainCast
    time_us: float | None


@dataclass(frozen=True)
class StepRun:
    """A step as it ran. dtype: of its operator's inputs; mode: None where nothing is multiplied. time_us: of the operator,
    without the casts; None without time. launches: of the operator. what_ifs: what the product lacks for all of them."""

    name: str
    op: str
    dtype: str
    mode: str | None
    time_us: float | None
    launches: int | None
    casts: tuple[TimedCast, ...]
    what_ifs: tuple[str, ...] = ()

    @property
    def casts_us(self) -> float:
        """Time of the casts before and behind it."""
        return sum(c.time_us or 0.0 for c in self.casts)

    @property
    def total_us(self) -> float:
        """Time with the casts."""
        return (self.time_us or 0.0) + self.casts_us


@dataclass(frozen=True)
class TensorRun:
    """A tensor: its format, and its error against float64 of the numbers before any rounding, in ulp of `error.fmt`.

    lost: shares of the elements of the float64 result that its format makes infinite, NaN or its largest number
    (overflow), zero (underflow) or subnormal. None without values.
    """

    name: str
    format: str
    what_if: bool
    shape: tuple[int, ...]
    error: ErrorReport | None
    lost: Mapping[str, float] | None


@dataclass(frozen=True)
class ChainRun(KeptByOutput, PrintedRecord):
    """One assignment of a chain on one product.

    chosen: the assignment by as few names as it takes, groups among them; empty where all is as usual. values, exact:
    tensor -> what is stored, and float64 of the numbers before any rounding; empty without values. kept: what a need says
    of each output. data: seed and distribution; empty for given arrays.
    """

    chain: str
    title: str
    product: str
    sizes: Mapping[str, int]
    data: Mapping[str, Any]
    assignment: Assignment
    chosen: Mapping[str, str]
    outputs: tuple[str, ...]
    steps: tuple[StepRun, ...]
    tensors: Mapping[str, TensorRun]
    need: Need | None = None
    kept: Mapping[str, Kept] = field(default_factory=dict)
    blame: ChainBlame | None = None
    notes: tuple[str, ...] = ()
    values: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)
    exact: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def time_us(self) -> float | None:
        """Time of all launches, casts among them, in us; each operator as in a loop of its own. None without time."""
        return None if any(s.time_us is None for s in self.steps) else sum(s.total_us for s in self.steps)

    @property
    def words(self) -> str:
        """What is chosen, "weights=bf16 make_y=USE_HF32"."""
        told = " ".join(f"{n}={x}" for n, x in self.chosen.items())
        return told or f"everything in {USUAL_FORMAT}" + (
            f" with {USUAL_MODE}" if self.assignment.modes else ""
        )

    @property
    def errors(self) -> dict[str, ErrorReport]:
        """Errors of the outputs."""
        return {n: e for n in self.outputs if (e := self.tensors[n].error) is not None}

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `ascendtile chain --json`: these keys and no others."""
        return {
            **picked(self, "chain title product"),
            "sizes": dict(self.sizes),
            "data": dict(self.data),
            "chosen": dict(self.chosen),
            "formats": dict(self.assignment.formats),
            "modes": dict(self.assignment.modes),
            "time_us": self.time_us,
            "steps": [_step_data(s) for s in self.steps],
            "tensors": [_tensor_data(t) for t in self.tensors.values()],
            "outputs": list(self.outputs),
            "need": None if self.need is None else self.need.words,
            "passed": self.passed if self.need else None,
            "kept": {n: json_value(picked(k, "passed factor words")) for n, k in self.kept.items()},
            "blame": None if self.blame is None else json_value(self.blame.to_dict()),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        """One line."""
        bits = ", ".join(f"{n} {e.effective_bits:.3g} bits" for n, e in self.errors.items())
        time = "" if self.time_us is None else f"{self.time_us:.4g} us"
        return f"<ChainRun {self.chain} on {self.product}: {', '.join(x for x in (time, bits) if x)}>"


def _step_data(s: StepRun) -> dict[str, Any]:
    figures = "tensor source target reads what_if"
    casts = [{**picked(c.cast, figures), "shape": list(c.cast.shape), "time_us": c.time_us} for c in s.casts]
    return {**picked(s, "name op dtype mode time_us launches"), "casts": casts}


def _tensor_data(t: TensorRun) -> dict[str, Any]:
    error = None if t.error is None else {"ulp_of": t.error.fmt, **picked(t.error, FIGURES)}
    lost = None if t.lost is None else dict(t.lost)
    return {
        **picked(t, "name format what_if"),
        "shape": list(t.shape),
        "error": json_value(error),
        "lost": lost,
    }


def what_if_notes(
    steps: Iterable[StepRun], tensors: Mapping[str, TensorRun], product: str
) -> tuple[str, ...]:
    """That formats are a what-if, and what the launches say of it."""
    odd: dict[str, list[str]] = {}
    for t in tensors.values():
        if t.what_if:
            odd.setdefault(t.format, []).append(t.name)
    told = [
        f"{WHAT_IF}{product} does not store {name} ({listed(names)}): each step that makes or reads it has a cast of its own"
        for name, names in odd.items()
    ]
    said = {text.partition(PLACE)[0]: text for s in steps for text in s.what_ifs}  # of several places one
    return (*told, *said.values())
