"""The configurations among which a probe decides: every choice of the numerics that a kernel of Triton can show.

draw(np.random.default_rng(7))       # {"overflow_mode": "saturate", "cube_block_k": "fp16=33,...", ...}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...simulator.numerics import numerics_of
from ...simulator.precision.numeric_switches import BLOCK_FORMATS, MOST_EXTRA_BITS, SWITCHES, check_numerics
from ...simulator.units.vector import Numerics
from .cube_experiments import MOST_STEP

Choices = dict[str, Any]

_EXPLICIT = ("flush", "keep", "flush_operands", "flush_results")  # "as_fp32" is one of them by another name
_OTHERS = {
    "bf16_subnormals": _EXPLICIT,
    "cube_subnormals": _EXPLICIT,
    "cube_block_sum": ("exact", "tree", *(f"aligned={n}" for n in range(MOST_EXTRA_BITS + 1))),
}
NOT_PROBED = (
    "cube_block_k",
    "bf16_mode2",
)  # block sizes are questions of their own; the other one is of the host library
VALUES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {name: _OTHERS.get(name, switch.values) for name, switch in SWITCHES.items() if name not in NOT_PROBED}
)
# What stands for choices that a question does not ask about; where the product has a figure, IEEE.
USUAL: Mapping[str, Any] = MappingProxyType(
    {name: switch.default or switch.values[0] for name, switch in SWITCHES.items()}
    | {"hf32_round": "RNE", "fp32_subnormals": "keep", "bf16_subnormals": "keep", "cube_subnormals": "keep"}
)


def units_of(choices: Mapping[str, Any]) -> Numerics:
    """A configuration as the units take it; what it leaves out is as usual."""
    return numerics_of({**USUAL, **check_numerics(choices)})


def steps_text(sizes: Mapping[str, int]) -> str:
    """{"fp16": 16} as cube_block_k has it."""
    return ",".join(f"{fmt}={k}" for fmt, k in sizes.items())


def draw(random: np.random.Generator) -> Choices:
    """One configuration of a Cube that takes every format, each choice alike; block sizes alike in their logarithm."""
    found: Choices = {name: str(random.choice(values)) for name, values in VALUES.items()}
    found["fp16_accumulator"] = "off"
    sizes = np.exp(random.uniform(0, np.log(MOST_STEP + 1), len(BLOCK_FORMATS))).astype(int)
    found["cube_block_k"] = steps_text(dict(zip(BLOCK_FORMATS, map(int, sizes), strict=True)))
    return found


def distinct(candidates: Iterable[Choices], sizes: Mapping[str, int]) -> list[Choices]:
    """Of configurations that are the same for every operand, the first one. sizes: products of a step by format."""
    one_by_one = bool(sizes) and set(sizes.values()) == {1}
    seen = {tuple(canonical(c, one_by_one).items()): canonical(c, one_by_one) for c in candidates}
    return list(seen.values())


def canonical(choices: Choices, one_by_one: bool = False) -> Choices:
    """What stands for all configurations that no operand tells apart. one_by_one: every step has one product.

    A tree of one product is that product; a sum of two terms without a bit below the last place has no more than ties to
    round; a tree of neighbours over trees of neighbours is one tree, however long a repeat is; lanes one after another are
    no tree; what saturates has no infinity.
    """
    out = dict(choices)
    if one_by_one and out.get("cube_block_sum") == "tree":
        out["cube_block_sum"] = "exact"
    if one_by_one and (out.get("cube_block_sum"), out.get("cube_block_round")) == ("aligned=0", "RNZ"):
        out["cube_block_round"] = "TRUNC"
    if (out.get("sum_tree"), out.get("sum_order")) == ("adjacent", "tree_tree"):
        out["sum_repeat_bytes"] = USUAL["sum_repeat_bytes"]
    if out.get("sum_tree") == "sequential" and "sum_order" in out:
        out["sum_order"] = "tree_sequential"
    if out.get("overflow_mode") == "saturate" and "directed_overflow" in out:
        out["directed_overflow"] = "largest"
    return out
