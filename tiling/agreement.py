"""Whether the tilings of a user's kernel compute the same: a tiling that leaves work out is fast, and no answer.

With arrays the best tiling and a few others are run with their values, and what they left in the arrays is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from ..simulator.errors import AscendtileError
from ..simulator.interpreter.tensors import Shape, as_array
from .kernel_problem import MODE, KernelProblem
from .results.exploration import Found

COMPARED = 4  # tilings besides the best one
MOST_ELEMENTS = 1 << 24  # of all arrays: values of one tiling then take seconds
ROUNDINGS = 64  # of the largest value of an array, by which other orders of additions may differ
Values = Mapping[str, np.ndarray]


def notes_about_values(problem: KernelProblem, ranked: Sequence[Found]) -> list[str]:
    """Notes: which tilings compute something else than the best, or why values were not compared; none if all agree."""
    alike = [x for x in ranked if x.point.get(MODE) == ranked[0].point.get(MODE)]
    if len(alike) < 2:
        return []
    if any(isinstance(x, Shape) for x in problem.arguments.values()):
        return [
            "values were not compared: shapes have none; with arrays a tiling that computes something else is found"
        ]
    arrays = [a for n, x in problem.arguments.items() if (a := as_array(n, x)) is not None]
    count = sum(a.size for a in arrays)
    if count > MOST_ELEMENTS:
        return [f"values were not compared: the arrays have {count:,} elements, more than {MOST_ELEMENTS:,}"]
    places = np.unique(np.linspace(1, len(alike) - 1, COMPARED).round().astype(int))
    try:
        best = problem.values(alike[0].point)
        return [note for k in places if (note := _difference(problem, alike[0], best, alike[k]))]
    except AscendtileError as e:
        return [f"values were not compared: {str(e).splitlines()[0]}"]


def _difference(problem: KernelProblem, first: Found, best: Values, other: Found) -> str | None:
    found = problem.values(other.point)
    odd = {n: far for n in best if (far := _far(best[n], found[n]))}
    if not odd:
        return None
    amounts = ", ".join(f"{n} by up to {far:.3g}" for n, far in odd.items())
    two = f"the best tiling, {_named(first)}, leaves other values than {_named(other)}"
    return f"values differ: {two}: {amounts}; {_nearer(problem, first, other)}"


def _nearer(problem: KernelProblem, first: Found, other: Found) -> str:
    """Which is right: tilings may differ in what they leave out, or in their precision alone."""
    errors = [(x.evaluation.error, x) for x in (first, other) if x.evaluation.error is not None]
    if len(errors) < 2 or errors[0][0] == errors[1][0]:
        return 'one leaves work out, or rounds more: objective="error" says which is nearer to float64'
    (least, near), (most, _) = sorted(errors, key=lambda pair: pair[0])
    right = "float64" if problem.reference is None else "the reference"
    return f"{_named(near)} is nearer to {right}, with an error of {least:.3g} against {most:.3g}"


def _named(x: Found) -> str:
    return " ".join(f"{n}={v}" for n, v in x.point.items())


def _far(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference, 0 if roundings explain it."""
    if a.size == 0:
        return 0.0
    x, y = a.astype(np.float64), b.astype(np.float64)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    if same.all():
        return 0.0
    far = np.where(same, 0.0, np.abs(x - y))
    largest = float(np.max(np.where(np.isnan(far), np.inf, far)))
    sizes = np.abs(np.concatenate([x.ravel(), y.ravel()]))
    scale = float(np.max(sizes[np.isfinite(sizes)], initial=0.0))
    return 0.0 if largest <= ROUNDINGS * _eps(a.dtype) * scale else largest


def _eps(dtype: Any) -> float:
    try:
        return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]
    except ValueError:  # integers are exact
        return 0.0
