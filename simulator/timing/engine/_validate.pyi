from typing import Any

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[Any]

def sound(
    pipe: _Array,
    occupancy: _Array,
    latency: _Array,
    channel: _Array,
    amount: _Array,
    instructions: _Array,
    line: _Array,
    dep_start: _Array,
    dep: _Array,
    dep_kind: _Array,
    column: _Array,
    table: npt.NDArray[np.float64],
    kinds: int,
) -> bool: ...
