"""Tiles that pass between Cube and Vector cores in code of the vendor's compiler (AscendNPU-IR, InjectBlockSync)."""

from __future__ import annotations

from typing import Any

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

WORD = "sync.compiled_hand_over_cycles"
FAR = 1_000_000.0
M = 64


@sim.jit
def sums(x: Any, out: Any, n: Any, again: Any, B: tl.constexpr):
    """Products that the Vector cores add up, in one loop or in two."""
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    a = tl.load(x + at)
    total = tl.zeros((B, B), tl.float32)
    for k in range(n):
        total += tl.exp(tl.dot(a, tl.load(x + k * B * B + at)))
    for k in range(again):
        total += tl.exp(tl.dot(a, tl.load(x + k * B * B + at)))
    tl.store(out + at, total)


@sim.jit
def to_and_fro(x: Any, out: Any, n: Any, B: tl.constexpr):
    """A product, back to the Cube, and to the Vector cores once more, in each iteration."""
    at = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    a = tl.load(x + at)
    total = tl.zeros((B, B), tl.float32)
    for _ in range(n):
        p = tl.exp(tl.dot(a, a)).to(tl.float16)
        total = total * 0.5 + tl.dot(p, a)
    tl.store(out + at, total)


def cycles(kernel: Any, *numbers: int, word: float | None = None, **device: Any) -> float:
    x, out = sim.shape((16, M, M), "float16"), sim.shape((M, M), "float32")
    overrides = {} if word is None else {WORD: word}
    with sim.device("ascend910b3", overrides=overrides, **device):
        return float(kernel.time((1,), x, out, *numbers, B=M).launches[0].cycles)


@pytest.mark.parametrize("n", [2, 3, 7])
def test_each_tile_waits_for_word_that_its_room_is_free(n: int) -> None:
    """Two words an iteration, there and back."""
    assert cycles(sums, n, 0, word=FAR) / FAR == pytest.approx(2 * n, abs=0.01)


@pytest.mark.parametrize("n", [1, 4, 5])
@pytest.mark.parametrize("places", [2, 3])
def test_with_more_places_more_tiles_share_the_two_words(n: int, places: int) -> None:
    words = cycles(sums, n, 0, word=FAR, workspace_copies=places) / FAR
    assert words == pytest.approx(2 * -(-n // places), abs=0.01)


def test_a_loop_ends_when_its_last_tile_was_read() -> None:
    """The second loop sends to a place of its own, which is free, and yet begins after the words of the first."""
    one, two = cycles(sums, 4, 0, word=FAR), cycles(sums, 2, 2, word=FAR)
    assert (two - one) / FAR == pytest.approx(0, abs=0.01)
    near = {n: cycles(sums, *n) for n in ((4, 0), (2, 2))}
    assert near[4, 0] < near[2, 2] < near[4, 0] + 4000


def test_what_goes_to_and_fro_takes_two_words_an_iteration() -> None:
    """There and back: the Cube sends the next first product right behind the second."""
    per_iteration = (cycles(to_and_fro, 6, word=FAR) - cycles(to_and_fro, 3, word=FAR)) / (3 * FAR)
    assert per_iteration == pytest.approx(2, abs=0.01)


def test_hand_written_code_has_the_figure_of_flags() -> None:
    by_hand = {"compiler": "ascendc"}
    assert cycles(sums, 4, 0, **by_hand) == cycles(sums, 4, 0, word=FAR, **by_hand)
    assert cycles(sums, 4, 0, **by_hand) < cycles(sums, 4, 0)
