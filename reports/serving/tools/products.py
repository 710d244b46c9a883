"""The tool `products`: what machines there are, and the figures of one with their sources."""

from __future__ import annotations

from typing import Any

from ....simulator.errors import UsageError
from .tool import PRODUCT_NAME, SET, Arguments, Tool, flag, text

ABOUT = (
    "List the simulated products (cores, clock, buffers, bandwidth, peak), or with name the figures of one, each with its "
    "unit, source and grade. The result is that of `ascendtile products --json`."
)
PROPERTIES = {
    "name": text("A product of the list.", 64, pattern=PRODUCT_NAME),
    "assumed": flag("Only the figures that nobody published.", False),
    "set": SET,
}


def work(arguments: Arguments) -> dict[str, Any]:
    """The table, or one product."""
    from ....simulator.products import load_product, product_names
    from ...terminal import products_view

    if "name" in arguments:
        chosen = load_product(arguments["name"], arguments.get("set"))
        return products_view.product_json(chosen, arguments.get("assumed", False))
    if arguments.get("assumed") or arguments.get("set"):
        raise UsageError("assumed and set are about one product; give its name")
    return products_view.products_json(load_product(n) for n in product_names())


TOOL = Tool("products", "Products and their figures", ABOUT, PROPERTIES, work)
