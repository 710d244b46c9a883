"""The choices of the Cube that differ between operands, products and readings of the documents, as checked data.

Grades as in the numerics specification: documented (D), inferred from published device results (I), assumed (A).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

from ..errors import UsageError

# Products whose sum the Cube adds to the accumulator in one rounding. FP32: I, fits effective bits measured on devices
# (Jittor pull request 18025) and the rate of 16 x 16 x 4 per cycle. The others: A, one cycle's worth of k.
BLOCK_K: Mapping[str, int] = MappingProxyType({"fp16": 16, "bf16": 16, "hf32": 8, "fp32": 4, "int8": 32})

_ALLOWED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "operand": tuple(BLOCK_K),
        "block_round": ("RINT", "TRUNC"),
        "accumulate": ("exact", "blas"),
        "accumulator": ("fp32", "fp16", "int32"),
        "overflow": ("inf_nan", "saturate"),
        "hf32_round": ("RINT", "ROUND", "RNZ"),
        "fp32_subnormals": ("flush", "keep"),
        "fp16_subnormals": ("keep", "flush"),
        "hf32_subnormals": ("flush", "keep"),
    }
)
_ALIASES = {"RNE": "RINT", "RNA": "ROUND"}


@dataclass(frozen=True, slots=True)
class CubeRules:
    """How one Cube multiplies.

    operand: format in which it reads both operands. block_k: products per rounding, None for BLOCK_K. block_round: RINT
    (I) or TRUNC. accumulate: "exact" is the order of the Cube, "blas" that of numpy's matmul. accumulator: None for FP32,
    or INT32 where operands are INT8; "fp16" is an FP16 accumulator (910A, 310P; A). overflow: "inf_nan" (IEEE) or
    "saturate": infinite operands are read as the largest finite value and NaN as 0, results stop at the largest finite
    value (hw-native-sys/pto-isa, docs/isa, page on mad). hf32_round: RINT or RNE is mode 0 of the control register,
    ROUND or RNA mode 1, RNZ the other form of mode 1. fp32_subnormals: of FP32 and BF16 operands and of FP32 results
    (A). fp16_subnormals: of FP16 operands (I: kept). hf32_subnormals: FP32 subnormals among HF32 operands (I: flushed).
    """

    operand: str = "fp16"
    block_k: int | None = None
    block_round: str = "RINT"
    accumulate: str = "exact"
    accumulator: str | None = None
    overflow: str = "inf_nan"
    hf32_round: str = "RINT"
    fp32_subnormals: str = "flush"
    fp16_subnormals: str = "keep"
    hf32_subnormals: str = "flush"

    def __post_init__(self) -> None:
        for name in ("block_round", "hf32_round"):
            value = getattr(self, name)
            object.__setattr__(self, name, _ALIASES.get(value, value))
        for name, known in _ALLOWED.items():
            if getattr(self, name) not in known and (name, getattr(self, name)) != ("accumulator", None):
                raise UsageError(f"Cube: {name} {getattr(self, name)!r}: known are {', '.join(known)}")
        self._check_accumulator()
        if self.block_k is not None and self.block_k < 1:
            raise UsageError(f"Cube: block_k is {self.block_k}, at least 1 product is added at a time")

    def _check_accumulator(self) -> None:
        ok = {"int8": ("int32",), "fp16": ("fp32", "fp16")}.get(self.operand, ("fp32",))
        if self.accumulates_in not in ok:
            raise UsageError(
                f"Cube: {self.operand} operands do not accumulate in {self.accumulator}, but in {' or '.join(ok)}"
            )

    def with_switches(self, switches: Mapping[str, Any]) -> CubeRules:
        """These rules with some fields changed; a name that is no field is an error."""
        known = [field.name for field in fields(self)]
        unknown = [name for name in switches if name not in known]
        if unknown:
            raise UsageError(f"Cube: no switch {', '.join(unknown)}; there are {', '.join(known)}")
        return replace(self, **switches) if switches else self

    @property
    def accumulates_in(self) -> str:
        """fp32, fp16 or int32."""
        return self.accumulator or ("int32" if self.operand == "int8" else "fp32")

    @property
    def products_per_step(self) -> int:
        """Products between two roundings of the accumulator."""
        return BLOCK_K[self.operand] if self.block_k is None else self.block_k

    @property
    def operand_round(self) -> str:
        """Rounding of an operand on its way in: memory already holds FP16, BF16 and FP32; only HF32 is narrower."""
        return self.hf32_round if self.operand == "hf32" else "RINT"

    @property
    def operand_subnormals(self) -> str:
        """keep or flush, for operands of this format."""
        return {"fp16": self.fp16_subnormals, "hf32": self.hf32_subnormals}.get(
            self.operand, self.fp32_subnormals
        )

    @property
    def flushes_results(self) -> bool:
        """Whether accumulators below 2^-126 become zero; an FP16 accumulator keeps its subnormals."""
        return self.accumulates_in == "fp32" and self.fp32_subnormals == "flush"


def operand_format(stored: str, asked: str, hf32: bool) -> str:
    """Format in which the Cube reads operands stored as `stored`.

    asked: what a product says of itself: "ieee", "hf32", or "device" for what the run chose (`hf32`). Only FP32 has a
    choice; FP16 and BF16 ignore the setting (Ascend C SetHF32Mode).
    """
    if stored != "fp32":
        return stored
    return "hf32" if asked == "hf32" or (asked == "device" and hf32) else "fp32"
