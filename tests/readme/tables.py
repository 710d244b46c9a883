"""The rows of README's tables, computed anew from the names in their first columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ascendtile.kernels import get_operator, run_op
from ascendtile.kernels.validation import Summary, validate
from ascendtile.reports.facts import facts, texts
from ascendtile.reports.serving.statuses import REFUSED, STATUS
from ascendtile.simulator import load_product
from ascendtile.simulator.device import device
from ascendtile.simulator.precision.splits import SPLITS, Split

from .fitted_tables import calibration, crossing

Rows = list[list[str]]
PRODUCT = "ascend910b3"
FEWEST_RANKED = 4  # the order of fewer rows says nothing
GROUPS = {
    "single instructions and transfers on one core": "all of micro",
    "**kernels on A2 and A3 that nothing was fitted on**": "held out: A2 and A3",
    "kernels on 910A that nothing was fitted on": "held out: 910A",
    "all kernels that nothing was fitted on": "held out: all",
    "the vendor's add example, step by step": "memory-bound, known tiling",
    "copies of one matrix in 15 ways": "memcpy",
    "matrix products with a known tiling": "matmul, known tiling",
    "kernels bound by memory in two training runs": "memory-bound",
    "convolutions, forward and backward, no tiling published": "convolution, no tiling published",
    "grouped products, no tiling published": "grouped matmul, no tiling published",
    "matrix products, no tiling published": "matmul, no tiling published",
    "attention, most without a published tiling": "attention",
    "norms, softmax, SwiGLU, rotary embeddings, no tiling published": "row kernels, no tiling published",
    "quantised products": "quant matmul, tiles of the example",
    "launches of a few us": "small/launch",
    "sums, no tiling published": "reductions, no tiling published",
    "slices, concatenations, transpositions, picked rows": "data movement, no tiling published",
    "changes between rows and fractals": "layout changes, no tiling published",
    "pools and their gradients": "pools, no tiling published",
    "Triton kernels": "Triton kernels",
    "micro-benchmarks of a 910B3 board": "micro-benchmarks of a 910B3 board",
    "RmsNormGrad of an older release, the vendor's tiling of today": "RmsNormGrad, vendor's tiling",
}
GROUPS |= {  # as the page in Chinese calls them
    "单核上的单条指令与单次搬运": "all of micro",
    "**A2 和 A3 上未参与拟合的算子**": "held out: A2 and A3",
    "所有未参与拟合的算子": "held out: all",
    "attention，多数没有公开 tiling": "attention",
    "归一化、softmax、SwiGLU、旋转位置编码，没有公开 tiling": "row kernels, no tiling published",
    "几微秒的 launch": "small/launch",
    "求和，没有公开 tiling": "reductions, no tiling published",
}


def operators(rows: Rows) -> Rows:
    """operator, case, type, us, what binds and how near it is, us of the vendor's tiling, us with sums on the Cube."""
    return [_operator(*row[:3]) for row in rows]


def _operator(op: str, case: str, dtype: str) -> list[str]:
    run = run_op(op, case, dtype, product=PRODUCT, values=False).run
    bound = facts.binding(run)
    assert bound is not None
    knobs = {p.name: p.choices or () for p in get_operator(op).parameters}
    cube = [knob for knob in ("strategy", "combine") if "cube" in knobs.get(knob, ())]
    on_cube = _us(op, case, dtype, {cube[0]: "cube"}) if cube else ""
    near = f"{bound.name} {texts.percent(bound.fraction)}"
    return [
        op,
        case,
        dtype,
        f"{run.time_us:.1f}",
        near,
        _us(op, case, dtype, {"strategy": "vendor"}),
        on_cube,
    ]


def _us(op: str, case: str, dtype: str, tiling: dict[str, Any]) -> str:
    return f"{run_op(op, case, dtype, product=PRODUCT, values=False, tiling=tiling).time_us:.1f}"


