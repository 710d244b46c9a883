"""Precision study: one operator in every legal cubeMathType and data type, on the same data.

    study = precision_study("matmul", case="1024", product="ascend910b3")
    for row in study.rows:
        print(row.cube_math_type, row.dtype, row.compute_dtype, row.time_us, row.bits("out", EXACT))

The numbers are drawn once and rounded for each data type. Errors are measured against two float64 results: that of the
numbers before any rounding ("exact_inputs": what the user loses by the mode), and that of the operands as the Cube reads
them ("rounded_inputs": what the kernel adds). Acceptance rules are about the second. A mode that the product refuses is a
row with the vendor's status and the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..simulator.device import CUBE_MATH_TYPES, current_device, device
from ..simulator.errors import UsageError
from ..simulator.execution.memory import as_array
from ..simulator.launch import numerics
from ..simulator.numerics import stated
from ..simulator.precision.acceptance import Verdict, verdicts
from ..simulator.precision.cube_math import PARAM_INVALID, Resolution
from ..simulator.precision.formats import get_format
from ..simulator.precision.metrics import ErrorReport, compare
from ..simulator.products import Product, load_product
from ..simulator.units.cube_rules import CubeRules
from .operator import Arrays, Case, Operator, Sizes, Workshop
from .registry import get_operator
from .running import run_op
from .study_data import Data, drawn, given, seen_by_cube, with_size
from .words import listed, near

EXACT, ROUNDED = "exact_inputs", "rounded_inputs"
GOLDENS = (EXACT, ROUNDED)
KEEP = CUBE_MATH_TYPES[0]
MIXED = "mixed"  # among the data types asked for: every mixture of them

ByOutput = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Row:
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
    rows: tuple[Row, ...]
    data: Mapping[str, Any]
    sample: str | None
    value: Any = None
    notes: tuple[str, ...] = ()
    numerics: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _Found:
    """What one computation gave; several modes may share it."""

    time_us: float | None
    errors: dict[str, dict[str, ErrorReport]]
    verdicts: dict[str, dict[str, tuple[Verdict, ...]]]
    output_dtypes: dict[str, str]


def precision_study(
    name: str | Operator,
    case: str | Case | Sizes | None = None,
    product: str | Product | None = None,
    modes: str | Iterable[str] = "all",
    dtypes: str | Iterable[str] = "all",
    inputs: Mapping[str, Any] | None = None,
    distribution: str = "normal",
    seed: int = 0,
    sample: int | None = None,
    time: bool = True,
    tiling: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    sizes: Sizes | None = None,
    reference: Mapping[str, Any] | None = None,
) -> Study:
    """Run an operator in every mode and data type (and mixture of types, where asked for).

    case: a name or sizes by name; `sizes` is another word for the latter. inputs: arrays by name instead. modes, dtypes:
    "all", or names; a data type may be a mixture in the order of the inputs, "float32+float16", and "mixed" is all
    mixtures of an operator of the Cube. sample: rows and columns of the block whose values are computed; None is all, or
    what takes about a second for each row. reference: outputs by name of another implementation on the same inputs (a GPU,
    say), for the dual-benchmark rule; whole outputs, so no sample. tiling, options: as for `run_op`. Raises `UsageError`.
    """
    op = get_operator(name)
    chosen = case if sizes is None else sizes
    if (inputs is not None) + (case is not None) + (sizes is not None) > 1:
        raise UsageError(f"{op.name}: case, sizes and inputs each say what to study; give one of them")
    bench = _Bench(
        op, load_product(product or current_device().product), tiling or {}, time, _idle_modes(op, modes)
    )
    bench.reference = _reference(op, reference)
    plan = _rows_wanted(op, modes, dtypes)
    if inputs is not None:
        return bench.study(given(op, inputs, options or {}, _edge(sample)), plan, None)
    problem = op.case(chosen)
    data = drawn(op, problem, seed, distribution, _edge(sample))
    return bench.study(_with_options(data, options), plan, problem.name)


def _reference(op: Operator, given: Mapping[str, Any] | None) -> Arrays:
    found = {}
    for name, x in (given or {}).items():
        if name not in op.outputs:
            raise UsageError(f"{op.name} has no output {name!r} to compare with{near(name, op.outputs)}")
        array = as_array(f"reference {name}", x)
        if array is None or array.dtype.kind not in "fV":
            raise UsageError(f"{op.name}: the reference {name!r} must be an array of floating-point numbers")
        found[name] = array
    return found


def _with_options(data: Data, options: Mapping[str, Any] | None) -> Data:
    return Data(data.exact, data.shapes, {**data.options, **(options or {})}, data.sample, data.origin)


def _edge(sample: int | None) -> int | None:
    if sample is not None and (isinstance(sample, bool) or not isinstance(sample, int) or sample < 1):
        raise UsageError(f"sample must be a number of rows from 1, got {sample!r}")
    return sample


def _rows_wanted(
    op: Operator, modes: str | Iterable[str], dtypes: str | Iterable[str]
) -> list[tuple[str, str]]:
    """(mode, data type) pairs, float32 first: it is what the others are compared with."""
    names = _names("cube_math_type", modes, CUBE_MATH_TYPES if op.resolve else (KEEP,))
    wanted = _names("dtype", dtypes, op.dtypes, check=False)
    each = [op.mixtures() if d == MIXED else (op.mixture(d),) for d in wanted]
    types = [d for group in each for d in group]
    if not types:
        raise UsageError(f"{op.name} takes no mixtures of data types; its types are {listed(op.dtypes)}")
    ordered = sorted(dict.fromkeys(types), key=lambda d: d != "float32")
    return [(mode, dtype) for dtype in ordered for mode in names]


def _names(what: str, given: str | Iterable[str], known: Sequence[str], check: bool = True) -> list[str]:
    if not isinstance(given, Iterable):
        raise UsageError(f'{what} must be "all" or names, got {given!r}')
    names = [str(n).strip() for n in (given.split(",") if isinstance(given, str) else given)]
    if not any(names):
        raise UsageError(f"no {what} given; known are {listed(known)}")
    if "all" in names:
        names = [*known, *(n for n in names if n != "all")]
    names = [_mode(n) for n in names] if check else names
    return list(dict.fromkeys(n for n in names if not check or n in known)) or list(known)


def _mode(name: str) -> str:
    """A cubeMathType by name, in any case, or by the vendor's number."""
    if name.isdecimal() and int(name) < len(CUBE_MATH_TYPES):
        return CUBE_MATH_TYPES[int(name)]
    if name.upper() not in CUBE_MATH_TYPES:
        raise UsageError(f"unknown cube_math_type {name!r}{near(name, CUBE_MATH_TYPES)}")
    return name.upper()


