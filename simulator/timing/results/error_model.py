"""The interval around a launch's time that holds nine of ten measured times, from the errors of kernels that were measured.

log(measured / simulated) was looked at over kernels that nothing was fitted on. Either end of the interval is a sum of a few
terms, none of them negative, each a figure of `error_model.toml` times what the launch has of it (`features`):

    time * exp(-low @ features * wider) .. time * exp(high @ features * wider)

A product with few measured kernels, or with none, is further off; nobody knows how far, so the factors are assumed.
`python -m ascendtile.kernels.validation.accuracy` fits the figures anew and writes the file. Nothing is simulated here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import tomli

from ...device import TRITON_ASCEND
from ...products import Product
from ...record.later import but, later
from ...record.run import INTERVAL_PERCENT, Launch

FILE = Path(__file__).with_name("error_model.toml")
NOT_DOCUMENTED = "CD"  # grades: third parties, assumed
ENOUGH_ROWS = 10  # measured kernels of a product that tell how far off it is
FEW, NONE = 1.5, 2.0  # how much further off, in logarithms, with fewer rows and with none: assumed


class ErrorModel(NamedTuple):
    """low, high: feature -> logarithm at that end where the feature is 1. rows: measured kernels by `product.npu_arch`."""

    low: Mapping[str, float]
    high: Mapping[str, float]
    rows: Mapping[str, int]

    def logarithms(self, found: Mapping[str, float], rows: int) -> tuple[float, float]:
        """What the lower end lies below the time and the upper end above it, of a product with so many measured kernels."""
        wider = wider_with(rows)
        low, high = (sum(x * end.get(n, 0.0) for n, x in found.items()) for end in (self.low, self.high))
        return wider * low, wider * high

    def rows_of(self, product: Product) -> int:
        """Measured kernels of the product and of others with the same cores."""
        return self.rows.get(str(product.integer("product.npu_arch")), 0)


def wider_with(rows: int) -> float:
    """How much further off, in logarithms, a product is of which so many kernels were measured."""
    return 1.0 if rows >= ENOUGH_ROWS else FEW if rows else NONE


def features(launch: Launch) -> dict[str, float]:
    """What the error of a launch depends on, each from 0 to 1.

    any: 1. launch: share of the time outside of the cores. waits: square root of the share that the nearest bound does not
    explain. vector: share in which a Vector unit computes. assumed: share that rests on figures of third parties or on
    assumed ones. mixed: whether Cube and Vector work in one kernel. tiling: whether what runs on a board may be cut
    otherwise: code by hand stands for a kernel whose author chose the tiling; a compiler takes the one in the source.
    """
    time = launch.time_us or 1.0
    nearest = min(1.0, max(launch.bounds.values(), default=0.0) / time)
    busy = {
        n.rpartition(".")[2]: pipe.busy_cycles for n, pipe in launch.pipes.items() if pipe.busy_cycles > 0
    }
    computing = busy.get("V", 0.0) * launch.us_per_cycle if busy else 0.0
    assumed = sum(us for grade, us in launch.grades.items() if grade in NOT_DOCUMENTED) / time
    return {
        "any": 1.0,
        "launch": min(1.0, launch.overhead_us / time),
        "waits": math.sqrt(1.0 - nearest),
        "assumed": min(1.0, max(0.0, assumed)),
        "vector": min(1.0, computing / time),
        "mixed": float({"M", "V"} <= busy.keys()),
        "tiling": float(not launch.compiler.startswith(TRITON_ASCEND)),
    }


def with_interval(launch: Launch, product: Product) -> Launch:
    """The launch with its interval, which is made when it is read; without one where no board computes what it does, and
    where figures were changed: no kernel was measured on such a machine.
    """
    if any(m.is_what_if for m in launch.warnings):
        return launch
    if product.overridden:
        return but(launch, measured_rows=0)
    model = stored()
    rows = model.rows_of(product)

    def end(which: int) -> float:
        logarithm = model.logarithms(features(launch), rows)[which]
        return launch.time_us * math.exp((-1, 1)[which] * logarithm)

    return but(launch, low_us=later(lambda: end(0)), high_us=later(lambda: end(1)), measured_rows=rows)


@lru_cache(maxsize=1)
def stored() -> ErrorModel:
    """The model of `error_model.toml`."""
    data = tomli.loads(FILE.read_text(encoding="utf-8"))
    if data["percent"] != INTERVAL_PERCENT:
        raise ValueError(f"{FILE.name} is of {data['percent']} % intervals, not of {INTERVAL_PERCENT} %")
    return ErrorModel(data["low"], data["high"], data["rows_of"])
