"""L2 as a launch finds it: what the words of the user, or the launches before, say of its tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...interpreter.tensors import Tensor
from ...l2.state import COLD, LINE_BYTES, LOOP, WARM, InL2, L2State, ends_of, lines_of, word_of
from .l2_cache import FirstTouch, Run


def l2_of(capacity: int, tensors: Mapping[str, Tensor], directions: Mapping[str, str], l2: Any) -> FirstTouch:
    """capacity: bytes. tensors: of the launch. directions: "in", "out" or "in out" of each. l2: as `Device.l2`."""
    by_word: dict[str, list[Tensor]] = {LOOP: [], COLD: [], WARM: [], "": []}
    for n, x in tensors.items():
        by_word[word_of(l2, n)].append(x)
    if isinstance(l2, L2State):
        held = [x for x in l2.held if not x.name or l2.word(x.name) not in (COLD, WARM)]
        return FirstTouch(capacity, by_word[WARM], l2.changed, _runs(held, tensors))
    lines = sum(lines_of(x) for x in tensors.values())
    if not by_word[COLD] and lines <= capacity // LINE_BYTES:  # a loop finds all that it touches
        return FirstTouch(capacity, tensors.values())
    found = FirstTouch(capacity, by_word[WARM])
    if by_word[LOOP]:
        found.in_loop(by_word[COLD], lambda: _runs(ends_of(tensors, directions, found.room), tensors))
    return found


def _runs(held: Sequence[InL2], tensors: Mapping[str, Tensor]) -> list[Run]:
    return [(tensors.get(x.name), x.first, x.lines, x.changed) for x in held]
