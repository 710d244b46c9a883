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
    scalar = [p for name, p in run.pipes.items() if name.endswith(".S") and not name.startswith("AIC")]
    assert scalar[0].busy_cycles > 0
