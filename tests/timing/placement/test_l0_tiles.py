"""Base tiles of tl.dot in L0A and L0B: chosen to fit twice, given ones kept, and refused where they cannot be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.language.extra.cann import buffer as bl
from ascendtile.simulator.language.extra.cann import extension as al
from ascendtile.simulator.products import product_names
from ascendtile.simulator.timing.costs.cube import CubeCosts

PRODUCT = "ascend910b3"


@sim.jit
def product_of(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((M, N), tl.float32)
    for first in range(0, K, BK):
        x = tl.load(a + i[:, None] * K + (first + k)[None, :])
        y = tl.load(b + (first + k)[:, None] * N + j[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + i[:, None] * N + j[None, :], acc)


@sim.jit
def with_a_buffer(a, c, M: tl.constexpr, SPACE: tl.constexpr):
    at = tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
    own = bl.alloc(tl.float16, [M, M], SPACE)  # noqa: F841
    x = tl.load(a + at)
    tl.store(c + at, tl.dot(x, x))


def timed(m, n, bk, k=256, product=PRODUCT, dtype="float16", **options):
    shapes = (sim.shape((m, k), dtype), sim.shape((k, n), dtype), sim.shape((m, n), "float32"))
    with sim.device(product, **options):
        return product_of.time((1,), *shapes, k, M=m, N=n, BK=bk)


# -- chosen ----------------------------------------------------------------------------------------------------------

SIDES = st.integers(1, 600)


@given(st.sampled_from(product_names()), SIDES, SIDES, SIDES, st.sampled_from(["fp16", "int8"]))
def test_a_chosen_tile_fits_twice_covers_the_product_and_keeps_the_fractals(name, m, n, k, operand):
    product = sim.load_product(name)
    costs = CubeCosts(product)
    tile, deep = costs.l0_tile(m, n, k, operand), costs.k_block(operand)[0]
    assert 2 * tile.l0a_bytes <= product.l0a_bytes
    assert 2 * tile.l0b_bytes <= product.l0b_bytes
    assert (tile.m % 16, tile.n % 16, tile.k % deep) == (0, 0, 0)
    whole = tile.m >= m, tile.n >= n, tile.k >= k
    size = {"fp16": 2, "int8": 1}[operand]
    deeper = 2 * (tile.k + deep) * size * max(tile.m / product.l0a_bytes, tile.n / product.l0b_bytes)
    assert all(whole) or deeper > 1 or whole[2]  # no deeper one would fit


# -- given -----------------------------------------------------------------------------------------------------------


def test_a_given_tile_is_the_one_that_is_taken():
    run = timed(128, 256, 128, l0_tile=(64, 128, 64))
    assert run.buffers["L0A"].peak_bytes == 2 * 64 * 64 * 2
    assert run.buffers["L0B"].peak_bytes == 2 * 64 * 128 * 2
    (left,), (right,) = run.buffers["L0A"].peak, run.buffers["L0B"].peak
    assert (left.name, left.shape, left.copies) == ("base tile of x", (64, 64), 2)
    assert (right.name, right.shape, right.copies) == ("base tile of y", (64, 128), 2)
    parts = 2 * 2 * 2 * (256 // 128)  # over M, N, K of a block, and blocks
    busy = CubeCosts(sim.load_product(PRODUCT))
    each = busy.startup + busy.switch + busy.mmad_cycles(64, 128, 64, "fp16")
    assert run.pipes["AIC.M"].busy_cycles == pytest.approx(parts * each)


def test_smaller_tiles_cost_more_start_ups_and_reload_operands():
    whole, cut = timed(128, 256, 64), timed(128, 256, 64, l0_tile=(32, 32, 64))
    assert cut.pipes["AIC.MTE1"].busy_cycles > 2 * whole.pipes["AIC.MTE1"].busy_cycles
    assert cut.cycles > whole.cycles


def test_a_tile_that_does_not_divide_says_what_is_left_over():
    words = timed(128, 256, 64, l0_tile=(48, 256, 64)).warnings
    assert any(
        "baseM = 48 does not divide the 128 of the product: the last of 3 tiles has 32" in w for w in words
    )
    assert not any("does not divide" in w for w in timed(128, 256, 64, l0_tile=(64, 256, 64)).warnings)


@pytest.mark.parametrize(
    ("tile", "words"),
    [
        ((100, 256, 64), r"baseM of fp16 operands must be a multiple of 16 .*got 100; take 96 or 112"),
        ((128, 8, 64), r"baseN of fp16 operands must be a multiple of 16 .*got 8; take 16"),
        ((128, 256, 30), r"baseK of fp16 operands must be a multiple of 16 .*got 30; take 16 or 32"),
        ((0, 256, 64), r"l0_tile must be None, or baseM, baseN and baseK: three integers from 1"),
        ((128, 256), r"l0_tile must be .* got \(128, 256\)"),
        ("abc", r"l0_tile must be .* got 'abc'"),
        ((16.0, 16, 16), r"l0_tile must be .* got \(16.0, 16, 16\)"),
    ],
)
def test_a_given_tile_off_the_fractals_is_refused_with_the_next_legal_ones(tile, words):
    with pytest.raises(sim.UsageError, match=words):
        timed(128, 256, 64, l0_tile=tile)


def test_the_depth_of_a_fractal_is_that_of_the_operand():
    assert timed(128, 128, 64, dtype="float32", l0_tile=(128, 128, 8)).cycles > 0
    with pytest.raises(sim.UsageError, match=r"baseK of fp32 operands must be a multiple of 8 .*got 12"):
        timed(128, 128, 64, dtype="float32", l0_tile=(128, 128, 12))


@pytest.mark.parametrize(
    ("tile", "words"),
    [
        (
            (128, 256, 128),
            r"test_l0_tiles.py:\d+:.*product_of on ascend910b3: l0b overflow, requires 1048576 bits while 524288 bits "
            r"available \(131072 against 65536 bytes\): two base tiles of baseN = 256 x baseK = 128, 65536 bytes each; the "
            r"largest that fits: baseN = 128 or baseK = 64",
        ),
        ((2048, 16, 16), r"l0a overflow, .*\(131072 against 65536 bytes\).* fits: baseM = 1024"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("values", [True, False])
def test_a_given_tile_that_does_not_fit_twice_is_refused_with_both_numbers(tile, words, values):
    import numpy as np

    a, b, c = (
        np.ones((128, 256), np.float16),
        np.ones((256, 256), np.float16),
        np.zeros((128, 256), np.float32),
    )
    with sim.device(PRODUCT, l0_tile=tile, time=not values), pytest.raises(sim.RunError, match=words):
        product_of[(1,)](a, b, c, 256, M=128, N=256, BK=64)
    assert not c.any()


@pytest.mark.parametrize("space", ["L0A", "L0B"])
def test_a_buffer_of_the_kernel_and_the_tiles_of_dot_share_l0(space):
    where = getattr(al.ascend_address_space, space)
    shapes = (sim.shape((160, 160), "float16"), sim.shape((160, 160), "float32"))
    with sim.device(PRODUCT), pytest.raises(sim.RunError) as found:
        with_a_buffer.time((1,), *shapes, M=160, SPACE=where)
    text = str(found.value)
    assert (
        f"{space.lower()} overflow, requires 901120 bits while 524288 bits available (112640 against 65536"
        in text
    )
    assert "51200 B  own [160, 160] fp16" in text
    assert "61440 B  base tile of x" in text
    with sim.device(PRODUCT, l0_tile=(48, 48, 48)):
        assert (
            with_a_buffer.time((1,), *shapes, M=160, SPACE=where).buffers[space].peak_bytes
            == 51200 + 2 * 48 * 48 * 2
        )


# -- products that do not fill the Cube --------------------------------------------------------------------------------


def test_a_product_that_does_not_fill_fractals_says_how_much_of_the_work_counts():
    words = timed(100, 48, 30, k=30).warnings
    assert any(
        "dot of [100, 30] and [30, 48]: the Cube computes whole fractals of 16 x 16 x 16, here [112, 32] and [32, 48]; "
        "84% of its work counts" in w
        for w in words
    )
    assert not any("fractals" in w for w in timed(96, 48, 32, k=32).warnings)


# -- L1 and L0C ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        ((512, 512, 64), r"l0c overflow, .*\(1048576 against 131072 bytes\)"
         r"[\s\S]*1048576 B  acc .*\n.*M = 64 \(now 512, a length of a: "),
        ((128, 128, 2048), r"l1 overflow, .*\(1048576 against 524032 bytes\)"
         r"[\s\S]*524288 B  x[\s\S]*BK = 512 \(now 2048, a length of a: "),
    ],
)  # fmt: skip
def test_an_overflow_of_the_cubes_buffers_has_both_numbers_what_is_alive_and_the_way_out(sides, words):
    with sim.device(compiler="ascendc"), pytest.raises(sim.RunError, match=words):
        timed(*sides, k=2048)
