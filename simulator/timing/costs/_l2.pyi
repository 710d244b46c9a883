from typing import Any

import numpy as np
import numpy.typing as npt

_Ints = npt.NDArray[np.int64]

def touch(
    accesses: list[tuple[Any, ...]],
    order: npt.NDArray[np.int32],
    first: _Ints,
    cut: npt.NDArray[np.int32],
    cuts: _Ints,
    room: int,
    state: _Ints,
    queue: _Ints,
) -> None: ...
def touch_back(
    accesses: list[tuple[Any, ...]],
    order: npt.NDArray[np.int32],
    first: _Ints,
    cut: npt.NDArray[np.int32],
    cuts: _Ints,
    room: int,
    changed: _Ints,
) -> bool: ...
def held(
    stamps: npt.NDArray[np.uint32], runs: npt.NDArray[np.uint32], clock: int, room: int
) -> tuple[int, int, int, int]: ...
