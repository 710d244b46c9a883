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

from collections.abc import Iterable, Mapping
from typing import Any

from ...simulator.device import current_device
from ...simulator.errors import UsageError
from ...simulator.products import Product, load_product
from ..operator.operator import Case, Operator
from ..operator.registry import get_operator
from ..operator.tensors import Sizes
from .bench import Bench, Study
from .data import drawn, given
from .rows import idle_modes, read_reference, rows_wanted, sample_edge, with_options


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
    bench = Bench(
        op, load_product(product or current_device().product), knobs, time, idle_modes(op, modes, knobs)
    )
    bench.reference = read_reference(op, reference)
    plan = rows_wanted(op, modes, dtypes, knobs)
    if inputs is not None:
        return bench.study(given(op, inputs, options or {}, sample_edge(sample)), plan, None)
    problem = op.case(chosen)
    data = drawn(op, problem, seed, distribution, sample_edge(sample))
    return bench.study(with_options(data, options), plan, problem.name)
