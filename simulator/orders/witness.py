"""Inputs for which two configurations give different bits, and simpler ones that still do."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import AscendtileError
from ..precision.dtypes import from_numpy
from ..units.vector import decode, encode
from .launches import values_of
from .variations import Configuration

MOST_SHOWN = 8  # elements of inputs
MOST_RUNS = 150  # of both configurations, to make the inputs simpler
Outputs = Mapping[str, np.ndarray]
Inputs = Mapping[str, np.ndarray]
Element = tuple[str, tuple[int, ...]]  # of an input
Choose = Callable[[tuple[int, int], str, np.ndarray], tuple[int, ...]]


@dataclass(frozen=True)
class Witness:
    """Inputs, two configurations (by place) and an element that differs; values: what the two made of it."""

    inputs: Inputs
    pair: tuple[int, int]
    output: str
    index: tuple[int, ...]
    values: tuple[Any, Any]

    @property
    def shown(self) -> tuple[tuple[str, str], ...]:
        """Value and bits of each configuration."""
        return tuple((f"{_number(x):.9g}", f"0x{_bits(x):0{2 * x.itemsize}x}") for x in self.values)

    def is_kept(self, element: Element) -> bool:
        """Whether an element of an input is not 0; a zero of the other sign is none."""
        x = _number(self.inputs[element[0]][element[1]])
        return bool(x != 0 or np.signbit(x))

    def nonzero(self, elements: Sequence[Element]) -> tuple[dict[str, float], int]:
        """Those of the elements that are not 0, as far as they are shown, and how many more."""
        some = [(n, i) for n, i in elements if self.is_kept((n, i))]
        kept = {f"{n}[{','.join(map(str, i))}]": _number(self.inputs[n][i]) for n, i in some}
        first = dict(list(kept.items())[:MOST_SHOWN])
        return first, len(kept) - len(first)

    def simplest(
        self,
        configurations: Sequence[Configuration],
        elements: Sequence[Element],
        signed_zeros: bool,
        end: float,
    ) -> Witness:
        """With fewer elements that are not 0, and rounder ones. elements: those that make the element that differs; the
        others do not matter. end: when to stop, by the clock of `time.monotonic`.
        """
        found, runs = self, 0
        left = [e for e in elements if _is_float(self.inputs[e[0]])]
        size = len(left)
        while size:
            before = len(left)
            for some in [left[k : k + size] for k in range(0, len(left), size)]:
                if runs == MOST_RUNS or time.monotonic() > end:
                    return found
                again, runs = found.still(_zeroed(found.inputs, some), configurations, signed_zeros), runs + 1
                if again is not None:
                    found = again
                    left = [e for e in left if e not in some]
            again_at_one = size == 1 and len(left) < before  # one may have become free by another
            size = 1 if again_at_one else min(size, len(left)) // 2
        rounder = found.still(_rounder(found.inputs, left), configurations, signed_zeros)
        return found if rounder is None else rounder

    def still(
        self, inputs: Inputs, configurations: Sequence[Configuration], signed_zeros: bool
    ) -> Witness | None:
        """The witness with other inputs, if its element differs for them, too."""
        try:
            a, b = (values_of(configurations[k].launches(inputs))[self.output] for k in self.pair)
        except AscendtileError:
            return None
        if not differ(a, b, signed_zeros)[self.index]:
            return None
        return replace(self, inputs=inputs, values=(a[self.index], b[self.index]))


def search(
    configurations: Sequence[Configuration],
    involved: Sequence[int],
    inputs: Inputs,
    signed_zeros: bool,
    choose: Choose,
) -> Witness | None:
    """The first two configurations that differ for these inputs; None also where these inputs cannot be run."""
    try:
        made = {k: values_of(configurations[k].launches(inputs)) for k in involved}
    except AscendtileError:
        return None
    for i in involved:
        for j in (k for k in involved if k > i):
            for name in (n for n in made[i] if n in made[j]):
                apart = np.argwhere(differ(made[i][name], made[j][name], signed_zeros))
                if len(apart):
                    index = choose((i, j), name, apart)
                    return Witness(inputs, (i, j), name, index, (made[i][name][index], made[j][name][index]))
    return None


def differ(a: np.ndarray, b: np.ndarray, signed_zeros: bool) -> np.ndarray:
    """Which elements that both have differ in their bits; all NaN are equal."""
    region = tuple(slice(0, min(m, n)) for m, n in zip(a.shape, b.shape, strict=True))
    a, b = a[region], b[region]
    apart = _words(a) != _words(b)
    if a.dtype.kind in "iub":
        return np.asarray(apart)
    left, right = (_numbers(x) for x in (a, b))
    apart &= ~(np.isnan(left) & np.isnan(right))
    return np.asarray(apart if signed_zeros else apart & (left != right))


def _zeroed(inputs: Inputs, elements: Sequence[Element]) -> Inputs:
    out = {n: x.copy() for n, x in inputs.items()}
    for name, index in elements:
        out[name][index] = 0
    return out


def _rounder(inputs: Inputs, elements: Sequence[Element]) -> Inputs:
    """The powers of two below."""
    out = {n: x.copy() for n, x in inputs.items()}
    for name, index in elements:
        x = _number(out[name][index])
        if x and np.isfinite(x):
            t = from_numpy(out[name].dtype)
            assert t is not None
            power = np.copysign(np.exp2(np.floor(np.log2(abs(x)))), x)
            out[name][index] = encode(np.array([power], t.host_dtype), t)[0]
    return out


def _is_float(x: np.ndarray) -> bool:
    t = from_numpy(x.dtype)
    return t is not None and t.is_floating()


def _words(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}").reshape(x.shape)


def _bits(x: Any) -> int:
    return int(_words(np.asarray(x).reshape(1))[0])


def _numbers(x: np.ndarray) -> np.ndarray:
    t = from_numpy(x.dtype)
    return np.asarray(x if t is None else decode(x, t), np.float64)


def _number(x: Any) -> float:
    return float(_numbers(np.asarray(x).reshape(1))[0])


__all__ = ["Witness", "differ", "search"]
