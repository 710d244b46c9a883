from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]

def mark_boxes(bits: Array, starts: Array, strides: Array, lows: Array, highs: Array) -> bool: ...
def mark_elements(bits: Array, at: Array, chosen: Array) -> bool: ...
