"""Pointers that are known as addresses only: from tables of addresses, or into several tensors under one name.

Such a pointer counts elements from address 0 (`FlatMemory`). An access through it is cut into one access for each tensor
that it really touches; an address that lies in no tensor of the process is an error, nothing is ever read through it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ..errors import OutOfBoundsError, RunError
from ..precision.dtypes import DType
from .faults import Site
from .symbolic import in_64
from .tensors import Tensor, as_array, tensor_argument
from .values import Affine, Box, Pointers, take

_UNKNOWN = -1
Tell = Callable[[OutOfBoundsError, np.ndarray], None]


class FlatMemory(Tensor):
    """All of memory, as elements of one type. It has no window: accesses are cut by `Known.pieces`."""

    __slots__ = ()

    def __init__(self, dtype: DType) -> None:
        super().__init__("memory", dtype, (), None, 0, (1 << 63) // dtype.itemsize, True, 0)


def absolute(p: Pointers) -> Any:
    """Offsets of a pointer counted from address 0, in its own elements."""
    if isinstance(p.tensor, FlatMemory):
        return p.offsets
    tensor = p.tensor
    first, odd = divmod(tensor.address, tensor.dtype.itemsize)
    if odd:
        raise RunError(
            f"{tensor.name!r} lies at address {tensor.address:#x}, no multiple of its element size"
        )
    return _shifted(p.offsets, first + tensor.origin)


def _shifted(x: Any, by: int) -> Any:
    return Affine(in_64(x.base + by), x.strides, x.shape) if isinstance(x, Affine) else in_64(x + by)


def as_flat(p: Pointers) -> Pointers:
    """The same pointer as an address."""
    return p if isinstance(p.tensor, FlatMemory) else Pointers(FlatMemory(p.tensor.dtype), absolute(p))


def addresses(p: Pointers) -> Any:
    """Byte addresses of a pointer: what it is as an integer."""
    size, at = p.tensor.dtype.itemsize, absolute(p)
    if isinstance(at, Affine):
        return Affine(in_64(at.base * size), tuple(in_64(s * size) for s in at.strides), at.shape)
    return in_64(at * size)


def from_addresses(
    x: Any, dtype: DType, site: Site, programs: np.ndarray, tensor: Tensor | None = None
) -> Pointers:
    """Pointers from byte addresses in these programs: a scalar, an index tile or elements; tensor: where they point to."""
    size = dtype.itemsize
    parts = [x.base, *x.strides] if isinstance(x, Affine) else [x]
    if any((np.asarray(part) % size).any() for part in parts):
        raise _misaligned(x, dtype, site, programs, tensor)
    if isinstance(x, Affine):
        return Pointers(
            FlatMemory(dtype), Affine(x.base // size, tuple(s // size for s in x.strides), x.shape)
        )
    return Pointers(FlatMemory(dtype), x // size)


def _misaligned(x: Any, dtype: DType, site: Site, programs: np.ndarray, tensor: Tensor | None) -> RunError:
    """The error of a pointer to elements that begin where none of that type may lie."""
    every = x.elements() if isinstance(x, Affine) else np.atleast_1d(np.asarray(x))
    first = np.argwhere(every % dtype.itemsize != 0)[0]
    at, row = int(every[tuple(first)]), int(first[0])
    program = site.program(programs[row if len(every) > 1 else 0])
    of = f"address {at:#x}"
    if tensor is not None:
        of = f"byte {at - tensor.address - tensor.origin * tensor.dtype.itemsize:,} of {tensor.name!r} ({of})"
    return site.error(
        f"pointer to {dtype} in {program}: {of} is no multiple of the {dtype.itemsize} bytes of an element; move the "
        f"pointer by multiples of {dtype.itemsize} bytes before the cast"
    )


def viewed(p: Pointers, dtype: DType, site: Site, programs: np.ndarray) -> Pointers:
    """The same addresses as pointers to another type."""
    old, new = p.tensor.dtype.itemsize, dtype.itemsize
    if isinstance(p.tensor, FlatMemory) or old != new:
        if old % new == 0 and not isinstance(p.tensor, FlatMemory):
            k = old // new
            x = p.offsets
            scaled = (
                Affine(x.base * k, tuple(s * k for s in x.strides), x.shape)
                if isinstance(x, Affine)
                else x * k
            )
            return Pointers(p.tensor.viewed(dtype), scaled)
        tensor = None if isinstance(p.tensor, FlatMemory) else p.tensor
        return from_addresses(addresses(p), dtype, site, programs, tensor)
    return Pointers(p.tensor.viewed(dtype), p.offsets)


class Known:
    """Tensors of the process that a pointer may reach: the launch's own, and live arrays once an address needs them."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        self.given = list(tensors)
        self.tensors = sorted(self.given, key=_bytes)
        self.searched = False

    def holders(self, low: Any, high: Any) -> np.ndarray:
        """For runs of bytes [low, high): the smallest known tensor that holds all of each, as a number; -1 for none."""
        low, high = np.atleast_1d(low), np.atleast_1d(high)
        found = self._look(low, high)
        if (found == _UNKNOWN).any() and not self.searched:
            self.searched = True
            self.tensors = sorted([*self.tensors, *_live_tensors()], key=_bytes)
            found = self._look(low, high)
        return found

    def _look(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        found = np.full(low.shape, _UNKNOWN, np.int64)
        for k, t in enumerate(self.tensors):
            inside = (found == _UNKNOWN) & (low >= t.address) & (high <= t.address + _bytes(t))
            found[inside] = k
        return found

    def resolved(self, p: Pointers) -> Pointers:
        """A pointer scalar into the one tensor that it points to in all programs, if there is one."""
        if not isinstance(p.tensor, FlatMemory) or isinstance(p.offsets, Affine):
            return p
        size = p.tensor.dtype.itemsize
        at = np.atleast_1d(np.asarray(p.offsets)) * size
        holder = self.holders(at, at + size)
        if (holder != holder[0]).any() or holder[0] == _UNKNOWN:
            return p
        tensor = self.tensors[holder[0]]
        rivals = sum(
            t.address < int(at.max()) + size and t.address + _bytes(t) > int(at.min()) for t in self.tensors
        )
        if rivals > 1 or (tensor.address - int(at[0])) % size:
            return p
        return _inside(p, tensor)

    def pieces(
        self, p: Pointers, mask: Any, numbers: np.ndarray, what: str, site: Site, tell: Tell | None = None
    ) -> Iterator[tuple[np.ndarray | None, Pointers, Any]]:
        """(programs as positions in `numbers`, or None for all; pointers into one tensor; mask) of an access.

        tell: is given what would be the error of an access to no tensor, and its elements, which then are in no piece.
        """
        regular = isinstance(p.offsets, Affine) and isinstance(mask, np.ndarray) and mask.ndim > 1
        if regular or (isinstance(p.offsets, np.ndarray) and p.offsets.ndim > 1):
            yield from self._scattered(p, mask, numbers, what, site, tell)
            return
        low, high, some = _extents(p.offsets, mask, len(numbers))
        size = p.tensor.dtype.itemsize
        holder = self.holders(low * size, high * size)
        if tell is not None and ((holder == _UNKNOWN) & some).any():
            yield from self._scattered(p, mask, numbers, what, site, tell)
            return
        self._check(holder, some, low * size, numbers, what, site)
        holder = np.where(some, holder, holder[np.argmax(some)] if some.any() else 0)
        for k in np.unique(holder):
            if k == _UNKNOWN or not self.tensors:
                continue
            index = np.flatnonzero(holder == k)
            whole = len(index) == len(holder)
            mine = p if whole else p.take(index)
            yield (
                (None if whole else index),
                _inside(mine, self.tensors[k]),
                mask if whole else take(mask, index),
            )

    def _scattered(
        self, p: Pointers, mask: Any, numbers: np.ndarray, what: str, site: Site, tell: Tell | None
    ) -> Iterator[tuple[np.ndarray | None, Pointers, Any]]:
        """Element by element."""
        size, offsets = p.tensor.dtype.itemsize, p.offsets
        offsets = offsets.elements() if isinstance(offsets, Affine) else np.atleast_1d(offsets)
        chosen: Any = True if mask is None else mask.dense() if isinstance(mask, Box) else np.asarray(mask)
        if isinstance(chosen, np.ndarray) and chosen.ndim == 1:
            chosen = chosen.reshape(-1, *(1,) * (offsets.ndim - 1))
        at, chosen = np.broadcast_arrays(offsets, chosen)
        holder = self.holders(at.reshape(-1) * size, (at.reshape(-1) + 1) * size).reshape(at.shape)
        row = np.broadcast_to(np.arange(at.shape[0]).reshape(-1, *(1,) * (at.ndim - 1)), at.shape)
        flat = numbers[row.reshape(-1)] if at.shape[0] > 1 else np.full(at.size, numbers[0])
        lost = None if tell is None else lambda error, bad: tell(error, bad.reshape(at.shape))
        self._check(holder.reshape(-1), chosen.reshape(-1), at.reshape(-1) * size, flat, what, site, lost)
        for k in np.unique(holder[chosen & (holder != _UNKNOWN)]):
            yield None, _inside(Pointers(p.tensor, at), self.tensors[k]), chosen & (holder == k)

    def _check(
        self,
        holder: np.ndarray,
        some: np.ndarray,
        at: np.ndarray,
        numbers: np.ndarray,
        what: str,
        site: Site,
        tell: Tell | None = None,
    ) -> None:
        bad = (holder == _UNKNOWN) & some
        if not bad.any():
            return
        i = int(np.argmax(bad))
        address, program = int(at[i]), int(numbers[i if len(holder) > 1 else 0])
        near = [t for t in self.tensors if t.address <= address < t.address + _bytes(t)]
        last = (
            f"; {near[-1].name!r} ends {near[-1].address + _bytes(near[-1]) - address} bytes later"
            if near
            else ""
        )
        error = site.outside(
            f"{what} at address {address:#x} in {site.program(program)} leaves every tensor that is known{last}",
            program,
            "Addresses in a table must come from data_ptr() of tensors or arrays that are still alive",
        )
        if tell is None:
            raise error
        tell(error, bad)


def _extents(offsets: Any, mask: Any, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First and behind-last element that each program touches, and whether it touches any."""
    affine = offsets if isinstance(offsets, Affine) else Affine(offsets, (), ())
    low = np.broadcast_to(np.asarray(affine.base, np.int64), count).copy()
    high, some = low.copy(), np.ones(count, bool)
    for k, (s, n) in enumerate(zip(affine.strides, affine.shape, strict=True)):
        first: Any = 0 if not isinstance(mask, Box) else np.maximum(mask.lows[k], 0)
        last: Any = (n if not isinstance(mask, Box) else np.minimum(mask.highs[k], n)) - 1
        some &= np.asarray(last >= first)
        low += np.minimum(s * first, s * last)
        high += np.maximum(s * first, s * last)
    if mask is not None and not isinstance(mask, Box):
        some &= np.asarray(mask, bool)
    return low, high + 1, some


def _inside(p: Pointers, tensor: Tensor) -> Pointers:
    """A pointer from address 0 as one into `tensor`, seen as elements of the pointer's type."""
    view = tensor.viewed(p.tensor.dtype)
    return Pointers(view, _shifted(p.offsets, -(view.address // view.dtype.itemsize) - view.origin))


def _bytes(t: Tensor) -> int:
    return t.elements * t.dtype.itemsize


def _live_tensors() -> list[Tensor]:
    """Arrays and torch CPU tensors that the program holds: in running functions, modules, containers and objects."""
    out: dict[tuple[int, int], Tensor] = {}
    for x in _objects():
        try:
            array = as_array("a live tensor", x)
            tensor = None if array is None or not array.size else tensor_argument("a live tensor", array)
        except Exception:  # whatever cannot be read as a tensor is none that a kernel could reach
            continue
        if tensor is not None:
            out.setdefault((tensor.address, _bytes(tensor)), tensor)
    return list(out.values())


def _objects() -> Iterator[Any]:
    """Candidates. numpy arrays are not tracked by the collector: they are found through whatever holds them.

    So do tuples that hold nothing tracked. Types are asked by their id: all else may run code of the objects.
    """
    torch = sys.modules.get("torch")
    wanted = {id(tuple), *_subclasses(np.ndarray), *_subclasses(getattr(torch, "Tensor", np.ndarray))}
    left: list[Any] = [*_locals()]
    left = left + gc.get_objects()  # `+=` would make a list that holds itself
    while left:
        held: list[Any] = []
        for start in range(0, len(left), 10_000):
            referred = gc.get_referents(*left[start : start + 10_000])
            held += [x for x in referred if id(type(x)) in wanted]
        yield from (x for x in held if type(x) is not tuple)
        left = [x for x in held if type(x) is tuple and not gc.is_tracked(x)]


def _subclasses(kind: type) -> Iterator[int]:
    """The ids of a type and of all that derive from it."""
    yield id(kind)
    found: list[type] = type.__subclasses__(kind)
    for derived in found:
        yield from _subclasses(derived)


def _locals() -> Iterator[list[Any]]:
    """Of the functions that run."""
    frame = sys._getframe().f_back  # not of this one, which would hold itself
    while frame is not None:
        yield list(frame.f_locals.values())
        frame = frame.f_back
