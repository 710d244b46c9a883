"""Runs the rows of a precision study: one computation for each that differs, its errors, verdicts and time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...simulator.device import CUBE_MATH_TYPES, current_device, device
from ...simulator.errors import UsageError
from ...simulator.messages import WHAT_IF
from ...simulator.numerics import numerics, stated, switch_name
from ...simulator.precision.acceptance import RuleVerdict, verdicts
from ...simulator.precision.cube_math import PARAM_INVALID, Resolution
from ...simulator.precision.formats import get_format
from ...simulator.precision.metrics import ErrorReport, compare
from ...simulator.precision.need import Kept, Need
from ...simulator.precision.places import Octave
from ...simulator.products import Product
from ...simulator.products.product import WHAT_IF_RATE
from ...simulator.timing.costs.cube import CubeCosts
from ...simulator.units.cube_rules import CubeRules
from ..operator.formats import is_other
from ..operator.messages import listed
from ..operator.operator import Operator
from ..operator.tensors import Arrays, Knobs, dtype_of
from ..running.run_op import run_op
from .caveats import on_study
from .data import Data, cube_rounding, decoded, seen_by_cube
from .losses import OperandLosses, block_losses, losses
from .results import EXACT, GOLDENS, ROUNDED, ModeRow, Study
from .tilings import TilingOf, Tilings, different_tilings

KEEP = CUBE_MATH_TYPES[0]


@dataclass
class _Found:
    """What one computation gave; several modes may share it."""

    time_us: float | None
    errors: dict[str, dict[str, ErrorReport]]
    verdicts: dict[str, dict[str, tuple[RuleVerdict, ...]]]
    kept: dict[str, Kept]
    output_dtypes: dict[str, str]
    tiling: Knobs
    operands: dict[str, OperandLosses]
    octaves: dict[str, tuple[Octave, ...]] = field(default_factory=dict)


class Bench:
    """Runs the rows of a study; times are kept over the points of a sweep that have equal shapes."""

    def __init__(
        self,
        op: Operator,
        product: Product,
        tiling: Knobs | TilingOf,
        timed: bool,
        need: Need | None = None,
        notes: tuple[str, ...] = (),
        rounding: str | None = None,
    ) -> None:
        self.op, self.product, self.timed, self.need, self.notes = op, product, timed, need, notes
        self.rounding = rounding
        self.tilings = Tilings(op, product, tiling)
        self.asked = self.tilings.asked
        with device(product):
            self.rules = numerics(current_device())
            self.numerics = stated(current_device())
        self.overflow = self.rules.overflow
        self.times: dict[Any, float] = {}
        self.reference: Arrays = {}

    def study(self, data: Data, plan: list[tuple[str, str]], case: str | None, value: Any = None) -> Study:
        """All rows of one set of inputs."""
        data = replace(data, rounding=self.rounding)
        golden: Arrays = {}  # filled by the first computation
        found: dict[Any, _Found] = {}
        first = next((pair for pair in plan if not self._resolution(data, *pair)[0]), None)
        if first is not None:
            self.tilings.share(data, *first)
        rows = [self._row(data, golden, mode, dtype, found) for mode, dtype in plan]
        base = self._base(data, found)
        faster = tuple(_with_speedup(r, base) for r in rows)
        about = (self.op.name, self.product.name, case, faster, data.origin, data.sample, value)
        shared = self.tilings.shared
        notes = (
            *self.notes,
            *self._beside(),
            *self._cancels(data),
            *different_tilings(rows, shared),
            *self.tilings.not_searched(rows),
            *data.remarks(),
        )
        exact = ({n: by[EXACT] for n, by in r.errors.items()} for r in rows)
        notes += tuple(on_study(exact))
        return Study(*about, notes=notes, numerics=self._numerics(rows, data), tiling=shared, need=self.need)

    def _beside(self) -> list[str]:
        """Which outputs the column of what is multiplied says nothing about."""
        on = self.op.used_cube(self.asked)
        names = [n for n in self.op.outputs if n not in on.outputs] if on else []
        return [f"{listed(names)} never passes the Cube: {self.op.computes} in every mode"] if names else []

    def _numerics(self, rows: Sequence[ModeRow], data: Data) -> dict[str, str]:
        """The choices, of HF32 the rounding that the operator's kernel sets."""
        if "hf32_round" in current_device().numerics:
            return self.numerics
        hf32 = (
            self._resolution(data, r.cube_math_type, r.dtype)[1] for r in rows if r.compute_dtype == "hf32"
        )
        found = next((r for r in hf32 if r is not None), None)
        if found is None:
            return self.numerics
        told = f"{switch_name(found.hf32_round)} (documented: set by the kernel of {self.op.name})"
        return {**self.numerics, "hf32_round": told}

    def _cancels(self, data: Data) -> list[str]:
        """Which distribution is not what its name says."""
        if self.op.cancels or data.origin.get("distribution") != "cancel":
            return []
        return [
            f"the distribution cancel makes neighbours in an input nearly cancel; the sums of {self.op.name} are of other "
            "elements and do not: they are no harder here than with normal"
        ]

    def _row(self, data: Data, golden: Arrays, mode: str, dtype: str, known: dict[Any, _Found]) -> ModeRow:
        """One row; modes that resolve to the same computation share it."""
        refusal, resolved = self._resolution(data, mode, dtype)
        if refusal:
            return ModeRow(mode, dtype, None, {}, PARAM_INVALID, reason=refusal)
        key = _computation(dtype, resolved)
        if key not in known:
            known[key] = self._computed(data, golden, mode, dtype, resolved, key)
        found = known[key]
        compute = resolved.operand if resolved else self._without_modes(data, dtype)
        compute = dtype if self.op.blocks(dtype) else compute
        reason = (resolved.warning or self._what_if(resolved)) if resolved else ""
        return ModeRow(
            mode, dtype, compute, found.output_dtypes, 0, found.time_us, None, found.errors, found.verdicts, reason,
            found.tiling, found.kept, operands=found.operands, octaves=found.octaves,
        )  # fmt: skip

    def _without_modes(self, data: Data, dtype: str) -> str:
        """What an operator computes in that no mode asks: on the Cube in the type of its main input."""
        if not self.op.uses_cube:
            return self.op.computes
        return dtype_of(data.whole(self.op, dtype)[self.op.main]).format.name

    def _what_if(self, resolved: Resolution) -> str:
        """What is assumed where the Cube of the product lacks the format; "" where it has it."""
        costs = CubeCosts(self.product)
        if resolved.hf32 or resolved.split or not costs.what_if(resolved.operand):
            return ""
        depth, rate = costs.k_block(resolved.operand)[1], self.product.integer(WHAT_IF_RATE)
        return (
            f"{WHAT_IF}{self.product.name} does not multiply it: exact products by the rules of the format, {depth} of k a "
            f"cycle, as many bytes as of what it has ({WHAT_IF_RATE} = {rate}, assumed)"
        )

    def _base(self, data: Data, known: Mapping[Any, _Found]) -> float | None:
        """Time of float32 as it is, whether or not that is one of the rows; None where it is refused."""
        if "float32" not in self.op.dtypes or not self.timed:
            return None
        refusal, resolved = self._resolution(data, KEEP, "float32")
        if refusal:
            return None
        key = _computation("float32", resolved)
        if key in known:
            return known[key].time_us
        return self._time(data, KEEP, "float32", key, self._tiling(data, KEEP, "float32", resolved))

    def _resolution(self, data: Data, mode: str, dtype: str) -> tuple[str, Resolution | None]:
        """Why the library refuses, or what it computes in (None for operators without Cube)."""
        here = self.op.dtypes_on(self.product)
        if self.op.resolve is None and dtype not in here:
            return f"{dtype} is not supported on {self.product.name}", None
        found = self.op.resolution(data.whole(self.op, dtype), self.product, mode, self.asked)
        if found is None:
            return "", None
        return ("", found) if found.ok else (found.reason, None)

    def _computed(
        self, data: Data, golden: Arrays, mode: str, dtype: str, resolved: Resolution | None, key: Any
    ) -> _Found:
        stored, tiling = data.stored(self.op, dtype), self._tiling(data, mode, dtype, resolved)
        knobs = self._of_sample(tiling) if data.sample else tiling
        outputs = run_op(
            self.op, inputs=stored, time=False, tiling=knobs, **self._options(data, mode)
        ).outputs
        if not golden:
            golden |= self.op.formula(data.exact, self.op.read_options(data.options))
        goldens, beside = self._goldens(data, golden, stored, resolved)
        found = _Found(
            self._time(data, mode, dtype, key, tiling), {}, {}, {},
            {n: get_format(x.dtype).name for n, x in outputs.items()}, tiling, self._operands(data, dtype, stored, resolved),
        )  # fmt: skip
        for n, x in outputs.items():
            mine = None if n in beside else resolved
            self._measure(found, n, x, {g: goldens[g][n] for g in GOLDENS}, mine)
        return found

    def _goldens(
        self, data: Data, golden: Arrays, stored: Arrays, resolved: Resolution | None
    ) -> tuple[dict[str, Arrays], Arrays]:
        """References by name, and those of outputs that never pass the Cube: made from the inputs as they are stored."""
        options, on = self.op.read_options(data.options), self.op.used_cube(self.asked)
        if on and resolved:
            rounded = on.formula(decoded(stored), options, cube_rounding(resolved, self._cube(resolved)))
            return {EXACT: golden, ROUNDED: rounded}, {
                n: x for n, x in rounded.items() if n not in on.outputs
            }
        rounded = self.op.formula({**stored, **self._multiplied(stored, resolved)}, options)
        beside = self.op.beside_cube(decoded(stored), options) if self.op.beside_cube else {}
        return {EXACT: golden, ROUNDED: {**rounded, **beside}}, beside

    def _multiplied(self, stored: Arrays, resolved: Resolution | None) -> Arrays:
        """The inputs that the Cube multiplies, as it does."""
        if resolved is None or self.op.used_cube(self.asked):
            return {}
        scaled = any(n in stored for n in self.op.block_inputs)
        if scaled or (resolved.split is None and is_other(get_format(resolved.operand))):
            return {}  # multiplied as it is stored
        names = self.op.multiplied or tuple(stored)
        every = {n: stored[n] for n in names}
        return seen_by_cube(every, resolved, self._cube(resolved), self.op.sliced)

    def _operands(
        self, data: Data, dtype: str, stored: Arrays, resolved: Resolution | None
    ) -> dict[str, OperandLosses]:
        """What becomes of the inputs: of those that are multiplied in the format of that, of others as they are stored."""
        blocks = data.blocks(self.op, dtype)
        if blocks:
            return {n: block_losses(data.exact[n], x) for n, x in blocks.items()}
        seen = self._multiplied(stored, resolved)
        read = (
            None if resolved is None else "fp32" if resolved.split else resolved.operand
        )  # a sum of slices is FP32
        kinds = {n: read if read and n in seen else stored[n].dtype for n in stored}
        values = {**decoded(stored), **seen}
        return {n: losses(x, values[n], get_format(kinds[n])) for n, x in data.exact.items()}

    def _cube(self, resolved: Resolution | None) -> CubeRules:
        """The Cube's rules; the kernel sets the rounding of HF32 operands unless the user did."""
        if resolved is None or "hf32_round" in current_device().numerics:
            return self.rules.cube
        return self.rules.cube.with_switches({"hf32_round": resolved.hf32_round})

    def _tiling(self, data: Data, mode: str, dtype: str, resolved: Resolution | None) -> Knobs:
        return self.tilings.of(data, mode, dtype, bool(resolved and resolved.grouped))

    def _of_sample(self, tiling: Knobs) -> dict[str, Any]:
        """A block that stands for the whole problem adds in the same order, in tiles of its own."""
        return {**self.asked, **{n: tiling[n] for n in self.op.order_knobs if n in tiling}}

    def _options(self, data: Data, mode: str) -> dict[str, Any]:
        return {"options": data.options, "product": self.product, "cube_math_type": mode, "errors": False}

    def _time(self, data: Data, mode: str, dtype: str, key: Any, tiling: Knobs) -> float | None:
        if not self.timed:
            return None
        key = (key, tuple(data.shapes.items()), tuple(tiling.items()))
        if key not in self.times:
            inputs = data.whole(self.op, dtype)
            self.times[key] = run_op(
                self.op, inputs=inputs, values=False, tiling=tiling, **self._options(data, mode)
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
        reports = {g: compare(x, y, fmt, compute=compute, where=g == EXACT) for g, y in goldens.items()}
        found.errors[name] = {g: replace(e, places=None) for g, e in reports.items()}
        where = reports[EXACT].places
        found.octaves[name] = where.octaves if where else ()
        if self.need is not None:
            found.kept[name] = self.need.judge(x, goldens[EXACT], found.errors[name][EXACT])
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
