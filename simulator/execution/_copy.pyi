import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

def read_boxes(
    kind: int,
    memory: Bytes,
    starts: Ints,
    strides: Ints,
    lows: Ints,
    highs: Ints,
    shape: Ints,
    tile: Bytes,
    itemsize: int,
    held: int,
) -> None: ...
def write_boxes(
    kind: int,
    adding: bool,
    memory: Bytes,
    starts: Ints,
    strides: Ints,
    lows: Ints,
    highs: Ints,
    shape: Ints,
    tile: Bytes,
    programs: int,
    itemsize: int,
    held: int,
) -> None: ...
