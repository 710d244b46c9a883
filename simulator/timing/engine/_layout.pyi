from typing import Any

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[Any]

def pack(
    pipe: _Array,
    occupancy: _Array,
    latency: _Array,
    channel: _Array,
    amount: _Array,
    column: _Array,
    instructions: _Array,
    line: _Array,
    dep_start: _Array,
    dep: _Array,
    dep_kind: _Array,
    skippable: npt.NDArray[np.int8],
    waited: npt.NDArray[np.uint16],
    records: _Array,
    deps: npt.NDArray[np.int32],
    dep_first: int,
) -> int: ...
