"""Products whose addresses need tiles of integers: those are made on a vector core, which then has to be there."""

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl


@sim.jit
def product(a, b, c, M, K: tl.constexpr, B: tl.constexpr):
    """Rows that wrap round at M, as the tutorial's product has them, which no mask of a store brings into UB."""
    row = (tl.program_id(0) * B + tl.arange(0, B)) % M
    k, column = tl.arange(0, K), tl.arange(0, B)
    x = tl.load(a + row[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * B + column[None, :])
    out = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(c + out[:, None] * B + column[None, :], tl.dot(x, y).to(tl.float16), mask=out[:, None] < M)


@pytest.mark.parametrize("product_name", ["ascend910b3", "ascend310p"])
def test_offsets_that_no_formula_describes_are_made_on_a_vector_core(product_name: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((40, 32)).astype(np.float16), rng.standard_normal((32, 16)).astype(np.float16)
    c = np.zeros((40, 16), np.float16)
    with sim.device(product_name):
        run = product[(3,)](a, b, c, 40, K=32, B=16)
    np.testing.assert_allclose(c, a.astype(float) @ b.astype(float), rtol=2e-3, atol=2e-3)
    on_cube_only = {name for name in run.pipes if name.startswith("AIC.")} == set(run.pipes)
    assert not on_cube_only
    made = next(c for c in run.lines if "% M" in c.source)
    assert sum(cycles for pipe, cycles in made.busy.items() if not pipe.startswith("AIC.")) > 16 * 1


@sim.jit
def product_and_tile(a, b, x, out, STEPS: tl.constexpr, B: tl.constexpr, KEEP: tl.constexpr):
    i = tl.arange(0, 64)
    for iteration in range(STEPS):
        p = tl.dot(tl.load(a + i[:, None] * 64 + i[None, :]), tl.load(b + i[:, None] * 64 + i[None, :]))
        big = tl.load(x + iteration * B + tl.arange(0, B))
        tl.store(out + iteration * B + tl.arange(0, B), big + (tl.sum(p) if KEEP else 0.0))


def test_a_kernel_with_products_does_with_one_copy_of_its_tiles_in_ub() -> None:
    """The vendor's compiler gives copies to the Cube's side only by default; what overflows for them fits here, too."""
    a = np.eye(64, dtype=np.float16)
    for size, one_copy in ((4096, False), (49152, True)):
        x = np.arange(2 * size, dtype=np.float32)
        out = np.zeros_like(x)
        with sim.device(compiler="ascendc"):
            run = product_and_tile[(1,)](a, a, x, out, STEPS=2, B=size, KEEP=True)
        np.testing.assert_array_equal(out, x + 64)
        assert any("one copy" in n for n in run.notes) == one_copy
    with sim.device(compiler="ascendc"), pytest.raises(sim.RunError, match="ub overflow"):
        product_and_tile.time(
            (1,), a, a, *(sim.shape((196608,), "float32") for _ in "xy"), STEPS=2, B=98304, KEEP=True
        )
