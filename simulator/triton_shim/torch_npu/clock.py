"""The clock of the simulated device, which every launch moves on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...record.run import Run


class Clock:
    """Simulated time since the shim was installed."""

    def __init__(self) -> None:
        self.now_us = 0.0

    def tell(self, run: Run) -> None:
        self.now_us += run.time_us


CLOCK = Clock()
