"""Block formats: scales and elements by the standards' rules, storage, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import ascendtile.simulator as sim
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision.block_formats import BLOCK_FORMATS, BlockFormat, get_block_format
from ascendtile.simulator.precision.code_tables import pack, unpack
from ascendtile.simulator.precision.rounding import decode, round_to

MX = [f for f in BLOCK_FORMATS.values() if f.scale.name == "e8m0"]
# OCP MX 1.0, table 1: element, its bits, elements a block; emax of the elements: table 5 and section 5.3.
STANDARD = {
    "mxfp8_e5m2": ("e5m2", 8, 15),
    "mxfp8_e4m3": ("e4m3", 8, 8),
    "mxfp6_e3m2": ("e3m2", 6, 4),
    "mxfp6_e2m3": ("e2m3", 6, 2),
    "mxfp4": ("e2m1", 4, 2),
    "mxint8": ("q1.6", 8, 0),
}


def drawn(shape: tuple[int, ...], seed: int = 0, spread: float = 8) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * np.exp2(rng.uniform(-spread, spread, shape))).astype(np.float32)


def test_the_formats_of_the_standard() -> None:
    assert {f.name: (f.element.name, f.element.bits) for f in MX} == {
        n: row[:2] for n, row in STANDARD.items()
    }
    assert all(f.block == 32 for f in MX)
    assert [BLOCK_FORMATS[n].bits_per_element for n in ("mxfp4", "nvfp4", "mxfp8_e4m3")] == [4.25, 4.5, 8.25]


@pytest.mark.parametrize("fmt", MX, ids=str)
def test_scales_are_two_to_the_exponent_of_the_largest_less_that_of_the_format(fmt: BlockFormat) -> None:
    x = drawn((5, 96))
    scales = decode(fmt.quantise(x).scales)
    for row, block in np.ndindex(5, 3):
        amax = float(np.abs(x[row, block * 32 : block * 32 + 32]).max())
        assert scales[row, block] == 2.0 ** (math.floor(math.log2(amax)) - STANDARD[fmt.name][2])


@pytest.mark.parametrize("fmt", BLOCK_FORMATS.values(), ids=str)
@pytest.mark.parametrize("axis", [0, 1, -2])
def test_elements_are_values_over_scales_rounded_once(fmt: BlockFormat, axis: int) -> None:
    x = drawn((64, 96), 1)
    blocks = fmt.quantise(x, axis)
    along = np.repeat(decode(blocks.scales).astype(np.float64), fmt.block or 0, axis) * blocks.tensor_scale
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = np.where(along == 0, 0, x / along)
    elements = round_to(scaled, fmt.element, overflow="clamp")
    assert np.array_equal(decode(blocks.codes), elements)
    assert np.array_equal(blocks.values(), (elements * along).astype(np.float32))
    assert blocks.codes.dtype == fmt.element.dtype
    assert blocks.scales.dtype == fmt.scale.dtype


@given(
    seed=st.integers(0, 1000),
    n=st.integers(1, 70),
    name=st.sampled_from([*BLOCK_FORMATS, "int4/fp16/8", "int8/fp32/axis", "hif8/e5m2/16"]),
)
def test_errors_are_at_most_half_a_unit_of_the_largest(seed: int, n: int, name: str) -> None:
    """Or, where the scale lets the largest be clamped, its distance from what is held."""
    fmt = get_block_format(name)
    x = drawn((3, n), seed, 3)
    blocks = fmt.quantise(x)
    scales = (
        np.repeat(decode(blocks.scales).astype(np.float64), blocks.block, -1)[:, :n] * blocks.tensor_scale
    )
    most, least = float(fmt.element.max), float(fmt.element.min)
    held = np.clip(x, least * scales, most * scales)
    unit = np.where(scales == 0, 1, scales) * np.nan_to_num(fmt.element.ulp(most))
    assert (np.abs(blocks.values() - held) <= unit * (1 if fmt.element.taper else 0.5) * (1 + 1e-12)).all()


def test_quantising_again_changes_nothing() -> None:
    for fmt in MX:
        once = fmt.quantise(drawn((4, 64), 3)).values()
        assert np.array_equal(fmt.quantise(once).values(), once)


def test_nvfp4_of_numbers_beyond_float32_stops_at_its_largest() -> None:
    blocks = get_block_format("nvfp4").quantise(np.full(16, 1e300))
    assert blocks.tensor_scale == np.finfo(np.float32).max
    assert (blocks.values() == np.inf).all()


@given(codes=st.lists(st.integers(-8, 7), min_size=1, max_size=9))
def test_codes_of_integers_are_packed_without_what_repeats_their_sign(codes: list[int]) -> None:
    packed = pack(np.array(codes, np.int8), 4)
    assert unpack(packed, 4, len(codes)).tolist() == [c % 16 for c in codes]
    assert np.array_equal(packed, pack(np.array(codes).astype(ml_dtypes.int4), 4))


def test_nvfp4_has_a_scale_of_the_tensor() -> None:
    """arXiv 2509.25149: amax / (6 * 448) for the tensor, amax / 6 over it in E4M3 for a block."""
    x = drawn((2, 32), 4)
    blocks = get_block_format("nvfp4").quantise(x)
    whole = np.float32(np.abs(x).max() / np.float64(6 * 448))
    assert blocks.tensor_scale == whole
    amax = np.abs(x.reshape(2, 2, 16)).max(-1).astype(np.float64)
    expected = (amax / 6 / float(whole)).astype(ml_dtypes.float8_e4m3fn)
    assert np.array_equal(blocks.scales.view(np.uint8), expected.view(np.uint8))
    assert blocks.bytes == 2 * 16 + 4 + 4


def test_integers_are_symmetric() -> None:
    x = np.array([[-1.0, 0.5, 1.0, 0.0], [100, -3, 7, 50]], np.float32)
    by_token = get_block_format("int8/fp32/axis").quantise(x)
    assert by_token.codes.tolist() == [[-127, 64, 127, 0], [127, -4, 9, 64]]
    by_channel = get_block_format("int8/fp32/axis").quantise(x, axis=0)
    assert by_channel.scales.shape == (1, 4)
    by_tensor = get_block_format("int8/fp32/axis").quantise(x, axis=None)
    assert by_tensor.scales.shape == (1,)
    assert by_tensor.codes.tolist() == [[-1, 1, 1, 0], [127, -4, 9, 64]]
    by_group = get_block_format("int4/fp16/2").quantise(x)
    assert by_group.codes.dtype == ml_dtypes.int4
    assert by_group.scales.shape == (2, 2)
    assert by_group.bytes == 4 + 8


def test_a_last_block_is_filled_with_zeros_and_says_so() -> None:
    x = drawn((2, 40), 5)
    fmt = get_block_format("mxfp4")
    blocks = fmt.quantise(x)
    assert (blocks.codes.shape, blocks.scales.shape, blocks.padding) == ((2, 40), (2, 2), 24)
    assert "24 zeros in the last of each row" in repr(blocks)
    padded = fmt.quantise(np.pad(x, ((0, 0), (0, 24))))
    assert np.array_equal(padded.values()[:, :40], blocks.values())
    assert padded.bytes == blocks.bytes == 2 * (32 + 2)


@pytest.mark.parametrize("name", [*BLOCK_FORMATS, "int8/fp32/axis"])
def test_zeros_and_empty_tensors(name: str) -> None:
    fmt = get_block_format(name)
    assert not fmt.quantise(np.zeros((2, 64))).values().any()
    assert fmt.quantise(np.zeros((0, 64))).values().shape == (0, 64)
    assert fmt.quantise(np.zeros((3, 0))).values().shape == (3, 0)


def test_nan_and_infinity_keep_a_code_or_take_the_scale() -> None:
    x = np.ones((1, 64), np.float32)
    x[0, :3] = [np.nan, np.inf, -np.inf]
    with_both = get_block_format("mxfp8_e5m2").quantise(x).values()
    assert np.array_equal(with_both[0, :4], [np.nan, np.inf, -np.inf, 1], equal_nan=True)
    with_nan = get_block_format("mxfp8").quantise(x).values()
    assert np.array_equal(with_nan[0, :4], [np.nan, np.nan, np.nan, 1], equal_nan=True)
    with_none = get_block_format("mxfp4").quantise(x)
    assert with_none.scales.view(np.uint8).tolist() == [[0xFF, 125]]
    assert np.isnan(with_none.values()[0, :32]).all()
    assert (with_none.values()[0, 32:] == 1).all()


def test_scales_stop_at_the_ends_of_e8m0() -> None:
    fmt = get_block_format("mxfp8")
    tiny = fmt.quantise(np.full(32, 2.0**-140))
    assert tiny.scales.view(np.uint8).tolist() == [0]
    assert (tiny.values() == 0).all()  # 2^-140 over 2^-127 is below half of the smallest element
    assert fmt.quantise(np.full(32, 2.0**127)).scales.view(np.uint8).tolist() == [127 + 127 - 8]


def test_codes_of_a_format_are_its_values() -> None:
    x = drawn((2, 64), 8)
    stored = sim.encode(x, "hif8")
    fmt = get_block_format("mxfp4")
    assert np.array_equal(fmt.quantise(stored).values(), fmt.quantise(sim.decode(stored)).values())


def test_stochastic_elements_are_one_of_the_neighbours_and_right_in_the_mean() -> None:
    x = np.full((1, 32), 1.3, np.float32)
    x[0, 0] = 6.0  # scale 1
    fmt = get_block_format("mxfp4")
    got = np.concatenate([fmt.quantise(x, mode="STOCHASTIC", seed=s).values()[0, 1:] for s in range(200)])
    assert set(got.tolist()) == {1.0, 1.5}
    assert abs(got.mean() - 1.3) < 5 * 0.25 / math.sqrt(len(got))
    again = fmt.quantise(x, mode="STOCHASTIC", seed=0).values()[0, 1:]
    assert np.array_equal(again, got[:31])


def test_given_scales_are_taken() -> None:
    x = drawn((2, 64), 6, 1)
    blocks = get_block_format("mxfp4").quantise(x, scales=np.full((2, 2), 0.5))
    assert np.array_equal(blocks.values(), round_to(x / 0.5, "e2m1", overflow="clamp") * 0.5)


def test_parts_survive_an_archive(tmp_path: Any) -> None:
    x = drawn((4, 64), 7)
    for name in ("mxint8", "hif8/e5m2/16"):
        fmt = get_block_format(name)
        blocks = fmt.quantise(x)
        np.savez(tmp_path / "x.npz", codes=blocks.codes, scales=np.asarray(blocks.scales).view(np.uint8))
        with np.load(tmp_path / "x.npz", allow_pickle=False) as kept:
            again = fmt.blocks(kept["codes"], kept["scales"].view(fmt.scale.dtype))
        assert np.array_equal(again.values(), blocks.values())


@given(bits=st.sampled_from([2, 4, 6]), rows=st.integers(0, 3), n=st.integers(0, 9), seed=st.integers(0, 99))
def test_packed_codes_come_back(bits: int, rows: int, n: int, seed: int) -> None:
    codes = np.random.default_rng(seed).integers(0, 1 << bits, (rows, n), dtype=np.uint8)
    packed = pack(codes, bits)
    assert packed.shape == (rows, -(-n * bits // 8))
    assert np.array_equal(unpack(packed, bits, n), codes)
    for at in range(n):  # the first in the lowest bits
        whole = [int.from_bytes(row.tobytes(), "little") for row in packed]
        assert [w >> at * bits & (1 << bits) - 1 for w in whole] == codes[:, at].tolist()


def test_parts_of_a_block_format_are_formats_or_their_names() -> None:
    assert BlockFormat("e2m1", "e8m0", 32) == BlockFormat(sim.get_format("e2m1"), sim.get_format("e8m0"), 32)  # type: ignore[arg-type]


@pytest.mark.parametrize("block", ["axis", 2.0, True])
def test_the_size_of_a_block_is_a_whole_number(block: Any) -> None:
    with pytest.raises(UsageError, match=f"block {block!r}: elements that share a scale, or None for all"):
        BlockFormat("e4m3", "fp32", block)  # type: ignore[arg-type]


@pytest.mark.parametrize("axis", [1.5, True, "rows"])
def test_the_axis_of_blocks_is_a_whole_number(axis: Any) -> None:
    with pytest.raises(UsageError, match=f"axis {axis!r}: a whole number, or None"):
        get_block_format("mxfp4").quantise(np.ones((2, 32)), axis=axis)


@pytest.mark.parametrize("which", [3, None])
def test_what_is_no_name_is_an_unknown_block_format(which: Any) -> None:
    with pytest.raises(UsageError, match=f"unknown block format '{which}': known are"):
        get_block_format(which)


def bad_scales() -> object:
    fmt = get_block_format("int8/fp32/axis")
    return fmt.blocks(np.zeros((2, 3), np.int8), np.array([[1.0], [np.nan]], np.float32))


def nvfp4_with(tensor_scale: Any) -> object:
    blocks = get_block_format("nvfp4").quantise(np.ones(16))
    return blocks.format.blocks(blocks.codes, blocks.scales, tensor_scale=tensor_scale)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: get_block_format("mxfp5"),
            r"unknown block format 'mxfp5': known are mxfp8_e4m3, .*ELEMENT/SCALE",
        ),
        (lambda: get_block_format("e4m3/e8m0/x"), r"block 'x': elements that share a scale, or axis"),
        (lambda: get_block_format("e4m3/e8m0/0"), r"block of 0; at least 1 element"),
        (lambda: get_block_format("e4m3/int8/32"), r"scales in int8; they take a floating-point format"),
        (
            lambda: get_block_format("fp32/fp32/32"),
            r"elements in fp32; they take a format of at most 16 bits",
        ),
        (
            lambda: get_block_format("mxfp4").quantise(np.ones((2, 3)), axis=2),
            r"axis 2 of a tensor of shape \(2, 3\)",
        ),
        (lambda: get_block_format("mxfp4").quantise(1.0), r"axis -1 of a tensor of shape \(\)"),
        (
            lambda: get_block_format("mxfp4").quantise(np.ones(32), axis=None),
            r"axis None is for formats whose block",
        ),
        (
            lambda: get_block_format("mxfp4").quantise(np.ones((2, 64)), scales=np.ones((2, 3))),
            r"scales of \(2, 3\); blocks of this tensor need \(2, 2\)",
        ),
        (
            lambda: get_block_format("mxfp4").quantise(np.ones(32), scales=[math.nan]),
            r"a scale is nan; scales are above 0",
        ),
        (
            lambda: get_block_format("int8/fp32/axis").quantise([1.0, math.inf]),
            r"the values have NaN or infinity; int8 has no code for it, nor have scales",
        ),
        (
            lambda: get_block_format("e2m1/e3m2/16").quantise([math.nan]),
            r"e2m1 has no code for it, nor have scales",
        ),
        (lambda: get_block_format("mxfp4").quantise(["a"]), r"cannot quantise <U1; give floats or integers"),
        (
            lambda: get_block_format("int4/fp16/8").quantise([1.0], seed=1),
            r"a seed is for floating-point elements",
        ),
        (
            lambda: get_block_format("mxint8").blocks(np.zeros((2, 64), np.uint8), np.zeros((2, 2))),
            r"codes of dtype uint8; those of q1.6 have",
        ),
        (
            lambda: get_block_format("int4/fp16/8").blocks(
                np.zeros((2, 64), ml_dtypes.int4), np.zeros((2, 7), np.float16)
            ),
            r"scales of shape \(2, 7\); codes of shape \(2, 64\) with blocks of 8 along axis -1 need \(2, 8\)",
        ),
        (bad_scales, r"the scale at \[1, 0\] is nan; scales of fp32 are finite"),
        (lambda: pack(np.zeros(4, np.uint8), 5), r"codes of 5 bits; those of 2, 4 and 6"),
        (lambda: unpack(np.zeros(3, np.uint8), 6, 5), r"3 bytes hold 4 codes of 6 bits, not 5"),
        (lambda: BlockFormat(sim.get_format("e4m3"), sim.get_format("e8m0"), 32, rule="max"), r"rule 'max'"),
        (
            lambda: get_block_format("int4/fp16/8").quantise(np.ones((2, 64)), scales=np.ones(2)),
            r"scales of \(2,\); blocks of this tensor need \(2, 8\)",
        ),
        (
            lambda: get_block_format("int4/fp16/8").quantise(np.ones((64, 2)), 0, scales=np.ones((2, 8))),
            r"scales of \(2, 8\); blocks of this tensor need \(8, 2\)",
        ),
        (
            lambda: get_block_format("mxfp4").quantise([1.0], scales=["a"]),
            r"cannot scale by <U1; give floats or integers",
        ),
        (lambda: nvfp4_with(math.nan), r"tensor_scale is nan; it is a number above 0"),
        (lambda: nvfp4_with(-1.0), r"tensor_scale is -1.0; it is a number above 0"),
        (lambda: nvfp4_with("1"), r"tensor_scale is '1'; it is a number above 0"),
        (lambda: pack(np.array([3, 16], np.uint8), 4), r"a code is 16; codes of 4 bits are below 16"),
        (lambda: pack(np.array([-9], np.int8), 4), r"a code is 247; codes of 4 bits are below 16"),
        (lambda: pack(np.array([1.5]), 4), r"codes of float64 \(1,\); they are one a byte"),
        (lambda: unpack(np.zeros(3, np.float32), 4, 1), r"float32 \(3,\) and 1 codes; it takes uint8"),
    ],
    ids=range(30),
)
def test_what_cannot_be_is_refused(call: Callable[[], object], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        call()
