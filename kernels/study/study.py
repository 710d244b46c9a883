"""Precision study: one operator in every legal cubeMathType and data type, on the same data.

    study = precision_study("matmul", case="1024", product="ascend910b3", need={"bits": 12})
    for row in study.rows:
        print(row.cube_math_type, row.dtype, row.compute_dtype, row.time_us, row.bits("out", EXACT))
    print(study.cheapest or study.nearest)

The numbers are drawn once and rounded for each data type. Errors are measured against two float64 results: that of the
numbers before any rounding ("exact_inputs": what the user loses by the mode), and that of the operands as the Cube reads
them ("rounded_inputs": what the kernel adds). Acceptance rules are about the second, a need is about the first, with one
threshold for every row. A mode that the product refuses is a row with the vendor's status and the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...simulator.device import current_device
from ...simulator.errors import UsageError
from ...simulator.interpreter.tensors import as_array
from ...simulator.precision.need import Need
from ...simulator.precision.rounding_rules import mode_name
from ...simulator.products import Product, load_product
from ..operator.messages import listed, near
from ..operator.operator import Case, Operator
from ..operator.registry import get_operator
from ..operator.tensors import Arrays, Options, Sizes
from .bench import Bench
from .data import Data, case_text, check_size, drawn, given, point_text, with_size
from .results import ModeRow, Study
from .rows import idle_modes, read_need, rows_wanted
from .tilings import TilingOf

SWEEPS = ("k", "scale", "distribution")
MOST_POINTS = 200
MOST_SEEDS = 100
LENGTHS = (64, 256, 1024, 4096)
EXPONENTS = (-24, -16, -8, 0, 4, 8, 12, 16, 20)
SWEEP_EDGE = 256  # rows and columns of the block whose values a sweep computes


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
    tiling: Mapping[str, Any] | TilingOf | None = None,
    options: Mapping[str, Any] | None = None,
    sizes: Sizes | None = None,
    reference: Mapping[str, Any] | None = None,
    need: Mapping[str, Any] | Need | None = None,
    seeds: int = 1,
    rounding: str | None = None,
) -> Study:
    """Run an operator in every mode and data type (and mixture of types, where asked for).

    case: a name or sizes by name; `sizes` is another name for the latter. inputs: arrays by name instead. modes, dtypes:
    "all", or names; a data type may be a mixture in the order of the inputs, "float32+float16", and "mixed" is all
    mixtures of an operator of the Cube. Where the operator takes formats, it may be any number format (`get_format`), stored
    and multiplied as a what-if; "formats" is all of the catalogue. sample: rows and columns of the block whose values are
    computed; None is all, or what takes about a second for each row. reference: outputs by name of another implementation
    on the same inputs (a GPU, say), for the dual-benchmark rule; whole outputs, so no sample. options: as for `run_op`.

    tiling: knobs of every row; what is left out is chosen for the first row and the same in all, unless it does not fit. A
    function gives each row its own: `ascendtile.tiling.best_tilings(op)` searches it. need: {"bits": 12},
    {"rtol": 1e-3, "atol": 1e-5} or {"rule": "torch", "fmt": "fp32"} (see `Need`; fmt is by default the finest type of the
    rows): every row is asked for it, and `cheapest` and `nearest` of the study answer. seeds: sets of numbers drawn with
    seed, seed + 1 ...; rows have the errors of the first one and the bits of all, and a need is one of each. rounding: how
    the inputs are stored, a mode of `round_to` (STOCHASTIC with the seed), by default each format's own.
    Raises `UsageError`.
    """
    op = get_operator(name)
    _check_seeds(op, seeds, inputs, reference)
    chosen = case if sizes is None else sizes
    if (inputs is not None) + (case is not None) + (sizes is not None) > 1:
        raise UsageError(f"{op.name}: case, sizes and inputs each say what to study; give one of them")
    bench, plan = _bench(op, product, modes, dtypes, tiling, time, need, rounding)
    bench.reference = read_reference(op, reference)
    if inputs is not None:
        data = given(op, inputs, options or {}, sample_edge(sample))
        return bench.study(data, plan, case_text(None, data.shapes, options))
    problem = op.case(chosen)
    return over_seeds(
        bench.study(
            with_options(drawn(op, problem, s, distribution, sample_edge(sample)), options),
            plan,
            case_text(problem.name, {}, options),
        )
        for s in range(seed, seed + seeds)
    )


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
    tiling: Mapping[str, Any] | TilingOf | None = None,
    need: Mapping[str, Any] | Need | None = None,
    seeds: int = 1,
    rounding: str | None = None,
) -> list[Study]:
    """A study for each point of a sweep, over the same rows.

    parameter: "k" (length of the sums, `values` by default LENGTHS), another size of the operator (`values` are needed),
    "scale" (one input times powers of two, exponents EXPONENTS) or "distribution". inputs: only for "scale". Other
    arguments as in `precision_study`; `Answer(studies)` says which row is enough at every point.
    """
    op = get_operator(name)
    points = _read_points(op, parameter, values, inputs, case)
    _check_seeds(op, seeds, inputs)
    bench, plan = _bench(op, product, modes, dtypes, tiling, time, need, rounding)
    edge = sample_edge(SWEEP_EDGE if sample is None and op.cut else sample)
    if inputs is not None:
        base = given(op, inputs, options or {}, edge)
        label = case_text(None, base.shapes, options)
        return [bench.study(base.scaled(op, _power(e)), plan, label, f"2^{e}") for e in points]
    problem = op.case(case)
    if parameter in op.sizes:
        for value in points:
            check_size(op, with_size(op, problem, parameter, value), parameter, bench.product)

    def at(value: Any, seed: int) -> Study:
        data, label = _point(op, problem, parameter, value, seed, distribution, edge)
        return bench.study(with_options(data, options), plan, case_text(problem.name, {}, options), label)

    return _noted([over_seeds(at(value, s) for s in range(seed, seed + seeds)) for value in points])


def _noted(studies: list[Study]) -> list[Study]:
    """The first study tells the notes of all, those that it has not itself with their point."""
    first, *others = studies
    more = [f"at {s.value}: {n}" for s in others for n in s.notes if n not in first.notes]
    return [replace(first, notes=(*first.notes, *more)), *others]


def _read_points(
    op: Operator, parameter: str, values: Iterable[Any] | None, inputs: Mapping[str, Any] | None, case: Any
) -> Sequence[Any]:
    """The values of a sweep that can be made."""
    if parameter not in (*SWEEPS, *op.sizes):
        raise UsageError(f"unknown sweep {parameter!r}{near(parameter, _swept(op))}")
    _check_sweep(op, parameter, inputs, case)
    given = values or _points(parameter)
    points = list(dict.fromkeys(tuple(x) if isinstance(x, list) else x for x in given))
    if not points:
        raise UsageError(f"a sweep over {parameter} needs its values: {parameter}=64,128")
    if len(points) > MOST_POINTS:
        raise UsageError(f"a sweep has at most {MOST_POINTS} points, got {len(points)}")
    return points


def _swept(op: Operator) -> list[str]:
    """What can be swept alone: shapes of one tensor seldom can, as those of others follow."""
    sums = ["k"] if op.accumulates else []
    numbers = [n for n, x in next(iter(op.cases.values())).sizes.items() if isinstance(x, int)]
    return list(dict.fromkeys([*sums, "scale", "distribution", *numbers]))


def _check_seeds(op: Operator, seeds: int, inputs: Any, reference: Any = None) -> None:
    if isinstance(seeds, bool) or not isinstance(seeds, int) or not 1 <= seeds <= MOST_SEEDS:
        raise UsageError(f"seeds is how many sets of numbers are drawn, 1 to {MOST_SEEDS}, got {seeds!r}")
    if seeds > 1 and (inputs is not None or reference is not None):
        given = "inputs" if inputs is not None else "a reference"
        raise UsageError(
            f"{op.name}: several seeds draw several sets of numbers, {given} are of one; leave one out"
        )


def over_seeds(studies: Iterable[Study]) -> Study:
    """The first of studies that differ by their seed, with the bits of all, and with what the worst of them keeps."""
    found = list(studies)
    if len(found) == 1:
        return found[0]
    rows = tuple(_over_seeds(rows) for rows in zip(*(s.rows for s in found), strict=True))
    return replace(found[0], rows=rows, seeds=len(found))


def _over_seeds(rows: Sequence[ModeRow]) -> ModeRow:
    first = rows[0]
    kept = {n: max((r.kept[n] for r in rows), key=lambda k: k.factor) for n in first.kept}
    bits = {n: tuple(r.bits(n) for r in rows) for n in first.errors}
    return replace(first, kept=kept, seed_bits=bits)


def _check_sweep(op: Operator, parameter: str, inputs: Mapping[str, Any] | None, case: Any) -> None:
    if parameter == "k" and op.accumulates is None:
        raise UsageError(
            f"{op.name} has no single k, the length of a sum, to sweep; sweep {listed(_swept(op))}"
        )
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
    from ..operator.draw import DISTRIBUTIONS

    return {"k": LENGTHS, "scale": EXPONENTS, "distribution": DISTRIBUTIONS}.get(parameter, ())


def _point(
    op: Operator, case: Case, parameter: str, value: Any, seed: int, distribution: str, edge: int | None
) -> tuple[Data, Any]:
    if parameter == "distribution":
        return drawn(op, case, seed, value, edge), value
    if parameter == "scale":
        return drawn(op, case, seed, distribution, edge).scaled(op, _power(value)), f"2^{value}"
    size = op.accumulates if parameter == "k" else parameter
    assert size is not None
    sized = with_size(op, case, size, value)
    return drawn(op, sized, seed, distribution, edge), point_text(value) if isinstance(
        value, tuple
    ) else value


def _bench(
    op: Operator,
    product: str | Product | None,
    modes: str | Iterable[str],
    dtypes: str | Iterable[str],
    tiling: Mapping[str, Any] | TilingOf | None,
    time: bool,
    need: Mapping[str, Any] | Need | None,
    rounding: str | None,
) -> tuple[Bench, list[tuple[str, str]]]:
    """What runs the rows, and their modes and data types."""
    machine, knobs = (
        load_product(product or current_device().product),
        {} if callable(tiling) else tiling or {},
    )
    plan = rows_wanted(op, modes, dtypes, knobs)
    if need is not None and not time:
        raise UsageError(f"{op.name}: the cheapest mode that keeps a need is told by its time; leave it on")
    asked = None if need is None else read_need(need, plan)
    mode, notes = None, idle_modes(op, modes, knobs, plan)
    if rounding is not None:
        mode = mode_name(rounding.upper())
        notes += (f"inputs are stored with the rounding {mode}",)
    return Bench(op, machine, tiling or {}, time, asked, notes, mode), plan


def sample_edge(sample: int | None) -> int | None:
    if sample is not None and (isinstance(sample, bool) or not isinstance(sample, int) or sample < 1):
        raise UsageError(f"sample must be a number of rows from 1, got {sample!r}")
    return sample


def with_options(data: Data, options: Options | None) -> Data:
    return replace(data, options={**data.options, **(options or {})})


def read_reference(op: Operator, given: Mapping[str, Any] | None) -> Arrays:
    found = {}
    for name, x in (given or {}).items():
        if name not in op.outputs:
            raise UsageError(f"{op.name} has no output {name!r} to compare with{near(name, op.outputs)}")
        array = as_array(f"reference {name}", x)
        if array is None or array.dtype.kind not in "fV":
            raise UsageError(f"{op.name}: the reference {name!r} must be an array of floating-point numbers")
        found[name] = array
    return found
