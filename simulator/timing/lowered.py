"""Launches that were lowered last: where only figures differ that the engine reads, the records are the same.

A fit of figures to times asks for the same launch with one figure changed, and lowering is nearly all of its cost.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import NamedTuple

from ..call import Call
from ..launch_cache import MOST, key_of
from ..messages import Message
from ..products import Product
from ..record.recent import Recent
from .costs.l2_cache import FirstTouch
from .costs.provenance import channel_grades
from .engine.engine import ProgramGroup
from .lowering.context import LoweringPlan

# Of which figures no record knows: beginnings of their keys.
ENGINE = (
    "launch.",
    "clock.",
    "memory.bandwidth",
    "memory.read_efficiency",
    "memory.write_efficiency",
    "memory.mixed_efficiency",
    "l2.bandwidth",
    "l2.mixed_bandwidth",
)


class LoweredLaunch(NamedTuple):
    """What the engine is given, what L2 has counted, and what there is to tell."""

    plan: LoweringPlan
    groups: list[ProgramGroup]
    touch: FirstTouch
    found: tuple[Message, ...]


recent: Recent[LoweredLaunch] = Recent(MOST)


def key_without_engine(call: Call, all_at_once: bool) -> Hashable:
    """What the records of a launch depend on; None as in `key_of`, and where tensors have data, which would be kept."""
    if any(x.window is not None for x in call.tensors.values()):
        return None
    return key_of(call, all_at_once, _of_records(call.device.product))


@lru_cache(maxsize=64)
def _of_records(product: Product) -> str:
    """Records have grades, too; those of transfers come from figures of the engine as well."""
    figures = [f for f in product.figures() if not f.key.startswith(ENGINE)]
    return repr((product.name, figures, channel_grades(product)))
