"""The questions of a probe: which choices each is about, and the experiments that answer it.

A question is decided with what earlier ones named: `needs` are the choices that must be known before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from .cube_experiments import FORMATS
from .space import VALUES, Choices
from .vector_experiments import SUM_LENGTHS

STEPS = ("cube_block_k", "cube_k_order", "fp16_accumulator")  # what the questions for steps name
SUMS = ("cube_block_round", "cube_block_sum")


@dataclass(frozen=True)
class Question:
    """choices: names of the configurations that are tried, each value with each. formats: operands of the Cube."""

    name: str
    choices: tuple[str, ...]
    experiments: tuple[str, ...]
    needs: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()

    def candidates(self) -> Iterator[Choices]:
        for values in product(*(VALUES[name] for name in self.choices)):
            yield dict(zip(self.choices, values, strict=True))


QUESTIONS = (
    Question("casts to FP16", ("cast_round", "overflow_mode", "fp16_subnormals"), ("cast_fp16",)),
    Question("casts to BF16", ("cast_round", "overflow_mode", "bf16_subnormals"), ("cast_bf16",)),
    Question(
        "casts toward zero beyond the range",
        ("directed_overflow", "overflow_mode", "fp16_subnormals"),
        ("cast_toward_zero_fp16",),
    ),
    Question("floats that INT32 cannot hold", ("float_to_int_overflow",), ("cast_int32",)),
    Question("FP32 of the Vector unit at its ends", ("fp32_subnormals", "overflow_mode"), ("add_ends_fp32",)),
    Question("FP16 of the Vector unit at its ends", ("fp16_subnormals", "overflow_mode"), ("add_ends_fp16",)),
    Question("multiply-add", ("fma_round",), ("fused_fp32",)),
    Question(
        "order of a sum",
        ("sum_tree", "sum_order", "sum_repeat_bytes"),
        tuple(f"row_sums_{n}" for n in SUM_LENGTHS),
    ),
    Question("coarse reciprocal", ("recip_rsqrt_model",), ("coarse_reciprocal_fp32",)),
    Question("coarse root", ("recip_rsqrt_model",), ("coarse_rsqrt_fp32",)),
    Question("sums of a step and their rounding", SUMS, tuple(f"sums_{f}" for f in FORMATS), STEPS, FORMATS),
    Question(
        "operands in HF32",
        ("hf32_round", "hf32_bits", "hf32_flush_subnormal_inputs", "cube_subnormals", "overflow_mode"),
        ("operands_hf32",),
        SUMS,
        ("hf32",),
    ),
    Question(
        "FP32 of the Cube at its ends", ("cube_subnormals", "overflow_mode"), ("ends_fp32",), SUMS, ("fp32",)
    ),
    Question(
        "BF16 of the Cube at its ends",
        ("bf16_subnormals", "cube_subnormals", "overflow_mode"),
        ("ends_bf16",),
        SUMS,
        ("bf16",),
    ),
    Question(
        "FP16 of the Cube at its ends", ("fp16_subnormals", "overflow_mode"), ("ends_fp16",), SUMS, ("fp16",)
    ),
)
