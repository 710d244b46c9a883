import numpy as np
import numpy.typing as npt

_I8 = npt.NDArray[np.int8]
_I32 = npt.NDArray[np.int32]
_I64 = npt.NDArray[np.int64]

def scan(
    read_start: _I64,
    read: _I32,
    write_start: _I64,
    write: _I32,
    clobber_start: _I64,
    clobber: _I32,
    conditional: _I8,
    flags: _I8,
    writer: _I32,
    readers: _I64,
    touched: _I32,
    next_read: _I64,
    reader: _I32,
    waiter: _I32,
    dep_start: _I64,
    dep: _I32,
    kind: _I8,
) -> int: ...
