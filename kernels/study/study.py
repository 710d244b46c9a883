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
from typing import Any

from ...simulator.device import CUBE_MATH_TYPES, current_device
from ...simulator.errors import UsageError
from ...simulator.interpreter.tensors import as_array
from ...simulator.products import Product, load_product
from ..operator.messages import listed, near
from ..operator.operator import Case, Operator
from ..operator.registry import get_operator
from ..operator.tensors import Arrays, Knobs, Options, Sizes
from ..running.run_op import without_cube
from .bench import KEEP, Bench, Study
from .data import Data, drawn, given, with_size

SWEEPS = ("k", "scale", "distribution")
LENGTHS = (64, 256, 1024, 4096)
EXPONENTS = (-24, -16, -8, 0, 4, 8, 12, 16, 20)
MIXED = "mixed"  # among the data types asked for: every mixture of them
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
    tiling: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    sizes: Sizes | None = None,
    reference: Mapping[str, Any] | None = None,
) -> Study:
    """Run an operator in every mode and data type (and mixture of types, where asked for).

    case: a name or sizes by name; `sizes` is another name for the latter. inputs: arrays by name instead. modes, dtypes:
    "all", or names; a data type may be a mixture in the order of the inputs, "float32+float16", and "mixed" is all
    mixtures of an operator of the Cube. sample: rows and columns of the block whose values are computed; None is all, or
    what takes about a second for each row. reference: outputs by name of another implementation on the same inputs (a GPU,
    say), for the dual-benchmark rule; whole outputs, so no sample. tiling, options: as for `run_op`. Raises `UsageError`.
    """
    op = get_operator(name)
    chosen = case if sizes is None else sizes
    if (inputs is not None) + (case is not None) + (sizes is not None) > 1:
        raise UsageError(f"{op.name}: case, sizes and inputs each say what to study; give one of them")
    knobs = tiling or {}
    bench = _bench(op, product, modes, knobs, time)
    bench.reference = read_reference(op, reference)
    plan = rows_wanted(op, modes, dtypes, knobs)
    if inputs is not None:
        return bench.study(given(op, inputs, options or {}, sample_edge(sample)), plan, None)
    problem = op.case(chosen)
    data = drawn(op, problem, seed, distribution, sample_edge(sample))
    return bench.study(with_options(data, options), plan, problem.name)


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
    knobs = tiling or {}
    bench = _bench(op, product, modes, knobs, time)
    plan, edge = (
        rows_wanted(op, modes, dtypes, knobs),
        sample_edge(SWEEP_EDGE if sample is None and op.cut else sample),
    )
    if inputs is not None:
        base = given(op, inputs, options or {}, edge)
        return [bench.study(base.scaled(op, _power(e)), plan, None, f"2^{e}") for e in values or EXPONENTS]
    problem, found = op.case(case), []
    for value in values or _points(parameter):
        data, label = _point(op, problem, parameter, value, seed, distribution, edge)
        found.append(bench.study(with_options(data, options), plan, problem.name, label))
    return found


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
    from ..operator.draw import DISTRIBUTIONS

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


def _bench(
    op: Operator, product: str | Product | None, modes: str | Iterable[str], knobs: Knobs, time: bool
) -> Bench:
    machine = load_product(product or current_device().product)
    return Bench(op, machine, knobs, time, idle_modes(op, modes, knobs))


def sample_edge(sample: int | None) -> int | None:
    if sample is not None and (isinstance(sample, bool) or not isinstance(sample, int) or sample < 1):
        raise UsageError(f"sample must be a number of rows from 1, got {sample!r}")
    return sample


def rows_wanted(
    op: Operator, modes: str | Iterable[str], dtypes: str | Iterable[str], tiling: Knobs
) -> list[tuple[str, str]]:
    """(mode, data type) pairs, float32 first: it is what the others are compared with."""
    names = _names("cube_math_type", modes, CUBE_MATH_TYPES if has_modes(op, tiling) else (KEEP,))
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


def has_modes(op: Operator, tiling: Knobs) -> bool:
    """Whether a cubeMathType means anything with these knobs."""
    return op.resolve is not None or op.used_cube(tiling) is not None


def idle_modes(op: Operator, modes: str | Iterable[str], tiling: Knobs) -> tuple[str, ...]:
    """Words about modes that were asked for where they mean nothing."""
    asked = [m for m in _names("cube_math_type", modes, CUBE_MATH_TYPES) if m != KEEP]
    if has_modes(op, tiling) or modes == "all" or not asked:
        return ()
    return (without_cube(op, asked),)


def with_options(data: Data, options: Options | None) -> Data:
    return Data(data.exact, data.shapes, {**data.options, **(options or {})}, data.sample, data.origin)


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
