"""The device's mathematics library under the name that Triton-Ascend has for it; see `language/extra/libdevice.py`."""

from ..libdevice import BUILTINS

globals().update(BUILTINS)
__all__ = list(BUILTINS)
