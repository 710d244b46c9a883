"""What a precision study found: a row for each mode and data type, and which of them is enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...simulator.errors import UsageError
from ...simulator.messages import WHAT_IF
from ...simulator.precision.acceptance import RuleVerdict
from ...simulator.precision.metrics import ErrorReport
from ...simulator.precision.need import Kept, KeptByOutput, Need
from ...simulator.precision.places import Octave
from ...simulator.record.files import picked
from ...simulator.record.frames import data_frame
from ..operator.messages import listed
from .caveats import on_row
from .losses import OperandLosses

EXACT, ROUNDED = "exact_inputs", "rounded_inputs"
GOLDENS = (EXACT, ROUNDED)
FIGURES = "effective_bits max_abs mean_abs max_rel mean_rel rmse max_ulp p999_ulp overflow underflow subnormal nan_mismatch"


@dataclass(frozen=True)
class ModeRow(KeptByOutput):
    """One mode and data type.

    compute_dtype: what is multiplied (fp32, hf32, fp16, bf16), None if refused. status: 0, or that of the vendor's
    library. time_us: of the whole case. speedup: over float32 with KEEP_DTYPE, None where the product refuses that.
    errors, verdicts: by output, then by golden. reason: why it is refused, or what the library warns of. tiling: every knob
    as used. kept: what the need of the study says of each output, against the exact inputs. seed_bits: effective bits of
    each output with each seed, against the exact inputs; empty for one seed, whose errors the row has. operands: what
    becomes of each input in the format in which it is multiplied. octaves: errors of each output by the magnitude of the
    result from the exact inputs.
    """

    cube_math_type: str
    dtype: str
    compute_dtype: str | None
    output_dtypes: Mapping[str, str]
    status: int
    time_us: float | None = None
    speedup: float | None = None
    errors: Mapping[str, Mapping[str, ErrorReport]] = field(default_factory=dict)
    verdicts: Mapping[str, Mapping[str, tuple[RuleVerdict, ...]]] = field(default_factory=dict)
    reason: str = ""
    tiling: Mapping[str, Any] = field(default_factory=dict)
    kept: Mapping[str, Kept] = field(default_factory=dict)
    seed_bits: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    operands: Mapping[str, OperandLosses] = field(default_factory=dict)
    octaves: Mapping[str, tuple[Octave, ...]] = field(default_factory=dict)

    def __repr__(self) -> str:
        """One line; the fields have all."""
        bits = ", ".join(f"{n} {self.bits(n):.3g} bits" for n, by in self.errors.items() if EXACT in by)
        return f"<ModeRow {self.name}: {bits or self.reason or f'status {self.status}'}>"

    def bits(self, output: str, golden: str = EXACT) -> float:
        """Effective bits of an output against one of the goldens."""
        return self.errors[output][golden].effective_bits

    @property
    def name(self) -> str:
        """USE_HF32 with float32; e4m3 (what-if)"""
        return f"{self.dtype} (what-if)" if self.what_if else f"{self.cube_math_type} with {self.dtype}"

    @property
    def what_if(self) -> bool:
        """Whether the product lacks the format that is multiplied; `reason` says what is assumed."""
        return self.reason.startswith(WHAT_IF)


@dataclass(frozen=True)
class Study:
    """A table of rows; of a sweep, `value` is the point that it belongs to. numerics: the choices behind the values.

    tiling: that of all rows, None where each has its own. need: what the rows were asked to keep. seeds: how many sets of
    numbers were drawn.
    """

    op: str
    product: str
    case: str | None
    rows: tuple[ModeRow, ...]
    data: Mapping[str, Any]
    sample: str | None
    value: Any = None
    notes: tuple[str, ...] = ()
    numerics: Mapping[str, str] = field(default_factory=dict)
    tiling: Mapping[str, Any] | None = None
    need: Need | None = None
    seeds: int = 1

    @property
    def cheapest(self) -> ModeRow | None:
        """The fastest row that keeps the need, None if none does. Raises `UsageError` for a study without a need."""
        return Answer((self,)).cheapest

    @property
    def nearest(self) -> ModeRow | None:
        """The row that is nearest to keeping the need, whether or not it does; None where all are refused. Raises
        `UsageError` for a study without a need."""
        return Answer((self,)).nearest

    def front(self, output: str) -> list[ModeRow]:
        """Rows that no other one beats in time and in bits of an output against the exact inputs, fastest first."""
        timed = [r for r in self.rows if r.time_us and output in r.errors and math.isfinite(r.bits(output))]
        return unbeaten(timed, lambda r: (r.time_us or math.inf, r.bits(output)))

    def records(self) -> list[dict[str, Any]]:
        """A line for each row and output: names, time, tiling, and errors against both goldens."""
        return [_record(self, row, name) for row in self.rows for name in row.errors or ("",)]

    def to_dataframe(self) -> Any:
        """`records` as a pandas DataFrame; needs the extra `tables`."""
        return data_frame(self.records())

    def html(self, path: str | Path) -> None:
        """Write a page to `path`: error by mode with time, all figures, refusals."""
        from ...simulator.record.lazy_views import write

        write("html", self, path)

    def __repr__(self) -> str:
        """One line."""
        return f"<Study {self.op} {self.case or 'given inputs'} on {self.product}: {len(self.rows)} rows>"

    def _repr_html_(self) -> str:
        from ...simulator.record.lazy_views import show

        return show("notebook", self)


def _record(study: Study, row: ModeRow, name: str) -> dict[str, Any]:
    out = {"op": study.op, "case": study.case, "product": study.product, "point": study.value, "output": name}
    out |= picked(row, "cube_math_type dtype compute_dtype") | {"output_dtype": row.output_dtypes.get(name)}
    out |= picked(row, "status time_us speedup") | {f"tiling_{n}": x for n, x in row.tiling.items()}
    for golden, errors in row.errors.get(name, {}).items():
        figures = picked(errors, FIGURES)
        out |= {f"{n}_{golden.removesuffix('_inputs')}": x for n, x in figures.items()}
    if row.seed_bits.get(name):
        out |= {"least_bits": min(row.seed_bits[name]), "most_bits": max(row.seed_bits[name])}
    if name in row.kept:
        out |= {"passed": row.kept[name].passed, "times_too_large": row.kept[name].factor}
    return {**out, "reason": row.reason}


def unbeaten(rows: Iterable[Any], figures: Callable[[Any], tuple[float, float]]) -> list[Any]:
    """Those for which no other has less of the first figure and more of the second, or as much; ascending in the first."""
    out: list[Any] = []
    for row in sorted(rows, key=lambda r: (figures(r)[0], -figures(r)[1])):
        if not out or figures(row)[1] > figures(out[-1])[1]:
            out.append(row)
    return out


@dataclass(frozen=True)
class Answer:
    """Which row of a study, or of all points of a sweep, is enough. Raises `UsageError` for studies without a need."""

    studies: Sequence[Study]

    def __post_init__(self) -> None:
        if self.studies[0].need is None:
            raise UsageError("the study was not asked for a need: give it need={'bits': 12}, say")

    @property
    def cheapest(self) -> ModeRow | None:
        """The fastest over all points of the rows that pass at each of them; of equally fast ones the most exact."""
        found = [x for x in self._over_points() if all(r.passed for r in x)]
        best = min(found, key=lambda x: (sum(r.time_us or 0.0 for r in x), self._factor(x)), default=None)
        return None if best is None else best[0]

    @property
    def nearest(self) -> ModeRow | None:
        """That whose error is least above what is needed, at the point where it is largest."""
        found = [x for x in self._over_points() if all(r.kept for r in x)]
        best = min(found, key=self._factor, default=None)
        return None if best is None else max(best, key=lambda r: r.factor)

    @property
    def words(self) -> str:
        """One line: "cheapest that keeps 12 bits: USE_HF32 with float32, 24.6 us (12.7 bits)"."""
        need, found = self.studies[0].need, self.cheapest
        assert need is not None
        at = " at every point" if len(self.studies) > 1 else ""
        if found is not None:
            told = self._told(found, len(self.studies) == 1)
            return f"cheapest that keeps {need.words}{at}: {told}{self._caveats(found)}"
        near = self.nearest
        nearest = (
            "every mode is refused"
            if near is None
            else f"nearest is {self._told(near, True)}{self._caveats(near)}"
        )
        return f"no mode keeps {need.words}{at}; {nearest}"

    def _told(self, row: ModeRow, figures: bool) -> str:
        """A row, with the modes that compute the same, its time, and what was found of its worst output."""
        study = next(s for s in self.studies if any(r is row for r in s.rows))
        alike = [r.cube_math_type for r in study.rows if r.errors is row.errors]
        name = row.name if row.what_if else f"{listed(alike, 'or')} with {row.dtype}"
        if not figures:
            return name
        worst = max(row.kept, key=lambda n: row.kept[n].factor)
        of = f"{worst}: " if len(row.kept) > 1 else ""
        at = f"at {study.value}: " if len(self.studies) > 1 else ""
        return f"{name}, {row.time_us:.3g} us ({at}{of}{row.kept[worst].words})"

    def _caveats(self, row: ModeRow) -> str:
        """What must not be passed over of the row that is named, at the first point that has any."""
        over = next(x for x in self._over_points() if any(r is row for r in x))
        for study, r in zip(self.studies, over, strict=True):
            found = on_row({n: by[EXACT] for n, by in r.errors.items()})
            if found:
                at = f"at {study.value}, " if len(self.studies) > 1 else ""
                return f"; {at}{'; '.join(found[:3])}"
        return ""

    def _over_points(self) -> list[tuple[ModeRow, ...]]:
        """Rows of one mode and data type over all points."""
        return list(zip(*(s.rows for s in self.studies), strict=True))

    @staticmethod
    def _factor(rows: Sequence[ModeRow]) -> float:
        return max(r.factor for r in rows)
