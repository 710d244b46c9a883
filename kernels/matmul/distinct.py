"""Figures of many points of which few are different: each different one is worked out once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def each_once(figure: Callable[..., Any], *columns: ArrayLike) -> tuple[list[Any], np.ndarray]:
    """figure(one integer of each column) of the different points, and where in that list each point has its own.

    Not `np.unique(axis=0)`: where Ctrl-C comes while numpy compares structured rows, it answers with a TypeError.
    """
    points = np.stack(np.broadcast_arrays(*columns), axis=1)
    order = np.lexsort(points.T)
    points = points[order]
    new = np.ones(len(points), bool)
    new[1:] = (points[1:] != points[:-1]).any(axis=1)
    place = np.empty(len(points), np.intp)
    place[order] = np.cumsum(new) - 1
    return [figure(*map(int, point)) for point in points[new]], place
