"""Where a search stops."""

from __future__ import annotations

import time as clock
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Budget:
    """Where to stop: after so many tried points, or so many seconds from `began` on (of `perf_counter`)."""

    points: int | None = None
    seconds: float | None = None
    began: float = field(default_factory=lambda: clock.perf_counter())

    def over(self, points: int) -> bool:
        return (self.points is not None and points >= self.points) or self.late()

    def late(self, share: float = 1.0, ahead: float = 0.0) -> bool:
        """Whether that share of the time is gone, or will be in `ahead` seconds."""
        return self.seconds is not None and self.gone() + ahead >= share * self.seconds

    def gone(self) -> float:
        """Seconds from the beginning on."""
        return clock.perf_counter() - self.began

    def room(self, points: int, most: int) -> int:
        """Points of the next batch."""
        return most if self.points is None else max(1, min(most, self.points - points))
