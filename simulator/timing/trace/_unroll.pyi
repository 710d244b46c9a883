from typing import Any

import numpy as np
import numpy.typing as npt

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]
_Ragged = tuple[npt.NDArray[Any], npt.NDArray[Any]]

def expand(
    bodies: list[tuple[Any, ...]],
    slots: int,
    order: _Ints,
    rows: _Ints,
    lanes: int,
    programs: int,
    active: _Ints | None,
    first_column: int,
) -> tuple[dict[str, npt.NDArray[Any]], npt.NDArray[np.bool_], tuple[_Ragged, _Ragged, _Ragged], _Floats]: ...
