"""A product at the ends of what was published: every figure that has a range at its fast or its slow end."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from .figure import Figure
from .product import Product

# Units in which more is faster, and those in which more is slower. Sizes and counts have no end that is faster.
FASTER_WITH_MORE = ("bytes/cycle", "peak share", "TB/s", "GB/s", "elements/cycle", "MHz")
SLOWER_WITH_MORE = ("cycles", "cycles/repeat", "cycles/element", "us", "ratio")


def fast_end(product: Product) -> Product:
    """The product if every figure with a published range is at the end of it that makes kernels faster."""
    return _at_end(product, True)


def slow_end(product: Product) -> Product:
    """The product if every figure with a published range is at the end of it that makes kernels slower."""
    return _at_end(product, False)


@lru_cache(maxsize=64)
def _at_end(product: Product, fast: bool) -> Product:
    figures = {k: _moved(f, fast) for k, f in product.figures_by_key.items()}
    return Product(product.name, figures, product.sources)


def _moved(figure: Figure, fast: bool) -> Figure:
    """A figure that the user set has no range of its own any more."""
    fixed = figure.unit not in (*FASTER_WITH_MORE, *SLOWER_WITH_MORE)
    if figure.overridden or fixed or not isinstance(figure.value, int | float):
        return figure
    ends = [x for x in (figure.value, figure.low, figure.high) if x is not None]
    best = max(ends) if (figure.unit in FASTER_WITH_MORE) == fast else min(ends)
    return replace(figure, value=best)
