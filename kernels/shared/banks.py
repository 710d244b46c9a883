"""The knob `banks`: how tiles are placed in UB."""

from __future__ import annotations

from ..operator.parameter import choice
from ..operator.tensors import Knobs

BANKS = choice(
    "banks", "apart", ("apart", "packed"), "tiles in UB: clear of each other's banks, or close together"
)


def placement(tiling: Knobs) -> dict[str, bool]:
    """The switches of a launch for that knob."""
    return {"banks_apart": tiling["banks"] == "apart"}
