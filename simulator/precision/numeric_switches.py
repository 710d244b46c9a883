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


# Which subnormal values of a type become zero: both, none, or one side of an operation.
SUBNORMAL_RULES = ("flush", "keep", "flush_operands", "flush_results")
MOST_EXTRA_BITS = 16  # of aligned sums: with them 4095 terms still add up exactly in 53 bits
_ROUNDS = ("RNE", "RNA", "RNZ", "TRUNC", "FLOOR", "CEIL", "ODD")

SWITCHES: Mapping[str, Switch] = MappingProxyType(
    {
        "overflow_mode": Switch(("inf_nan", "saturate"), None, "", "what a result too large for its type becomes"),
        "directed_overflow": Switch(
            ("largest", "infinity"), "largest", "assumed", "what too large a value becomes in a cast toward zero, where "
            "overflow_mode is inf_nan: IEEE 754 has the largest finite value"
        ),
        "float_to_int_overflow": Switch(
            ("saturate", "wrap"), "saturate", "documented", "floats that an integer cannot hold, in casts that do not say"
        ),
        "cast_round": Switch(
            _ROUNDS, "RNE", "documented", "casts to FP16 and BF16 that name no rounding: CAST_RINT, and FIXP as inferred"
        ),
        "fma_round": Switch(("once", "twice"), "once", "assumed", "roundings of a fused multiply-add of the Vector unit"),
        "sum_order": Switch(
            ("tree_tree", "tree_sequential"), None, "", "how the sums of the repeats of a reduction are added"
        ),
        "sum_tree": Switch(
            ("adjacent", "halves", "sequential"), "adjacent", "documented", "which lanes of a repeat are added first: "
            "WholeReduceSum adds neighbours"
        ),
        "sum_repeat_bytes": Switch(
            ("32", "64", "128", "256", "512"), "256", "documented", "bytes of a repeat in a sum: 64 lanes of FP32"
        ),
        "fp32_subnormals": Switch(
            SUBNORMAL_RULES, None, "", "FP32 values below 2^-126; of BF16 and the Cube, too, unless the next two differ"
        ),
        "bf16_subnormals": Switch(
            ("as_fp32", *SUBNORMAL_RULES), "as_fp32", "assumed", "BF16 values below 2^-126, in the Vector unit and the Cube"
        ),
        "cube_subnormals": Switch(
            ("as_fp32", *SUBNORMAL_RULES), "as_fp32", "assumed", "FP32 operands and results of the Cube below 2^-126"
        ),
        "fp16_subnormals": Switch(SUBNORMAL_RULES, None, "", "FP16 values below 2^-14"),
        "hf32_round": Switch(
            ("RNE", "RNA", "RNZ", "TRUNC"), None, "documented", "operands of a product in HF32: control register mode 0, 1, "
            "or the other reading of mode 1; TRUNC is no mode of the hardware"
        ),
        "hf32_bits": Switch(("11", "10"), "11", "documented", "stored mantissa bits of operands in HF32"),
        "hf32_flush_subnormal_inputs": Switch(("on", "off"), "on", "inferred", "FP32 subnormals among HF32 operands"),
        "cube_block_k": Switch(
            ("per_format",), "per_format", "assumed", "products that the Cube adds before it rounds: 4 for FP32 (inferred), "
            "8 for HF32, 16 for FP16 and BF16; or one number for all, or by format as in fp16=8,fp32=4"
        ),
        "cube_block_round": Switch(_ROUNDS, "RNE", "inferred", "rounding of the accumulator after each such step"),
        "cube_block_sum": Switch(
            ("exact", "tree"), "exact", "assumed", "how the products of a step are added: exactly; in pairs, each rounded "
            "to FP32; or aligned=N, cut to N bits below the last place of the largest"
        ),
        "cube_k_order": Switch(
            ("ascending", "descending"), "ascending", "assumed", "in which order the steps of one product follow each other"
        ),
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
        "fixp_round": "as cast_round (inferred: no mode selector exists)",
    }
)
BLOCK_FORMATS = ("fp16", "bf16", "hf32", "fp32")  # sums of INT8 are exact: no step shows in them


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
    if name == "cube_block_k" and "=" in str(value):
        return ",".join(f"{fmt}={k}" for fmt, k in block_k_of(str(value)).items())
    if isinstance(value, int) and not isinstance(value, bool) and str(value) in switch.values:
        return str(value)
    if (name == "cube_block_sum" and is_block_sum(value)) or value in switch.values:
        return str(value)
    further = _FURTHER.get(name, "")
    raise UsageError(f"numerics {name} is {value!r}; allowed are {', '.join(switch.values)}{further}")


_FURTHER = {
    "cube_block_k": f", or a number from 1 to {MAX_BLOCK_K}",
    "cube_block_sum": f", or aligned=N with N from 0 to {MOST_EXTRA_BITS}",
}


def is_block_sum(value: Any) -> bool:
    """Whether `value` says how the products of a step are added."""
    name, _, bits = str(value).partition("=")
    return value in ("exact", "tree") or (
        name == "aligned" and bits.isdecimal() and int(bits) <= MOST_EXTRA_BITS
    )


def _block_k(value: int) -> int:
    if not 1 <= value <= MAX_BLOCK_K:
        raise UsageError(f"numerics cube_block_k is {value}; one Mmad adds 1 to {MAX_BLOCK_K} products")
    return value


def block_k_of(text: str) -> dict[str, int]:
    """ "fp16=8,fp32=4" as numbers by format of the operands."""
    out: dict[str, int] = {}
    for part in text.split(","):
        name, _, number = (x.strip() for x in part.partition("="))
        if name not in BLOCK_FORMATS or name in out or not number.isdecimal():
            raise UsageError(
                f"numerics cube_block_k is {text!r}: {part!r} is not FORMAT=NUMBER with each of "
                f"{', '.join(BLOCK_FORMATS)} at most once, as in fp16=8,fp32=4"
            )
        out[name] = _block_k(int(number))
    return out
