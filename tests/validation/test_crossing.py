"""Each source left out once: its rows are predicted with figures that know nothing of them."""

from dataclasses import replace

import numpy as np
import pytest

from ascendtile.kernels.validation import predict, read_tables
from ascendtile.kernels.validation.accuracy.fitting import source_of
from ascendtile.kernels.validation.calibration import cross_validate
from ascendtile.kernels.validation.calibration.figures import changed, fitted_figures
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.products import load_product

KERNELS = [r for r in read_tables() if r.table == "kernels" and not r.excluded and r.unit == "us"]
MODEL = next(r for r in KERNELS if r.op == "muls")


def row(name, source, n, measured=1.0, product="ascend910b1"):
    return replace(
        MODEL, id=name, product=product, op="muls", group="drawn", shapes=str(n), dtypes="fp16->fp16",
        tiling="cores=40 block=8192 l2=cold", measured=measured, source=source,
    )  # fmt: skip


def board(name, sizes, slower):
    """Rows of one source, measured on a board whose memory is slower by that factor."""
    rows = [row(f"{name}{n}", f"{name}/boards page {n}", n) for n in sizes]
    product = load_product(MODEL.product)
    memory = [f for f in fitted_figures(product) if f.key.startswith("memory.")]
    made = changed(product, dict.fromkeys(memory, slower))
    return [
        replace(r, product=MODEL.product, measured=predict(replace(r, product=MODEL.product), made).value)
        for r in rows
    ]


@pytest.mark.exhaustive
def test_what_is_left_out_is_predicted_as_the_others_say_it():
    """Two boards with slow memory, one with fast: the fit without the fast one is slow, without a slow one in between."""
    large = (1 << 21, 3 << 20)
    slow, fast = 1.25, 0.9
    rows = [*board("a", large, slow), *board("b", large, slow), *board("c", large, fast)]
    found = cross_validate(rows)
    assert {f.source: f.rows for f in found.folds} == {"a/boards": 2, "b/boards": 2, "c/boards": 2}
    by_source = {f.source: f for f in found.folds}
    rate = {s: max(u for k, u in f.slowness.items() if k.startswith("memory.")) for s, f in by_source.items()}
    assert rate["c/boards"] > rate["a/boards"]
    assert by_source["c/boards"].crossed > by_source["c/boards"].fitted  # the others say another thing
    signs = [r.crossed > r.row.measured for r in found.rows if r.source == "c/boards"]
    assert all(signs)
    assert found.groups["all"][0].rows == len(rows) == found.groups["drawn"][1].rows


@pytest.mark.exhaustive
def test_the_order_of_rows_changes_nothing_and_rows_of_one_repository_go_together():
    rows = [row(f"{s}{n}", f"{s}/x page {n}", n, n / 1e5) for s in "ab" for n in (1 << 15, 1 << 16)]
    found, turned = cross_validate(rows), cross_validate(rows[::-1])
    assert {r.row.id: r.crossed for r in found.rows} == pytest.approx(
        {r.row.id: r.crossed for r in turned.rows}
    )
    assert [source_of(r) for r in rows] == ["a/x", "a/x", "b/x", "b/x"]


def test_one_source_cannot_be_left_out_and_broken_rows_are_told():
    with pytest.raises(UsageError, match="1 sources with times in us, leaving one out needs 2 or more"):
        cross_validate([row("a", "me", 1 << 14)])
    rows = [row("a", "me", 1 << 14), row("b", "you", 1 << 14), replace(row("c", "you", 9), tiling="cores=x")]
    assert list(cross_validate(rows).failed) == ["c"]
    ignored = [replace(rows[0], id="d", excluded="hot"), replace(rows[0], id="e", unit="GB/s")]
    assert len(cross_validate([*rows, *ignored]).rows) == 2


@pytest.mark.exhaustive
def test_few_rows_of_the_table_are_crossed():
    """One small row of each source, as the whole would be."""
    small = sorted(
        (r for r in KERNELS if r.measured and r.measured < 60),
        key=lambda r: (r.op == "flash_attention", r.measured),
    )
    chosen = {
        source_of(r): r
        for r in small[::-1]
        if r.op in ("muls", "cast", "add", "memcpy", "rmsnorm", "reduce_mean")
    }
    found = cross_validate(list(chosen.values()))
    assert len(found.folds) == len(chosen) >= 3
    assert all(np.isfinite(r.crossed) and r.crossed > 0 for r in found.rows)
