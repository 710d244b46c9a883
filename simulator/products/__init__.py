"""The machine as data: one TOML file per product, each figure with its unit, source and grade beside it.

    >>> from ascendtile.simulator.products import load_product
    >>> load_product("ascend910b3").ub_bytes
    196608
    >>> load_product("ascend910b3", {"buffers.ub": "256KiB"}).ub_bytes
    262144

Reading order: `ascend910b1.toml` (the data), `ascend910b3.toml` (what another product has of its own), `spec.py`
(which keys there are), `product.py` (what a Product offers), `loading.py` and `reading.py` (file to Product), `checks.py`
(laws between figures), `quantity.py` (units).
A new product is one more TOML file in this folder, with the nearest one as `base`; the tests pick it up.
"""

from .figure import Figure
from .loading import load_product, product_names
from .product import Product

__all__ = ["Figure", "Product", "load_product", "product_names"]


def __dir__() -> list[str]:
    return __all__
