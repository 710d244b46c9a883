"""What one call may take, and what came of it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from ....simulator.errors import UsageError
from .messages import close_all

Status = Literal["ok", "killed", "time", "memory", "crashed"]

GiB = 1 << 30
MOST_SECONDS = 100_000_000  # three years; sockets wait for no more than 2^63 ns
MOST_COUNT = (1 << 63) - 1  # of the kernel's limits


@dataclass(frozen=True)
class Limits:
    """What one call may take. Beyond any of them its process and all that it started are killed.

    cpu_s: processor time of each process, in whole seconds (rounded up: the kernel counts it so).
    wall_s: time from the fork to the end, for what sleeps. Ten times the other: a busy machine is slow for everybody.
    memory_bytes: what its processes hold beyond what they were forked with: memory that was touched, and files in memory.
        Address space that nobody touches is free: zeros of 6 GB are no 6 GB.
    files: open files of each process.
    processes: processes and threads at one time.
    written_bytes: of each file, and of all files of its `/tmp` together.
    answer_bytes: of the JSON that it answers with. Arrays go beside it, as files in memory.
    """

    cpu_s: float = 60.0
    wall_s: float = 600.0
    memory_bytes: int = 8 * GiB
    files: int = 256
    processes: int = 64
    written_bytes: int = GiB
    answer_bytes: int = 64 << 20

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            number = isinstance(value, int) or (f.name.endswith("_s") and isinstance(value, float))
            if not number or isinstance(value, bool) or not 0 < value < math.inf:
                kind = "seconds" if f.name.endswith("_s") else "an integer"
                raise UsageError(f"limit {f.name} must be {kind} above 0, got {value!r}")
            most = MOST_SECONDS if f.name.endswith("_s") else MOST_COUNT
            if value > most:
                raise UsageError(f"limit {f.name} must be at most {most:_}, got {value!r}")

    @property
    def cpu_seconds(self) -> int:
        """`cpu_s` as the kernel takes it."""
        return math.ceil(self.cpu_s)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Limits:
        return cls(**data)


@dataclass(frozen=True)
class Reply:
    """What came of a call.

    status: "ok": the function returned. "crashed": it raised, left without an answer, or its answer was none.
        "time", "memory": it went beyond that limit. "killed": a signal ended it, or it went beyond another limit.
    answer: what the function returned; of one that raised {"raised": type, "message": ..., "traceback": ...}; else empty.
    fds: files that came with the answer, by name. They are the caller's to close.
    reason: a few words where status is not "ok", with the limit. They are the same each time: they hold nothing measured.
    output: the end of what its processes printed.
    cpu_s: processor time of its process and of those that it waited for. memory_bytes, processes: the most that was seen of
        what limits count; what lives for less than 20 ms may not be seen.
    from_outside: whether it was killed by nobody's limit, or together with the process that forks.
    """

    status: Status
    answer: dict[str, Any] = field(default_factory=dict)
    fds: dict[str, int] = field(default_factory=dict)
    reason: str = ""
    output: str = ""
    cpu_s: float = 0.0
    memory_bytes: int = 0
    processes: int = 0
    from_outside: bool = False

    def close(self) -> None:
        """Close the files that came with it."""
        close_all(list(self.fds.values()))
