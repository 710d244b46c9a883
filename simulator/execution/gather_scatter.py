"""Accesses to single elements: gathers, scatters, atomics. Validation and allocation around the loops of `_discrete.pyx`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..interpreter.regions import ElementAddresses
from ..interpreter.tensors import Tensor
from ..units.vector import decode
from . import _discrete  # type: ignore[attr-defined]
from .copies import codes_of

# Numbers of the operations of `combined` in _discrete.pyx.
ATOMICS = {"add": 0, "max": 1, "min": 2, "and": 3, "or": 4, "xor": 5, "xchg": 6, "cas": 7}


def _half(tensor: Tensor) -> bool:
    return tensor.dtype.name in ("fp16", "bf16")


def _memory(tensor: Tensor) -> np.ndarray:
    """The window in a form that the loops take: halves as their bits, booleans as bytes."""
    window = tensor.window
    assert window is not None
    if _half(tensor):
        return window.view(np.uint16)
    return window.view(np.uint8) if tensor.dtype.is_bool() else window


def _bits(x: np.ndarray) -> np.ndarray:
    """The same bytes as unsigned numbers, for loops that only move elements."""
    return x.view(f"u{x.itemsize}")


def _in_host_dtype(tensor: Tensor, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Elements of a tile, flat, in the form that the loops take."""
    flat = np.ascontiguousarray(np.broadcast_to(x, shape), tensor.dtype.host_dtype).reshape(-1)
    return flat.view(np.uint8) if tensor.dtype.is_bool() else flat


def gather(tensor: Tensor, where: ElementAddresses, fill: Any) -> np.ndarray:
    """Tile of `where.shape` in the host dtype; `fill` (0 if None) where nothing is chosen. Addresses lie inside."""
    dtype = tensor.dtype
    if dtype.is_coded:
        return decode(gather(tensor.of_codes(), where, codes_of(fill, dtype)).view(dtype.storage), dtype)
    out = np.empty(where.shape, tensor.dtype.host_dtype)
    if len(where.chosen):
        out[...] = 0 if fill is None else fill
    if not out.size or not tensor.elements:
        return out
    flat = out.reshape(-1)
    if _half(tensor):
        _discrete.gather_half(_memory(tensor), where.at, where.chosen, flat, tensor.dtype.name == "bf16")
    else:
        _discrete.gather_plain(_bits(_memory(tensor)), where.at, where.chosen, _bits(flat))
    return out


def scatter(tensor: Tensor, where: ElementAddresses, tile: np.ndarray) -> None:
    """Write a tile of `where.shape` in order: of equal addresses the last one stays."""
    if not len(where.at) or not tensor.elements:
        return
    if tensor.dtype.is_coded:
        tensor, tile = tensor.of_codes(), codes_of(tile, tensor.dtype)
    flat = _in_host_dtype(tensor, tile, where.shape)
    if _half(tensor):
        _discrete.scatter_half(_memory(tensor), where.at, where.chosen, flat, tensor.dtype.name == "bf16")
    else:
        _discrete.scatter_plain(_bits(_memory(tensor)), where.at, where.chosen, _bits(flat))


def atomic(
    tensor: Tensor, name: str, where: ElementAddresses, tile: np.ndarray, expected: np.ndarray | None
) -> np.ndarray:
    """Combine one element after another; gives what memory held before each (0 where nothing is chosen)."""
    old = np.zeros(where.shape, tensor.dtype.host_dtype)
    if not len(where.at) or not tensor.elements:
        return old
    values = _in_host_dtype(tensor, tile, where.shape)
    wanted = values if expected is None else _in_host_dtype(tensor, expected, where.shape)
    flat = old.reshape(-1)
    rest = (_memory(tensor), where.at, where.chosen, values, wanted)
    if _half(tensor):
        _discrete.atomic_half(ATOMICS[name], *rest, flat, tensor.dtype.name == "bf16")
    else:
        flat = flat.view(np.uint8) if tensor.dtype.is_bool() else flat
        _discrete.atomic_plain(ATOMICS[name], *rest, flat)
    return old
