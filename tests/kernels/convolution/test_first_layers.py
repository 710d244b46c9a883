"""First layers: few channels, large kernels and strides. The image is read once, and windows are made of it in L1."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import convolution, convolution_backward

MIB = 1 << 20


def layer(channels, taps, stride, size=224, batch=4, dtype="float16"):
    """(input, weight, stride and padding) of a first layer of 64 channels."""
    x, w = (batch, channels, size, size), (64, channels, taps, taps)
    return sim.shape(x, dtype), sim.shape(w, dtype), {"stride": stride, "padding": taps // 2, "values": False}


def product_of(found, *kernels):
    return next(x for x in found.launches if x.kernel in kernels)


@pytest.mark.drawn(3)
@pytest.mark.parametrize(("channels", "taps", "stride"), [(3, 7, 2), (1, 7, 2), (3, 11, 4), (4, 4, 4)])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_image_is_read_about_once(channels, taps, stride, dtype):
    """Rows that neighbouring tiles share come twice; taps loaded one by one would read each position many times."""
    x, w, how = layer(channels, taps, stride, dtype=dtype)
    found = convolution(x, w, **how, tiling={"launches": "apart", "taps": "window"})
    blocks = 4 * 224 * 224 * 32  # bytes of the image in blocks of C0 channels
    assert loaded(found, "image_windows") < 3.5 * blocks + 8 * MIB


def loaded(found, kernel):
    """Bytes that a launch brings to L1."""
    return sum(product_of(found, kernel).core_bytes["AIC.GM to L1"])


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("channels", "taps", "stride"), [(3, 7, 2), (3, 11, 4)])
@pytest.mark.parametrize("product", ["ascend910b2", "ascend910a"])
def test_windows_are_chosen_and_are_faster_than_taps_one_by_one(channels, taps, stride, product):
    x, w, how = layer(channels, taps, stride)
    with sim.device(product):
        chosen, reload = (convolution(x, w, **how, tiling=t) for t in ({}, {"taps": "reload"}))
    assert chosen.tiling["taps"] == "window"
    assert chosen.time_us < 0.9 * reload.time_us


@pytest.mark.parametrize(("taps", "stride"), [(7, 2), (11, 4)])
def test_weights_that_fit_are_loaded_once_by_each_core(taps, stride):
    """Of twice as many images each core reads twice the image, and the same weights."""
    read = {}
    for batch in (24, 48):
        x, w, how = layer(3, taps, stride, size=56, batch=batch)
        read[batch] = loaded(
            convolution(x, w, **how, tiling={"launches": "apart", "cores": 4, "block_p": 112}),
            "image_windows",
        )
    weights = 4 * 64 * taps * taps * 16 * 2
    assert read[48] - read[24] < read[24]
    assert 2 * read[24] - read[48] >= 0.9 * weights


def test_the_gradient_of_a_weight_of_few_channels_takes_rows_of_taps_at_once():
    x, w, how = layer(3, 11, 4, dtype="float32")
    dy, mask = sim.shape((4, 64, 56, 56), "float32"), (False, True, False)
    read = {}
    for taps in (11, 22, 44):
        tiling = {"weight_taps": taps, "weight_m": 64, "weight_p": 112, "launches": "apart"}
        found = convolution_backward(dy, x, w, **how, output_mask=mask, tiling=tiling)
        assert found.tiling["weight_taps"] == taps
        read[taps] = loaded(found, "weight_tiles")
    assert read[44] < read[22] < read[11]
    chosen = convolution_backward(dy, x, w, **how, output_mask=mask, tiling={"launches": "apart"})
    assert chosen.time_us <= 1.05 * found.time_us


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("channels", "taps", "stride", "dilation"), [(3, 7, 2, 1), (1, 5, 3, 2), (4, 11, 4, 1)]
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_values_are_exact_for_integers(channels, taps, stride, dilation, dtype):
    """Against the sum over taps in float64."""
    g = np.random.default_rng(taps)
    x = g.integers(-2, 3, (2, channels, 34, 27)).astype(dtype)
    w = g.integers(-2, 3, (20, channels, taps, taps)).astype(dtype)
    found = convolution(x, w, stride=stride, padding=3, dilation=dilation, time=False, errors=False).outputs[
        "y"
    ]
    padded = np.pad(np.float64(x), ((0, 0), (0, 0), (3, 3), (3, 3)))
    down, across = found.shape[2:]
    want = np.zeros(found.shape)
    for i in range(taps):
        for j in range(taps):
            at = [
                slice(k * dilation, k * dilation + (n - 1) * stride + 1, stride)
                for k, n in ((i, down), (j, across))
            ]
            want += np.einsum("nchw,oc->nohw", padded[:, :, at[0], at[1]], np.float64(w[:, :, i, j]))
    np.testing.assert_array_equal(found, want.astype(dtype))
