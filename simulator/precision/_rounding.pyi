from typing import Final

import numpy as np
from numpy.typing import NDArray

MODES: Final[dict[str, int]]
TARGETS: Final[dict[str, int]]

def decode(src: NDArray[np.uint16], dst: NDArray[np.float32], bfloat: bool) -> None: ...
def encode(src: NDArray[np.float32], dst: NDArray[np.uint16], bfloat: bool) -> None: ...
def round_float(
    src: NDArray[np.float32], dst: NDArray[np.float32], target: int, mode: int, saturate: bool, flush: bool
) -> None: ...
def round_double(
    src: NDArray[np.float64], dst: NDArray[np.float32], target: int, mode: int, saturate: bool, flush: bool
) -> None: ...
def round_integer(
    src: NDArray[np.float32] | NDArray[np.float64],
    dst: NDArray[np.uint64],
    mode: int,
    wrap: bool,
    most: int,
    least: int,
) -> None: ...
def flush(x: NDArray[np.float32]) -> None: ...
def add_row(total: NDArray[np.float32], start: NDArray[np.float32], flush: bool) -> None: ...
