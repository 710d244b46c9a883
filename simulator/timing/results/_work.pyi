from typing import Any

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int64]

def add_work(
    instructions: npt.NDArray[Any],
    counts: _Ints,
    rows: _Ints,
    table: _Floats,
    cycles: _Floats,
    place: _Ints,
    rate: _Floats,
    floor: bool,
    out: _Floats,
) -> None: ...
