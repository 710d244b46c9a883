from typing import Any, Final

import numpy as np
import numpy.typing as npt

STATE: Final[int]

_I8 = npt.NDArray[np.int8]
_I32 = npt.NDArray[np.int32]
_I64 = npt.NDArray[np.int64]
_F64 = npt.NDArray[np.float64]

def relate(
    first: int,
    near: int,
    number: _I64,
    pipe: _I8,
    latency: _F64,
    conditional: _I8,
    most: _F64,
    dep_start: _I64,
    dep: _I32,
    dep_kind: _I8,
    waited: npt.NDArray[np.uint16],
    kept: _I32,
    keep: _I64,
    keeps: int,
    start: _I64,
    back: _I32,
    kind: _I8,
) -> int: ...
def alive(
    readers: _I64,
    next_read: _I64,
    reader: _I32,
    pipe: _I8,
    latency: _F64,
    conditional: _I8,
    most: _F64,
    slots: _I32,
    records: _I32,
) -> int: ...
def intern(
    rows: npt.NDArray[Any],
    start: _I64,
    back: _I32,
    kind: _I8,
    kinds: npt.NDArray[Any],
    kind_start: _I64,
    kind_back: _I32,
    kind_kind: _I8,
    hashes: npt.NDArray[np.uint64],
    table: _I32,
    known: int,
    codes: _I32,
) -> int: ...
def rebuild(hashes: npt.NDArray[np.uint64], known: int, table: _I32) -> None: ...
def fold(
    codes: _I32,
    least: int,
    most: int,
    state: _I64,
    order: _I32,
    table: _I64,
    runs: _I64,
    count: int,
) -> int: ...
