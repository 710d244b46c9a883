"""Points that no other point beats in everything."""

from __future__ import annotations

import numpy as np

TIE = 0.01  # of an error: what lies nearer together is as good, as other orders of additions make such a difference


def pareto(costs: np.ndarray) -> np.ndarray:
    """Numbers of the rows of `costs` (points x objectives, less is better) that no other row beats; ascending in the first.

    A row is beaten by one that is at most as large everywhere and smaller somewhere; of equal rows the first stays. NaN is
    worse than any number.
    """
    values = np.where(np.isnan(costs), np.inf, np.asarray(costs, np.float64))
    order = np.lexsort((np.arange(len(values)), *values.T[::-1]))
    kept: list[int] = []
    front = np.empty((0, values.shape[1]))
    for k in order:
        row = values[k]
        if len(front) and (front <= row).all(axis=1).any():
            continue
        kept.append(int(k))
        front = np.vstack([front, row])
    return np.array(kept, np.int64)


def tied(errors: np.ndarray) -> np.ndarray:
    """Errors, where all that are at most TIE above the least of their group are that least one. NaN is worse than any."""
    values = np.where(np.isnan(errors), np.inf, np.asarray(errors, np.float64))
    out, least = values.copy(), -np.inf
    for k in np.argsort(values, kind="stable"):
        least = values[k] if values[k] > least * (1.0 + TIE) else least
        out[k] = least
    return out