def _idle_modes(op: Operator, modes: str | Iterable[str]) -> tuple[str, ...]:
    """Words about modes that were asked for of an operator that has none."""
    asked = [m for m in _names("cube_math_type", modes, CUBE_MATH_TYPES) if m != KEEP]
    if op.resolve is not None or modes == "all" or not asked:
        return ()
    return (f"cube_math_type {listed(asked)} has no effect: {op.name} does not use the Cube",)


class _Bench:
    """Runs the rows of a study; times are kept over the points of a sweep that have equal shapes."""

    def __init__(
        self,
        op: Operator,
        product: Product,
        tiling: Mapping[str, Any],
        timed: bool,
        notes: tuple[str, ...] = (),
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
        return Study(*about, notes=(*self.notes, *data.remarks()), numerics=self.numerics)

    def _row(self, data: Data, golden: Arrays, mode: str, dtype: str, known: dict[Any, _Found]) -> Row:
        """One row; modes that resolve to the same computation share it."""
        refusal, resolved = self._resolution(data, mode, dtype)
        if refusal:
            return Row(mode, dtype, None, {}, PARAM_INVALID, reason=refusal)
        key = _computation(dtype, resolved)
        if key not in known:
            known[key] = self._computed(data, golden, mode, dtype, resolved, key)
        found = known[key]
        compute = resolved.operand if resolved else self.op.computes
        words = (resolved.warning or "") if resolved else ""
        return Row(
            mode, dtype, compute, found.output_dtypes, 0, found.time_us, None, found.errors, found.verdicts, words
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
        if self.op.resolve is None:
            return "" if dtype in here else f"{dtype} is not supported on {self.product.name}", None
        found = self.op.resolve(data.whole(self.op, dtype), self.product, mode)
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
        seen = seen_by_cube(stored, resolved, self._cube(resolved))
        goldens = {
            EXACT: golden,
            ROUNDED: self.op.formula(seen, self.op.read_options(data.options)),
        }
        found = _Found(
            self._time(data, mode, dtype, key), {}, {},
            {n: get_format(x.dtype).name for n, x in outputs.items()},
        )  # fmt: skip
        for n, x in outputs.items():
            self._measure(found, n, x, {g: goldens[g][n] for g in GOLDENS}, resolved)
        return found

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
            chosen = self.op.plan(tensors, options, knobs, Workshop(self.product, False)).tiling
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


def _with_speedup(row: Row, base: float | None) -> Row:
    return row if base is None or not row.time_us else replace(row, speedup=base / row.time_us)


# -- sweeps ----------------------------------------------------------------------------------------------------------

SWEEPS = ("k", "scale", "distribution")
LENGTHS = (64, 256, 1024, 4096)
EXPONENTS = (-24, -16, -8, 0, 4, 8, 12, 16, 20)


def precision_sweep(
    name: str | Operator,
    parameter: str,
    case: str | Case | Sizes | None = None,
    product: str | Product | None = None,
    modes: str | Iterable[str] = "all",
    dtypes: str | Iterable[str] = "all",
    inputs: Mapping[str, Any] | None = None,
    distribution: str = "normal",
    seed: int = 0,
    sample: int | None = None,
    time: bool = True,
    values: Iterable[Any] | None = None,
    options: Mapping[str, Any] | None = None,
    tiling: Mapping[str, Any] | None = None,
) -> list[Study]:
    """A study for each point of a sweep, over the same rows.

    parameter: "k" (length of the sums, `values` by default LENGTHS), "scale" (one input times powers of two, exponents
    EXPONENTS) or "distribution". inputs: only for "scale". Other arguments as in `precision_study`.
    """
    op = get_operator(name)
    _check_sweep(op, parameter, inputs, case)
    bench = _Bench(
        op, load_product(product or current_device().product), tiling or {}, time, _idle_modes(op, modes)
    )
    plan, edge = _rows_wanted(op, modes, dtypes), _edge(SWEEP_EDGE if sample is None and op.cut else sample)
    if inputs is not None:
        base = given(op, inputs, options or {}, edge)
        return [bench.study(base.scaled(op, _power(e)), plan, None, f"2^{e}") for e in values or EXPONENTS]
    problem, found = op.case(case), []
    for value in values or _points(parameter):
        data, label = _point(op, problem, parameter, value, seed, distribution, edge)
        found.append(bench.study(_with_options(data, options), plan, problem.name, label))
    return found


SWEEP_EDGE = 256  # rows and columns of the block whose values a sweep computes


def _check_sweep(op: Operator, parameter: str, inputs: Mapping[str, Any] | None, case: Any) -> None:
    if parameter not in SWEEPS:
        raise UsageError(f"unknown sweep {parameter!r}{near(parameter, SWEEPS)}")
    if parameter == "k" and op.accumulates is None:
        raise UsageError(f"{op.name} sums nothing: there is no k to sweep; sweep scale or distribution")
    if inputs is not None and case is not None:
        raise UsageError(f"{op.name}: give a case or inputs, not both")
    if inputs is not None and parameter != "scale":
        raise UsageError(
            f"a sweep over {parameter} draws its own data; with inputs sweep scale, or leave them out"
        )


def _power(exponent: Any) -> float:
    if isinstance(exponent, bool) or not isinstance(exponent, int) or not -126 <= exponent <= 127:
        raise UsageError(f"a sweep over scale takes exponents of two from -126 to 127, got {exponent!r}")
    return float(2.0**exponent)


def _points(parameter: str) -> Sequence[Any]:
    from .draw import DISTRIBUTIONS

    return {"k": LENGTHS, "scale": EXPONENTS, "distribution": DISTRIBUTIONS}[parameter]


def _point(
    op: Operator, case: Case, parameter: str, value: Any, seed: int, distribution: str, edge: int | None
) -> tuple[Data, Any]:
    if parameter == "k":
        assert op.accumulates is not None
        return drawn(op, with_size(op, case, op.accumulates, value), seed, distribution, edge), value
    if parameter == "distribution":
        return drawn(op, case, seed, value, edge), value
    return drawn(op, case, seed, distribution, edge).scaled(op, _power(value)), f"2^{value}"
