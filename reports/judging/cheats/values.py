"""What the values of two calls show beside their errors. Runs in the process of the task, which has the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....simulator.record.codec import Encoder, decode_plain

SAMPLED = 8192
LEAST_SHARE = 0.05  # of one number where the reference has many: fewer are said to be chance
LEAST_KINDS = 16


@dataclass(frozen=True, kw_only=True)
class ValueFacts:
    """Of one case. unchanged: outputs that are right in the first call, and the same bits in the second although the
    reference's differ. steady: whether the reference's are the same in both. filled: share of an output at which one number
    stands where the reference has many, 0 for less than `LEAST_SHARE`. returns_input, changes_input: whether the task's
    Model does so.
    """

    unchanged: tuple[int, ...] = ()
    steady: bool = False
    filled: tuple[float, ...] = ()
    returns_input: bool = False
    changes_input: bool = False

    def to_json(self) -> dict[str, Any]:
        """As plain data for JSON."""
        data: dict[str, Any] = Encoder({}).encode(self, ValueFacts)
        return data

    @classmethod
    def from_json(cls, data: Any) -> ValueFacts:
        """What `to_json` wrote."""
        found: ValueFacts = decode_plain(data, cls, "")
        return found


Outputs = Sequence[np.ndarray | None]


def value_facts(got: Sequence[Outputs], wanted: Sequence[Outputs], right: bool = True) -> ValueFacts:
    """Of the outputs of two calls and of the reference's. None stands for what is no array. right: whether those of the
    first call pass: what is wrong there, NaN everywhere say, is no result that was kept for the second.
    """
    first, second = got
    pairs = list(zip(first, second, *wanted, strict=False))
    unchanged = [k for k, (a, b, x, y) in enumerate(pairs) if right and _same(a, b) and not _same(x, y)]
    return ValueFacts(
        unchanged=tuple(unchanged),
        steady=all(_same(x, y) for x, y in zip(*wanted, strict=False)),
        filled=tuple(_filled(a, x) for a, _, x, _ in pairs),
    )


def _same(a: Any, b: Any) -> bool:
    """Whether two arrays are equal bit for bit."""
    if a is None or b is None or a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes())


def _filled(got: Any, want: Any) -> float:
    """Share of the most frequent number of `got`, where the reference has many others in its places."""
    if (
        got is None
        or want is None
        or got.shape != want.shape
        or got.dtype.kind in "biu"
        or got.size < LEAST_KINDS
    ):
        return 0.0
    chosen = np.linspace(0, got.size - 1, min(got.size, SAMPLED)).astype(np.int64)
    mine = got.reshape(-1)[chosen].astype(np.float64)
    numbers, places, counts = np.unique(mine, return_inverse=True, return_counts=True)
    most = int(np.argmax(counts))
    share = float(counts[most] / mine.size)
    if share < LEAST_SHARE or not np.isfinite(numbers[most]):
        return 0.0
    right = want.reshape(-1)[chosen][places == most].astype(got.dtype).astype(np.float64)
    right = right[np.abs(right) >= _smallest(got.dtype)]
    kinds = np.unique(right).size
    return share if kinds > LEAST_KINDS and kinds > right.size / 16 and right.size > counts[most] / 2 else 0.0


def _smallest(dtype: Any) -> float:
    """Below it, results may be 0 on the device."""
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype).smallest_normal)  # type: ignore[no-untyped-call]
