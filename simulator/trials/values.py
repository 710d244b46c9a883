"""Whether a launch with another tile or grid computes the same values: of changes that would be recommended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..call import Call
from ..errors import AscendtileError
from ..execution.float64.launching import outputs_of
from ..interpreter.program_order.order import reaches_anything
from ..interpreter.tensors import Tensor, memory_kept
from ..units.vector import decode
from .search import VALUES, Trials

WORTH = 0.99  # of the time: what saves less is not recommended
MOST_COMPARED = 3  # values of one knob
DIFFERENT = "with it {} gets other values"
ONCE_ONLY = "the kernel writes through addresses that are no arguments, so that values cannot be compared"
NO_MORE = "not compared: others of this knob get other values"
NO_DATA = "not compared, as the launch has no data"
ANOTHER_ORDER = 2 / 3  # power of the rounding step of a type: sums in another order differ by some steps


@dataclass
class Before:
    """What the tensors of a launch held before it. compute: the values of a launch, in place."""

    call: Call
    compute: Callable[[Call], object]
    held: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.held = {n: _window(t).copy() for n, t in self._tensors().items()}

    def _tensors(self) -> dict[str, Tensor]:
        return {n: t for n, t in self.call.tensors.items() if t.window is not None and t.writable}

    def different(self, changed: Call) -> str:
        """Why a changed launch is not to be recommended; empty where it writes what the launch has written by now."""
        if reaches_anything(changed.program):
            return ONCE_ONLY
        tensors, outputs = self._tensors(), outputs_of(self.call)
        right = {n: _window(t).copy() for n, t in outputs.items()}
        with memory_kept(tensors):
            for name, t in tensors.items():
                _window(t)[...] = self.held[name]
            try:
                self.compute(changed)
            except AscendtileError:
                return DIFFERENT.format(", ".join(outputs))
            wrong = [n for n, t in outputs.items() if not _alike(t, right[n], _window(t))]
        return DIFFERENT.format(", ".join(wrong)) if wrong else ""


def compare(trials: Trials, now_us: float, before: Before) -> None:
    """Drop what would be recommended and computes something else. Once the values of the launch are there."""
    settled: set[str] = set()
    different: dict[str, int] = {}
    for text, us in sorted(trials.changes.items(), key=lambda item: item[1]):
        if text not in trials.remade or us > WORTH * now_us:
            continue
        knob, value, changed = trials.remade[text]
        if knob in settled:
            continue
        many = different.get(knob, 0)
        reason = before.different(changed) if many < MOST_COMPARED else NO_MORE
        if not reason:
            settled.add(knob)
            continue
        different[knob] = many + 1
        del trials.changes[text]
        trials.untried[f"{knob}={value}"] = reason


def tell_uncompared(trials: Trials, now_us: float) -> None:
    """Say that a launch without data leaves open whether a recommended change computes the same."""
    if any(us <= WORTH * now_us for text, us in trials.changes.items() if text in trials.remade):
        trials.untried[VALUES] = NO_DATA


def _window(t: Tensor) -> np.ndarray:
    assert t.window is not None
    return t.window


def _alike(t: Tensor, right: np.ndarray, now: np.ndarray) -> bool:
    """Equal; of floating-point numbers up to rounding, by the largest finite one."""
    if np.array_equal(right, now):
        return True
    if not t.dtype.is_floating():
        return False
    a, b = (np.asarray(decode(x, t.dtype), np.float64) for x in (right, now))
    largest = np.abs(a[np.isfinite(a)]).max(initial=0.0)
    off = largest * 2.0 ** (-ANOTHER_ORDER * t.dtype.fp_mantissa_width)
    return bool(np.allclose(b, a, rtol=0, atol=off, equal_nan=True))
