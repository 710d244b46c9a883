"""Number formats as data: what each can hold, the numpy dtype that stores it, and what a user writes himself.

    get_format("e4m3")                                     # of the catalogue, or by a dtype of numpy or torch
    get_format("e4m3:bias=11,infinities=no,nan=zero")      # e4m3 with these changes
    get_format("e3m3"), get_format("mine.toml")            # one line, a file
    Format(3, 3, bias=5, nan="none", infinities=False)     # in Python

Everything that float32 holds exactly can be a format: up to 8 bits of exponent and 23 of mantissa.
"""

from .catalogue import (
    BF16,
    BOOL,
    FORMATS,
    FP16,
    FP32,
    FP64,
    HF32,
    INT8,
    INT16,
    INT32,
    INT64,
    TF32,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    UnknownFormatError,
    get_format,
    read_format,
)
from .format import MODES, Format

__all__ = [
    "BF16", "BOOL", "FORMATS", "FP16", "FP32", "FP64", "HF32", "INT8", "INT16", "INT32", "INT64", "MODES", "TF32", "UINT8",
    "UINT16", "UINT32", "UINT64", "Format", "UnknownFormatError", "get_format", "read_format",
]  # fmt: skip
