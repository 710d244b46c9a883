"""FP32 products from narrower ones: how an operand is cut into slices, and which products of slices are added.

    SPLITS["FP16X3"].products                        # ((1, 0), (0, 1), (0, 0)): low by high, high by low, high by high
    slices.slice_sums(a, SPLITS["FP16X3"], axis=1)   # a as its slices have it, rows scaled by powers of two

These modes are ours, beside those of cubeMathType: the vendor's interface has no number for them. A slice is what rounding
to nearest leaves over of the slices before. Names: FP16X<n> and BF16X<n> have n products, as the dot algorithms of XLA and
JAX (BF16_BF16_F32_X3, _X6, _X9); with X2 only the first operand is cut, which loses nothing where the second is of that
format already. INT8X<n> has n slices of each operand, as the Ozaki scheme on integer units names it (Ootomo, Ozaki, Yokota,
arXiv 2306.11975), and of their products those that are not below the last slice.

FP16 slices: Ootomo and Yokota (arXiv 2203.03341) and SGEMM-cube on the 910A (arXiv 2507.23387) multiply the low slice by
2^11 or so against underflow and leave the range to the user. Here rows of the first operand and columns of the second are
multiplied by powers of two that bring their largest element near the top of FP16, as the Ozaki scheme does, so that any
FP32 range is taken and all products have one accumulator. Slices of BF16 (Henry, Tang, Heinecke, arXiv 1904.06376) have
FP32's range and are not scaled. INT8 slices are digits of 7 bits with their sign; INT32 sums of them are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

DIGIT_BITS = 7  # of an INT8 slice, beside its sign
SLICE_BITS = MappingProxyType({"fp16": 11, "bf16": 8, "int8": DIGIT_BITS})  # significant ones
# Products of two slices, each up to 2^6, that INT32 surely holds.
MOST_INT8_TERMS = (1 << 31 - 2 * (DIGIT_BITS - 1)) - 1


@dataclass(frozen=True, slots=True)
class Split:
    """One mode. slices: format of a slice (fp16, bf16, int8). products: (slice of the first operand, of the second), in
    the order in which they are added, small ones first; slice 0 is the highest.

    top: exponent that the largest element of a row is scaled to; None: nothing is scaled. step: what is left over is
    multiplied by 2^step before it is rounded to the next slice.
    """

    name: str
    slices: str
    products: tuple[tuple[int, int], ...]
    top: int | None = None
    step: int = 0

    @property
    def counts(self) -> tuple[int, int]:
        """Slices of the first and of the second operand."""
        first, second = zip(*self.products, strict=True)
        return max(first) + 1, max(second) + 1

    @property
    def bits(self) -> int:
        """Bits that the slices of the operand with fewer of them have together, in the highest binade of a row."""
        return SLICE_BITS[self.slices] * min(self.counts)

    @property
    def groups(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Products by accumulator, smallest first: those of one power of two together, all where slices keep theirs."""
        if not self.step:
            return (self.products,)
        powers = sorted({i + j for i, j in self.products}, reverse=True)
        return tuple(tuple(p for p in self.products if sum(p) == power) for power in powers)


def _whole(count: int, last: int) -> tuple[tuple[int, int], ...]:
    """Products of `count` slices each whose numbers add up to at most `last`, small ones first."""
    pairs = [(i, j) for i in range(count) for j in range(count) if i + j <= last]
    return tuple(sorted(pairs, key=lambda p: (-sum(p), -p[0])))


_FP16_TOP = 14  # below 2^15, so that no slice reaches 65504
_EVERY = (
    Split("FP16X2", "fp16", ((1, 0), (0, 0)), _FP16_TOP),
    Split("FP16X3", "fp16", _whole(2, 1), _FP16_TOP),
    Split("BF16X2", "bf16", ((1, 0), (0, 0))),
    Split("BF16X3", "bf16", _whole(2, 1)),
    Split("BF16X6", "bf16", _whole(3, 2)),
    Split("BF16X9", "bf16", _whole(3, 4)),
    *(Split(f"INT8X{n}", "int8", _whole(n, n - 1), DIGIT_BITS - 2, DIGIT_BITS) for n in (2, 3, 4)),
)
SPLITS: Mapping[str, Split] = MappingProxyType({s.name: s for s in _EVERY})
