"""Headers of .npy data that may be anybody's: read without pickle, and believed only if the length agrees."""

from __future__ import annotations

import math
from typing import IO

import numpy as np

from ..errors import UsageError

MAX_HEADER_BYTES = 10_000
MAGIC = b"\x93NUMPY"


def read_header(file: IO[bytes], size: int) -> tuple[np.dtype, tuple[int, ...], bool]:
    """dtype, shape and Fortran order of the .npy data of `size` bytes that `file` stands at the start of.

    Afterwards `file` stands at the first element. `UsageError` (without a file's name) if the header makes no sense,
    holds Python objects, or does not fit the size.
    """
    try:
        version = np.lib.format.read_magic(file)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = read(file, max_header_size=MAX_HEADER_BYTES)
    except Exception as error:  # numpy parses the header as Python text, and hostile text can raise anything
        raise UsageError(f"has a damaged header: {' '.join(str(error).split())[:120]}") from None
    if dtype.hasobject:
        raise UsageError("holds Python objects, which are never loaded; store numbers")
    if any(n < 0 for n in shape) or file.tell() + math.prod(shape) * dtype.itemsize != size:
        raise UsageError(
            f"claims shape {shape} of {dtype}, which does not fit its {size - file.tell()} bytes"
        )
    return dtype, shape, fortran


def read_array(file: IO[bytes], size: int) -> np.ndarray:
    """The array of the .npy data of `size` bytes that `file` stands at the start of."""
    dtype, shape, fortran = read_header(file, size)
    flat = np.frombuffer(file.read(math.prod(shape) * dtype.itemsize), dtype).copy()
    return flat.reshape(shape, order="F" if fortran else "C")
