"""What the undefined order of atomics does to results."""

import numpy as np
import pytest

from ascendtile import simulator as sim
from ascendtile.simulator import language as tl


@sim.jit
def add_parts(part_ptr, out_ptr, N: tl.constexpr):
    cols = tl.arange(0, N)
    tl.atomic_add(out_ptr + cols, tl.load(part_ptr + tl.program_id(0) * N + cols))


@sim.jit
def add_twice(part_ptr, out_ptr, N: tl.constexpr):
    cols = tl.arange(0, N)
    for k in range(2):
        tl.atomic_add(out_ptr + cols, tl.load(part_ptr + (tl.program_id(0) * 2 + k) * N + cols))


def parts(rows):
    return np.random.default_rng(3).standard_normal((rows, 16)).astype(np.float32)


def run(kernel, given, programs, dtype=np.float32, **options):
    out = np.zeros(16, dtype)
    with sim.device(**options):
        record = kernel[(programs,)](given, out, N=16)
    return out, record


def in_order(given, order, each=1):
    out = np.zeros(16, np.float32)
    for p in order:
        for row in given[p * each : (p + 1) * each]:
            out = out + row
    return out


@pytest.mark.parametrize(("kernel", "each"), [(add_parts, 1), (add_twice, 2)])
def test_the_order_is_ascending_without_a_seed_and_the_seeds_permutation_with_one(kernel, each):
    given = parts(20 * each)
    assert np.array_equal(run(kernel, given, 20)[0], in_order(given, range(20), each))
    order = np.random.Generator(np.random.PCG64(5)).permutation(20)
    assert np.array_equal(run(kernel, given, 20, atomic_seed=5)[0], in_order(given, order, each))


def test_every_order_that_a_seed_draws_is_a_sum_of_all_parts():
    given = np.round(parts(20) * 16)  # sums of small integers are exact in any order
    for seed in range(5):
        assert np.array_equal(run(add_parts, given, 20, atomic_seed=seed)[0], given.sum(0))


def test_the_run_names_the_order():
    assert "ascending" in run(add_parts, parts(3), 3)[1].options["atomic_order"]
    assert "seed 7" in run(add_parts, parts(3), 3, atomic_seed=7)[1].options["atomic_order"]


def test_the_seed_changes_neither_cycles_nor_other_kernels():
    given = parts(20)
    assert run(add_parts, given, 20)[1].cycles == run(add_parts, given, 20, atomic_seed=1)[1].cycles


def test_spread_measures_from_the_ascending_order():
    given = parts(20)
    spread = sim.atomic_spread(lambda: {"out": run(add_parts, given, 20)[0]}, seeds=6)["out"]
    base = in_order(given, range(20))
    moved = []
    for seed in range(6):
        order = np.random.Generator(np.random.PCG64(seed)).permutation(20)
        ulp = 2.0 ** (np.floor(np.log2(np.abs(base.astype(np.float64)))) - 23)
        moved.append((in_order(given, order).astype(np.float64) - base) / ulp)
    moved = np.array(moved)
    assert spread.max_ulp == moved.max() > 0
    assert spread.min_ulp == moved.min() < 0
    assert spread.std_ulp == pytest.approx(np.sqrt((moved**2).mean()))
    assert spread.differing == np.count_nonzero((moved != 0).any(0))
    assert np.abs(moved[:, spread.worst_index[0]]).max() == np.abs(moved).max()


def test_no_atomics_no_spread():
    x = parts(4)
    spread = sim.atomic_spread(lambda: {"x": x.copy()}, seeds=3)["x"]
    assert (spread.differing, spread.std_ulp, spread.worst_index) == (0, 0.0, None)


@pytest.mark.parametrize("seeds", [0, -1, True, 2.5, 10**9])
def test_seeds_are_counted(seeds):
    with pytest.raises(sim.UsageError, match="seeds must be a number from 1"):
        sim.atomic_spread(dict, seeds=seeds)


@pytest.mark.parametrize("seed", [-1, True, "3"])
def test_a_seed_is_an_integer(seed):
    with (
        pytest.raises(sim.UsageError, match="atomic_seed must be an integer from 0"),
        sim.device(atomic_seed=seed),
    ):
        pass


def test_a_computation_that_gives_no_tensors_is_refused():
    with pytest.raises(sim.UsageError, match="must give tensors by name"):
        sim.atomic_spread(lambda: 3)
    with pytest.raises(sim.UsageError, match="'out' is a float, not a tensor"):
        sim.atomic_spread(lambda: {"out": 3.0})
