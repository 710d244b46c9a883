"""When an output counts as right, by whose rule: each benchmark's own, with its source.

KernelBench: src/kernelbench/eval.py, get_tolerance_for_precision, at 423217d9 (rtol = atol, every element).
AscendOpGenAgent: skills/triton/kernel-verifier/scripts/verify.py, get_allclose_tolerance, at 8b7a8f41 (every element).
AKG: akg_agents op/verifier/adapters/framework/torch.py, get_limit and compare, at 6ec75bdf: the relative error (the absolute
one where the reference is at most 1e-8) may exceed the limit in a share of the elements that is the limit, too.

Integers and booleans of the first two must be equal. In all three, NaN and infinities must be where the reference has them.
The last two flatten both outputs and cast the answer's (compare in both files): another shape or dtype passes, but for
booleans. KernelBench compares shapes, and torch.allclose raises where dtypes differ.
"""

from __future__ import annotations

from dataclasses import replace

from ..verdict import Tolerance

KERNELBENCH, GROUPED, AKG = "KernelBench", "AscendOpGenAgent", "AKG"
EXACT = Tolerance(rtol=0.0, atol=0.0, outside=0.0, source="integers and booleans are equal")
SMALLEST_AKG = 1e-8

# dtype -> (rtol, atol); "" for every other floating type. KernelBench has no rule for float64, which gets that of float32.
_KERNELBENCH = {"float32": (1e-4, 1e-4), "float64": (1e-4, 1e-4), "": (1e-2, 1e-2)}
_GROUPED = {"float16": (2.0**-10, 1e-3), "bfloat16": (2.0**-7, 1e-2), "": (2.0**-13, 1e-5)}
_AKG = {"float16": 0.004, "bfloat16": 0.03, "int8": 0.01, "": 0.02}


def tolerance(benchmark: str, dtype: str) -> Tolerance:
    """The rule of `benchmark` for an output of `dtype` (numpy's words)."""
    if benchmark == AKG and dtype != "bool":
        return _of_akg(_AKG.get(dtype, _AKG[""]))
    if not is_floating_name(dtype):
        return replace(EXACT, any_form=benchmark == GROUPED and dtype != "bool")
    rules = _KERNELBENCH if benchmark == KERNELBENCH else _GROUPED
    rtol, atol = rules.get(dtype, rules[""])
    source = f"{benchmark}: every element"
    return Tolerance(rtol=rtol, atol=atol, outside=0.0, any_form=benchmark == GROUPED, source=source)


def _of_akg(limit: float) -> Tolerance:
    words = f"{AKG}: relative error, in all elements but that share"
    return Tolerance(
        rtol=limit, atol=0.0, outside=limit, absolute_below=SMALLEST_AKG, any_form=True, source=words
    )


def is_floating_name(dtype: str) -> bool:
    """Whether numpy's name is that of a floating or complex type."""
    return not dtype.startswith(("int", "uint", "bool"))
