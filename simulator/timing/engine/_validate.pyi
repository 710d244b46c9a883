from typing import Any

import numpy as np
import numpy.typing as npt

_Rows = npt.NDArray[Any]

def fault(
    instructions: _Rows,
    code: npt.NDArray[np.int32],
    length: int,
    loops: _Rows,
    gains: _Rows,
    slots: npt.NDArray[np.int32],
    rotating: _Rows,
    choices: npt.NDArray[np.int64],
    items: npt.NDArray[np.int32],
    strides: npt.NDArray[np.int64],
    cycles: npt.NDArray[np.float64],
    table: npt.NDArray[np.float64],
    flags: npt.NDArray[np.int8],
) -> str: ...
