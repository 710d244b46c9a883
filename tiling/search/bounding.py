"""Bounds of the legal points of a space: all at once, or in parts as far as a budget of time reaches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .budget import Budget

FIRST_PART, MORE_POINTS = 256, 2048  # points of the first part that is bounded, and of the others
FIRST_SHARE = 0.5  # of a budget of time that bounds may take before the first point is looked at
Least = Callable[[np.ndarray], np.ndarray]
Bounded = tuple[np.ndarray, np.ndarray]  # numbers of points, and the least time in us of each


class Bounding:
    """Where there is a budget of time, points come in an order that takes all of the space alike.

    least: bounds of points by their numbers. left: legal points that have no bound yet.
    """

    def __init__(self, least: Least, legal: np.ndarray, budget: Budget) -> None:
        self.least, self.budget = least, budget
        self.left, self.each = len(legal), 0.0
        self.parts = [legal]
        if budget.seconds is not None:
            order = np.random.default_rng(0).permutation(legal)
            self.parts = np.split(order, np.arange(FIRST_PART, len(order), MORE_POINTS))[::-1]

    @property
    def ahead(self) -> float:
        """Seconds that the next part is likely to take."""
        return self.each * len(self.parts[-1]) if self.parts else 0.0

    def first(self) -> Bounded:
        """Points to begin with, in the order of the space: one part at least."""
        found: list[Bounded] = []
        while self.left and not (found and self.budget.late(FIRST_SHARE, self.ahead)):
            found.append(self._next())
        if not found:
            return np.zeros(0, np.int64), np.zeros(0)
        numbers, bounds = (np.concatenate(x) for x in zip(*found, strict=True))
        order = np.argsort(numbers, kind="stable")
        return numbers[order], bounds[order]

    def more(self) -> Bounded | None:
        """Another part; None if there is none, or if the time is likely to be up before its bounds are there."""
        return None if not self.left or self.budget.late(ahead=self.ahead) else self._next()

    def _next(self) -> Bounded:
        part = self.parts.pop()
        begin = self.budget.gone()
        bounds = self.least(part)
        self.each = (self.budget.gone() - begin) / max(1, len(part))
        self.left -= len(part)
        return part, bounds
