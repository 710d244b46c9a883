"""The Cube's rounding model: hand-checked vectors, exact arithmetic, measured statistics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascendtile.simulator.precision.rounding import round_to
from ascendtile.simulator.units.cube import mmad

E = 2.0**-24
FORMATS = ("fp16", "bf16", "hf32", "fp32")

# Initial value, operand in k order (the other one is all ones), results for blocks of 1, 4, 8, 16.
VECTORS: dict[str, tuple[float, list[float], tuple[int, int, int, int]]] = {
    "T1": (2.0**24, [0.5] * 4, (0x4B800000, 0x4B800001, 0x4B800001, 0x4B800001)),
    "T2": (0.0, [2.0**30, 1, -(2.0**30), 1], (0x3F800000, 0x40000000, 0x40000000, 0x40000000)),
    "T3": (1.0, [E, E / 2, 0, 0], (0x3F800000, 0x3F800001, 0x3F800001, 0x3F800001)),
    "T4": (2.0**24, [0.125] * 16, (0x4B800000, 0x4B800000, 0x4B800000, 0x4B800001)),
    "T5": (0.0, [2.0**30, 0, 0, 0, 1, 1, 1, 1, -(2.0**30), *[0] * 7], (0, 0, 0, 0x40800000)),
    "T6": (1.0, [E, 0, 0, 0] * 4, (0x3F800000, 0x3F800000, 0x3F800002, 0x3F800002)),
}


def one(values: list[float], start: float, **rules: Any) -> int:
    a = np.array([values], np.float32)
    acc = np.full((1, 1), start, np.float32)
    result = mmad(a, np.ones((len(values), 1), np.float32), acc, **rules)
    return int(result.view(np.uint32)[0, 0])


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("kb", [1, 4, 8, 16])
def test_hand_checkable_vectors_in_each_block_size(name: str, kb: int) -> None:
    start, values, words = VECTORS[name]
    assert one(values, start, operand="fp32", block_k=kb) == words[(1, 4, 8, 16).index(kb)]


@pytest.mark.parametrize(("operand", "column"), [("fp32", 1), ("hf32", 2), ("bf16", 3)])
@pytest.mark.parametrize("name", VECTORS)
def test_each_format_has_its_own_block_size(name: str, operand: str, column: int) -> None:
    start, values, words = VECTORS[name]
    assert one(values, start, operand=operand) == words[column]


@pytest.mark.parametrize("name", ["T1", "T4", "T6"])
def test_fp16_adds_sixteen_products_at_a_time(name: str) -> None:
    start, values, words = VECTORS[name]
    assert one(values, start, operand="fp16") == words[3]


def test_truncation_drops_what_nearest_rounds_up() -> None:
    _, values, _ = VECTORS["T3"]
    assert one(values, 1.0, operand="fp32", block_round="TRUNC") == 0x3F800000


def random_tiles(operand: str, shape: tuple[int, int, int], seed: int) -> tuple[Any, Any, Any]:
    m, k, n = shape
    random = np.random.default_rng(seed)
    draw = [random.standard_normal(s) * 2.0 ** random.integers(-6, 6, s) for s in ((m, k), (k, n), (m, n))]
    a, b, c = (x.astype(np.float32) for x in draw)
    return round_to(a, operand), round_to(b, operand), c


@pytest.mark.drawn(3)
@pytest.mark.parametrize("operand", FORMATS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 2), (5, 33, 17), (4, 16, 16), (9, 50, 1), (1, 257, 3)])
def test_equals_rational_arithmetic(by_fractions: Any, operand: str, shape: tuple[int, int, int]) -> None:
    a, b, c = random_tiles(operand, shape, sum(shape))
    kb = {"fp16": 16, "bf16": 16, "hf32": 8, "fp32": 4}[operand]
    assert np.array_equal(mmad(a, b, c, operand=operand), by_fractions(a, b, c, kb))
    assert np.array_equal(mmad(a, b, operand=operand), by_fractions(a, b, np.zeros_like(c), kb))
    assert np.array_equal(mmad(a, b, bias=c[0], operand=operand), by_fractions(a, b, c[:1] + 0 * c, kb))


@pytest.mark.parametrize("kb", [1, 3, 7, 64, 300])
def test_any_block_size_equals_rational_arithmetic(by_fractions: Any, kb: int) -> None:
    a, b, c = random_tiles("fp16", (5, 70, 6), kb)
    assert np.array_equal(mmad(a, b, c, operand="fp16", block_k=kb), by_fractions(a, b, c, kb))


@pytest.mark.parametrize("operand", FORMATS)
def test_truncated_blocks_equal_rational_arithmetic(by_fractions: Any, operand: str) -> None:
    a, b, c = random_tiles(operand, (6, 45, 7), 3)
    result = mmad(a, b, c, operand=operand, block_round="TRUNC", block_k=4)
    assert np.array_equal(result, by_fractions(a, b, c, 4, mode="TRUNC"))


@pytest.mark.parametrize("overflow", ["inf_nan", "saturate"])
def test_fp16_accumulator_rounds_once_per_step(by_fractions: Any, overflow: str) -> None:
    a, b, c = random_tiles("fp16", (7, 50, 9), 5)
    c = round_to(c, "fp16")
    c[0] = 65472
    result = mmad(a, b, c, operand="fp16", accumulator="fp16", overflow=overflow)
    expected = by_fractions(a, b, c, 16, "fp16", saturate=overflow == "saturate")
    assert np.array_equal(result, expected)
    assert np.isfinite(result).all() == (overflow == "saturate")


@pytest.mark.parametrize("flush", ["flush", "keep"])
def test_small_results_equal_rational_arithmetic(by_fractions: Any, flush: str) -> None:
    """Sums on both sides of 2^-126, down to the last subnormal bit."""
    a, b, c = random_tiles("fp32", (6, 24, 5), 11)
    a, c = a * np.float32(2.0**-66), np.zeros_like(c)
    b = b * np.float32(2.0**-63)
    result = mmad(a, b, c, operand="fp32", fp32_subnormals=flush)
    assert np.array_equal(result, by_fractions(a, b, c, 4, flush=flush == "flush"))
    assert (np.abs(result) >= 2.0**-126).any()
    assert ((np.abs(result) < 2.0**-126) & (result != 0)).any() == (flush == "keep")


def test_saturated_results_equal_rational_arithmetic(by_fractions: Any) -> None:
    a, b, c = random_tiles("fp32", (6, 24, 5), 12)
    a, b = a * np.float32(2.0**63), b * np.float32(2.0**62)
    result = mmad(a, b, c, operand="fp32", overflow="saturate")
    assert np.array_equal(result, by_fractions(a, b, c, 4, saturate=True))
    assert (np.abs(result) == np.finfo(np.float32).max).any()
    assert not np.isfinite(mmad(a, b, c, operand="fp32")).all()


def effective_bits(y: Any, golden: Any) -> float:
    return float(-np.log2(np.mean(np.abs(y - golden)) / np.mean(np.abs(golden))))


# Numerics specification: effective bits of 256 x K times K x 256, N(0, 1) data, at K = 64 and K = 512.
TARGETS = [
    ("fp32", {}, None, (23.9, 22.4)),
    ("hf32", {"hf32_round": "RINT"}, None, (12.75, 12.74)),
    ("hf32", {"hf32_round": "ROUND"}, None, (12.75, 12.74)),
    ("hf32", {"hf32_round": "RNZ"}, None, (12.75, 12.74)),
    ("fp16", {}, None, (11.75, 11.74)),
    ("fp16", {}, "fp16", (11.47, 11.47)),
    ("fp16", {"accumulator": "fp16", "overflow": "saturate"}, None, (11.2, 10.3)),
    ("bf16", {}, None, (8.75, 8.74)),
    ("bf16", {}, "bf16", (8.48, 8.47)),
]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("length", [64, 512])
@pytest.mark.parametrize(
    ("operand", "rules", "output", "expected"),
    TARGETS,
    ids=[f"{t[0]} {' '.join(t[1].values())} to {t[2]}" for t in TARGETS],
)
def test_effective_bits(operand: str, rules: Any, output: Any, expected: Any, length: int) -> None:
    random = np.random.default_rng(2024)
    found = []
    for _ in range(4):
        a, b = (random.standard_normal(s).astype(np.float32) for s in ((256, length), (length, 256)))
        result = mmad(a, b, operand=operand, **rules)
        result = result if output is None else round_to(result, output)
        found.append(effective_bits(result, a.astype(np.float64) @ b.astype(np.float64)))
    assert np.mean(found) == pytest.approx(expected[length == 512], abs=0.1)
