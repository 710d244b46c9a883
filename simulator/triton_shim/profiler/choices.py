"""The choices of `torch_npu.profiler`: when to record (`schedule`), and options that are taken and have no effect here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace
from typing import Any

from ...errors import UsageError


class ProfilerAction(Enum):
    """What is done in a step. The last step of a cycle saves, too."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


@dataclass
class Schedule:
    """When to record: leave out `skip_first` steps, then in cycles `wait` steps, `warmup` steps, and record `active` ones.

    repeat: number of cycles, 0 for no end. skip_first_wait: whether the first cycle does not wait. `UsageError` for numbers
    below 0 and an `active` below 1. `schedule(step)` is the `ProfilerAction` of a step.
    """

    wait: int
    active: int
    warmup: int = 0
    repeat: int = 0
    skip_first: int = 0
    skip_first_wait: int = 0

    def __post_init__(self) -> None:
        for name, x in vars(self).items():
            least = 1 if name == "active" else 0
            if not isinstance(x, int) or x < least:
                raise UsageError(f"torch_npu.profiler.schedule: {name} is an integer from {least}, got {x!r}")

    def __call__(self, step: int) -> ProfilerAction:
        cycle, at = self._place(step)
        if cycle < 0 or (self.repeat and cycle >= self.repeat) or at < self.wait:
            return ProfilerAction.NONE
        if at < self.wait + self.warmup:
            return ProfilerAction.WARMUP
        last = at == self.wait + self.warmup + self.active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    def _place(self, step: int) -> tuple[int, int]:
        """Cycle (below 0: none yet) and step in it."""
        step -= self.skip_first
        if step < 0:
            return -1, 0
        step += self.wait if self.skip_first_wait else 0
        return divmod(step, self.wait + self.warmup + self.active)


def _names(names: str) -> Any:
    return SimpleNamespace(**{name: name for name in names.split()})


ProfilerLevel = _names("Level0 Level1 Level2 Level_none")
AiCMetrics = _names(
    "AiCoreNone ArithmeticUtilization L2Cache Memory MemoryAccess MemoryL0 MemoryUB PipeUtilization ResourceConflictRatio"
)
ExportType = _names("Db Text")
HostSystem = _names("CPU DISK MEM NETWORK NUMA OSRT")


class ExperimentalConfig:
    """`_ExperimentalConfig(...)`: kept as given. The columns are those of PipeUtilization whatever is asked for."""

    def __init__(self, **options: Any) -> None:
        self.options = options
