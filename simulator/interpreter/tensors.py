"""Global memory: the tensors a kernel is given, as windows of elements that pointers index.

A tensor may be any view (strided, reversed, offset); its window is the smallest run of memory that holds all its elements,
and a pointer outside of the window is out of bounds.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from ..errors import UsageError
from ..precision import dtypes as ty
from ..precision.dtypes import DType


@dataclass(frozen=True)
class Shape:
    """A tensor without data: `sim.shape((2048, 4096), "float16")`, for `kernel.time`.

    part_of: the shape in whose memory it lies, and how many bytes after its beginning; None for memory of its own.
    """

    shape: tuple[int, ...]
    dtype: DType
    part_of: tuple[Shape, int] | None = field(default=None, compare=False, repr=False)

    @property
    def size(self) -> int:
        n = 1
        for s in self.shape:
            n *= s
        return n


def shape(dims: int | tuple[int, ...], dtype: str | DType) -> Shape:
    """A tensor without data, contiguous, of those dimensions and element type (e.g. "float16", "bfloat16")."""
    t = dtype if isinstance(dtype, DType) else ty.element_type(dtype)
    dims = (dims,) if isinstance(dims, int) else tuple(int(d) for d in dims)
    if any(d < 0 for d in dims):
        raise UsageError(f"a shape has no negative dimension, got {dims}")
    return Shape(dims, t)


_places = itertools.cycle(range(1 << 10, 1 << 17))


class Tensor:
    """One pointer argument: element type, window of memory (None without values), place of element 0 in it.

    `elements` is the window's length; legal offsets of the pointer are -origin <= offset < elements - origin. `whole` is
    the tensor that this one is a view of, itself if it is none; `source` what the user gave.
    """

    __slots__ = (
        "_views",
        "address",
        "dtype",
        "elements",
        "name",
        "origin",
        "shape",
        "source",
        "whole",
        "window",
        "writable",
    )

    def __init__(
        self,
        name: str,
        dtype: DType,
        shape: tuple[int, ...],
        window: np.ndarray | None,
        origin: int,
        elements: int,
        writable: bool,
        address: int,
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.window = window
        self.origin = origin
        self.elements = elements
        self.writable = writable
        self.address = address  # of the window's first byte; made up for a tensor without data
        self.whole: Tensor = self
        self.source: Any = None
        self._views: dict[str, Tensor] = {}

    def viewed(self, dtype: DType) -> Tensor:
        """The same memory as elements of another type, as far as whole ones fit; element 0 stays where it is."""
        if dtype == self.dtype:
            return self
        found = self._views.get(dtype.name)
        if found is None:
            found = self._views[dtype.name] = self._view(dtype)
        return found

    def of_codes(self) -> Tensor:
        """The codes of a format that memory holds."""
        return self.viewed(self.dtype.codes)

    def _view(self, dtype: DType) -> Tensor:
        old, new = self.dtype.itemsize, dtype.itemsize
        lead = self.origin * old % new  # bytes in front of the first element that is whole
        elements = max(0, self.elements * old - lead) // new
        window = None
        if self.window is not None:
            window = self.window.view(np.uint8)[lead : lead + elements * new].view(dtype.storage)
        shape = self.shape if old == new else (elements,)
        out = Tensor(
            self.name,
            dtype,
            shape,
            window,
            self.origin * old // new,
            elements,
            self.writable,
            self.address + lead,
        )
        out.whole = self.whole
        return out


def tensor_argument(name: str, x: Any) -> Tensor | None:
    """The tensor behind a kernel argument: numpy array, torch CPU tensor or `Shape`; None if it is none of these."""
    if isinstance(x, Shape):
        out = Tensor(name, x.dtype, x.shape, None, 0, x.size, True, _made_up(x.size * x.dtype.itemsize))
    else:
        array = as_array(name, x)
        if array is None:
            return None
        out = _from_numpy(name, array)
    out.source = x
    return out


@contextmanager
def memory_kept(tensors: Mapping[str, Tensor]) -> Iterator[None]:
    """Tensors hold afterwards what they held before."""
    kept = [(t.window, t.window.copy()) for t in tensors.values() if t.window is not None and t.writable]
    try:
        yield
    finally:
        for window, before in kept:
            window[...] = before


def _made_up(size: int) -> int:
    """An address for a tensor without data, apart from all others."""
    return next(_places) * (1 << 44) if size < 1 << 44 else 1 << 62


def as_array(name: str, x: Any) -> np.ndarray | None:
    """`x` itself if it is a numpy array, a view of a torch CPU tensor as one, None for anything else.

    What has a `base` and one of our types as its `dtype`, as a tensor under `triton.reinterpret`, is its base read as that.
    """
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "base") and isinstance(getattr(x, "dtype", None), DType):
        return _reinterpreted(name, as_array(name, x.base), x.dtype)
    return _from_torch(name, x)


def _reinterpreted(name: str, base: np.ndarray | None, dtype: DType) -> np.ndarray | None:
    if base is None:
        return None
    if dtype.storage.itemsize != base.itemsize:
        raise UsageError(
            f"{name}: elements of {base.itemsize} bytes ({base.dtype}) cannot be read as {dtype}, which has {dtype.itemsize}"
        )
    return base.view(dtype.storage)


def past_torch_modes() -> AbstractContextManager[Any]:
    """A block in which attributes of tensors are read past torch's function modes, such as the one that knows "npu".

    Each of them would call the mode, which takes time, and torch keeps memory of the calls.
    """
    torch = sys.modules.get("torch")
    return torch._C.DisableTorchFunction() if torch is not None else nullcontext()


def _from_torch(name: str, x: Any) -> np.ndarray | None:
    """A numpy view of a torch CPU tensor, without importing torch for those who do not use it."""
    if not (type(x).__module__.partition(".")[0] == "torch" and hasattr(x, "data_ptr")):
        return None
    with past_torch_modes():
        return _torch_memory(name, x)


def _torch_memory(name: str, x: Any) -> np.ndarray:
    if x.device.type != "cpu":
        raise UsageError(
            f"{name}: the tensor is on {x.device}; only CPU tensors can be simulated (use .cpu())"
        )
    x = x.detach()
    _check_storage(name, x)
    try:
        name_of_type = str(x.dtype).removeprefix("torch.")
        if name_of_type == "bfloat16" or name_of_type.startswith("float8"):  # numpy has them from ml_dtypes
            import torch

            bits = x.view(torch.int16 if x.element_size() == 2 else torch.uint8)
            found: np.ndarray = np.asarray(bits.numpy()).view(getattr(ml_dtypes, name_of_type))
            return found
        if name_of_type == "float4_e2m1fn_x2":  # two a byte, as tl.dot_scaled takes them
            import torch

            return np.asarray(x.view(torch.uint8).numpy())
        return np.asarray(x.numpy())
    except (TypeError, RuntimeError, AttributeError) as e:  # sparse, quantised, a type that numpy lacks
        raise UsageError(f"{name}: a torch tensor of {x.dtype}, {x.layout} cannot be read: {e}") from None


def _check_storage(name: str, x: Any) -> None:
    """A torch tensor whose storage was freed or made smaller still has its shape: reading it would leave the memory."""
    if str(x.layout) != "torch.strided" or not x.numel():
        return
    reach = 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))
    need, have = (x.storage_offset() + reach) * x.element_size(), x.untyped_storage().nbytes()
    if have < need:
        state = "freed" if not have else "made smaller"
        raise UsageError(
            f"{name}: the storage of this torch tensor was {state}: it has {have} bytes, shape {tuple(x.shape)} needs {need}"
        )


def _from_numpy(name: str, a: np.ndarray) -> Tensor:
    shape, dtype = a.shape, ty.from_numpy(a.dtype)
    if dtype is None:
        raise UsageError(f"{name}: arrays of {a.dtype} cannot be kernel arguments; known are {_known()}")
    if a.size == 0:
        return Tensor(name, dtype, a.shape, np.empty(0, a.dtype), 0, 0, a.flags.writeable, 0)
    if any(s % a.itemsize for s in a.strides):
        raise UsageError(
            f"{name}: strides {a.strides} bytes are no multiples of the element size {a.itemsize}"
        )
    if a.ctypes.data % a.itemsize:
        raise UsageError(
            f"{name}: the array begins at address {a.ctypes.data:#x}, no multiple of its element size {a.itemsize} bytes; "
            f"pass {name}.copy()"
        )
    a = a.reshape(1) if a.ndim == 0 else a
    strides = [s // a.itemsize for s in a.strides]
    low = sum(min(0, s * (n - 1)) for s, n in zip(strides, a.shape, strict=True))
    high = sum(max(0, s * (n - 1)) for s, n in zip(strides, a.shape, strict=True))
    at = (slice(n - 1, n) if s < 0 else slice(0, 1) for s, n in zip(strides, a.shape, strict=True))
    first = a[(*at, ...)]  # the ellipsis makes it a view of an array without axes, too
    # numpy strides no type that it does not know
    bits = first.view(dtype.codes.storage) if dtype.is_coded else first
    window = np.lib.stride_tricks.as_strided(
        bits, (high - low + 1,), (a.itemsize,), writeable=a.flags.writeable
    ).view(a.dtype)
    return Tensor(name, dtype, shape, window, -low, high - low + 1, a.flags.writeable, window.ctypes.data)


def _known() -> str:
    return ", ".join(str(t.storage) for t in ty.ALL)


def overlap(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors share memory."""
    return (
        a.address < b.address + b.elements * b.dtype.itemsize
        and b.address < a.address + a.elements * a.dtype.itemsize
    )
