from typing import Any

import numpy as np
import numpy.typing as npt

_Ints = npt.NDArray[np.int64]

def touch(
    accesses: list[tuple[Any, ...]],
    order: npt.NDArray[np.int32],
    rows: _Ints,
    programs: int,
    clock: _Ints,
    room: int,
    clocks: _Ints,
) -> None: ...
