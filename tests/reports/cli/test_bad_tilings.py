"""Tilings that no device could run, from the command line: exit status, both numbers, no stack trace."""

from __future__ import annotations

import pytest

MATMUL = ("run", "matmul", "--case", "1024", "--no-values", "--tiling")


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        (
            ("base_m=100", "base_n=128", "base_k=64"),
            "'base_m' must be a multiple of 16, got 100; take 96 or 112",
        ),
        (("base_m=128", "base_n=8", "base_k=64"), "'base_n' must be a multiple of 16, got 8; take 16"),
        (
            ("base_m=128", "base_n=128", "base_k=36"),
            "'base_k' must be a multiple of 16, got 36; take 32 or 48",
        ),
        (("base_m=128",), "give base_m, base_n and base_k together or none of them; got (128, 0, 0)"),
        (("block_m=0",), "'block_m' must be at least 16, got 0"),
        (("block_k=abc",), "'block_k' must be an integer, got 'abc'"),
        (("buffers=17",), "'buffers' must be at most 16, got 17"),
    ],
)
def test_a_knob_that_cannot_be_is_status_2(refused, knobs, words):
    assert words in refused(*MATMUL, *knobs)


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        (
            ("base_m=256", "base_n=256", "base_k=64"),
            (
                "l0b overflow, requires 524288 bits while 262144 bits available (65536 against 32768 bytes)",
                "base_n=128 (now 256)",
                "base_k=32 (now 64)",
            ),
        ),
        (("block_m=512", "block_n=512"), ("l0c overflow", "(1048576 against 131072 bytes)", "block_m=64 (now 512)")),
        (("block_k=4096",), ("l1 overflow", "(3145728 against 524032 bytes)", "block_k=512 or 640 (now 4096)")),
    ],
)  # fmt: skip
def test_a_tiling_that_overflows_is_status_1_with_the_knob_that_fits(ascendtile, knobs, words):
    """Status 1: the kernel would fail on the device."""
    change = ("--set", "buffers.l0b=32768") if knobs[0].startswith("base") else ()
    answer = ascendtile(*MATMUL, *knobs, *change)
    assert (answer.status, answer.out) == (1, "")
    text = " ".join(answer.err.split())
    for some in words:
        assert some in text
    assert "cores=" not in text  # only knobs that help
