"""The device that a sweep was started on: a problem carries it, so that workers and stores know it, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ..simulator.device import ASCENDC, Device, current_device
from ..simulator.errors import ProductError
from ..simulator.l2.state import LOOP, told
from ..simulator.products import Product, load_product

# What a problem sets for itself, or what only decides how much is recorded.
OWN = ("product", "cube_math_type", "values", "time", "explain", "details", "timeline")
ERRORS = ("errors", "reference", "float64")  # a problem asks for errors itself
# Options with which a kernel is not faster than without: the closed forms hold below its time as they are.
BOUNDS_HOLD = (
    "l2",
    "cold_code",
    "step_limit",
    "accumulate",
    "hf32_round",
    "atomic_seed",
    "numerics",
    "compiler_version",
)


def state_here() -> dict[str, Any]:
    """The options of the device in force, by name, that decide what a launch takes."""
    here = current_device()
    return {f.name: getattr(here, f.name) for f in fields(Device) if f.name not in (*OWN, *ERRORS)}


def about_l2(state: Mapping[str, Any]) -> tuple[str, ...]:
    """A note of what L2 has at the start, where it is not what the same tiling left."""
    l2 = state.get("l2", LOOP)
    return () if l2 == LOOP else (f"timed with l2={told(l2)}: what is in L2 at the start",)


def without_bounds(state: Mapping[str, Any]) -> list[str]:
    """Options that the closed forms do not know: with them a time may be below."""
    usual = Device(current_device().product, compiler=ASCENDC if state.get("compiler") == ASCENDC else None)
    return [n for n, x in state.items() if n not in BOUNDS_HOLD and x != getattr(usual, n)]


def product_here(given: str | Product | None) -> str | Product:
    """The product to explore on: a shipped one by its name, any other one (a file, changed figures) as a whole."""
    found = load_product(current_device().product if given is None else given)
    try:
        shipped = load_product(found.name) == found
    except ProductError:
        shipped = False
    return found.name if shipped else found


def name_of_product(product: str | Product) -> str:
    return product.name if isinstance(product, Product) else product
