"""What a tuner found out: its candidates by simulated time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import AscendtileError
from .config import Config


@dataclass(frozen=True)
class Trial:
    """One candidate: its simulated time in us, or the reason why it has none."""

    config: Config
    time_us: float | None
    cycles: float | None = None
    reason: str = ""
    error: AscendtileError | None = None


class Ranking(tuple[Trial, ...]):
    """The `Trial`s of one choice, best first, and shown as a table."""

    kernel: str

    @staticmethod
    def of(kernel: str, trials: Sequence[Trial]) -> Ranking:
        """Those that can run by time, then those that cannot."""
        out = Ranking(sorted(trials, key=lambda t: float("inf") if t.time_us is None else t.time_us))
        out.kernel = kernel
        return out

    def __repr__(self) -> str:
        failed = sum(t.time_us is None for t in self)
        head = f"autotune of {self.kernel}: {len(self)} candidates, {failed} cannot run"
        rows = [
            f"  {'-' if t.time_us is None else f'{t.time_us:.3f}':>12} us  {t.config}"
            + (f"\n{'':18}{t.reason}" if t.reason else "")
            for t in self
        ]
        return "\n".join([head, *rows])
