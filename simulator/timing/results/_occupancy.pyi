import numpy as np
import numpy.typing as npt

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
    first: npt.NDArray[np.int64],
    slots: _Slots,
    slot: _Slots,
    start: _Floats,
    end: _Floats,
) -> int: ...
