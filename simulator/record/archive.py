"""The file of a run record: a zip that is also a valid .npz, read as untrusted.

What the zip's directory claims is checked before anything is unpacked, and what is unpacked is checked against it.
Headers of .npy data may be anybody's, too: they are read without pickle, and believed only if the length agrees.
"""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
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
    if not dtype.itemsize:
        raise UsageError(f"holds elements of no bytes ({dtype}); store numbers")
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


MAX_FILE_BYTES = 64 * 2**20
MAX_DIRECTORY_BYTES = 2**20
MAX_JSON_BYTES = 16 * 2**20
MAX_ARRAY_BYTES = 64 * 2**20
MAX_UNPACKED_BYTES = 256 * 2**20

TEXT = "run.json"
# Members are called after the field that holds the array: launches.0.timeline.core.npy
MEMBER = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z0-9_]+){0,7}\.npy", re.ASCII)
END = struct.Struct("<4s4H2LH")  # end of a zip's directory, without a comment
END_ZIP64 = b"PK\x06\x07"
DEFLATE_OR_STORED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What zipfile, zlib and numpy raise over damaged bytes.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)


def pack(text: bytes, arrays: Mapping[str, np.ndarray]) -> bytes:
    """The bytes of a record: always the same for the same content."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, TEXT, text)
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
            _add(archive, f"{name}.npy", member.getvalue())
    return out.getvalue()


def unpack(raw: bytes) -> dict[str, bytes]:
    """Member name -> content. `UsageError` says what is wrong, without the name of the file."""
    if raw[:4] != b"PK\x03\x04":
        raise UsageError("is not a run record: it is not a zip file")
    check_end(raw)
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            _check_directory(archive.infolist())
            return {m.filename: _read(archive, m) for m in archive.infolist()}
    except UsageError:
        raise
    except DAMAGE as error:
        raise UsageError(f"is damaged or cut short: {error}") from None


def array_of(data: bytes) -> np.ndarray:
    """The one-dimensional array of native numbers of a .npy member."""
    array = read_array(io.BytesIO(data), len(data))
    if array.ndim != 1 or array.dtype.kind not in "iuf" or not array.dtype.isnative:
        raise UsageError(f"is of {array.dtype} and shape {array.shape}; records have lists of native numbers")
    return array


def check_end(tail: bytes) -> None:
    """Refuse a zip whose directory is not of a size like ours at its very end: zipfile reads any into memory."""
    tail = tail[-END.size - 20 :]
    end = tail[-END.size :]
    if len(end) < END.size or end[:4] != b"PK\x05\x06" or end[-2:] != b"\0\0":
        raise UsageError("is cut short or damaged: it does not end as a zip file that Python wrote does")
    if END.unpack(end)[5] > MAX_DIRECTORY_BYTES or END_ZIP64 in tail:
        raise UsageError(f"is a zip file whose directory has more than {MAX_DIRECTORY_BYTES} bytes")


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name)  # its date is fixed
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, data)


def _check_directory(members: list[zipfile.ZipInfo]) -> None:
    names = [m.filename for m in members]
    if TEXT not in names:
        raise UsageError(f"is not a run record: it is a zip file without {TEXT}")
    for m in members:
        if m.filename != TEXT and not MEMBER.fullmatch(m.filename):
            raise UsageError(f"has a member {m.filename[:60]!r}, which a run record does not have")
        _check_member(m)
    if len(set(names)) < len(names):
        raise UsageError("has two members of one name")
    total = sum(m.file_size for m in members)
    if total > MAX_UNPACKED_BYTES:
        raise UsageError(f"claims {total} bytes unpacked, a run record has at most {MAX_UNPACKED_BYTES}")


def _check_member(m: zipfile.ZipInfo) -> None:
    limit = MAX_JSON_BYTES if m.filename == TEXT else MAX_ARRAY_BYTES
    if m.file_size > limit:
        raise UsageError(f"claims {m.file_size} bytes in {m.filename}, the limit is {limit}")
    if m.compress_type not in DEFLATE_OR_STORED or m.flag_bits & 1:
        raise UsageError(f"has {m.filename} encrypted or packed in another way than deflate")


def _read(archive: zipfile.ZipFile, m: zipfile.ZipInfo) -> bytes:
    """zipfile stops at the claimed size and then compares the checksum, so a wrong claim is found here."""
    with archive.open(m) as file:
        data = file.read(m.file_size + 1)
    if len(data) != m.file_size:
        raise UsageError(f"claims {m.file_size} bytes in {m.filename}, it has {len(data)}")
    return data
