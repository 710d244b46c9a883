"""Error by magnitude of the result, of several computations of a study on one scale."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ....kernels.study.results import ModeRow
from ....simulator.precision.formats import get_format
from ....simulator.precision.places import Octave
from .points import front, short_label, study_points
from .rows import labelled

MOST = 10  # computations in one chart
LEAST_EXPONENT = -149  # octaves below hold zeros, which have no magnitude


@dataclass(frozen=True)
class ErrorByMagnitude:
    """One computation. points: of each octave with elements (exponent, mean error, largest error), both over 2^exponent."""

    label: str
    points: tuple[tuple[int, float, float], ...]


def magnitudes(rows: Iterable[ModeRow], name: str) -> tuple[list[ErrorByMagnitude], int]:
    """Of an output, and how many computations are left out: those of the front come first, then the rows in their order."""
    rows = list(rows)
    best = {id(p.row) for p in front(study_points(rows, name))}
    held = {label: r for label, r in labelled(rows, name).items() if r.octaves.get(name)}
    order = sorted(held, key=lambda label: id(held[label]) not in best)
    shown = [_of(label, held[label], name) for label in held if label in order[:MOST]]
    return [x for x in shown if x.points], max(0, len(order) - MOST)


def _of(label: str, row: ModeRow, name: str) -> ErrorByMagnitude:
    fmt = get_format(row.output_dtypes[name])
    points = tuple(_point(o, float(fmt.ulp(2.0**o.exponent))) for o in row.octaves[name] if _has(o))
    return ErrorByMagnitude(short_label(label), points)


def _has(octave: Octave) -> bool:
    return octave.count > 0 and LEAST_EXPONENT <= octave.exponent < 128


def _point(o: Octave, ulp: float) -> tuple[int, float, float]:
    """An octave has one ulp: the largest error in ulp is that of the largest in size."""
    size = 2.0**o.exponent
    return o.exponent, o.mean_abs / size, o.max_ulp * ulp / size
