"""Arrays that processes hand each other: one file in memory, and a layout that says what is where.

    layout, fd = packed({"x": x, "w": w})        # here; both go into a request
    arrays = unpacked(layout, fd, writable=True)  # there

What is packed can no longer be changed, shortened or lengthened: a reader that maps it needs to trust no one. Where
the system has no such files (macOS), a reader copies. `writable` arrays are the reader's own: pages are copied when written.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import mmap
import os
import stat
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from ....simulator.errors import UsageError
from ....simulator.precision.dtypes import EVERY

ALIGNMENT = 64  # bytes, as numpy's own allocation has at most
MOST_DIMENSIONS = 64  # numpy's
SEALS = (
    getattr(fcntl, "F_SEAL_SHRINK", 0) | getattr(fcntl, "F_SEAL_GROW", 0) | getattr(fcntl, "F_SEAL_WRITE", 0)
)

_STORED = [t.storage for t in EVERY.values() if t.kind != "void"]
_DTYPES = {d.name: d for d in (*_STORED, np.dtype(np.complex64), np.dtype(np.complex128))}

Layout = dict[str, list[Any]]  # name -> [dtype, shape, offset in bytes]


def packed(arrays: Mapping[str, np.ndarray]) -> tuple[Layout, int]:
    """Layout and file of these arrays (copied, C order). The file is the caller's to close."""
    layout: Layout = {}
    end = 0
    for name, x in arrays.items():
        if x.dtype.name not in _DTYPES:
            raise UsageError(f"array {name} is of {x.dtype}, which no process hands to another")
        layout[name] = [x.dtype.name, list(x.shape), end]
        end += -(-x.nbytes // ALIGNMENT) * ALIGNMENT
    fd = memory_file("arrays")
    with contextlib.ExitStack() as undo:
        undo.callback(os.close, fd)
        _write(fd, arrays, layout, end)
        undo.pop_all()
    return layout, fd


def _write(fd: int, arrays: Mapping[str, np.ndarray], layout: Layout, size: int) -> None:
    os.truncate(fd, size)
    if size:
        with mmap.mmap(fd, size) as whole:
            for name, x in arrays.items():
                if x.size:
                    view = np.ndarray(x.shape, x.dtype, whole, layout[name][2])
                    view[...] = x
                    del view
    if SEALS:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)


def unpacked(layout: object, fd: int, most_bytes: int, writable: bool = False) -> dict[str, np.ndarray]:
    """The arrays of a layout. The file can be closed afterwards.

    most_bytes: what they may have together. `UsageError`: layout or file are not as `packed` makes them.
    """
    places = _checked(layout)
    size = _size(fd, most_bytes)
    for name, (dtype, shape, offset) in places.items():
        end = offset + math.prod(shape) * dtype.itemsize
        if end > size:
            raise UsageError(f"array {name!r} ends at byte {end} of a file of {size}")
    content = _content(fd, size, writable)
    return {
        name: np.ndarray(shape, dtype, content, offset) for name, (dtype, shape, offset) in places.items()
    }


def _checked(layout: object) -> dict[str, tuple[np.dtype, tuple[int, ...], int]]:
    if not isinstance(layout, dict):
        raise UsageError(f"a layout of arrays is an object, got {type(layout).__name__}")
    return {name: _place(name, entry) for name, entry in layout.items()}


def _place(name: str, entry: object) -> tuple[np.dtype, tuple[int, ...], int]:
    if not isinstance(entry, list) or len(entry) != 3:
        raise UsageError(f"array {name!r} needs dtype, shape and offset")
    dtype, shape, offset = entry
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise UsageError(f"array {name!r} is of {str(dtype)[:40]!r}, which is no type of arrays")
    if not isinstance(shape, list) or len(shape) > MOST_DIMENSIONS:
        raise UsageError(f"array {name!r} needs a shape of at most {MOST_DIMENSIONS} lengths")
    for n in (*shape, offset):
        if type(n) is not int or not 0 <= n < 1 << 62:
            raise UsageError(f"array {name!r} has {str(n)[:40]} for a length or an offset")
    return _DTYPES[dtype], tuple(shape), offset


def _size(fd: int, most_bytes: int) -> int:
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise UsageError("arrays come in a file in memory, got a file of another kind")
    if found.st_size > most_bytes:
        raise UsageError(f"arrays have {found.st_size} bytes, at most {most_bytes} are read")
    return found.st_size


def _content(fd: int, size: int, writable: bool) -> Any:
    """Its bytes: mapped where nobody can change or shorten them, which would end a process that reads."""
    if size and SEALS and _seals(fd) & SEALS == SEALS:
        return mmap.mmap(fd, size, mmap.MAP_PRIVATE, mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0))
    data = bytearray()
    while len(data) < size and (piece := os.pread(fd, min(1 << 24, size - len(data)), len(data))):
        data += piece
    if len(data) < size:
        raise UsageError(f"a file of {size} bytes was shortened to {len(data)} while it was read")
    return data if writable else bytes(data)


def _seals(fd: int) -> int:
    with contextlib.suppress(OSError):
        return fcntl.fcntl(fd, fcntl.F_GET_SEALS)
    return 0


def memory_file(name: str) -> int:
    """A new file that has no path: in memory on Linux, elsewhere a temporary one."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
