"""Builtins that exist on one vendor's hardware only, and the mathematics library of the device."""

from . import cann, libdevice

__all__ = ["cann", "libdevice"]


def __dir__() -> list[str]:
    return __all__
