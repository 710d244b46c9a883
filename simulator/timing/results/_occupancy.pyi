from typing import Any

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[Any]
_Floats = npt.NDArray[np.float64]
_Slots = npt.NDArray[np.int32]

def lives(
    sized: npt.NDArray[np.int8],
    records: _Slots,
    pipes: _Slots,
    starts: _Floats,
    ends: _Floats,
    moves: npt.NDArray[np.int8],
    pipe_of: npt.NDArray[np.int8],
    read_start: _Array,
    reads: _Slots,
    write_start: _Array,
    writes: _Slots,
    clobber_start: _Array,
    clobbers: _Slots,
    slot: _Slots,
    start: _Floats,
    end: _Floats,
) -> int: ...
