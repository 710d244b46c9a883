"""The tutorial kernels against float64: types, ragged shapes, both ways of layer norm's backward pass, and time alone."""

from __future__ import annotations

import importlib
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels.tutorials import (
    attention,
    attention_backward,
    dropout,
    grouped_matmul,
    layer_norm,
    matmul,
    softmax,
    vector_add,
)
from ascendtile.kernels.tutorials.showing import drawn, error

DTYPES = [np.float32, np.float16, ml_dtypes.bfloat16]
# Of a result in that type, relative to the largest value: one rounding, and more for a sum of rounded parts.
ROUNDED = {np.float32: 1e-6, np.float16: 1e-3, ml_dtypes.bfloat16: 8e-3}
SUMMED = {np.float32: 2e-5, np.float16: 4e-3, ml_dtypes.bfloat16: 3e-2}
NAMES = ["vector_add", "softmax", "matmul", "dropout", "layer_norm"]
NAMES += ["attention", "attention_backward", "grouped_matmul"]
every_type = pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float16", "bfloat16"])


@pytest.fixture(autouse=True)
def values_only() -> Any:
    """Most of these tests look at numbers; time has tests of its own below."""
    with sim.device(time=False):
        yield


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


@every_type
@given(n=st.integers(1, 5000), block=st.sampled_from([16, 1000, 4096]))
def test_add_rounds_once(dtype: Any, n: int, block: int) -> None:
    x, y = drawn(1, n, dtype=dtype), drawn(2, n, dtype=dtype)
    with sim.device(time=False):
        out, _ = vector_add.add(x, y, block)
    assert np.array_equal(out, (wide(x) + wide(y)).astype(dtype))


@pytest.mark.drawn(1)
@every_type
@given(rows=st.integers(1, 60), columns=st.integers(1, 300))
def test_softmax(dtype: Any, rows: int, columns: int) -> None:
    x = drawn(1, rows, columns, dtype=dtype) * dtype(4)
    with sim.device(time=False):
        out, _ = softmax.softmax(x, programs=7)
    assert error(out, softmax.reference(x)) < ROUNDED[dtype]


@pytest.mark.drawn(6)
@every_type
@pytest.mark.parametrize("activation", ["", "leaky_relu"])
@pytest.mark.parametrize("shape", [(64, 64, 64), (100, 70, 33), (257, 40, 130)])
def test_matmul(dtype: Any, activation: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = drawn(1, m, k, dtype=dtype), drawn(2, k, n, dtype=dtype)
    out, _ = matmul.matmul(a, b, activation, block=(64, 32, 32))
    assert error(out, matmul.reference(a, b, activation)) < ROUNDED[dtype]


@given(down=st.integers(1, 12), across=st.integers(1, 12))
def test_grouped_order_visits_every_tile_once(down: int, across: int) -> None:
    """A tile that no program computed would stay at what the memory held, one visited twice leaves another out."""
    a, b = np.ones((16 * down, 16), np.float32), np.ones((16, 16 * across), np.float32)
    with sim.device(time=False):
        out, _ = matmul.matmul(a, b, block=(16, 16, 16))
    assert (out == 16).all()


@every_type
def test_dropout_keeps_what_the_seed_says(dtype: Any) -> None:
    """The same for a seed, in any blocks; the share that was asked for; the kept ones divided by the share kept."""
    x = np.abs(drawn(1, 20_000)).astype(dtype) + dtype(1)
    out, _ = dropout.dropout(x, 0.3, seed=5)
    again, _ = dropout.dropout(x, 0.3, seed=5, block=512)
    other, _ = dropout.dropout(x, 0.3, seed=6)
    kept = out != 0
    assert np.array_equal(out, again)
    assert (out != other).mean() > 0.2
    assert abs(kept.mean() - 0.7) < 0.015  # 4.6 standard deviations
    assert error(out[kept], wide(x[kept]) / 0.7) < ROUNDED[dtype]


@pytest.mark.drawn(2)
@every_type
@pytest.mark.parametrize("way", ["partial", "lock"])
@pytest.mark.parametrize("shape", [(1, 64), (13, 100), (40, 257)])
def test_layer_norm(dtype: Any, way: str, shape: tuple[int, int]) -> None:
    """All outputs; dw and db are float32 sums over rows, rounded at the end."""
    x, dy = (drawn(s, *shape, dtype=dtype) for s in (1, 2))
    w, b = (drawn(s, shape[1], dtype=dtype) for s in (3, 4))
    y, mean, rstd, _ = layer_norm.forward(x, w, b)
    *found, _ = layer_norm.backward(x, dy, w, mean, rstd, way, groups=4)
    expected = layer_norm.reference(x, w, b, dy)
    for name, got, want in zip(("y", "dx", "dw", "db"), (y, *found), expected, strict=True):
        assert error(got, want) < ROUNDED[dtype], name
        assert got.dtype == dtype


@pytest.mark.drawn(2)
@every_type
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [32, 50, 77])
def test_attention(dtype: Any, causal: bool, length: int) -> None:
    """Forward and backward. Probabilities pass through the storage type on the way to the Cube, hence the looser bound."""
    q, k, v, dout = (drawn(s, 2, length, 32, dtype=dtype) for s in (1, 2, 3, 4))
    out, lse, _ = attention.attention(q, k, v, causal, block=(16, 32))
    assert error(out, attention.reference(q, k, v, causal)) < SUMMED[dtype]
    *found, _ = attention_backward.attention_backward(q, k, v, out, lse, dout, causal, block=(32, 16))
    expected = attention_backward.reference(q, k, v, dout, causal)
    for name, got, want in zip(("dq", "dk", "dv"), found, expected, strict=True):
        assert error(got, want) < SUMMED[dtype], name


