"""The interval of a prediction: by the launch that it rests on, about the predicted time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, isclose
from typing import NamedTuple

from ....simulator.record.run import Launch
from ....simulator.timing.results.error_model import features, stored


class Basis(NamedTuple):
    """What a prediction rests on. features: what its error depends on; low, high: ends of the interval over the time."""

    features: Mapping[str, float]
    low: float
    high: float

    def around(self, value: float) -> tuple[float, float]:
        """The interval of a time."""
        return value * self.low, value * self.high


def basis_of(value: float, launches: Sequence[Launch], known: bool) -> Basis | None:
    """Of a time that was predicted by timing these launches; None where none was timed, or none with its details.

    known: whether they have the tiling of the kernel that was measured.

    A predictor may try several tilings: the launch that it took has the time that was predicted, with what passes outside of
    the cores or without. Where it adds up several launches, or parts of one, the last one stands for all.
    """
    timed = [x for x in launches if x.measured_rows is not None and x.time_us > 0]
    same = [x for x in timed if isclose(x.time_us, value) or isclose(x.working_us, value)]
    if not timed:
        return None
    launch = (same or timed)[-1]
    found = features(launch) | {"tiling": float(not known)}
    low, high = stored().logarithms(found, launch.measured_rows or 0)
    return Basis(found, exp(-low), exp(high))