QUANTISED = (
    ("matmul", {}),
    ("quant_matmul", {"tokens": 1, "transposed": 1}),
    ("quant_matmul", {"x_bits": 16}),
    ("quant_matmul", {"x_bits": 16, "w_bits": 4, "group": 128}),
)


def quantised(rows: Rows) -> Rows:
    """Lengths of a product; us in float16 and quantised, with nothing of it in L2."""
    return [[row[0], *_quantised(*map(int, row[0].split(",")))] for row in rows]


def _quantised(m: int, n: int, k: int) -> list[str]:
    sizes = {"m": m, "n": n, "k": k}
    with device(PRODUCT, l2="cold"):
        found = [run_op(op, {**sizes, **more}, "float16", values=False) for op, more in QUANTISED]
    return [f"{x.time_us:.1f}" for x in found]


def products(rows: Rows) -> Rows:
    """name, series (not a figure), Vector cores, clock, UB."""
    return [_product(name, series) for name, series, *_ in rows]


def _product(name: str, series: str) -> list[str]:
    p = load_product(name)
    return [name, series, str(p.vector_cores), f"{p.aicore_mhz:g} MHz", f"{p.ub_bytes // 1024} KiB"]


def validation(rows: Rows) -> Rows:
    """What `ascendtile validate` finds by group: of rows held out, their intervals too, of all, and of peak rates alone."""
    return [[row[0], *_validation(_groups(), GROUPS[row[0]])] for row in rows]


@cache
def _groups() -> dict[str, Summary]:
    """All rows are simulated once, however many pages show some."""
    return {g.name: g.summary for g in validate().groups}


def _validation(groups: dict[str, Summary], name: str) -> list[str]:
    whole = groups[name]
    held_out = groups.get(f"{name}: not fitted", whole)
    rank, coverage, width = held_out.spearman, held_out.interval_coverage, held_out.interval_width
    return [
        *_errors(held_out),
        "" if rank is None or held_out.rows < FEWEST_RANKED else f"{rank:.3f}",
        "" if coverage is None else f"{100 * coverage:.0f}",
        "" if width is None else f"{width:.1f}",
        *_errors(whole),
        f"{100 * (whole.roofline_median_abs_error or 0):.0f}",
    ]


def _errors(summary: Summary) -> tuple[str, ...]:
    """Rows, and median and ninth decile of the absolute errors in per cent."""
    errors = (summary.median_abs_error, summary.p90_abs_error)
    return (str(summary.rows), *(f"{100 * (error or 0):.1f}" for error in errors))


def splits(rows: Rows) -> Rows:
    """Mode: slices of both operands, format, products, bits of the operand with fewer, whether it is scaled; source."""
    return [[row[0], *_split(SPLITS[row[0].strip("`")]), row[-1]] for row in rows]


def _split(split: Split) -> list[str]:
    counts = " and ".join(map(str, dict.fromkeys(split.counts)))
    products = ", ".join(f"{i}x{j}" for i, j in split.products)
    return [counts, split.slices, products, str(split.bits), "no" if split.top is None else "yes"]


def statuses(rows: Rows) -> Rows:
    """Statuses of HTTP of the kinds of errors in the second column; the page has every kind that a client can meet."""
    named = [row[1].replace("`", "").split(", ") for row in rows]
    assert {k for kinds in named for k in kinds} == STATUS.keys() - {"closed"} | {"refused"}
    return [[_statuses(kinds), *row[1:]] for kinds, row in zip(named, rows, strict=True)]


def _statuses(kinds: list[str]) -> str:
    found = [s for k in kinds for s in (REFUSED if k == "refused" else (STATUS[k],))]
    return ", ".join(map(str, dict.fromkeys(found)))


CHECKS: dict[str, Callable[[Rows], Rows]] = {
    "operators": operators,
    "products": products,
    "quantised": quantised,
    "splits": splits,
    "statuses": statuses,
    "validation": validation,
    "calibration": calibration,
    "crossing": lambda rows: crossing(rows, {"all kernels": "all"} | GROUPS),
}
