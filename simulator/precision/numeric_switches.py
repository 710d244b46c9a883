"""The choices that numbers depend on: which a user may change, and which of them are not published.

    with sim.device(numerics={"cube_block_k": 1, "overflow_mode": "saturate"}):
        ...

Grades: documented by the vendor, inferred from published device results or vendor code, assumed where no source says it.
Sources are named in the numerics specification that these follow: Ascend C guide and API reference, platform
configuration files of CANN 8.1.RC1, hw-native-sys/pto-isa, Jittor pull request 18025.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ..errors import UsageError

MAX_BLOCK_K = 4095  # the largest k of one Mmad


@dataclass(frozen=True)
class Switch:
    """One choice. default: None where it is a figure of the product or a field of `Device`. grade: of the default."""

    values: tuple[str, ...]
    default: str | None
    grade: str
    meaning: str


SWITCHES: Mapping[str, Switch] = MappingProxyType(
    {
        "overflow_mode": Switch(("inf_nan", "saturate"), None, "", "what a result too large for its type becomes"),
        "sum_order": Switch(
            ("tree_tree", "tree_sequential"), None, "", "how the sums of the repeats of a reduction are added"
        ),
        "fp32_subnormals": Switch(("flush", "keep"), None, "", "FP32 and BF16 values below 2^-126"),
        "fp16_subnormals": Switch(("keep", "flush"), None, "", "FP16 values below 2^-14"),
        "hf32_round": Switch(
            ("RNE", "RNA", "RNZ"), None, "documented", "operands of a product in HF32: control register mode 0, 1, or the "
            "other reading of mode 1"
        ),
        "hf32_flush_subnormal_inputs": Switch(("on", "off"), "on", "inferred", "FP32 subnormals among HF32 operands"),
        "cube_block_k": Switch(
            ("per_format",), "per_format", "assumed", "products that the Cube adds before it rounds: 4 for FP32 (inferred), "
            "8 for HF32, 16 for FP16 and BF16, or one number for all"
        ),
        "cube_block_round": Switch(("RNE", "TRUNC"), "RNE", "inferred", "rounding of the accumulator after each such step"),
        "fp16_accumulator": Switch(
            ("off", "on"), "off", "documented", "FP16 products accumulate in FP16 (910A and 310P can; the rounding of each "
            "step is assumed)"
        ),
        "recip_rsqrt_model": Switch(
            ("nine_bits", "correctly_rounded"), "nine_bits", "inferred", "the coarse Reciprocal and Rsqrt instructions"
        ),
        "bf16_mode2": Switch(
            ("convert", "reject"), "convert", "documented", "BF16 operands of a convolution with USE_FP16: "
            "source and current document differ"
        ),
    }
)  # fmt: skip
OF_PRODUCT = ("overflow_mode", "sum_order", "fp32_subnormals", "fp16_subnormals")
FIXED = MappingProxyType(
    {
        "elementary_functions": "correctly rounded (assumed: no error figure is published)",
        "division_and_root": "correctly rounded (assumed)",
        "halves_in_fp32": "sum, cumsum, cumprod, log, rsqrt, sigmoid and softmax; rounded once (AscendNPU-IR, HFusion)",
        "integer_division": "exact (the compiler divides int32 in FP32: the same below 2^24)",
        "fixp_round": "RNE (inferred: no mode selector exists)",
    }
)


def check_numerics(given: Mapping[str, Any]) -> dict[str, str | int]:
    """The choices of a user with every value checked; `UsageError` names what is allowed."""
    return {name: _checked(name, value) for name, value in given.items()}


def _checked(name: str, value: Any) -> str | int:
    switch = SWITCHES.get(name)
    if switch is None:
        raise UsageError(f"unknown choice of numerics {name!r}; there are {', '.join(SWITCHES)}")
    if isinstance(value, bool) and "on" in switch.values:
        return "on" if value else "off"
    if name == "cube_block_k" and str(value).isdecimal():
        return _block_k(int(value))
    if value not in switch.values:
        number = f", or a number from 1 to {MAX_BLOCK_K}" if name == "cube_block_k" else ""
        raise UsageError(f"numerics {name} is {value!r}; allowed are {', '.join(switch.values)}{number}")
    return str(value)


def _block_k(value: int) -> int:
    if not 1 <= value <= MAX_BLOCK_K:
        raise UsageError(f"numerics cube_block_k is {value}; one Mmad adds 1 to {MAX_BLOCK_K} products")
    return value
