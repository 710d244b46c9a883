"""The size and the order of the Cube's steps, read off the pairs of products that `steps_of` asks about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .all_experiments import NARROW
from .cube_experiments import DEPTH, FP32_DIGITS, MOST_STEP
from .experiment import Words

MORE = DEPTH  # stands for every size beyond MOST_STEP


@dataclass(frozen=True)
class Steps:
    """Of one format. size: products of a step, MORE for more than could be told apart; None where no size fits.

    order: None where a step is longer than the question. accumulator: fp32 or fp16. mixed: pairs that fit no size.
    """

    size: int | None
    order: str | None
    accumulator: str = "fp32"
    mixed: int = 0
    bits: int = 0


def names_of(fmt: str) -> tuple[str, ...]:
    """Experiments about the steps of a format."""
    wide = (f"steps_{fmt}_forward", f"steps_{fmt}_backward")
    return (*wide, *(f"{n}_{NARROW}_bits" for n in wide)) if fmt == "fp16" else wide


def read_steps(fmt: str, observed: Mapping[str, Words]) -> Steps:
    """From the words of the experiments of a format; FP16 has those for an accumulator of 11 bits, too."""
    forward, backward, *narrow = (observed[n].view(np.float32) for n in names_of(fmt))
    bits = sum(observed[n].size for n in names_of(fmt)) * 32
    if narrow:
        found = _read(narrow[0], narrow[1], NARROW)
        if found != Steps(MORE, None):  # an accumulator of 24 bits is exact there
            return Steps(found.size, found.order, "fp16", found.mixed, bits)
    found = _read(forward, backward, FP32_DIGITS)
    return Steps(found.size, found.order, "fp32", found.mixed, bits)


def _read(forward: np.ndarray, backward: np.ndarray, digits: int) -> Steps:
    exact = 2.0 ** (digits - 1) + 1
    apart = [x.reshape(-1)[1:] != exact for x in (forward, backward)]  # pair (0, 0) is none
    if not (apart[0].any() or apart[1].any()):
        return Steps(MORE, None)
    way = int(apart[1].sum() > apart[0].sum())
    size, mixed = _size(apart[way])
    mixed += int(apart[1 - way].sum())
    return Steps(None if mixed else size, ("ascending", "descending")[way], mixed=mixed)


def _size(apart: np.ndarray) -> tuple[int, int]:
    """The size that most pairs fit, and how many do not: product q is in a later step from q = size on."""
    sizes = np.arange(1, MOST_STEP + 1)
    wrong = (apart[None, :] != (np.arange(1, MOST_STEP + 1)[None, :] >= sizes[:, None])).sum(1)
    best = int(np.argmin(wrong))
    return int(sizes[best]), int(wrong[best])
