from typing import Any

import numpy as np
import numpy.typing as npt

def touch(
    accesses: list[tuple[Any, ...]],
    order: npt.NDArray[np.int32],
    rows: npt.NDArray[np.int64],
    programs: int,
) -> None: ...
