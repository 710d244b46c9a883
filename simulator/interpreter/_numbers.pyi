from typing import Any

import numpy as np
import numpy.typing as npt

_Ints = npt.NDArray[np.int64]

def ends(x: npt.NDArray[Any]) -> tuple[int, int]: ...
def all_bits(x: _Ints) -> int: ...
def divide(a: _Ints, b: _Ints, out: _Ints, remainder: bool) -> None: ...
