"""All tools by name, and how one is done in a worker process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....simulator.errors import AscendtileError, UsageError
from . import docs, explain, explore, judge, products, run
from .tool import Tool

TOOLS: Mapping[str, Tool] = {
    t.name: t for t in (m.TOOL for m in (run, judge, explain, explore, products, docs))
}
LONGEST_FAULT = 300  # characters


def work(request: Mapping[str, Any], fds: Mapping[str, int]) -> dict[str, Any]:
    """Do {"tool": name, "arguments": {...}} here, in a worker; gives {"result": ...}, or what `told` gives."""
    do = TOOLS[request["tool"]].work
    try:
        return {"result": do(request["arguments"])} if do else failure("fault", "no worker does this")
    except Exception as e:
        return told(e)


def told(error: Exception) -> dict[str, Any]:
    """What went wrong, as {"error": {"kind": ..., "message": ...}}.

    kind: "usage" (the arguments are wrong), "failed" (it would fail on the device, too), "memory", or "fault" (ours).
    """
    if isinstance(error, AscendtileError):
        return failure("usage" if isinstance(error, UsageError) else "failed", str(error))
    if isinstance(error, MemoryError):
        return failure("memory", "not enough memory; take smaller sizes, or values=false for time only")
    what = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_FAULT]
    return failure("fault", f"{what} (a fault of ascendtile, please report it)")


def failure(kind: str, message: str) -> dict[str, Any]:
    """An error as clients get it."""
    return {"error": {"kind": kind, "message": message}}
