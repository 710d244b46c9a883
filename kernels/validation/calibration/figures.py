"""Which figures of a product are fitted to measured times, by how much each may change, and products with changed ones.

A figure is scaled by its slowness: 1.1 makes what it stands for take 1.1 times as long, whether it is a rate or a number of
cycles. Times are nearly linear in it, so that a few simulations tell how a time depends on each figure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ascendtile.simulator.products import Figure, Product, load_product

# Units in which more is faster, and those in which more is slower. Sizes and counts have no side that is faster.
FASTER_WITH_MORE = ("bytes/cycle", "peak share", "TB/s", "GB/s", "elements/cycle", "MHz")
SLOWER_WITH_MORE = ("cycles", "cycles/repeat", "cycles/element", "us", "ratio")
# What `ascendtile calibrate` fits: keys, or beginnings of keys that end in a dot.
CALIBRATED: tuple[str, ...] = (
    "launch.",
    "clock.aicore_mhz",
    "memory.bandwidth_tb_per_s",
    "l2.bandwidth_tb_per_s",
    "path.gm_to_ub.bytes_per_cycle",
    "path.gm_to_ub.l2_hit_bytes_per_cycle",
    "path.gm_to_l1_nd2nz.bytes_per_cycle",
    "path.gm_to_l1_nd2nz.l2_hit_bytes_per_cycle",
)
FIT = re.compile(r"\bFIT\b")  # in the source of a figure that this project fitted
FAMILIES = ("launch.", "memory.", "l2.", "path.gm_to_l1", "path.l1_to", "path.", "sync.", "scalar.", "clock.")
# Half of the width, in logarithms, that a figure has without a published range: by its grade.
USUAL_WIDTH = {"A": 0.05, "B": 0.15, "C": 0.3, "D": 0.5}
LEAST_WIDTH = 0.03
FARTHEST = math.log(4.0)  # from the product's value


@dataclass(frozen=True)
class ScaledFigure:
    """A figure that a fit scales. rate: more of it is faster. family: figures that are changed together first."""

    key: str
    rate: bool
    family: str


@dataclass(frozen=True)
class Prior:
    """What is known of a figure before a fit: logarithms of its slowness, as against the product's value.

    centre, width: where it lies, and how far from there it is as a standard deviation. told: whether somebody published a
    range; without one the centre is the product's own value, and the grade says how far it is trusted.
    """

    centre: float
    width: float
    told: bool


def scaled_figures(product: Product, named: tuple[str, ...] = CALIBRATED) -> tuple[ScaledFigure, ...]:
    """The figures of these names that can be scaled: numbers above 0 whose unit says which way is faster."""
    return tuple(_scaled(f) for f in _scalable(product) if any(_names(name, f.key) for name in named))


def fitted_figures(product: Product) -> tuple[ScaledFigure, ...]:
    """The figures that this project fitted on measured times: those whose source says so, and the launch's."""
    found = (f for f in _scalable(product) if f.key.startswith("launch.") or FIT.search(f.source))
    return tuple(_scaled(f) for f in found if not f.assumed or f.key.startswith("launch."))


def _names(name: str, key: str) -> bool:
    return key.startswith(name) if name.endswith(".") else key == name


def _scalable(product: Product) -> Iterator[Figure]:
    for figure in product.figures():
        sided = figure.unit in (*FASTER_WITH_MORE, *SLOWER_WITH_MORE)
        if sided and isinstance(figure.value, float) and figure.value > 0:
            yield figure


def _scaled(figure: Figure) -> ScaledFigure:
    family = next((f for f in FAMILIES if figure.key.startswith(f)), figure.key)
    return ScaledFigure(figure.key, figure.unit in FASTER_WITH_MORE, family)


def prior(product: Product, figure: ScaledFigure, at_value: bool) -> Prior:
    """What the product's file says of a figure.

    at_value: centred on the product's value; without, on the middle of the published range, which knows nothing of what the
    value was fitted on.
    """
    found = product.figure(figure.key)
    value = product.number(figure.key)
    low, high = (math.log((x or value) / value) for x in (found.low, found.high))
    told = high > low
    width = max(LEAST_WIDTH, (high - low) / 2 if told else USUAL_WIDTH[found.grade])
    middle = 0.0 if at_value else (low + high) / 2
    return Prior(-middle if figure.rate else middle, width, told)


def changed(product: Product, slowness: Mapping[ScaledFigure, float]) -> Product:
    """The product with figures that make things take so many times as long."""
    values = {f.key: product.number(f.key) for f in slowness}
    return load_product(
        product, {f.key: values[f.key] / u if f.rate else values[f.key] * u for f, u in slowness.items()}
    )
