"""`triton.Config`, one candidate of a tuner, and what a tuner found out: its candidates by simulated time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import AscendtileError

LAUNCH_FIELDS = ("num_warps", "num_ctas", "num_stages", "maxnreg", "ir_override")


class Config:
    """Values of compile-time parameters and launch keywords to try together.

    kwargs: parameter or launch keyword -> value. num_warps, num_stages, num_ctas, maxnreg and whatever else other back ends
    know (`more`): kept and passed on to the launch, which says what has no effect. pre_hook: called with the arguments by
    name before every launch with this candidate.
    """

    def __init__(
        self,
        kwargs: dict[str, Any],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: Callable[[dict[str, Any]], Any] | None = None,
        ir_override: str | None = None,
        **more: Any,
    ) -> None:
        self.kwargs = kwargs
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override
        self.more = more

    def all_kwargs(self) -> dict[str, Any]:
        """Everything the launch is given: parameters, then launch keywords that are set."""
        fields = {name: getattr(self, name) for name in LAUNCH_FIELDS}
        return {**self.kwargs, **{n: x for n, x in fields.items() if x is not None}, **self.more}

    def _key(self) -> tuple[Any, ...]:
        return (*sorted((n, repr(x)) for n, x in self.all_kwargs().items()), self.pre_hook)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return ", ".join(f"{n}: {x}" for n, x in self.all_kwargs().items())

    def __repr__(self) -> str:
        return f"Config({self})"


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
