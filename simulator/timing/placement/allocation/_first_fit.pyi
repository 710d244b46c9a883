import numpy as np
import numpy.typing as npt

_Ints = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.uint8]

def place(
    total: _Ints,
    size: _Ints,
    copies: _Ints,
    start: _Ints,
    end: _Ints,
    moved: _Flags,
    near: _Flags,
    period: int,
    span: int,
    sharing: int,
    capacity: int,
    offset: _Ints,
    by_offset: _Ints,
    kept_off: _Flags,
) -> None: ...
