"""Tuners that list no candidates: which parameters divide which axis, sizes, and what is said where none can be made."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.triton_shim import kernel, tuning
from ascendtile.simulator.triton_shim.candidates import candidates


@kernel.jit
def copied(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@kernel.jit
def rows_of(x, out, rows, columns, PER: tl.constexpr, SUB: tl.constexpr, W: tl.constexpr):
    pid = tl.program_id(0)
    first = pid * PER
    for k in tl.range(0, PER, SUB):
        row = first + k + tl.arange(0, SUB)
        total = tl.zeros((SUB,), tl.float32)
        for c in range(0, columns, W):
            at = c + tl.arange(0, W)
            mask = (row[:, None] < rows) & (min(columns, 10**6) > at[None, :])
            total += tl.sum(tl.load(x + row[:, None] * columns + at[None, :], mask=mask, other=0), 1)
        tl.store(out + row, total, mask=row < rows)


@kernel.jit
def unmasked(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i))


def made(
    fn: Any, key: Any, missing: list[str], grid: Any = len, hints: Any = None, **given: Any
) -> list[dict]:
    x = sim.shape(1, "float32")
    found = candidates(fn, key, hints or {}, {"x": x, "out": x, **given}, missing, grid)
    return [c.kwargs for c in found]


def test_a_split_goes_from_a_cores_share_downwards() -> None:
    sizes = [c["B"] for c in made(copied, ["n"], ["B"], n=100_000)]
    assert sizes[0] == 2512  # 100 000 over 40 cores, in whole blocks
    assert all(a > b for a, b in itertools.pairwise(sizes))
    assert all(b % 16 == 0 for b in sizes)
    huge = [c["B"] for c in made(copied, ["n"], ["B"], n=10**9)]
    assert huge[0] == 196_608 // 4 // 2  # half of UB


def test_a_grid_that_is_no_function_leaves_one_share() -> None:
    assert made(copied, ["n"], ["B"], grid=(8,), n=1000) == [{"B": 128}]


def test_rows_are_split_and_tiled_and_columns_tiled() -> None:
    found = made(rows_of, ["rows", "columns"], ["PER", "SUB", "W"], rows=400, columns=48)
    assert {c["PER"] for c in found} == {16, 8, 4}  # 10 rows for each of 40 cores
    assert all(c["SUB"] <= c["PER"] for c in found)
    assert {c["W"] for c in found} == {48, 32, 16, 8, 4, 2}
    given = made(rows_of, ["rows", "columns"], ["PER", "SUB"], rows=400, columns=48, W=16)
    assert given[0] == {"PER": 16, "SUB": 16}


def test_hints_stand_in_for_what_the_source_does_not_say() -> None:
    hints = {"split_params": {"x": "B"}, "tiling_params": {}, "low_dim_axes": ["x"], "reduction_axes": []}
    assert made(unmasked, {"x": "n"}, ["B"], hints=hints, n=640)[0] == {"B": 16}
    with pytest.raises(
        sim.UsageError, match=r"lists no candidates, and B is missing .* of `key` \(n\). List some"
    ):
        made(unmasked, ["n"], ["B"], n=640)


def test_a_tuner_makes_them_once_for_each_key_and_takes_the_best() -> None:
    x = np.arange(600, dtype=np.float32)
    out = np.zeros_like(x)
    tuned = tuning.autotune(configs=[], key=["n"])(copied)
    for n in (600, 320):
        out[:] = 0
        tuned[lambda meta: (-(-meta["n"] // meta["B"]),)](x, out, n)
        assert (out[:n] == x[:n]).all()
        assert not out[n:].any()
        assert tuned.best_config.kwargs in [t.config.kwargs for t in tuned.ranking]
        times = [t.time_us for t in tuned.ranking]
        assert times == sorted(times)
    assert len(tuned.rankings) == 2


def test_what_is_given_or_computed_is_not_made() -> None:
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    tuned = tuning.autotune(configs=[], key=["n"], split_params={"x": "B"}, low_dims=["x"])(
        tuning.heuristics({"B": lambda a: 32})(copied)
    )
    run = tuned[(2,)](x, out, 64)
    assert run.tiling == {"B": 32}
    assert tuned.configs == [tuning.Config({})]
