"""How much memory of this machine a run needs, and a refusal before anything is allocated."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ...simulator.errors import UsageError

GIB = 2**30
TIME_ONLY = "ask for time only (values=False, --no-values), or study a sample (ascendtile precision --sample)"
SMALLER = "take a smaller case, or fewer rows of a sample (--sample; the length of the sums stays whole)"


def available_bytes() -> int | None:
    """Memory that can still be had on this machine; None where it does not say."""
    try:
        with open("/proc/meminfo") as lines:
            found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
        return int(found[0]) * 1024
    except (OSError, IndexError, ValueError):
        return _physical_bytes()


def _physical_bytes() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def require_memory(op: Any, tensors: Mapping[str, Any], way_out: str = TIME_ONLY) -> None:
    """Raise `UsageError` if values and errors of an operator on these tensors need more memory than there is."""
    need = op.host_bytes(tensors) if op.host_bytes is not None else 0
    have = available_bytes()
    if have is not None and need > have:
        shapes = ", ".join(f"{n} {list(x.shape)}" for n, x in tensors.items())
        raise UsageError(
            f"{op.name}: values of {shapes} need about {need / GIB:.3g} GiB of memory, {have / GIB:.3g} GiB are "
            f"available; {way_out}"
        )
