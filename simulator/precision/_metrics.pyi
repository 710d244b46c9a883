from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

FINE_BIN_COUNT: Final[int]
FINE_BINS_PER_OCTAVE: Final[int]
FINE_LOWEST_EXPONENT: Final[int]

def measure(
    actual: NDArray[Any], golden: NDArray[Any], bins: NDArray[np.int64], limits: dict[str, float]
) -> dict[str, float]: ...
def collect_bin(
    actual: NDArray[Any],
    golden: NDArray[Any],
    out: NDArray[np.float64],
    bin: int,
    limits: dict[str, float],
) -> None: ...
def count_outside(actual: NDArray[Any], golden: NDArray[Any], rtol: float, atol: float) -> int: ...
def locate(
    actual: NDArray[Any],
    golden: NDArray[Any],
    limits: dict[str, float],
    lowest: int,
    counts: NDArray[np.int64],
    ulp_sums: NDArray[np.float64],
    ulp_most: NDArray[np.float64],
    abs_sums: NDArray[np.float64],
    worst: NDArray[np.float64],
    at: NDArray[np.int64],
) -> None: ...
