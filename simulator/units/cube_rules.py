"""The choices of the Cube that differ between operands, products and readings of the documents, as checked data.

Grades as in the numerics specification: documented (D), inferred from published device results (I), assumed (A).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

from ..errors import UsageError
from ..precision.formats import BF16, FP16, FP32, HF32, Format, get_format
from ..precision.numeric_switches import MOST_EXTRA_BITS, SUBNORMAL_RULES, is_block_sum

# Products whose sum the Cube adds to the accumulator in one rounding. FP32: I, fits effective bits measured on devices
# (Jittor pull request 18025) and the rate of 16 x 16 x 4 per cycle. The others: A, one cycle's worth of k, which of formats
# that no Cube here reads are as many bytes of k as of those that it reads.
BLOCK_K: Mapping[str, int] = MappingProxyType({"fp16": 16, "bf16": 16, "hf32": 8, "fp32": 4, "int8": 32})
STEP_BYTES = 32


def flushes_operands(rule: str) -> bool:
    return rule in ("flush", "flush_operands")


def flushes_results(rule: str) -> bool:
    return rule in ("flush", "flush_results")


_ALLOWED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "block_round": ("RINT", "ROUND", "RNZ", "TRUNC", "FLOOR", "CEIL", "ODD"),
        "k_order": ("ascending", "descending"),
        "accumulate": ("exact", "blas"),
        "overflow": ("inf_nan", "saturate"),
        "hf32_round": ("RINT", "ROUND", "RNZ", "TRUNC"),
        "hf32_grid": ("hf32", "tf32"),
        "fp32_subnormals": SUBNORMAL_RULES,
        "bf16_subnormals": SUBNORMAL_RULES,
        "fp16_subnormals": SUBNORMAL_RULES,
        "hf32_subnormals": ("flush", "keep"),
    }
)
MOST_BITS = 32  # of floating operands
_ALIASES = {"RNE": "RINT", "RNA": "ROUND"}


@dataclass(frozen=True, slots=True)
class CubeRules:
    """How one Cube multiplies.

    operand: format in which it reads both operands; other: that of the second one, where it is another. A name or a Format:
    floats up to FP32, INT8 and narrower integers. block_k: products per rounding, None for `block_k_of`, pairs of a
    format and a number, and for BLOCK_K where that has none. block_round: RINT (I) or another mode of casts, of each
    step. block_sum: how the products of a step and the accumulator are added (A): "exact", "tree" (adjacent pairs, each
    rounded to FP32) or "aligned=N" (cut to N bits below FP32's last place at the largest term); the alternatives that
    arXiv 2511.10909 found in other matrix units. k_order: of the steps of one product (A: ascending). hf32_grid: of HF32
    operands, "tf32" for 10 stored bits in place of 11. accumulate: "exact" is the order of the Cube, "blas" that of
    numpy's matmul. accumulator: None for FP32, or INT32 where operands are integers; "fp16" is an FP16 accumulator (910A,
    310P; A), any other floating format what no Cube here has, to which each step is rounded (A). overflow: "inf_nan"
    (IEEE) or "saturate": infinite operands are read as the largest finite value and NaN as
    0, results stop at the largest finite value (hw-native-sys/pto-isa, docs/isa, page on mad). hf32_round: RINT or RNE is
    mode 0 of the control register, ROUND or RNA mode 1, RNZ the other form of mode 1. fp32_subnormals: of FP32 operands
    and of FP32 results (A), one of SUBNORMAL_RULES. bf16_subnormals: of BF16 operands, None: as FP32. fp16_subnormals: of
    FP16 operands (I: kept). hf32_subnormals: FP32 subnormals among HF32 operands (I: flushed).
    """

    operand: str | Format = "fp16"
    block_k: int | None = None
    block_k_of: tuple[tuple[str, int], ...] = ()
    block_round: str = "RINT"
    block_sum: str = "exact"
    k_order: str = "ascending"
    accumulate: str = "exact"
    accumulator: str | Format | None = None
    overflow: str = "inf_nan"
    hf32_round: str = "RINT"
    hf32_grid: str = "hf32"
    fp32_subnormals: str = "flush"
    bf16_subnormals: str | None = None
    fp16_subnormals: str = "keep"
    hf32_subnormals: str = "flush"
    other: str | Format | None = None

    def __post_init__(self) -> None:
        for name in ("block_round", "hf32_round"):
            value = getattr(self, name)
            object.__setattr__(self, name, _ALIASES.get(value, value))
        for name, known in _ALLOWED.items():
            if getattr(self, name) not in known and (name, getattr(self, name)) != ("bf16_subnormals", None):
                raise UsageError(f"Cube: {name} {getattr(self, name)!r}: known are {', '.join(known)}")
        for fmt in self.formats:
            if (fmt.is_float and fmt.bits > MOST_BITS) or (not fmt.is_float and fmt.bits > 8):
                raise UsageError(
                    f"Cube: operands of {fmt}: it reads floats up to fp32 and integers up to 8 bits"
                )
        self._check_accumulator()
        if not is_block_sum(self.block_sum):
            raise UsageError(
                f"Cube: block_sum {self.block_sum!r}: known are exact, tree, and aligned=N with N up to {MOST_EXTRA_BITS}"
            )
        if self.block_k is not None and self.block_k < 1:
            raise UsageError(f"Cube: block_k is {self.block_k}, at least 1 product is added at a time")

    def _check_accumulator(self) -> None:
        left, right = self.formats
        if left.is_integer != right.is_integer:
            raise UsageError(f"Cube: operands of {left} and {right}: both are integers, or none")
        whole = left.is_integer
        if (self.accumulates_in.name != "int32") if whole else not self.accumulates_in.is_float:
            ok = "int32" if whole else "fp32 or another floating format"
            raise UsageError(f"Cube: {left} operands do not accumulate in {self.accumulates_in}, but in {ok}")

    def with_switches(self, switches: Mapping[str, Any]) -> CubeRules:
        """These rules with some fields changed; a name that is no field is an error."""
        known = [field.name for field in fields(self)]
        unknown = [name for name in switches if name not in known]
        if unknown:
            raise UsageError(f"Cube: no switch {', '.join(unknown)}; there are {', '.join(known)}")
        return replace(self, **switches) if switches else self

    @property
    def formats(self) -> tuple[Format, Format]:
        """Of both operands."""
        left = get_format(self.operand)
        return left, left if self.other is None else get_format(self.other)

    @property
    def accumulates_in(self) -> Format:
        """The format of the accumulator."""
        return get_format(self.accumulator or ("int32" if self.formats[0].is_integer else "fp32"))

    @property
    def products_per_step(self) -> int:
        """Products between two roundings of the accumulator; of two formats those of the wider one."""
        if self.block_k is not None:
            return self.block_k
        chosen = dict(self.block_k_of)
        return min(chosen.get(fmt.name) or _block_k(fmt) for fmt in self.formats)

    @property
    def operand_grid(self) -> Format:
        """Format whose values the operands are."""
        fmt = get_format(self.operand)
        return get_format(self.hf32_grid) if fmt is HF32 else fmt

    @property
    def operand_round(self) -> str:
        """Rounding of an operand on its way in: memory already holds FP16, BF16 and FP32; only HF32 is narrower."""
        fmt = get_format(self.operand)
        return self.hf32_round if fmt is HF32 else fmt.rounding

    @property
    def operand_subnormals(self) -> str:
        """keep or flush, for operands of this format; those that no Cube here reads keep them."""
        of_type = {
            FP16: self.fp16_subnormals,
            HF32: self.hf32_subnormals,
            BF16: self.bf16_subnormals or self.fp32_subnormals,
            FP32: self.fp32_subnormals,
        }
        return "flush" if flushes_operands(of_type.get(get_format(self.operand), "keep")) else "keep"

    @property
    def flushes_results(self) -> bool:
        """Whether accumulators below 2^-126 become zero; an FP16 accumulator keeps its subnormals."""
        return self.accumulates_in is FP32 and flushes_results(self.fp32_subnormals)

    @property
    def extra_bits(self) -> int:
        """Of aligned sums; TREE of _steps.pyx for sums by pairs."""
        return int(self.block_sum.partition("=")[2] or -1)


def _block_k(fmt: Format) -> int:
    width = next(n for n in (4, 8, 16, 32) if fmt.bits <= n)
    return BLOCK_K.get(fmt.name, 8 * STEP_BYTES // width)


def operand_format(stored: str, asked: str, hf32: bool) -> str:
    """Format in which the Cube reads operands stored as `stored`.

    asked: what a product says of itself: "ieee", "hf32", or "device" for what the run chose (`hf32`). Only FP32 has a
    choice; FP16 and BF16 ignore the setting (Ascend C SetHF32Mode).
    """
    if stored != "fp32":
        return stored
    return "hf32" if asked == "hf32" or (asked == "device" and hf32) else "fp32"
