"""Builtins of the Ascend AI Core: `from ascendtile.simulator.language.extra.cann import extension as al`."""

from . import buffer, extension, libdevice

__all__ = ["buffer", "extension", "libdevice"]


def __dir__() -> list[str]:
    return __all__
