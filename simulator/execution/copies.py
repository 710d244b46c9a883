"""Boxes of memory to tiles and back: allocation around the loops of `_copy.pyx`; and additions that wait.

Additions to memory wait until their programs have ended, so that they come in the order of the programs. Programs that run
at once reach their additions iteration by iteration, not one program after the other, and rounding makes the order matter.
Where nothing else depends on it (`order.find_order`), tiles are kept and added in the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..interpreter.regions import AccessRegion
from ..interpreter.tensors import Tensor
from ..precision.dtypes import DType
from ..units.blocks import new_tile
from ..units.vector import decode, encode
from ._copy import read_boxes, write_boxes

# Numbers of `pick_row` in _copy.pyx by element type.
_MOVE = {"fp16": 4, "bf16": 5, "fp32": 2, "fp64": 3}
_MOVE_BYTES = {1: 0, 2: 1, 4: 2, 8: 3}
_ADD = {
    "fp32": 0,
    "int32": 1,
    "uint32": 1,
    "fp16": 2,
    "bf16": 3,
    "int16": 4,
    "uint16": 4,
    "int8": 5,
    "uint8": 5,
}


def read(tensor: Tensor, region: AccessRegion, fill: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Tile (P, *shape) in the host dtype; `fill` (a number or an array) where the mask is false."""
    dtype = tensor.dtype
    if dtype.is_coded:
        codes = read(tensor.of_codes(), region, codes_of(fill, dtype), shape)
        return decode(codes.view(dtype.storage), dtype)
    out = new_tile((region.programs, *shape), dtype.host_dtype)
    if not region.full:
        out[...] = 0 if fill is None else fill
    if out.size and tensor.elements:
        read_boxes(
            _move_kind(dtype),
            _bytes(tensor.window),
            region.starts,
            region.strides,
            region.lows,
            region.highs,
            region.shape,
            out.view(np.uint8).reshape(-1),
            dtype.itemsize,
            dtype.host_dtype.itemsize,
        )
    return out


def write(tensor: Tensor, region: AccessRegion, tile: np.ndarray, adding: bool = False) -> None:
    """Write (or add) the boxes of a tile (P or 1, *shape) to memory in program order."""
    dtype = tensor.dtype
    if dtype.is_coded:
        tensor, dtype, tile = tensor.of_codes(), dtype.codes, codes_of(tile, dtype)
    tile = np.ascontiguousarray(tile, dtype.host_dtype)
    if not tile.size or not tensor.elements:
        return
    write_boxes(
        _ADD[dtype.name] if adding else _move_kind(dtype),
        adding,
        _bytes(tensor.window),
        region.starts,
        region.strides,
        region.lows,
        region.highs,
        region.shape,
        tile.view(np.uint8).reshape(-1),
        tile.shape[0],
        dtype.itemsize,
        dtype.host_dtype.itemsize,
    )


def codes_of(x: Any, dtype: DType) -> np.ndarray:
    """Elements, or one, of a format as the codes that memory holds; None as that of 0."""
    values = np.asarray(0 if x is None else x, dtype.host_dtype)
    return encode(values, dtype).view(dtype.codes.storage)


def _bytes(window: np.ndarray | None) -> np.ndarray:
    assert window is not None
    return window.view(np.uint8)


def _move_kind(dtype: DType) -> int:
    return _MOVE.get(dtype.name, _MOVE_BYTES[dtype.itemsize])


class _Write(NamedTuple):
    tensor: Tensor
    region: AccessRegion
    tile: np.ndarray  # (P or 1, *shape)
    adding: bool


class WaitingWrites:
    """Additions and stores of the programs that run at once."""

    def __init__(self) -> None:
        self.of_program: dict[int, list[tuple[_Write, int]]] = {}

    def keep(
        self, tensor: Tensor, region: AccessRegion, tile: np.ndarray, programs: np.ndarray, adding: bool
    ) -> None:
        """Boxes of memory, checked before, to which `programs` add a tile each, or store it."""
        kept = _Write(tensor, region, tile, adding)
        for lane, number in enumerate(programs.tolist()):
            self.of_program.setdefault(number, []).append((kept, lane))

    def make(self, programs: np.ndarray) -> None:
        """Write what waits, program by program in the order given, each in the order of its own."""
        if not self.of_program:
            return
        for number in programs.tolist():
            for x, lane in self.of_program.pop(number, ()):
                row = lane if len(x.tile) > 1 else 0
                write(x.tensor, x.region.of_program(lane), x.tile[row : row + 1], x.adding)
