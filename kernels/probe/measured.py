"""What is a figure and not a choice: how far functions of the Vector unit are from the rounded exact value.

The models of exp, log, sqrt and division are correctly rounded (assumed: no error figure is published); whole quotients are
exact, sums in memory are rounded to nearest even. Products that are stored as halves are cast on their way out of L0C, by
FIXP or, where the compiler has it so, by the Vector unit: they are compared with casts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import product

import numpy as np

from .all_experiments import FUNCTIONS, STORES, all_experiments
from .elimination import agreeing, differing, nearest
from .experiment import Words
from .findings import MEASURED, NONE, OPEN, ProbeAnswer
from .predict import predict
from .space import VALUES, Choices, units_of

_QUESTIONS = {f"{name}_fp32": f"error of {name}" for name in FUNCTIONS} | {
    "whole_quotient_int32": "quotients of INT32",
    "atomic_fp32": "rounding of sums in memory",
}


def measured_answers(observed: Mapping[str, Words], errors: Mapping[str, str]) -> list[ProbeAnswer]:
    figures = [_answer(name, question, observed.get(name), errors) for name, question in _QUESTIONS.items()]
    return [*figures, *(_stored(t, observed.get(f"stored_{t}"), errors) for t in STORES)]


def _stored(target: str, words: Words | None, errors: Mapping[str, str]) -> ProbeAnswer:
    """Which casts a store of products agrees with: no choice of its own says how FIXP casts."""
    name, question = f"stored_{target}", f"products stored as {target.upper()}"
    if words is None:
        return ProbeAnswer(question, OPEN, detail=f"no result of {name} ({errors.get(name, 'not run')})")
    experiment, keys = all_experiments()[name], ("cast_round", "overflow_mode")
    tried = [dict(zip(keys, values, strict=True)) for values in product(*(VALUES[k] for k in keys))]
    left = agreeing(tried, {}, [experiment], {name: words})
    about = partial(ProbeAnswer, question, experiments=(name,), bits=words.nbytes * 8)
    if left:
        return about(verdict=MEASURED, detail=" or ".join(f"as casts with {_told(c)}" for c in left))
    best = nearest(tried, {}, [experiment], {name: words})
    wrong = f"{best.differing} of {best.elements} differ; {best.where}"
    return about(verdict=NONE, detail=f"nearest are casts with {_told(best.choices)}: {wrong}")


def _told(choices: Choices) -> str:
    return " ".join(f"{name}={x}" for name, x in choices.items())


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
