"""Spaces beside a kernel: `tunable`, and the tuners of Triton as they are."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.triton_shim import tuning
from ascendtile.simulator.triton_shim.config import Config
from ascendtile.simulator.triton_shim.kernel import jit as triton_jit
from ascendtile.tiling import Space, explore, tunable
from ascendtile.tiling.kernel_problem import words_of

N = 50_000
ARGS = {"x_ptr": sim.shape((N,), "float32"), "y_ptr": sim.shape((N,), "float32"), "n": N}


def scaled(x_ptr, y_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr = False):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(y_ptr + at, tl.load(x_ptr + at) * 2.0)
    else:
        tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2.0, mask=at < n)


def programs(a):
    return (-(-a["n"] // a["BLOCK"]),)


def time_of(block, even=False):
    return sim.jit(scaled).time(programs({"n": N, "BLOCK": block}), **ARGS, BLOCK=block, EVEN=even).time_us


def test_a_space_declared_beside_the_kernel_is_that_of_its_sweep():
    kernel = tunable({"BLOCK": (512, 2048, 8192)}, lambda BLOCK: BLOCK > 512, grid=programs)(sim.jit(scaled))
    found = explore(kernel, ARGS)
    assert (found.size, found.legal) == (3, 2)
    assert found.best.time_us == min(time_of(b) for b in (2048, 8192))
    assert explore(kernel, ARGS, space={"multibuffer": (1, 2)}).size == 6
    with pytest.raises(
        UsageError, match=r"the space is empty: of 1 points 'lambda BLOCK: BLOCK > 512.* removed the last"
    ):
        explore(kernel, ARGS, space={"BLOCK": 512})


def test_arguments_in_order_and_values_as_any_collection():
    kernel = sim.jit(scaled)
    found = explore(kernel, list(ARGS.values()), grid=programs, space={"BLOCK": np.array([512, 2048])})
    assert [x.point for x in found.found] == [{"BLOCK": 512}, {"BLOCK": 2048}]
    assert type(found.best.point["BLOCK"]) is int


def test_a_space_brings_its_rules_also_for_an_operator():
    sizes = {"m": 96, "n": 64, "k": 128}
    space = Space(
        {"block_m": (16, 48), "block_n": (32, 64), "group": (1,)}, [lambda block_m, **_: block_m > 16]
    )
    found = explore("matmul", case=sizes, dtype="float16", space=space, budget=4)
    assert all(x.point["block_m"] == 48 for x in found.found)


def tuned(**options):
    configs = [Config({"BLOCK": b}, num_warps=w) for b, w in ((512, 4), (2048, 8), (8192, 4))]
    return tuning.autotune(configs, key=["n"], **options)


def test_candidates_with_heuristics_as_triton_runs_them():
    rule = {"EVEN": lambda a: a["n"] % a["BLOCK"] == 0}
    kernel = tuned()(tuning.heuristics(rule)(triton_jit(scaled)))
    found = explore(kernel, ARGS, grid=programs)
    assert found.failed == {}
    assert {x.point["BLOCK"]: x.time_us for x in found.found} == {b: time_of(b) for b in (512, 2048, 8192)}
    even = {**ARGS, "n": 8192 * 4}
    times = {
        b: sim.jit(scaled).time((-(-even["n"] // b),), **even, BLOCK=b, EVEN=True).time_us
        for b in (512, 8192)
    }
    again = {x.point["BLOCK"]: x.time_us for x in explore(kernel, even, grid=programs).found}
    assert {b: again[b] for b in times} == times


def test_candidates_that_the_tuner_prunes_are_counted():
    keep = {
        "early_config_prune": lambda configs, nargs, **_: [
            c for c in configs if c.kwargs["BLOCK"] < nargs["n"] // 10
        ]
    }
    found = explore(tuned(prune_configs_by=keep)(triton_jit(scaled)), ARGS, grid=programs)
    assert found.refused == {"pruned by the tuner's own prune_configs_by": 1}
    assert [x.point["BLOCK"] for x in found.found] == [512, 2048]


def test_candidates_cannot_be_given_other_values():
    kernel = tuned()(triton_jit(scaled))
    with pytest.raises(
        UsageError, match=r"candidates of triton.autotune already give 'BLOCK'.*explore scaled.fn"
    ):
        explore(kernel, ARGS, grid=programs, space={"BLOCK": (64, 128)})
    assert explore(kernel.fn, ARGS, grid=programs, space={"BLOCK": (512, 1024)}).size == 2


def test_functions_of_the_user_that_go_wrong_are_named():
    kernel = sim.jit(scaled)
    with pytest.raises(
        UsageError, match="scaled runs at none of the 2 points that were tried: KeyError: 'blok'"
    ):
        explore(kernel, ARGS, grid=lambda a: (a["blok"],), space={"BLOCK": (512, 2048)})
    with pytest.raises(UsageError, match=r"the rule .* does not judge the point .*ZeroDivisionError"):
        explore(kernel, ARGS, grid=programs, space={"BLOCK": (512,)}, constraint=lambda BLOCK: 1 // 0)


def test_a_kernel_without_a_space_or_a_grid():
    with pytest.raises(UsageError, match=r"give space=\{\.\.\.\}, .* or declare it beside the kernel"):
        explore(sim.jit(scaled), ARGS, grid=programs)
    with pytest.raises(UsageError, match="give grid="):
        explore(sim.jit(scaled), ARGS, space={"BLOCK": (512,)})


@sim.jit
def as_many_as_told(count_ptr, y_ptr, BLOCK: tl.constexpr):
    for k in range(tl.load(count_ptr)):
        tl.store(y_ptr + k * BLOCK + tl.arange(0, BLOCK), tl.zeros((BLOCK,), tl.float32))


def test_a_kernel_whose_time_depends_on_data_takes_copies():
    count, y = np.array([3], np.int32), np.ones(3 * 256, np.float32)
    found = explore(as_many_as_told, {"count_ptr": count, "y_ptr": y}, grid=(1,), space={"BLOCK": (64, 256)})
    assert found.failed == {}
    assert found.best.point == {"BLOCK": 64}
    assert (y == 1).all()


def test_what_a_grid_takes_from_around_it_is_part_of_the_problem():
    def grid_of(extra):
        return lambda a: (a["n"] // a["BLOCK"] + extra,)

    assert words_of(grid_of(1)) != words_of(grid_of(2))
    assert words_of(grid_of(1)) == words_of(grid_of(1))
