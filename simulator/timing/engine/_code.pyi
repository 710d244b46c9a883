from typing import Any

import numpy as np
import numpy.typing as npt

_Rows = npt.NDArray[Any]

class Code:
    def __init__(self, traces: _Rows, programs: _Rows, *arrays: Any) -> None: ...

def unroll(
    code: Code, program: int, limit: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_], npt.NDArray[np.int64], npt.NDArray[np.int32]]: ...
