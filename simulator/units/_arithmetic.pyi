import numpy as np
from numpy.typing import NDArray

OPERATIONS: dict[str, int]

def arithmetic(
    op: int,
    a: NDArray[np.float32],
    b: NDArray[np.float32],
    out: NDArray[np.float32],
    target: int,
    saturate: bool,
    flush: bool,
) -> bool: ...
