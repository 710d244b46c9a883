"""The page of one run, read from top to bottom in half a minute; `gallery/rms_norm_grad.svg` shows one.

Each limit under `held by` was found by timing the run without it, each change under `try` by timing the run with it. A pipe
that is busy most of the time is the one to relieve; `of which` is the part of its busy time that sharing bandwidth added.
A page is at most 80 columns wide. `sections.py` makes its parts.
"""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from ...simulator.record.run import Run
from . import sections


def run_report(run: Run, record: str | None = None) -> RenderableType:
    """The page. record: the file that holds the run, if it is saved."""
    parts = (
        sections.heading(run),
        sections.time(run),
        sections.launches(run),
        sections.bounds(run),
        sections.pipes(run),
        sections.buffers(run),
        sections.errors(run),
        sections.numerics(run),
        sections.lines(run),
        sections.remarks(run),
        [Text()],
        sections.opening(record),
    )
    return Group(*(block for part in parts for block in part))
