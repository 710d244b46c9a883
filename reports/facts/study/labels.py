"""Where the labels of points go, so that none covers another, a point or a line: in pixels, for pages and pictures alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

DIRECTIONS = (
    0,
    45,
    -45,
    90,
    -90,
    135,
    -135,
    180,
    20,
    -20,
    70,
    -70,
    110,
    -110,
    160,
    -160,
)  # degrees, the best first
RINGS = 24  # distances that are tried, each half a label further away
LED = 9.0  # pixels from the point to its label, from which on a line leads there


@dataclass(frozen=True)
class LabelBox:
    """A rectangle: x grows to the right, and y in either way."""

    left: float
    low: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def high(self) -> float:
        return self.low + self.height

    @property
    def middle(self) -> tuple[float, float]:
        return self.left + self.width / 2, self.low + self.height / 2

    def overlaps(self, other: LabelBox) -> bool:
        """Whether they share an area; touching edges do not."""
        across = self.left < other.right and other.left < self.right
        return across and self.low < other.high and other.low < self.high

    def holds(self, other: LabelBox) -> bool:
        """Whether the other one is inside."""
        across = self.left <= other.left and other.right <= self.right
        return across and self.low <= other.low and other.high <= self.high

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """The place of the rectangle that is nearest to a point."""
        return min(max(x, self.left), self.right), min(max(y, self.low), self.high)

    def leader(self, x: float, y: float) -> tuple[float, float] | None:
        """Where a line from a point to this label ends; None for a label that stands beside its point."""
        end = self.nearest(x, y)
        return end if math.dist((x, y), end) > LED else None


def around(x: float, y: float, reach: float) -> LabelBox:
    """The square that a mark takes."""
    return LabelBox(x - reach, y - reach, 2 * reach, 2 * reach)


def labels(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    frame: LabelBox,
    reach: float,
    lines: Sequence[tuple[float, float]] = (),
) -> list[LabelBox | None]:
    """A place for the label of each point, as near as there is room; None where there is none inside the frame.

    sizes: width and height of each label. reach: half the width of a mark. lines: corners of a line through the chart, which
    labels keep clear of where they can.
    """
    marks = [around(x, y, reach) for x, y in points]
    drawn = [around(x, y, 1.0) for x, y in _dots(lines)]
    found: list[LabelBox | None] = [None] * len(points)
    for k in sorted(range(len(points)), key=lambda k: _room(points, k)):
        taken = [*marks, *(b for b in found if b)]
        inside = (b for b in _candidates(*points[k], *sizes[k], reach) if frame.holds(b))
        found[k] = _chosen((b for b in inside if _clear(b, taken)), drawn)
    return found


def _chosen(free: Iterable[LabelBox], drawn: Sequence[LabelBox]) -> LabelBox | None:
    """The first that keeps clear of the line, else the first."""
    first = None
    for box in free:
        first = first or box
        if _clear(box, drawn):
            return box
    return first


def _room(points: Sequence[tuple[float, float]], k: int) -> float:
    """How far the nearest other point is: those in a crowd choose first."""
    return min((math.dist(points[k], p) for j, p in enumerate(points) if j != k), default=math.inf)


def _clear(box: LabelBox, others: Iterable[LabelBox]) -> bool:
    return not any(box.overlaps(other) for other in others)


def _candidates(x: float, y: float, width: float, height: float, reach: float) -> Iterator[LabelBox]:
    """Places around a point, nearest first: the label's near edge or corner lies in the direction."""
    for ring in range(RINGS):
        distance = reach + 2.0 + ring * height / 2
        for degrees in DIRECTIONS:
            ux, uy = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
            left = x + distance * ux + (width * (ux - 1) / 2)
            yield LabelBox(left, y + distance * uy + height * (uy - 1) / 2, width, height)


def _dots(corners: Sequence[tuple[float, float]], step: float = 4.0) -> Iterator[tuple[float, float]]:
    """Points along a line."""
    for (x0, y0), (x1, y1) in pairwise(corners):
        n = max(1, math.ceil(math.dist((x0, y0), (x1, y1)) / step))
        yield from ((x0 + (x1 - x0) * k / n, y0 + (y1 - y0) * k / n) for k in range(n + 1))
