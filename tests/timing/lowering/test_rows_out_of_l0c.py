"""Rows of a product on their way out of L0C: the fixpipe takes its time for each, in whatever shape they are stored."""

import pytest

import ascendtile.simulator as sim
from ascendtile.simulator import language as tl

P = sim.load_product("ascend910b3")
ROW = P.number("path.l0c_to_gm.row_cycles")
M, K = 64, 64


@sim.jit
def product(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PARTS: tl.constexpr):
    """c = a @ b, its columns stored as PARTS axes of an image that lie one after the other."""
    rows, cols, deep = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + rows[:, None] * K + deep[None, :])
    b = tl.load(b_ptr + deep[:, None] * N + cols[None, :])
    c = tl.reshape(tl.dot(a, b).to(c_ptr.dtype.element_ty), (M, PARTS, N // PARTS))
    part, at = tl.arange(0, PARTS), tl.arange(0, N // PARTS)
    tl.store(c_ptr + rows[:, None, None] * N + part[None, :, None] * (N // PARTS) + at[None, None, :], c)


def fixpipe(n: int, parts: int) -> float:
    tensors = (sim.shape(s, "float16") for s in ((M, K), (K, n), (M, n)))
    with sim.device("ascend910b3"):
        run = product.time((1,), *tensors, M=M, N=n, K=K, PARTS=parts)
    return float(run.launches[0].pipes["AIC.FIXP"].busy_cycles)


@pytest.mark.parametrize("n", [64, 128])
def test_a_row_of_a_product_is_one_row_whatever_shape_it_is_stored_in(n):
    assert fixpipe(n, 2) == fixpipe(n, 1) == pytest.approx(M * ROW, rel=0.3)
