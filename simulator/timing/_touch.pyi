import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

def touch(
    seen: NDArray[np.uint8],
    shift: int,
    itemsize: int,
    starts: Ints,
    strides: Ints,
    lows: Ints,
    highs: Ints,
    new: Ints,
    total: Ints,
) -> None: ...
