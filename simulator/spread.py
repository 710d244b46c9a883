"""What the undefined order of atomics is worth: the same computation with the programs in several orders.

    spread = atomic_spread(lambda: rms_norm_grad(dy, x, rstd, gamma, time=False).outputs, seeds=16)
    spread["dgamma"].std_ulp

The device adds each element of a transfer once and rounds it in the type of the tensor; the order between cores is not
defined (Ascend C, SetAtomicAdd). The model permutes the programs: transfers of one program stay together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .device import device
from .errors import UsageError
from .interpreter.tensors import as_array
from .precision.formats import get_format

MAX_SEEDS = 10_000


@dataclass(frozen=True)
class Spread:
    """Deviations of one tensor from its value in ascending order, over all elements and seeds, in ulp of that value.

    min_ulp, max_ulp: signed extremes. std_ulp: root of the mean square. differing: elements that are not the same bits in
    every order. worst_index: where the deviation is largest; None if there is none.
    """

    seeds: int
    elements: int
    differing: int
    min_ulp: float
    max_ulp: float
    std_ulp: float
    worst_index: tuple[int, ...] | None


def atomic_spread(compute: Callable[[], Mapping[str, Any]], seeds: int = 16) -> dict[str, Spread]:
    """Run `compute` in ascending order and in `seeds` drawn orders; how far each tensor that it gives moves.

    compute: launches kernels on fresh tensors and gives the results by name (floating numpy arrays or torch CPU tensors).
    seeds: 1 to 10 000. Raises `UsageError`.
    """
    if isinstance(seeds, bool) or not isinstance(seeds, int) or not 1 <= seeds <= MAX_SEEDS:
        raise UsageError(f"atomic_spread: seeds must be a number from 1 to {MAX_SEEDS}, got {seeds!r}")
    base = {n: _Deviation(n, x) for n, x in _arrays(compute, None).items()}
    for seed in range(seeds):
        for n, x in _arrays(compute, seed).items():
            base[n].add(x)
    return {n: d.spread(seeds) for n, d in base.items()}


def _arrays(compute: Callable[[], Mapping[str, Any]], seed: int | None) -> dict[str, np.ndarray]:
    with device(atomic_seed=seed):
        found = compute()
    if not isinstance(found, Mapping):
        raise UsageError(
            f"atomic_spread: the computation must give tensors by name, got {type(found).__name__}"
        )
    arrays = {n: as_array(n, x) for n, x in found.items()}
    wrong = [n for n, x in arrays.items() if x is None]
    if wrong:
        raise UsageError(f"atomic_spread: {wrong[0]!r} is a {type(found[wrong[0]]).__name__}, not a tensor")
    return {n: np.array(x) for n, x in arrays.items()}


class _Deviation:
    """Running extremes of one tensor. Elements that are NaN or infinite in any order count as differing only."""

    def __init__(self, name: str, base: np.ndarray) -> None:
        self.base = base.astype(np.float64)
        self.ulp = get_format(base.dtype).ulp(self.base)
        self.name = name
        self.differs = np.zeros(base.shape, bool)
        self.squares, self.low, self.high = 0.0, 0.0, 0.0
        self.worst: tuple[int, ...] | None = None

    def add(self, x: np.ndarray) -> None:
        if x.shape != self.base.shape:
            raise UsageError(
                f"atomic_spread: {self.name!r} is {x.shape} now and was {self.base.shape}; the shape must stay the same"
            )
        now = x.astype(np.float64)
        self.differs |= (now != self.base) & ~(np.isnan(now) & np.isnan(self.base))
        with np.errstate(invalid="ignore"):
            moved = (now - self.base) / self.ulp
        moved = np.where(np.isfinite(moved), moved, 0.0)
        self.squares += float(np.sum(moved * moved))
        if moved.size and float(np.abs(moved).max()) > max(-self.low, self.high):
            self.worst = tuple(int(i) for i in np.unravel_index(int(np.abs(moved).argmax()), moved.shape))
        self.low = min(self.low, float(moved.min(initial=0.0)))
        self.high = max(self.high, float(moved.max(initial=0.0)))

    def spread(self, seeds: int) -> Spread:
        deviation = (self.squares / (seeds * max(1, self.base.size))) ** 0.5
        count = int(np.count_nonzero(self.differs))
        return Spread(seeds, self.base.size, count, self.low, self.high, deviation, self.worst)
