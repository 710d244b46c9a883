"""Views of any strides: channels last, transposed, cut, repeated, backwards; for the tests of copies and of operators."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from hypothesis import strategies as st


@dataclass(frozen=True)
class View:
    """A shape with strides in elements; elements `low` to `high` from the first one are reached."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def low(self) -> int:
        return sum(min(0, (n - 1) * s) for n, s in zip(self.shape, self.strides, strict=True))

    @property
    def high(self) -> int:
        return sum(max(0, (n - 1) * s) for n, s in zip(self.shape, self.strides, strict=True))

    def of(self, buffer: np.ndarray) -> np.ndarray:
        """The view of a flat array of `elements`."""
        strides = [s * buffer.itemsize for s in self.strides]
        return np.lib.stride_tricks.as_strided(buffer[-self.low :], self.shape, strides)

    @property
    def elements(self) -> int:
        return self.high - self.low + 1

    def holding(self, values: np.ndarray) -> np.ndarray:
        """A view of new memory that holds `values` (along axes that repeat, those at index 0)."""
        buffer = np.zeros(self.elements, values.dtype)
        out = self.of(buffer)
        kept = tuple(slice(1) if s == 0 else slice(None) for s in self.strides)
        out[kept] = values[kept]
        return out


@st.composite
def views_of(draw: st.DrawFn, shape: tuple[int, ...], repeated: bool = True) -> View:
    """Strides for a shape: its axes in any order in memory, with steps, gaps and signs; `repeated`: stride 0 as well."""
    order = draw(st.permutations(range(len(shape))))
    strides, width = [0] * len(shape), 1
    for k in reversed(order):
        step = draw(st.sampled_from([1, 1, 1, -1, 2, 3, -2]))
        strides[k] = step * width
        width *= shape[k] * abs(step)
        width += draw(st.sampled_from([0, 0, 0, 1, 5])) if width < 10**6 else 0
    if repeated and draw(st.integers(0, 3)) == 0:
        strides = [0 if draw(st.booleans()) else s for s in strides]
    return View(shape, tuple(strides))


def channels_last(shape: tuple[int, ...]) -> View:
    """(N, C, ...) with the channels innermost in memory."""
    _, c, *space = shape
    strides, width = [], c
    for length in reversed(space):
        strides.insert(0, width)
        width *= length
    return View(shape, (c * prod(space), 1, *strides))


def turned(shape: tuple[int, ...]) -> View:
    """The axes in memory the other way round, as of a.T."""
    strides, width = [], 1
    for length in shape:
        strides.append(width)
        width *= length
    return View(shape, tuple(strides))
