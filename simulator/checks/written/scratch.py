"""Memory that nobody has written, recognised by the bits that it was filled with: `UNIT`, over and over.

Who writes to an array of numpy or torch is not to be seen from here, but a write leaves other bits: an element that still
has these was written by nobody, whoever made the array and however many operations came between. As a float of any width
the bits are a NaN that no operation gives, as an index they lie far outside; of integers of 8 and 16 bits eight bytes
together must have them, as one alone may be data.

Filled are arrays of `sim.empty`; with check=True what torch.empty and its like make in a script of the Triton shim, and what
`np.empty` and `np.empty_like` make in a script of `ascendtile run --check` or `ascendtile check`.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...device import current_device
from ...precision import dtypes as ty
from ...precision.dtypes import DType
from ._touched import holds

UNIT = 0x7FFA  # a NaN of fp16 and bf16; two make one of fp32, four one of fp64
HALF = UNIT << 16 | UNIT
WORD = int.from_bytes(UNIT.to_bytes(2, "little") * 4, "little")
_filled = [False]  # whether there is any such memory; without, nobody needs to look for it


def empty(dims: int | tuple[int, ...], dtype: str | DType = "float32") -> np.ndarray:
    """An array of that shape and element type (such as "float16", "e4m3") that nobody has written: np.empty, and known.

    With sim.device(check=True) a kernel that loads an element of it which nobody has stored is told of it. Booleans are
    False, as their bits have no room for more.
    """
    t = ty.element_type(np.dtype(dtype) if isinstance(dtype, type) else dtype)
    return fill(np.zeros(dims, t.storage))


def fill(x: np.ndarray) -> np.ndarray:
    """Mark an array in one piece as written by nobody."""
    t = ty.from_numpy(x.dtype)
    if t is None or t.is_bool() or not x.nbytes:
        return x
    if x.flags.forc:
        fill_bytes(x.reshape(-1, order="A").view(np.uint8))
    return x


def fill_bytes(memory: np.ndarray) -> None:
    """Mark memory, given as bytes."""
    even = len(memory) // 2 * 2
    memory[:even].view(np.uint16)[...] = UNIT
    memory[even:] = UNIT & 0xFF
    _filled[0] = True


def any_filled() -> bool:
    """Whether this process has such memory at all."""
    return _filled[0]


def unwritten(window: np.ndarray, dtype: DType) -> np.ndarray | None:
    """Which elements of a window nobody has written; None if all are."""
    memory = window.view(np.uint8)
    lead = -window.ctypes.data % 4
    aligned = memory[lead : lead + (len(memory) - lead) // 4 * 4]
    if dtype.is_bool() or len(memory) <= lead or not holds(aligned.view(np.uint32), HALF):
        return None
    words = memory[: len(memory) // 8 * 8].view(np.uint64) == WORD
    if dtype.itemsize == 8:
        return words if words.any() else None
    if dtype.itemsize == 4:
        found = memory.view(np.uint32) == HALF
        return found if found.any() else None
    if not words.any():
        return None
    if dtype.itemsize == 2 and dtype.is_floating():
        return np.asarray(memory.view(np.uint16) == UNIT)
    whole = np.repeat(words, 8 // dtype.itemsize)
    return np.concatenate([whole, np.zeros(len(window) - len(whole), bool)])


# -- arrays of others ------------------------------------------------------------------------------------------------

_OF_TORCH = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")


def mark_torch(name: str, made: Any) -> None:
    """Mark a tensor that a function of torch called `name` has made, if that leaves it unwritten and check is on."""
    if name not in _OF_TORCH or not current_device().check:
        return
    if (
        made.device.type != "cpu"
        or made.dtype.is_complex
        or str(made.dtype) == "torch.bool"
        or not made.numel()
    ):
        return
    import torch

    storage = made.untyped_storage()
    fill_bytes(torch.empty(0, dtype=torch.uint8).set_(storage).numpy())


def mark_sized(made: Any, *sizes: Any, **_: Any) -> None:
    """The same of `torch.Tensor(3, 4)`, which a mode of torch does not see; stands for `torch.Tensor.__init__`."""
    if (
        sizes
        and type(made).__name__ == "Tensor"
        and all(type(n) is int or type(n).__name__ == "Size" for n in sizes)
    ):
        mark_torch("empty", made)


@contextmanager
def numpy_marked(folder: str) -> Iterator[None]:
    """np.empty and np.empty_like mark what they make, where code in a folder calls them and check is on."""
    real = {name: getattr(np, name) for name in ("empty", "empty_like")}
    for name, function in real.items():
        setattr(np, name, _marking(function, os.path.realpath(folder)))
    try:
        yield
    finally:
        for name, function in real.items():
            setattr(np, name, function)


def _marking(real: Callable[..., Any], folder: str) -> Callable[..., Any]:
    @functools.wraps(real)
    def made(*args: Any, **kwargs: Any) -> Any:
        x = real(*args, **kwargs)
        file = sys._getframe(1).f_code.co_filename
        mine = current_device().check and os.path.realpath(file).startswith(os.path.join(folder, ""))
        return fill(x) if mine and type(x) is np.ndarray else x

    return made