@pytest.mark.drawn(1)
@every_type
def test_grouped_matmul(dtype: Any) -> None:
    """Sizes of all kinds, more programs than tiles of some products."""
    sizes = [(70, 33, 50), (16, 16, 16), (1, 90, 7), (129, 64, 20)]
    pairs = [
        (drawn(s, m, k, dtype=dtype), drawn(s + 9, k, n, dtype=dtype)) for s, (m, n, k) in enumerate(sizes)
    ]
    out, _ = grouped_matmul.grouped_matmul(pairs, programs=5, block=(32, 32, 32))
    for (a, b), c in zip(pairs, out, strict=True):
        assert error(c, wide(a) @ wide(b)) < ROUNDED[dtype]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", NAMES)
def test_demonstrations_run_and_say_time(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As `python -m` runs them: values and time; every error they print is small."""
    module = importlib.import_module(f"ascendtile.kernels.tutorials.{name}")
    with sim.device(time=True):
        module.main()
    lines = capsys.readouterr().out.splitlines()
    errors = [float(line.split("error ")[1]) for line in lines if "error" in line]
    assert errors
    assert max(errors) < 1e-3
    assert any(" us, " in line and " 0.0 us" not in line for line in lines)


def test_time_alone_of_shapes() -> None:
    """No data, and the same cycles as with data."""
    x = drawn(1, 4096, dtype=np.float16)
    half = sim.shape(x.size, "float16")
    with sim.device(time=True):
        alone = vector_add.add_kernel.time((4,), half, half, half, x.size, BLOCK=1024)
        _, both = vector_add.add(x, x, block=1024)
        rows = sim.shape((64, 500), "float32")
        softmax_alone = softmax.softmax_kernel.time((40,), rows, rows, 64, 500, BLOCK=512)
        _, softmax_both = softmax.softmax(drawn(1, 64, 500))
        a = sim.shape((200, 100), "float16")
        matmul_alone = matmul.matmul_kernel.time(
            (4,), a, sim.shape((100, 200), "float16"), sim.shape((200, 200), "float16"), 200, 200, 100,
            BM=128, BN=128, BK=64, GROUP=8, ACTIVATION="",
        )  # fmt: skip
        half = np.float16
        _, matmul_both = matmul.matmul(drawn(1, 200, 100, dtype=half), drawn(2, 100, 200, dtype=half))
    assert alone.cycles == both.cycles > 0
    assert softmax_alone.cycles == softmax_both.cycles > 0
    assert matmul_alone.cycles == matmul_both.cycles > 0


def test_comparing_positions_as_floats_keeps_the_causal_mask_off_the_scalar_unit() -> None:
    """What the tutorial says: masking costs little more than no mask."""
    q = drawn(1, 1, 128, 64, dtype=np.float16)
    with sim.device(time=True):
        plain, causal = (attention.attention(q, q, q, masked)[2].cycles for masked in (False, True))
    assert causal < 1.5 * plain
