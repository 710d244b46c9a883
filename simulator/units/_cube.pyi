from typing import Final

import numpy as np
from numpy.typing import NDArray

PATHS: Final[tuple[str, ...]]

def chunk_of(kb: int) -> int: ...
def scratch_doubles(kb: int) -> int: ...
def multiply(
    a: NDArray[np.float32],
    b: NDArray[np.float32],
    start: NDArray[np.float32] | None,
    c: NDArray[np.float32],
    scratch: NDArray[np.float64],
    kb: int,
    target: int,
    mode: int,
    saturate: bool,
    flush: bool,
    path: int,
) -> None: ...
