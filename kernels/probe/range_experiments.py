"""What the Cube is asked about its operands: rounding of HF32, subnormal values, and the end of the range."""

from __future__ import annotations

import numpy as np

from .assumed import assumed_vectors
from .cube_experiments import COLUMNS, STORED, chain_of
from .experiment import WORDS, BoardTensor, Experiment, empty, of_words, operand

DEPTH = 16  # of a product that has one term
ROWS = 64
SCALES = (1.0, 2.0**30, 2.0**-30)  # that bring the value of an operand into the middle of the range
_BEYOND = 2.0**100  # from here on, or below its inverse, another scale than 1 is looked at

# FP32 words around the grid of HF32 and that of 10 bits: exact, ties with either last bit, beside ties, carries.
_HF32_WORDS = (
    0x3F800000, 0x3F8007FF, 0x3F800800, 0x3F800801, 0x3F800FFF, 0x3F801000, 0x3F801001, 0x3F8017FF, 0x3F801800, 0x3F801801,
    0x3F802000, 0x3F802800, 0x3F803000, 0x3F803001, 0x3FFFF7FF, 0x3FFFF800, 0x3FFFFFFF, 0xBF800800, 0xBF801000, 0xBF801800,
    0xBF801801, 0x3DCCCCCD, 0x3EAAAAAB, 0x40490FDB, 0xC02DF854, 0x7F7FFFFF, 0x7F7FF7FF, 0x7F7FF800, 0x7F800000, 0xFF800000,
    0x7FC00000, 0x00000001, 0x00000800, 0x00001000, 0x007FFFFF, 0x80400000, 0x00800000, 0x00800800,
)  # fmt: skip


def operands_hf32() -> Experiment:
    """One product for each element: an operand times a power of two, of SCALES in turn."""
    assumed = [v.word for v in assumed_vectors() if v.experiment == "operands_hf32"]
    words = list(dict.fromkeys((*_HF32_WORDS, *assumed)))
    words += [0x3F800000] * (ROWS - len(words))
    a = np.zeros((1, 1, len(words), DEPTH), np.uint32)
    a[0, 0, :, 0] = words
    b = np.zeros((1, 1, DEPTH, COLUMNS))
    b[0, 0, 0, : len(SCALES)] = SCALES
    return chain_of("operands_hf32", "hf32", of_words(a, "fp32"), operand(b, "fp32"))


def seen_hf32(experiment: Experiment, out: np.ndarray) -> dict[int, int]:
    """The FP32 word that an operand was read as, by its own word. out: words of the result."""
    words = experiment.inputs["a"].words[0, 0, :, 0]
    values = np.abs(words.view(np.float32).astype(np.float64))
    column = np.where(values < 1 / _BEYOND, 1, np.where(np.isfinite(values) & (values > _BEYOND), 2, 0))
    read = (
        out.view(np.float32)[0, np.arange(len(words)), column].astype(np.float64) / np.array(SCALES)[column]
    )
    return dict(zip(map(int, words), map(int, read.astype(np.float32).view(np.uint32)), strict=True))


_ENDS = {  # words of a format: subnormal ones of both signs, small and large normal ones, the largest, infinity, NaN
    "fp32": (1, 0x80000001, 0x400000, 0x7FFFFF, 0x807FFFFF, 0x800000, 0x20000000, 0x3F800000, 0x7F000000, 0xFF000000,
             0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0, 0x80000000),
    "bf16": (1, 0x8001, 0x40, 0x7F, 0x807F, 0x80, 0x2000, 0x3F80, 0x7F00, 0xFF00, 0x7F7F, 0x7F80, 0xFF80, 0x7FC0, 0, 0x8000),
    "fp16": (1, 0x8001, 0x200, 0x3FF, 0x83FF, 0x400, 0x1000, 0x3C00, 0x7800, 0xF800, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0,
             0x8000),
}  # fmt: skip
_FACTORS = {
    "fp32": (1, 2.0**60, -(2.0**30), 2.0**-20, 2.0**-100, 2.0**127, -(2.0**127), np.inf, 0),
    "bf16": (1, 2.0**60, -(2.0**30), 2.0**-20, 2.0**-100, 2.0**127, -(2.0**127), np.inf, 0),
    "fp16": (1, 2.0**15, -(2.0**12), 2.0**-10, 2.0**-14, 32768, np.inf, 0),
}


def ends_of(fmt: str) -> Experiment:
    """Products of one term at the ends of the range, and of two that add up beyond it. fmt: as memory holds it."""
    a = np.zeros((1, 1, len(_ENDS[fmt]), DEPTH), WORDS[fmt])
    a[0, 0, :, 0] = _ENDS[fmt]
    b = np.zeros((1, 1, DEPTH, COLUMNS))
    b[0, 0, 0, : len(_FACTORS[fmt])] = _FACTORS[fmt]
    return chain_of(f"ends_{fmt}", fmt, BoardTensor(fmt, a), operand(b, fmt))


def stored_as(target: str) -> Experiment:
    """Sums of two products in FP16 that leave the accumulator as `target`: ties of its grid, and its end."""
    unit = 2.0**-7 if target == "bf16" else 2.0**-10
    pairs = [(1 + n * unit, f * unit) for n in (0, 1, 2) for f in (0.0, 0.25, 0.5, 0.5 + 2.0**-4, 0.75)]
    pairs += [(65504.0, x) for x in (0.0, 15.0, 16.0, 32.0, 65504.0)] + [(np.inf, 0.0)]
    pairs += [(-x, -y) for x, y in pairs]
    a = np.zeros((ROWS, DEPTH))
    a[: len(pairs), :2] = pairs
    b = np.ones((DEPTH, COLUMNS))
    constants = {"M": ROWS, "N": COLUMNS, "K": DEPTH}
    given = {"a": operand(a, "fp16"), "b": operand(b, "fp16")}
    return Experiment(
        f"stored_{target}",
        "dot_store",
        given,
        {"out": empty((ROWS, COLUMNS), target)},
        constants,
        operand="fp16",
    )


def stored_formats() -> tuple[str, ...]:
    return tuple(f for f in _ENDS if f not in STORED)
