"""What cannot be sampled."""

from __future__ import annotations

from ....simulator.errors import AscendtileError


class NotSampledError(AscendtileError):
    """Values of a task or an answer that cannot be had at positions alone within the budget, and why."""
