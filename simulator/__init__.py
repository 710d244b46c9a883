"""One kernel on one device: values, errors, cycles and buffer fit.

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
"""

if __name__ == "simulator":
    raise ImportError("import ascendtile.simulator: the folder simulator/ is only the source of that package")

from typing import TYPE_CHECKING

from ascendtile._names import public_names

from .device import Device, current_device, device
from .errors import AscendtileError, RefusedError, RunError, UsageError
from .products import Product, load_product, product_names

if TYPE_CHECKING:
    from .checks.written.scratch import empty
    from .interpreter.tensors import Shape, shape
    from .ir.building.registry import constexpr
    from .jit_function import JitFunction, jit
    from .l2.chain import chain
    from .precision.block_formats import BlockFormat, get_block_format
    from .precision.dtypes import element_type
    from .precision.formats import Format, get_format
    from .precision.rounding import decode, encode, round_to
    from .record.loading import load_run
    from .record.run import Launch, Run
    from .spread import Spread, atomic_spread

# Imported when first asked for: they bring numpy and the compiled modules, which cost more than half a second on a slow
# machine, and listing products should not wait for them. No name here may be that of a module of this folder.
_LATER = {
    "BlockFormat": ".precision.block_formats",
    "Format": ".precision.formats",
    "JitFunction": ".jit_function",
    "Launch": ".record.run",
    "Run": ".record.run",
    "Shape": ".interpreter.tensors",
    "Spread": ".spread",
    "atomic_spread": ".spread",
    "chain": ".l2.chain",
    "constexpr": ".ir.building.registry",
    "decode": ".precision.rounding",
    "element_type": ".precision.dtypes",
    "empty": ".checks.written.scratch",
    "encode": ".precision.rounding",
    "get_block_format": ".precision.block_formats",
    "get_format": ".precision.formats",
    "jit": ".jit_function",
    "load_run": ".record.loading",
    "round_to": ".precision.rounding",
    "shape": ".interpreter.tensors",
}


def cdiv(x: int, y: int) -> int:
    """Ceiling division, for grids."""
    return -(-x // y)


__all__ = [
    "AscendtileError",
    "BlockFormat",
    "Device",
    "Format",
    "JitFunction",
    "Launch",
    "Product",
    "RefusedError",
    "Run",
    "RunError",
    "Shape",
    "Spread",
    "UsageError",
    "atomic_spread",
    "cdiv",
    "chain",
    "constexpr",
    "current_device",
    "decode",
    "device",
    "element_type",
    "empty",
    "encode",
    "get_block_format",
    "get_format",
    "jit",
    "load_product",
    "load_run",
    "product_names",
    "round_to",
    "shape",
]
_PARTS = ("language", "precision", "products", "triton_shim", "units")
__getattr__, __dir__ = public_names(__name__, __all__, _PARTS, _LATER)
