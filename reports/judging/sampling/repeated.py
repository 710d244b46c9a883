"""Large arrays whose pages are those of a small file, over and over: of 6 GB that are given, 4 MB lie in memory.

The file holds `PERIOD` elements. That is a prime number of pages' worth, so that whoever reads at a place shifted by a round
number (a row, a tile, a power of two) reads other values. A page that is written to becomes the writer's own.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from typing import Any

import numpy as np

from ....simulator.errors import UsageError
from ..processes.arrays import memory_file

PAGE = mmap.PAGESIZE
PERIOD = 257 * 4096  # elements; of every element type whole pages
_RESERVED = mmap.MAP_PRIVATE | 0x4000  # MAP_NORESERVE of Linux, which Python does not name before 3.13
_FIXED = 0x10  # MAP_FIXED of Linux, which Python does not name either
_NO_HUGE_PAGES = 15  # MADV_NOHUGEPAGE: a page that is touched shall not bring 2 MiB with it


class _Libc:
    """mmap, munmap and madvise of the C library."""

    def __init__(self) -> None:
        lib = ctypes.CDLL(None, use_errno=True)
        self.mmap, self.munmap, self.madvise = lib.mmap, lib.munmap, lib.madvise
        size, number = ctypes.c_size_t, ctypes.c_int
        self.mmap.restype = ctypes.c_void_p
        self.mmap.argtypes = [ctypes.c_void_p, size, number, number, number, ctypes.c_long]
        self.munmap.argtypes = [ctypes.c_void_p, size]
        self.madvise.argtypes = [ctypes.c_void_p, size, number]

    def map(self, address: int | None, size: int, flags: int, file: int) -> int:
        """Address of `size` bytes of a file, or of zeros where `file` is -1."""
        found = self.mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, file, 0)
        if found in (None, ctypes.c_void_p(-1).value):
            code = ctypes.get_errno()
            raise MemoryError(f"{size} bytes of address space cannot be had: {os.strerror(code)}")
        return int(found)


_libc: list[_Libc] = []


def _c() -> _Libc:
    if not _libc:
        _libc.append(_Libc())
    return _libc[0]


class ValueFile:
    """A file in memory that holds one period. values: `PERIOD` elements, of any type whose size is a power of two.

    descriptor: for other processes, which see the same pages. It is closed with the object.
    """

    def __init__(self, values: np.ndarray, descriptor: int = -1) -> None:
        self.descriptor = descriptor if descriptor >= 0 else _file_of(values)
        self.values = np.frombuffer(
            mmap.mmap(self.descriptor, values.nbytes, prot=mmap.PROT_READ), values.dtype
        )
        weakref.finalize(self, os.close, self.descriptor)

    @classmethod
    def opened(cls, descriptor: int) -> ValueFile:
        """The file that another process made; its elements as unsigned integers of their size."""
        size, odd = divmod(os.fstat(descriptor).st_size, PERIOD)
        if odd or size not in (1, 2, 4, 8):
            raise UsageError(
                f"a file of repeated values has {PERIOD} elements, got {size * PERIOD + odd} bytes"
            )
        return cls(np.broadcast_to(np.zeros(1, f"u{size}"), PERIOD), descriptor)


def _file_of(values: np.ndarray) -> int:
    if values.shape != (PERIOD,):
        raise ValueError(f"a period has {PERIOD} elements, got an array of shape {values.shape}")
    descriptor = memory_file("values")
    os.truncate(descriptor, values.nbytes)
    left = memoryview(np.ascontiguousarray(values).view(np.uint8).data)
    while left:
        left = left[os.write(descriptor, left) :]
    return descriptor


class RepeatedMemory:
    """`elements` of memory: element i is element i % PERIOD of the file; zeros, of untouched memory, without one.

    Memory of the process grows with the pages that are touched, and is given back with the last array made of it.
    """

    def __init__(self, elements: int, dtype: np.dtype[Any], file: ValueFile | None = None) -> None:
        self.elements, self.dtype = elements, np.dtype(dtype)
        self.bytes = max(PAGE, -(-elements * self.dtype.itemsize // PAGE) * PAGE)
        self.address = _c().map(None, self.bytes, _RESERVED | mmap.MAP_ANONYMOUS, -1)
        weakref.finalize(self, _c().munmap, self.address, self.bytes)
        _c().madvise(self.address, self.bytes, _NO_HUGE_PAGES)
        self.file: ValueFile | None = None
        if file is not None:
            self.fill(file)

    def fill(self, file: ValueFile | None) -> None:
        """Put other values, or zeros for None, at the same addresses; what was written there is gone."""
        self.file = file
        if file is None:
            _c().map(self.address, self.bytes, _RESERVED | mmap.MAP_ANONYMOUS | _FIXED, -1)
            _c().madvise(self.address, self.bytes, _NO_HUGE_PAGES)
            return
        step = file.values.nbytes
        for begin in range(0, self.bytes, step):
            size = min(step, self.bytes - begin)
            _c().map(self.address + begin, size, _RESERVED | _FIXED, file.descriptor)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {
            "shape": (self.elements,),
            "typestr": f"|u{self.dtype.itemsize}" if self.dtype.itemsize == 1 else f"<u{self.dtype.itemsize}",
            "data": (self.address, False),
            "version": 3,
        }

    def array(self) -> np.ndarray:
        """The memory as an array, which keeps it."""
        return np.asarray(self).view(self.dtype)
