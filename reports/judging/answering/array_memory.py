"""Whose memory is whose in one call, over numpy: by memory that is shared, and by values where arrays were copied."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ....simulator.call import Call
from ..cheats.evidence import ReturnedTensor
from .memory import read_and_written
from .poison import fill_array, unwritten_array
from .tensors import class_name, leaves

SAMPLED = 256


class ArrayMemory:
    """Arrays of numpy; the same as `TorchMemory` is for torch."""

    def __init__(self, values: bool) -> None:
        self.values = values
        self.held: list[np.ndarray] = []
        self.sources: list[np.ndarray] = []  # inputs, what the answer has, and what was made of them
        self.written: list[tuple[np.ndarray, bool]] = []  # and whether inputs were read for it
        self.host_elements = 0
        self.counting = False

    def know(self, tensors: Any) -> None:
        """The answer has these from its beginning."""
        self.held = _arrays(tensors)

    def begin(self, given: Any) -> None:
        """A call begins, with these arrays."""
        self.written, self.host_elements, self.counting = [], 0, True
        self.sources = [*_arrays(given), *self.held]

    def launched(self, call: Call) -> None:
        """A launch is made: what it reads must come from inputs or from launches."""
        read, written = ([t.source for t in side] for side in read_and_written(call))
        known = [*self.sources, *(x for x, _ in self.written)]
        for x in read:
            if not self._is_known(x, known):
                self.host_elements += x.size
        derived = any(self._is_of(x, self.sources) for x in read)
        self.written += [(x, derived) for x in written]
        self.sources += written if derived else []

    def _is_known(self, x: np.ndarray, known: list[np.ndarray]) -> bool:
        """Whether it lies in one of these, holds integers or one number only, or is a copy of one of these."""
        return x.dtype.kind not in "fV" or _is_one_number(x) or self._is_of(x, known)

    def _is_of(self, x: np.ndarray, others: list[np.ndarray]) -> bool:
        return any(np.may_share_memory(x, y) for y in others) or (self.values and _holds_values_of(x, others))

    def returned(self, path: str, array: Any, inputs: dict[str, Any]) -> ReturnedTensor:
        """What there is to say of an array that came back."""
        found = [derived for x, derived in self.written if self._is_of(array, [x])]
        return ReturnedTensor(
            path=path,
            kind=class_name(array),
            elements=array.size,
            plain=type(array) is np.ndarray or isinstance(array, np.generic),
            from_launch=bool(found),
            from_inputs=any(found),
            unwritten=unwritten_array(array) if self.values else 0,
            of_input=next((n for n, x in inputs.items() if np.may_share_memory(x, array)), None),
        )

    @contextmanager
    def watching(self) -> Iterator[None]:
        """A block in which memory that is asked for unfilled holds a pattern."""
        real = {n: getattr(np, n) for n in ("empty", "empty_like")} if self.values else {}
        for n, make in real.items():
            setattr(np, n, _filling(make))
        try:
            yield
        finally:
            for n, make in real.items():
                setattr(np, n, make)


def _filling(make: Any) -> Any:
    def made(*args: Any, **kwargs: Any) -> Any:
        out = make(*args, **kwargs)
        fill_array(out)
        return out

    return made


def _arrays(values: Any) -> list[np.ndarray]:
    return [x for x in leaves(values) if isinstance(x, np.ndarray)]


def _sample(x: np.ndarray) -> np.ndarray:
    flat: np.ndarray = x.reshape(-1)[:: max(1, x.size // SAMPLED)]
    return flat


def _is_one_number(x: np.ndarray) -> bool:
    some = _sample(x)
    return some.size == 0 or bool((some.astype(np.float64) == float(some[0])).all())


def _holds_values_of(x: np.ndarray, others: list[np.ndarray]) -> bool:
    """Whether the values of `x`, a sample of them, all stand in others, as its dtype has them."""
    if _is_one_number(x):
        return False
    with np.errstate(all="ignore"):
        held = [y.astype(x.dtype).astype(np.float64).reshape(-1) for y in others if y.size]
    return bool(held) and bool(np.isin(_sample(x).astype(np.float64), np.concatenate([*held, [0.0]])).all())
