"""Cycles lost to bank conflicts, core by core: what a product without that sort of conflict would have saved."""

from __future__ import annotations

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.record.loading import load_run
from ascendtile.simulator.record.saving import save_run

RULES = {"bank group": "ub_banks.read_read_conflict", "bank": "ub_banks.read_write_conflict"}


@sim.jit
def uneven(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Program p goes p + 1 times round, and odd ones do more."""
    program = tl.program_id(0)
    for iteration in range(program + 1):
        at = iteration * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n)
        y = tl.load(y_ptr + at, mask=at < n)
        total = x + y
        if program % 2 == 1:
            total = total * x
        tl.store(out_ptr + at, tl.maximum(total, y), mask=at < n)


@sim.jit
def column_sums(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out_ptr + tl.arange(0, COLUMNS), tl.sum(tl.load(x_ptr + at), 0))


def core_figures(call, **changed):
    overrides = {"ub_banks.read_read_conflict": "same group", "ub_banks.read_write_conflict": "same bank"}
    with sim.device("ascend910b3", multibuffer=1, banks_apart=False, overrides={**overrides, **changed}):
        return call().launches[0].pipes["AIV.V"]


def uneven_call(dtype, block):
    x = sim.shape(64 * block, dtype)
    return lambda: uneven.time((7,), x, x, x, 64 * block, BLOCK=block)


CALLS = {
    "half, one area": uneven_call("float16", 8064),
    "half, whole iterations": uneven_call("float16", 16384),
    "single, partly masked": uneven_call("float32", 1000),
    "brain floats": uneven_call("bfloat16", 4096),
    "folds": lambda: column_sums.time(
        (1,), sim.shape(64 * 256, "float32"), sim.shape(256, "float32"), ROWS=64, COLUMNS=256
    ),
}


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", RULES)
def test_conflicts_are_what_a_product_without_them_saves_on_each_core(name, kind):
    found = core_figures(CALLS[name])
    free = core_figures(CALLS[name], **{RULES[kind]: "none"})
    saved = [a - b for a, b in zip(found.core_busy, free.core_busy, strict=True)]
    assert found.core_conflicts[kind] == pytest.approx(saved, abs=1e-6)
    assert free.core_conflicts[kind] == (0.0,) * len(saved)


def test_both_kinds_are_met_by_these_kernels():
    """So that the test above compares more than zeros."""
    for kind in RULES:
        assert any(sum(core_figures(call).core_conflicts[kind]) > 0 for call in CALLS.values())
    uneven_cores = core_figures(CALLS["half, one area"]).core_conflicts["bank"]
    assert len({x for x in uneven_cores if x}) == 7


def test_a_record_keeps_them_and_a_run_without_timeline_has_none(tmp_path):
    x = sim.shape(8064, "float16")
    with sim.device("ascend910b3", multibuffer=1):
        run = uneven.time((1,), x, x, x, 8064, BLOCK=8064)
    with sim.device("ascend910b3", multibuffer=1, timeline=0):
        plain = uneven.time((1,), x, x, x, 8064, BLOCK=8064)
    save_run(run, tmp_path / "x.run")
    kept = load_run(tmp_path / "x.run").launches[0].pipes
    assert kept["AIV.V"].core_conflicts == run.launches[0].pipes["AIV.V"].core_conflicts
    assert sum(kept["AIV.V"].core_conflicts["bank"]) > 0
    assert kept["AIV.MTE2"].core_conflicts == {}
    assert plain.launches[0].pipes["AIV.V"].core_conflicts == {}
