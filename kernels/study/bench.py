"""Runs the rows of a precision study: one computation for each that differs, its errors, verdicts and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...simulator.device import CUBE_MATH_TYPES, current_device, device
from ...simulator.errors import UsageError
from ...simulator.numerics import numerics, stated
from ...simulator.precision.acceptance import Verdict, verdicts
from ...simulator.precision.cube_math import PARAM_INVALID, Resolution
from ...simulator.precision.formats import get_format
from ...simulator.precision.metrics import ErrorReport, compare
from ...simulator.products import Product
from ...simulator.units.cube_rules import CubeRules
from ..operator.messages import listed
from ..operator.operator import Operator
from ..operator.plan import PlanContext
from ..operator.tensors import Arrays, Knobs
from ..running.fitting import plan_that_fits
from ..running.run_op import run_op
from .data import Data, cube_rounding, decoded, seen_by_cube

EXACT, ROUNDED = "exact_inputs", "rounded_inputs"
GOLDENS = (EXACT, ROUNDED)
KEEP = CUBE_MATH_TYPES[0]


@dataclass(frozen=True)
class ModeRow:
    """One mode and data type.

    compute_dtype: what is multiplied (fp32, hf32, fp16, bf16), None if refused. status: 0, or that of the vendor's
    library. time_us: of the whole case. speedup: over float32 with KEEP_DTYPE, None where the product refuses that.
    errors, verdicts: by output, then by golden. reason: why it is refused, or what the library warns of.
    """

    cube_math_type: str
    dtype: str
    compute_dtype: str | None
    output_dtypes: Mapping[str, str]
    status: int
    time_us: float | None = None
    speedup: float | None = None
    errors: Mapping[str, Mapping[str, ErrorReport]] = field(default_factory=dict)
    verdicts: Mapping[str, Mapping[str, tuple[Verdict, ...]]] = field(default_factory=dict)
    reason: str = ""

    def bits(self, output: str, golden: str = EXACT) -> float:
        """Effective bits of an output against one of the goldens."""
        return self.errors[output][golden].effective_bits


@dataclass(frozen=True)
class Study:
    """A table of rows; of a sweep, `value` is the point that it belongs to. numerics: the choices behind the values."""

    op: str
    product: str
    case: str | None
    rows: tuple[ModeRow, ...]
    data: Mapping[str, Any]
    sample: str | None
    value: Any = None
    notes: tuple[str, ...] = ()
    numerics: Mapping[str, str] = field(default_factory=dict)

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


@dataclass
class _Found:
    """What one computation gave; several modes may share it."""

    time_us: float | None
    errors: dict[str, dict[str, ErrorReport]]
    verdicts: dict[str, dict[str, tuple[Verdict, ...]]]
    output_dtypes: dict[str, str]


class Bench:
    """Runs the rows of a study; times are kept over the points of a sweep that have equal shapes."""

    def __init__(
        self, op: Operator, product: Product, tiling: Knobs, timed: bool, notes: tuple[str, ...] = ()
    ) -> None:
        self.op, self.product, self.tiling, self.timed, self.notes = op, product, tiling, timed, notes
        with device(product):
            self.rules = numerics(current_device())
            self.numerics = stated(current_device())
        self.overflow = self.rules.overflow
        self.times: dict[Any, float] = {}
        self.reference: Arrays = {}

    def study(self, data: Data, plan: list[tuple[str, str]], case: str | None, value: Any = None) -> Study:
        """All rows of one set of inputs."""
        golden: Arrays = {}  # filled by the first computation, whose checks come first
        found: dict[Any, _Found] = {}
        rows = [self._row(data, golden, mode, dtype, found) for mode, dtype in plan]
        base = self._base(data)
        faster = tuple(_with_speedup(r, base) for r in rows)
        about = (self.op.name, self.product.name, case, faster, data.origin, data.sample, value)
        notes = (*self.notes, *self._beside(), *data.remarks())
        return Study(*about, notes=notes, numerics=self.numerics)

    def _beside(self) -> list[str]:
        """Which outputs the column of what is multiplied says nothing about."""
        on = self.op.used_cube(self.tiling)
        names = [n for n in self.op.outputs if n not in on.outputs] if on else []
        return [f"{listed(names)} never passes the Cube: {self.op.computes} in every mode"] if names else []

    def _row(self, data: Data, golden: Arrays, mode: str, dtype: str, known: dict[Any, _Found]) -> ModeRow:
        """One row; modes that resolve to the same computation share it."""
        refusal, resolved = self._resolution(data, mode, dtype)
        if refusal:
            return ModeRow(mode, dtype, None, {}, PARAM_INVALID, reason=refusal)
        key = _computation(dtype, resolved)
        if key not in known:
            known[key] = self._computed(data, golden, mode, dtype, resolved, key)
        found = known[key]
        compute = resolved.operand if resolved else self.op.computes
        reason = (resolved.warning or "") if resolved else ""
        return ModeRow(
            mode, dtype, compute, found.output_dtypes, 0, found.time_us, None, found.errors, found.verdicts, reason
        )  # fmt: skip

    def _base(self, data: Data) -> float | None:
        """Time of float32 as it is, whether or not that is one of the rows; None where it is refused."""
        if "float32" not in self.op.dtypes:
            return None
        refusal, resolved = self._resolution(data, KEEP, "float32")
        return None if refusal else self._time(data, KEEP, "float32", _computation("float32", resolved))

    def _resolution(self, data: Data, mode: str, dtype: str) -> tuple[str, Resolution | None]:
        """Why the library refuses, or what it computes in (None for operators without Cube)."""
        here = self.op.dtypes_on(self.product)
        if self.op.resolve is None and dtype not in here:
            return f"{dtype} is not supported on {self.product.name}", None
        found = self.op.resolution(data.whole(self.op, dtype), self.product, mode, self.tiling)
        if found is None:
            return "", None
        return ("", found) if found.ok else (found.reason, None)

    def _computed(
        self, data: Data, golden: Arrays, mode: str, dtype: str, resolved: Resolution | None, key: Any
    ) -> _Found:
        stored = data.stored(self.op, dtype)
        given = self._options(data, mode)
        if data.sample:
            given["tiling"] = self._whole_tiling(data, mode, dtype)
        outputs = run_op(self.op, inputs=stored, time=False, **given).outputs
        if not golden:
            golden |= self.op.formula(data.exact, self.op.read_options(data.options))
        goldens, beside = self._goldens(data, golden, stored, resolved)
        found = _Found(
            self._time(data, mode, dtype, key), {}, {},
            {n: get_format(x.dtype).name for n, x in outputs.items()},
        )  # fmt: skip
        for n, x in outputs.items():
            mine = None if n in beside else resolved
            self._measure(found, n, x, {g: goldens[g][n] for g in GOLDENS}, mine)
        return found

    def _goldens(
        self, data: Data, golden: Arrays, stored: Arrays, resolved: Resolution | None
    ) -> tuple[dict[str, Arrays], Arrays]:
        """References by name, and those of outputs that never pass the Cube: made from the inputs as they are stored."""
        options, on = self.op.read_options(data.options), self.op.used_cube(self.tiling)
        if on and resolved:
            rounded = on.formula(decoded(stored), options, cube_rounding(resolved, self._cube(resolved)))
            return {EXACT: golden, ROUNDED: rounded}, {
                n: x for n, x in rounded.items() if n not in on.outputs
            }
        multiplied = self.op.multiplied or tuple(stored)
        seen = seen_by_cube({n: stored[n] for n in multiplied}, resolved, self._cube(resolved))
        rounded = self.op.formula({**stored, **seen}, options)
        beside = self.op.beside_cube(decoded(stored), options) if self.op.beside_cube else {}
        return {EXACT: golden, ROUNDED: {**rounded, **beside}}, beside

    def _cube(self, resolved: Resolution | None) -> CubeRules:
        """The Cube's rules; the kernel sets the rounding of HF32 operands unless the user did."""
        if resolved is None or "hf32_round" in current_device().numerics:
            return self.rules.cube
        return self.rules.cube.with_switches({"hf32_round": resolved.hf32_round})

    def _whole_tiling(self, data: Data, mode: str, dtype: str) -> dict[str, Any]:
        """How the whole problem would cut the sums: the block that stands for it must add in the same order."""
        tensors, options = data.whole(self.op, dtype), self.op.read_options(data.options)
        knobs = self.op.read_tiling(self.tiling)
        with device(self.product, cube_math_type=mode, values=False):
            chosen = plan_that_fits(self.op, tensors, options, knobs, PlanContext(self.product, False)).tiling
        return {**self.tiling, **{n: chosen[n] for n in self.op.order_knobs if n in chosen}}

    def _options(self, data: Data, mode: str) -> dict[str, Any]:
        knobs = {"options": data.options, "tiling": self.tiling, "product": self.product}
        return {**knobs, "cube_math_type": mode, "errors": False}

    def _time(self, data: Data, mode: str, dtype: str, key: Any) -> float | None:
        if not self.timed:
            return None
        key = (key, tuple(data.shapes.items()))
        if key not in self.times:
            inputs = data.whole(self.op, dtype)
            self.times[key] = run_op(
                self.op, inputs=inputs, values=False, **self._options(data, mode)
            ).time_us
        return self.times[key]

    def _other(self, name: str, x: np.ndarray) -> np.ndarray | None:
        """The reference device's output of that name."""
        other = self.reference.get(name)
        if other is not None and other.shape != x.shape:
            raise UsageError(
                f"{self.op.name}: the reference {name!r} has shape {other.shape}, the output has {x.shape}; give the "
                "same problem whole (no sample)"
            )
        return other

    def _measure(
        self, found: _Found, name: str, x: np.ndarray, goldens: Arrays, resolved: Resolution | None
    ) -> None:
        fmt = get_format(x.dtype).name
        compute = "hf32" if resolved is not None and resolved.hf32 else None
        found.errors[name] = {g: compare(x, y, fmt, compute=compute) for g, y in goldens.items()}
        keeps = self.overflow != "saturate"
        found.verdicts[name] = {
            g: verdicts(x, y, fmt, self._other(name, x), compute=compute, infinities=keeps)
            for g, y in goldens.items()
        }


def _computation(dtype: str, resolved: Resolution | None) -> Any:
    """What tells computations apart: the inputs' types, what is multiplied, what is written."""
    return dtype, resolved and (resolved.operand, resolved.outputs, resolved.grouped)


def _with_speedup(row: ModeRow, base: float | None) -> ModeRow:
    return row if base is None or not row.time_us else replace(row, speedup=base / row.time_us)
