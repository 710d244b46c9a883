"""How a server is to be run: what the options of `ascendtile serve` say."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..judging.processes.limits import Limits

GiB = 1 << 30
MOST_BODY = 8 << 20  # bytes of one request


@dataclass(frozen=True)
class ServerSettings:
    """slots: requests at one time, the cores of this machine if not given. queue: requests that may wait for a slot.

    torch: whether workers have it; None: where it is installed. root: folder that requests may name files of, None: none.
    limits: of one request.
    """

    slots: int | None = None
    queue: int = 16
    torch: bool | None = None
    root: Path | None = None
    limits: Limits = field(default_factory=Limits)
