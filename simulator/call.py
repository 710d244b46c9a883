"""One launch, checked: what `launch.py` prepares and what times and computes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .device import Device
from .frontend.kernel_function import KernelFunction
from .interpreter.tensors import Tensor
from .ir.program import Program


@dataclass(frozen=True)
class Call:
    """One launch, checked: what is compiled, and with what it runs.

    grid_asks: arguments that the grid is a function of. again: makes the launch with other arguments.
    """

    kernel: KernelFunction
    grid: tuple[int, int, int]
    arguments: dict[str, Any]
    constants: dict[str, Any]
    types: dict[str, Any]
    device: Device
    warnings: tuple[str, ...]
    grid_asks: tuple[str, ...] = ()
    again: Callable[[dict[str, Any]], Call] | None = None

    @functools.cached_property
    def program(self) -> Program:
        return self.kernel.program(self.types, self.constants)


def describe_argument(x: Any) -> str:
    """How the record names an argument."""
    if isinstance(x, Tensor):
        return f"{x.dtype}{list(x.shape)}"
    return repr(x)
