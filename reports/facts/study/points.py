"""Bits against time: each computation of a precision study as a labelled point, with its family, and the best of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ....kernels.study.results import EXACT, ROUNDED, ModeRow, unbeaten
from ....simulator.precision.splits import SPLITS
from ..texts import clean, micros
from .names import element_bits, short_name
from .rows import labelled

# Families by the width of what is multiplied: name, number of the colour.
FAMILIES = {32: ("32 bits", 0), 16: ("16 bits", 2), 8: ("8 bits", 3), 6: ("6 bits", 1), 4: ("4 bits", 4)}
SPLIT, OTHER = ("splits of float32", 5), ("others", 6)


@dataclass(frozen=True)
class StudyPoint:
    """One computation.

    bits: against the exact inputs; rounded_bits: against those that are multiplied, None if not finite.
    """

    label: str
    row: ModeRow
    time_us: float
    bits: float
    rounded_bits: float | None
    family: str
    colour: int

    @property
    def tip(self) -> str:
        """What a point says of itself."""
        rounded = "" if self.rounded_bits is None else f", {self.rounded_bits:.4g} (rounded)"
        return f"{self.label}: {micros(self.time_us)} us, {self.bits:.4g} bits (exact){rounded}"


def study_points(rows: Iterable[ModeRow], name: str) -> list[StudyPoint]:
    """Of an output; computations without a time, or without an error, have no place."""
    out = []
    for label, row in labelled(rows, name).items():
        bits, rounded = (_bits(row, name, golden) for golden in (EXACT, ROUNDED))
        if bits is not None and row.time_us is not None and row.time_us > 0:
            out.append(StudyPoint(short_label(label), row, row.time_us, bits, rounded, *_family(row)))
    return out


def front(points: Iterable[StudyPoint]) -> list[StudyPoint]:
    """Those that no other point beats in time and bits, fastest first."""
    return unbeaten(points, lambda p: (p.time_us, p.bits))


def families(points: Iterable[StudyPoint]) -> dict[str, int]:
    """Name -> colour of the families that there are, the widest first."""
    held = {p.family: p.colour for p in points}
    return {name: held[name] for name, _ in (*FAMILIES.values(), SPLIT, OTHER) if name in held}


def _bits(row: ModeRow, name: str, golden: str) -> float | None:
    e = row.errors[name].get(golden)
    return e.effective_bits if e is not None and math.isfinite(e.effective_bits) else None


def short_label(label: str) -> str:
    """ "fp16" of "float16 as fp16", where the type is computed in as it is; short names of types elsewhere."""
    types, comma, mode = label.partition(", ")
    stored, _, computed = types.partition(" as ")
    names = "+".join(short_name(kind) for kind in stored.split("+"))
    short = names if computed in ("", names) else f"{names} as {computed}"
    return clean(f"{short}{comma}{mode}", 40)


def _family(row: ModeRow) -> tuple[str, int]:
    """By the width of what is multiplied; splits are one of their own."""
    if row.cube_math_type in SPLITS:
        return SPLIT
    bits = element_bits(row.compute_dtype or "")
    return OTHER if bits is None else FAMILIES.get(32 if bits > 16 else bits, OTHER)
