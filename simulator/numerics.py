"""What numbers depend on, for one device: the value in force of each choice of `precision/numeric_switches.py`."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from .device import Device
from .precision.numeric_switches import FIXED, OF_PRODUCT, SWITCHES

_REGISTER = MappingProxyType({"RNE": "RINT", "RNA": "ROUND", "RNZ": "RNZ", "TRUNC": "TRUNC"})


def choice(device: Device, name: str) -> Any:
    """The value of a choice in force: the user's, else the product's or the default."""
    if name in device.numerics:
        return device.numerics[name]
    if name in OF_PRODUCT:
        return device.product.text(f"numerics.{name}")
    return SWITCHES[name].default


def hf32_round(device: Device) -> str:
    """Rounding mode of HF32 operands as the Cube's rules name it."""
    chosen = choice(device, "hf32_round")
    return device.hf32_round if chosen is None else _REGISTER[chosen]


def block_round(device: Device) -> str:
    """Rounding of the accumulator as the Cube's rules name it."""
    return _REGISTER[choice(device, "cube_block_round")]


def stated(device: Device) -> dict[str, str]:
    """Every choice in words: its value, and whether the user made it or nobody published it."""
    out = {name: _words(device, name) for name in SWITCHES}
    return {**out, **FIXED}


def _words(device: Device, name: str) -> str:
    value = choice(device, name)
    if name in device.numerics:
        return f"{value} (chosen)"
    if name == "hf32_round":
        return f"{device.hf32_round} in tl.dot; ROUND in matmul (documented: its kernel sets mode 1)"
    if name in OF_PRODUCT:
        figure = device.product.figure(f"numerics.{name}")
        return f"{value} (chosen)" if figure.overridden else _graded(value, figure.assumed)
    return _graded(value, SWITCHES[name].grade == "assumed")


def _graded(value: Any, assumed: bool) -> str:
    return f"{value} (assumed)" if assumed else str(value)
