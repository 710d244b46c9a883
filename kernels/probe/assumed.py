"""The 23 test vectors of the numerics specification that stand for what nobody published, and what a board says to them.

`assumed_vectors.csv` has them: an FP32 word, a format, a rounding, an overflow mode, whether subnormal operands are kept,
and the word that comes out if that is how the unit works. Derived with exact rational arithmetic from the definition of the
format; each tests a reading of the documents (Ascend C "SetHF32TransMode", the chapter on overflow), not a published result.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("assumed_vectors.csv")
# Experiment that shows a vector: format and rounding.
SHOWN_BY = {
    ("hf32", "RNE"): "operands_hf32",
    ("hf32", "RNZ"): "operands_hf32",
    ("hf32", "TRUNC"): "operands_hf32",
    ("bf16", "RNE"): "cast_bf16",
    ("fp16", "TRUNC"): "cast_toward_zero_fp16",
}


@dataclass(frozen=True)
class AssumedVector:
    """word, expected: FP32 words; `expected` is NaN's for any NaN."""

    number: int
    format: str
    rounding: str
    overflow: str
    subnormals: str
    word: int
    expected: int
    note: str

    @property
    def reading(self) -> tuple[str, str, str, str]:
        """What the vector stands for, with others."""
        return self.format, self.rounding, self.overflow, self.subnormals

    @property
    def experiment(self) -> str | None:
        """Which one shows it; None where no kernel of Triton can say the mode."""
        return SHOWN_BY.get((self.format, self.rounding))


@dataclass(frozen=True)
class VectorVerdict:
    """observed: FP32 word, None where it was not seen.

    verdict: "confirmed" where the bits are as assumed and so are those of all vectors of its reading, that is, of the same
    format, rounding, overflow mode and subnormals; "refuted" where they are not; "not told" where they are, but others
    refute the reading; "open" where nothing was seen, or of another mode, with the reason.
    """

    vector: AssumedVector
    verdict: str
    reason: str = ""
    observed: int | None = None


@lru_cache(maxsize=1)
def assumed_vectors() -> tuple[AssumedVector, ...]:
    with FILE.open(newline="", encoding="utf-8") as file:
        return tuple(
            AssumedVector(
                int(row["id"]), row["format"], row["rounding"], row["overflow_mode"], row["subnormal_inputs"],
                int(row["input_bits"], 16), int(row["expected_as_fp32_bits"], 16), row["note"],
            )
            for row in csv.DictReader(file)
        )  # fmt: skip


def judge(seen: Mapping[str, Mapping[int, int]], overflow: str | None) -> list[VectorVerdict]:
    """Every vector. seen: by experiment, the FP32 word that came out for an FP32 word. overflow: None where it is open."""
    judged = [_judged(v, seen.get(v.experiment or "", {}), overflow) for v in assumed_vectors()]
    refuted = {v.vector.reading for v in judged if v.verdict == "refuted"}
    return [
        replace(v, verdict="not told", reason="other vectors refute this reading")
        if v.verdict == "confirmed" and v.vector.reading in refuted
        else v
        for v in judged
    ]


def _judged(vector: AssumedVector, seen: Mapping[int, int], mode: str | None) -> VectorVerdict:
    if vector.experiment is None:
        return VectorVerdict(
            vector, "open", f"no kernel of Triton casts with {vector.rounding}; ask with Ascend C Cast"
        )
    observed = seen.get(vector.word)
    if observed is None:
        return VectorVerdict(vector, "open", f"no result of {vector.experiment}")
    if _of_overflow(vector) and mode != vector.overflow:
        why = f"the unit was in {mode} mode" if mode else "the overflow mode is open"
        return VectorVerdict(vector, "open", f"is about {vector.overflow}; {why}", observed)
    return VectorVerdict(vector, "confirmed" if _same(observed, vector.expected) else "refuted", "", observed)


def _of_overflow(vector: AssumedVector) -> bool:
    """Whether the overflow mode matters: beyond the range of the format, infinity or NaN."""
    return "overflow" in vector.note or "saturating" in vector.note


def _same(a: int, b: int) -> bool:
    x, y = (np.uint32(n).view(np.float32) for n in (a, b))
    return a == b or bool(np.isnan(x) and np.isnan(y))
