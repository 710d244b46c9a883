import numpy as np
import numpy.typing as npt

_Ints = npt.NDArray[np.int64]

def traffic(
    starts: _Ints,
    origin: int,
    strides: _Ints,
    lows: _Ints,
    highs: _Ints,
    shape: _Ints,
    plain: int,
    itemsize: int,
    block: int,
    line: int,
    request: int,
    amount: npt.NDArray[np.float64],
    bursts: _Ints,
    elements: _Ints,
    lines: npt.NDArray[np.float64],
) -> None: ...
def count_alike(starts: _Ints, numbers: _Ints, iteration: _Ints, cores: int, out: _Ints) -> None: ...
