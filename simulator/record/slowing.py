"""What slows a kernel down line by line: work on the scalar unit, discrete accesses, added casts and copies."""

from __future__ import annotations

from dataclasses import dataclass

SCALAR, DISCRETE, CAST, COPY, PADDING = SORTS = ("scalar", "discrete", "cast", "copy", "padding")


@dataclass(frozen=True)
class Slowing:
    """One thing that the compiler makes of a source line, and what to write instead.

    sort: one of `SORTS`: "scalar" (element by element on the scalar unit), "discrete" (an access that is no strided copy),
    "cast" and "copy" (added by the compiler), "padding" (more bytes or work than the data has).
    what: the fact. cure: what to do about it. file, line: of the source, 1-based.
    """

    sort: str
    what: str
    cure: str
    file: str
    line: int
