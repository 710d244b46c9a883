"""Storage formats: all 2^16 words of FP16 and BF16 against numpy and ml_dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision.code_tables import pack
from ascendtile.simulator.precision.rounding import decode, encode, round_to

WORDS = np.arange(2**16, dtype=np.uint16)
DTYPES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]


@pytest.fixture(params=DTYPES, ids=str)
def dtype(request: pytest.FixtureRequest) -> np.dtype[Any]:
    return request.param


def test_decoding_is_exact_for_every_word(dtype: np.dtype[Any]) -> None:
    with np.errstate(invalid="ignore"):
        expected = WORDS.view(dtype).astype(np.float32)
    assert np.array_equal(decode(WORDS.view(dtype)).view(np.uint32), expected.view(np.uint32))


def test_encoding_gives_every_word_back_nan_payloads_included(dtype: np.dtype[Any]) -> None:
    assert np.array_equal(encode(decode(WORDS.view(dtype)), dtype.name).view(np.uint16), WORDS)


def test_encoding_agrees_with_the_libraries(dtype: np.dtype[Any], words: NDArray[np.float32]) -> None:
    numbers = words[~np.isnan(words)]
    with np.errstate(over="ignore"):
        expected = numbers.astype(dtype)
    assert np.array_equal(encode(numbers, dtype.name).view(np.uint16), expected.view(np.uint16))


def test_a_nan_stays_a_nan_even_if_only_dropped_bits_say_so(dtype: np.dtype[Any]) -> None:
    nans = np.array([0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFC00000], np.uint32).view(np.float32)
    stored = encode(nans, dtype.name)
    assert np.isnan(stored.astype(np.float32)).all()
    assert (stored.view(np.uint16) >> 15).tolist() == [0, 1, 0, 1]


def test_encoding_is_rounding(dtype: np.dtype[Any], words: NDArray[np.float32]) -> None:
    for mode in ("FLOOR", "ODD"):
        grid = round_to(words, dtype.name, mode, overflow="saturate")
        stored = encode(words, dtype.name, mode, overflow="saturate")
        assert np.array_equal(decode(stored).view(np.uint32), grid.view(np.uint32))


def test_byte_order_changes_no_bit(dtype: np.dtype[Any], words: NDArray[np.float32]) -> None:
    """NaN payloads included."""
    swapped, random = words.astype(">f4"), np.arange(words.size, dtype=np.uint32) * np.uint32(40503)
    assert np.array_equal(
        encode(swapped, dtype.name).view(np.uint16), encode(words, dtype.name).view(np.uint16)
    )
    assert decode(swapped).view(np.uint32).tolist() == words.view(np.uint32).tolist()
    chance = [round_to(words, dtype.name, "STOCHASTIC", random=r) for r in (random, random.astype(">u4"))]
    assert chance[0].view(np.uint32).tolist() == chance[1].view(np.uint32).tolist()


def test_float64_is_encoded_with_one_rounding() -> None:
    just_above_a_tie = 1 + 2.0**-11 + 2.0**-40  # float32 would lose the last term and leave the tie
    assert encode(just_above_a_tie, "fp16") == np.float16(1 + 2.0**-10)


@pytest.mark.parametrize("layout", ["strided", "transposed", "read-only", "big-endian", "scalar", "empty"])
def test_any_layout_decodes(layout: str, dtype: np.dtype[Any]) -> None:
    array = np.arange(24, dtype=np.uint16).view(dtype).reshape(4, 6)
    array = {
        "strided": lambda: array[::2, 1::2],
        "transposed": lambda: array.T,
        "read-only": lambda: np.frombuffer(array.tobytes(), dtype),
        "big-endian": lambda: array.astype(array.dtype.newbyteorder(">")),
        "scalar": lambda: array[1, 1],
        "empty": lambda: array[:0],
    }[layout]()
    assert np.array_equal(decode(array), array.astype(np.float32))
    assert decode(array).shape == np.shape(array)


def test_words_need_a_name() -> None:
    assert decode(np.array([0x3C00], np.uint16), "fp16") == 1
    with pytest.raises(
        UsageError, match=r"uint16 as uint16: storage is float16, bfloat16 or float32, or uint16"
    ):
        decode(np.array([0x3C00], np.uint16))


@pytest.mark.parametrize("held", ["hif8", "e5m2", "fp32", "fp16"])
def test_an_array_of_one_format_is_not_decoded_as_another(held: str) -> None:
    with pytest.raises(
        UsageError, match=f"the array holds {held}, fmt says e4m3: leave fmt out, or give codes of uint8"
    ):
        decode(encode([1.0], held), "e4m3")


def test_bytes_of_more_than_one_code_are_not_decoded_as_one() -> None:
    codes = encode([0.5, -6.0], "e2m1").view(np.uint8)
    assert decode(codes, "e2m1").tolist() == [0.5, -6.0]
    with pytest.raises(
        UsageError, match="a code is 241; those of e2m1 have 4 bits, one in each uint8: codes that share"
    ):
        decode(pack(codes, 4), "e2m1")


def test_float32_is_not_copied() -> None:
    x = np.ones(3, np.float32)
    assert decode(x) is x
    assert encode(x, "fp32") is x


@pytest.mark.parametrize("fmt", ["hf32", "tf32", "fp64", "int8"])
def test_only_storage_formats_encode(fmt: str) -> None:
    with pytest.raises(
        UsageError, match=r"is not a floating-point storage format; those are fp16, bf16, fp32"
    ):
        encode([1.0], fmt)
