"""What is a figure and not a choice: how far functions of the Vector unit are from the rounded exact value.

The models of exp, log, sqrt and division are correctly rounded (assumed: no error figure is published); whole quotients are
exact, sums in memory are rounded to nearest even.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .all_experiments import FUNCTIONS, all_experiments
from .elimination import differing
from .experiment import Words
from .findings import MEASURED, OPEN, ProbeAnswer
from .predict import predict
from .space import units_of

_QUESTIONS = {f"{name}_fp32": f"error of {name}" for name in FUNCTIONS} | {
    "whole_quotient_int32": "quotients of INT32",
    "atomic_fp32": "rounding of sums in memory",
}


def measured_answers(observed: Mapping[str, Words], errors: Mapping[str, str]) -> list[ProbeAnswer]:
    return [_answer(name, question, observed.get(name), errors) for name, question in _QUESTIONS.items()]


def _answer(name: str, question: str, words: Words | None, errors: Mapping[str, str]) -> ProbeAnswer:
    if words is None:
        return ProbeAnswer(question, OPEN, detail=f"no result of {name} ({errors.get(name, 'not run')})")
    experiment = all_experiments()[name]
    expected = predict(experiment, units_of({}))
    wrong = differing(expected, words, experiment)
    if not wrong.any():
        detail = f"the rounded exact value on all {words.size} arguments"
    else:
        steps = np.abs(_ordered(words) - _ordered(expected))
        counts = ", ".join(f"{int((steps == n).sum())} by {n}" for n in np.unique(steps[wrong])[:4])
        detail = f"{int(wrong.sum())} of {words.size} results are off: {counts} of the last place"
    return ProbeAnswer(question, MEASURED, {}, (name,), words.nbytes * 8, detail)


def _ordered(words: Words) -> np.ndarray:
    """Words as integers in the order of the numbers, neighbours 1 apart."""
    if words.dtype == np.int32:
        return words.astype(np.int64)
    signed = words.astype(np.int64)
    return np.where(signed >= 2**31, 2**31 - signed, signed)
