"""The device's mathematics library under the name that Triton-Ascend has for it; see `language/extra/libdevice.py`."""

from ..libdevice import WORDS

globals().update(WORDS)
__all__ = list(WORDS)
