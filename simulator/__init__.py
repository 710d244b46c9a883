"""One kernel on one device: values, errors, cycles and buffer fit.

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
"""

if __name__ == "simulator":
    raise ImportError("import ascendtile.simulator: the folder simulator/ is only the source of that package")

from .device import Device, current_device, device
from .errors import AscendtileError, RunError, UsageError
from .execution.memory import Shape, shape
from .frontend.jit import JitFunction, jit
from .frontend.words import constexpr
from .launch import launch, time_launch
from .products import Product, load_product, product_names
from .run import Launch, Run

JitFunction.run_hook = staticmethod(launch)
JitFunction.time_hook = staticmethod(time_launch)


def cdiv(x: int, y: int) -> int:
    """Ceiling division, for grids."""
    return -(-x // y)


def load_run(path: str) -> Run:
    """The record saved at `path` by `run.save`; `UsageError` if it is damaged or no record."""
    from .record import load_run

    return load_run(path)


__all__ = [
    "AscendtileError",
    "Device",
    "JitFunction",
    "Launch",
    "Product",
    "Run",
    "RunError",
    "Shape",
    "UsageError",
    "cdiv",
    "constexpr",
    "current_device",
    "device",
    "jit",
    "launch",
    "load_product",
    "load_run",
    "product_names",
    "shape",
    "time_launch",
]
