"""What the tensors of a launch would hold without rounding: a float64 twin of each, kept from launch to launch of a device.

A twin begins as what its tensor holds. It is followed into the next launch on the same memory as long as that holds, bit for
bit, what the last launch left there; where the host has written in between it begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ...interpreter.tensors import Tensor
from ...precision import dtypes as ty
from ...units.vector import decode

MOST_BYTES = 1 << 30  # of twins that are kept between launches; the oldest go first


class MemoryLeft(NamedTuple):
    """What a launch left in memory from `address` on, and the same without rounding."""

    dtype: ty.DType
    address: int
    left: np.ndarray
    exact: np.ndarray

    @property
    def end(self) -> int:
        return self.address + len(self.exact) * self.dtype.itemsize


class Float64Memory:
    """Twins that launches on one device leave to the next ones. dtype: of their elements."""

    dtype = ty.float64

    def __init__(self) -> None:
        self.kept: list[MemoryLeft] = []

    def follows(self, dtype: ty.DType) -> bool:
        """Whether memory of that type has a twin."""
        return dtype.is_floating()

    def begun(self, dtype: ty.DType, address: int, window: np.ndarray) -> np.ndarray:
        """The twin of a run of memory that no launch has left."""
        with np.errstate(invalid="ignore"):  # nobody may have written there
            return decode(window, dtype).astype(np.float64)

    def known(self, dtype: ty.DType, address: int, window: np.ndarray) -> np.ndarray:
        """The twin of a run of memory."""
        out = self.begun(dtype, address, window)
        size, end = dtype.itemsize, address + window.nbytes
        for old in self.kept:
            low, high = max(address, old.address), min(end, old.end)
            if old.dtype != dtype or low >= high or (address - old.address) % size:
                continue
            here = slice((low - address) // size, (high - address) // size)
            there = slice((low - old.address) // size, (high - old.address) // size)
            if np.array_equal(bits(window[here]), old.left[there]):
                out[here] = old.exact[there]
        return out

    def keep(self, made: Iterable[MemoryLeft]) -> None:
        """Remember what a launch left."""
        for new in made:
            self.kept = [o for o in self.kept if o.end <= new.address or o.address >= new.end]
            self.kept.append(new)
        while sum(o.left.nbytes + o.exact.nbytes for o in self.kept) > MOST_BYTES:
            del self.kept[0]


class Twins:
    """Of the tensors of one launch. Tensors that share memory share a twin."""

    def __init__(self, memory: Float64Memory, tensors: Iterable[Tensor]) -> None:
        self.memory = memory
        self.inherits = False  # whether some held an error at the start
        self.runs: list[tuple[MemoryLeft, Tensor]] = []
        given = {id(t.whole): t.whole for t in tensors if t.window is not None and t.elements}
        followed = (t for t in given.values() if memory.follows(t.dtype))
        for group in _together(followed):
            self._add(group)

    def _add(self, group: list[Tensor]) -> None:
        first = group[0]
        end = max(t.address + t.elements * t.dtype.itemsize for t in group)
        window = np.empty((end - first.address) // first.dtype.itemsize, first.window.dtype)  # type: ignore[union-attr]
        for t in group:
            at = (t.address - first.address) // t.dtype.itemsize
            window[at : at + t.elements] = t.window
        exact = self.memory.known(first.dtype, first.address, window)
        plain = self.memory.begun(first.dtype, first.address, window)
        self.inherits |= not np.array_equal(exact, plain, equal_nan=True)
        self.runs += [(MemoryLeft(first.dtype, first.address, window, exact), t) for t in group]

    def of(self, tensor: Tensor) -> Tensor | None:
        """The twin of a tensor; None of one that is read as another type than it has."""
        if tensor.window is None or not self.memory.follows(tensor.dtype) or not tensor.elements:
            return None
        found = self._find(tensor)
        if found is None:
            if self._touches(tensor):
                return None
            self._add([tensor.whole])
            found = self._find(tensor)
        return found

    def _find(self, tensor: Tensor) -> Tensor | None:
        size = tensor.dtype.itemsize
        end = tensor.address + tensor.elements * size
        for run, _ in self.runs:
            inside = run.address <= tensor.address and end <= run.end
            if inside and run.dtype == tensor.dtype and (tensor.address - run.address) % size == 0:
                at = (tensor.address - run.address) // size
                window = run.exact[at : at + tensor.elements]
                dtype = self.memory.dtype
                return Tensor(
                    tensor.name, dtype, tensor.shape, window, tensor.origin, tensor.elements, True, 0
                )
        return None

    def _touches(self, tensor: Tensor) -> bool:
        end = tensor.address + tensor.elements * tensor.dtype.itemsize
        return any(r.address < end and tensor.address < r.end for r, _ in self.runs)

    def written_as(self, tensor: Tensor, at: np.ndarray) -> None:
        """Elements of another type were written over memory: its twin is what it holds now. at: indices in the window."""
        size = tensor.dtype.itemsize
        for run, t in self.runs:
            own = run.dtype.itemsize
            low = (tensor.address + at * size - t.address) // own
            high = (tensor.address + at * size + size - 1 - t.address) // own
            hit = np.unique(np.concatenate([low, high]))
            hit = hit[(hit >= 0) & (hit < t.elements)]
            if len(hit):
                assert t.window is not None
                run.exact[hit + (t.address - run.address) // own] = decode(t.window[hit], run.dtype)

    def leave(self) -> None:
        """The launch is over: keep what it left for the next one."""
        made: dict[int, MemoryLeft] = {}
        for run, t in self.runs:
            at = (t.address - run.address) // run.dtype.itemsize
            run.left[at : at + t.elements] = t.window
            made[id(run)] = run
        self.memory.keep(r._replace(left=bits(r.left)) for r in made.values())


def bits(window: np.ndarray) -> np.ndarray:
    """Elements as unsigned numbers, so that NaN equals itself."""
    return window.view(f"u{window.itemsize}")


def _together(tensors: Iterable[Tensor]) -> list[list[Tensor]]:
    """Tensors of one type whose memory overlaps, as groups; each by address."""
    groups: list[list[Tensor]] = []
    for t in sorted(tensors, key=lambda t: (t.dtype.name, t.address)):
        last = groups[-1] if groups else []
        end = max((x.address + x.elements * x.dtype.itemsize for x in last), default=0)
        aligned = last and (t.address - last[0].address) % t.dtype.itemsize == 0
        if last and last[0].dtype == t.dtype and t.address < end and aligned:
            last.append(t)
        else:
            groups.append([t])
    return groups
