"""Layout changes, transpositions and pools: the kernels move what they say, and any sizes are predicted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.kernels.validation.layouts import (
    image_to_blocks,
    matrix_to_fractals,
    weight_to_fractals,
)
from ascendtile.kernels.validation.pools import maxima, maxima_gradient
from ascendtile.kernels.validation.registry import predict
from ascendtile.kernels.validation.table import Row
from ascendtile.kernels.validation.vector.moves import rows_swapped, transposed
from ascendtile.simulator.errors import UsageError


def row(op, shapes, tiling, dtypes="fp32->fp32", product="ascend910b2"):
    return Row(
        "drawn", product, op, "drawn", shapes, dtypes, tiling, 1.0, "us", False, "A", "", "", "", "drawn"
    )


def padded(x, axis, to):
    width = [(0, -x.shape[k] % to if k == axis else 0) for k in range(x.ndim)]
    return np.pad(x, width)


@pytest.mark.parametrize("back", [False, True])
@given(n=st.integers(1, 3), c=st.integers(1, 20), p=st.integers(1, 30))
def test_images_go_to_blocks_of_channels_and_back(back, n, c, p):
    x = np.arange(1, 1 + n * c * p, dtype=np.float32).reshape(n, c, p)
    blocks = padded(x, 1, 8).reshape(n, -1, 8, p).transpose(0, 1, 3, 2).copy()
    plain, other = (np.zeros_like(x), blocks.copy()) if back else (x.copy(), np.full_like(blocks, -1))
    items = n * blocks.shape[1] * -(-p // 16)
    image_to_blocks[(2,)](plain, other, items, c, p, C0=8, BLOCK=16, BACK=back)
    np.testing.assert_array_equal(plain, x)
    np.testing.assert_array_equal(other, blocks)


@pytest.mark.parametrize("back", [False, True])
@given(
    n=st.integers(1, 20), c=st.integers(1, 10), taps=st.sampled_from((1, 9)), block=st.sampled_from((4, 16))
)
def test_weights_go_to_fractals_and_back(back, n, c, taps, block):
    x = np.arange(1, 1 + n * c * taps, dtype=np.float32).reshape(n, c, taps)
    whole = padded(padded(x, 1, 8), 0, 16)
    blocks = whole.reshape(len(whole), -1, 8, taps).transpose(1, 3, 0, 2).copy()
    plain, other = (np.zeros_like(x), blocks.copy()) if back else (x.copy(), np.full_like(blocks, -1))
    items = len(whole) // block * blocks.shape[0]
    weight_to_fractals[(2,)](plain, other, items, n, c, TAPS=taps, C0=8, BLOCK=block, BACK=back)
    np.testing.assert_array_equal(plain, x)
    np.testing.assert_array_equal(other, blocks)


@pytest.mark.parametrize("back", [False, True])
@given(m=st.integers(1, 40), n=st.integers(1, 40))
def test_matrices_go_to_fractals_and_back(back, m, n):
    x = np.arange(1, 1 + m * n, dtype=np.float32).reshape(m, n)
    blocks = padded(x, 1, 8).reshape(m, -1, 8).transpose(1, 0, 2).copy()
    plain, other = (np.zeros_like(x), blocks.copy()) if back else (x.copy(), np.full_like(blocks, -1))
    items = len(blocks) * -(-m // 16)
    matrix_to_fractals[(2,)](plain, other, items, m, n, C0=8, BLOCK=16, BACK=back)
    np.testing.assert_array_equal(plain, x)
    np.testing.assert_array_equal(other, blocks)


@given(a=st.integers(1, 3), b=st.integers(1, 20), c=st.integers(1, 20))
def test_two_axes_are_turned(a, b, c):
    x = np.arange(a * b * c, dtype=np.float32).reshape(a, b, c)
    out = np.zeros((a, c, b), np.float32)
    transposed[(2,)](x, out, a, b, c, c, HIGH=8, WIDE=16)
    np.testing.assert_array_equal(out, x.transpose(0, 2, 1))


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("size", "taps", "step", "rows"), [(7, 3, 2, 3), (6, 2, 2, 1), (6, 3, 1, 2), (8, 2, 3, 1)]
)
def test_a_pool_and_its_gradient_are_those_of_the_windows(size, taps, step, rows):
    x = (
        np.random.default_rng(0)
        .permutation(2 * size * size * 16)
        .astype(np.float32)
        .reshape(2, size, size, 16)
    )
    out = (size - taps) // step + 1
    y, first = np.zeros((2, out, out, 16), np.float32), np.zeros((2, out, out, 16), np.float16)
    windows = np.lib.stride_tricks.sliding_window_view(x, (taps, taps), (1, 2))[:, ::step, ::step]
    flat = windows.reshape(*windows.shape[:4], -1)
    numbers = {"OW": out, "K": taps, "STEP": step}
    maxima[(2,)](x, y, first, 2 * out // rows, W=size, OH=out, H=size, ROWS=rows, **numbers)
    np.testing.assert_array_equal(y, flat.max(axis=-1))
    np.testing.assert_array_equal(first, flat.argmax(axis=-1))
    dy, dx, want = np.ones_like(y), np.zeros_like(x), np.zeros_like(x)
    maxima_gradient[(2,)](dy, first, dx, 2, H=size, W=size, OH=out, ROWS=out, BANDS=1, **numbers)
    for at in np.ndindex(y.shape):
        i, j = divmod(int(first[at]), taps)
        want[at[0], at[1] * step + i, at[2] * step + j, at[3]] += 1
    np.testing.assert_array_equal(dx, want)
    for band in (1, 2):
        bands, cut = -(-size // (band * step)), np.zeros_like(x)
        maxima_gradient[(2,)](
            dy, first, cut, 2 * bands, H=size, W=size, OH=out, ROWS=band, BANDS=bands, **numbers
        )
        np.testing.assert_array_equal(cut, want)


sizes = st.tuples(st.integers(1, 40), st.integers(1, 100), st.integers(1, 30), st.integers(1, 30))


@given(
    sizes,
    st.sampled_from(("to=NC1HWC0", "from=NC1HWC0", "to=FRACTAL_Z", "from=FRACTAL_Z")),
    st.integers(1, 48),
)
def test_any_image_and_weight_is_predicted(shape, way, cores):
    shapes = "x".join(map(str, shape))
    assert predict(row("transdata", shapes, f"cores={cores} l2=warm buffers=1 {way}")).value > 0


@given(st.integers(1, 3000), st.integers(1, 3000), st.sampled_from(("to=FRACTAL_NZ", "from=FRACTAL_NZ")))
def test_any_matrix_is_predicted(m, n, way):
    assert predict(row("transdata", f"{m}x{n}", f"cores=40 l2=cold {way}", "bf16->bf16")).value > 0
    assert predict(row("transpose", f"2x{m}x{n}", "cores=48 l2=warm")).value > 0
    assert predict(row("avgpool", f"{m}x{n}", "cores=48 l2=warm")).value > 0


@given(
    n=st.integers(1, 8),
    c=st.integers(1, 64),
    size=st.integers(3, 40),
    taps=st.integers(1, 3),
    step=st.integers(1, 3),
)
def test_any_pool_is_predicted(n, c, size, taps, step):
    shapes = f"{n}x{c}x{size}x{size}x{taps}x{step}"
    for op in ("maxpool", "maxpool_grad"):
        assert predict(row(op, shapes, "cores=32 l2=warm buffers=1")).value > 0


@pytest.mark.parametrize(
    ("op", "shapes", "tiling", "words"),
    [
        ("transdata", "4x4x4x4", "cores=1", "needs one of to= and from="),
        ("transdata", "4x4x4x4", "cores=1 to=ND", "needs one of to= and from="),
        ("transdata", "4x4", "cores=1 to=NC1HWC0", "N x C x H x W"),
        ("maxpool", "1x1x2x2x3x1", "cores=1", "taps within the image"),
        ("maxpool", "1x1x2x2", "cores=1", "images x|n x c"),
        ("transpose", "4", "cores=1", "rows x columns"),
        ("avgpool", "4", "cores=1", "places x channels"),
    ],
)
def test_other_shapes_are_refused_in_words(op, shapes, tiling, words):
    with pytest.raises(UsageError, match=words):
        predict(row(op, shapes, tiling))


@given(st.tuples(*(st.integers(1, 9) for _ in range(4))), st.integers(1, 4), st.integers(1, 6))
def test_heads_and_places_change_places(shape, high, wide):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    y = np.full((shape[0], shape[2], shape[1], shape[3]), -1, np.float32)
    rows_swapped[(3,)](x, y, *shape, HIGH=high, WIDE=wide)
    np.testing.assert_array_equal(y, x.transpose(0, 2, 1, 3))
    assert predict(row("transpose", "x".join(map(str, shape)), "cores=40 l2=warm")).value > 0
