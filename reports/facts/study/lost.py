"""Elements that are not simply rounded: of each operand as it is multiplied, and of each output, as shares."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ....kernels.study.losses import OperandLosses
from ....kernels.study.results import EXACT, ModeRow
from ....simulator.precision.metrics import ErrorReport
from .points import short_label
from .rows import labelled

# Kind -> how it is said, number of its colour.
KINDS = {
    "overflow": ("too large", 3),
    "underflow": ("became zero", 0),
    "subnormal": ("subnormal", 5),
    "nan": ("NaN", 4),
}
WORDS = (
    "too large: became infinite, NaN or the largest value of the format; became zero: and was not; subnormal: below its "
    "smallest normal number, with fewer bits."
)


@dataclass(frozen=True)
class LostShares:
    """Of one tensor of one computation: shares of its elements by kind, from 0 to 1. bits: of what is left of it."""

    label: str
    tensor: str
    fmt: str
    bits: float
    shares: dict[str, float]

    @property
    def lost(self) -> float:
        """The largest of the shares: an element may be of two kinds."""
        return max(self.shares.values())


def lost_shares(rows: Iterable[ModeRow], name: str) -> list[LostShares]:
    """Of each computation of an output: its operands and the output, those of which anything is lost."""
    out = []
    for label, row in labelled(rows, name).items():
        tensors = [_operand(short_label(label), n, x) for n, x in row.operands.items()]
        if EXACT in row.errors[name]:
            fmt = row.output_dtypes.get(name, "-")
            tensors.append(_output(short_label(label), name, fmt, row.errors[name][EXACT]))
        out += [x for x in tensors if x.lost > 0]
    return out


def _operand(label: str, tensor: str, x: OperandLosses) -> LostShares:
    counts = {kind: getattr(x, kind) for kind in KINDS}
    return LostShares(label, tensor, x.fmt, x.bits, {n: _share(c, x.elements) for n, c in counts.items()})


def _output(label: str, tensor: str, fmt: str, e: ErrorReport) -> LostShares:
    counts = {
        "overflow": e.overflow,
        "underflow": e.underflow,
        "subnormal": e.subnormal,
        "nan": e.nan_mismatch,
    }
    shares = {n: _share(c, math.prod(e.shape)) for n, c in counts.items()}
    return LostShares(label, tensor, fmt, e.effective_bits, shares)


def _share(count: int, elements: int) -> float:
    return max(0.0, min(1.0, count / elements)) if elements > 0 else 0.0
