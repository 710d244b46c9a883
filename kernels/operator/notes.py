"""What both faces say of a call: `OpResult.notes` and `warnings` in Python, `executor.notes` in the C interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...simulator.device import CUBE_MATH_TYPES, MATH_MODES, Device
from ...simulator.messages import Message, fault, note
from ...simulator.numerics import choice
from ...simulator.precision.cube_math import Resolution
from ...simulator.precision.splits import SPLITS, Split
from ...simulator.precision.splits.slices import beyond
from ...simulator.products import Product
from .messages import listed, refuse
from .operator import Operator
from .parameter import whole
from .tensors import Knobs, Tensors, dtype_name


def call_notes(
    op: Operator, dtypes: Mapping[str, str], strided: Iterable[str], product: Product
) -> tuple[str, ...]:
    """Notes of `Operator.beyond`; none for an operator without."""
    return op.beyond.notes(op.name, dtypes, strided, product) if op.beyond else ()


def value_warnings(op: Operator, arrays: Mapping[str, np.ndarray], machine: Device) -> tuple[Message, ...]:
    """What becomes of NaN and infinities in inputs where the product does not keep them, or the document excludes them.

    A fault where it excludes them, else a note.
    """
    excluded = machine.product.integer("product.npu_arch") in op.finite_on
    saturates = choice(machine, "overflow_mode") == "saturate"
    if not (excluded or saturates):
        return ()
    odd = [n for n, x in arrays.items() if n not in op.without_influence and not np.isfinite(x).all()]
    if not odd:
        return ()
    warning = f"{op.name} on {machine.product.name}: {listed(odd)} with infinities or NaN"
    warning += ", which is not supported there" if excluded else ""
    warning += ": NaN counts as 0, infinity as the largest number" if saturates else ""
    return (fault(warning) if excluded else note(warning),)


def idle_mode(op: Operator, tensors: Tensors, product: Product, mode: str) -> tuple[str, ...]:
    """A note where an operator of the Cube does what it does with KEEP_DTYPE, and no warning of the mode says so."""
    keep = CUBE_MATH_TYPES[0]
    if op.resolve is None or mode == keep:
        return ()
    found = op.resolve(tensors, product, mode)
    if found.warning or found != op.resolve(tensors, product, keep):
        return ()
    kinds = listed(dict.fromkeys(dtype_name(tensors[n]) for n in op.required))
    why = f"with inputs of {kinds} the Cube multiplies in {found.operand}, as with {keep}"
    return (f"cube_math_type {mode} has no effect: {why}",)


def cube_notes(found: Resolution, tiling: Knobs) -> list[str]:
    """How operands and order of additions of a plan differ from what the inputs and the Cube would give."""
    hf32 = f"the Cube rounds FP32 operands to HF32 by {found.hf32_round}"
    split = [split_words(found.split)] if found.split else []
    blas = "values in numpy's order of additions (accumulate=blas): the last bits are not the Cube's"
    return [hf32] * found.hf32 + split + [blas] * (tiling.get("accumulate") == "blas")


def split_words(split: Split) -> str:
    """FP16X3 (not the vendor's): ... the products by numbers of slices, 0 the highest."""
    pairs = ", ".join(f"{i}*{j}" for i, j in split.products)
    counts = " and ".join(str(n) for n in dict.fromkeys(split.counts))
    scaled = "rows and columns scaled by powers of two, " if split.top is not None else ""
    return (
        f"{split.name} is no mode of the vendor's: FP32 operands as {counts} {split.slices} slices, {scaled}products of "
        f"slices in this order, 0 the highest: {pairs}"
    )


def not_held(split: Split | None, tensors: Tensors) -> tuple[str, ...]:
    """A warning where inputs have elements that no slice of this split holds."""
    if split is None:
        return ()
    odd = [n for n, x in tensors.items() if isinstance(x, np.ndarray) and x.size and beyond(x, split)]
    large = " or numbers that BF16 rounds to infinity" if split.slices == "bf16" else ""
    what = f"{listed(odd)} with infinities, NaN{large}"
    return (f"{what}: no slices hold them, results that they reach are not those of FP32",) if odd else ()


def mode_name(op: Operator, given: Any) -> Any:
    """The name of a cubeMathType, or of a split; `RefusedError` (161002) for one that an operator of the Cube does not know.

    What is no mode goes on as it is for operators without the Cube: the device refuses it.
    """
    if given in MATH_MODES:
        return given
    if isinstance(given, str) and given.upper() in SPLITS:
        return given.upper()
    number, known = whole(given), CUBE_MATH_TYPES[: op.modes]
    if number is not None and 0 <= number < len(known):
        return known[number]
    if op.resolve is None:
        return given
    names = listed([f"{n} {name}" for n, name in enumerate(known)], "or")
    near_split = op.sliced and any(str(given).upper().startswith(split[:4]) for split in SPLITS)
    splits = f"; splits of FP32 operands are {listed(SPLITS)}" if near_split else ""
    raise refuse(f"{op.name}: cube_math_type is {given!r}; it must be {names}{splits}")
