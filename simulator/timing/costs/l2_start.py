"""L2 as a launch finds it: what the words of the user, or the launches before, say of its tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...interpreter.tensors import Tensor
from ...l2_state import COLD, LOOP, WARM, Held, L2State, ends_of, word_of
from .l2_cache import FirstTouch, Run, lines_of


def l2_of(capacity: int, arguments: Mapping[str, Any], directions: Mapping[str, str], l2: Any) -> FirstTouch:
    """capacity: bytes. arguments: of the launch, tensors and others. directions: "in", "out" or "in out" of its tensors.
    l2: as `Device.l2`."""
    tensors = {n: x for n, x in arguments.items() if isinstance(x, Tensor)}
    by_word: dict[str, list[Tensor]] = {LOOP: [], COLD: [], WARM: [], "": []}
    for n, x in tensors.items():
        by_word[word_of(l2, n)].append(x)
    if isinstance(l2, L2State):
        left = [(tensors.get(x.name), x.first, x.lines, x.changed) for x in l2.held]
        return FirstTouch(capacity, by_word[WARM], l2.changed, left)
    found = FirstTouch(capacity, by_word[WARM])
    if by_word[LOOP]:
        found.in_loop(by_word[COLD], lambda: _guess(found.room, tensors, directions))
    return found


def _guess(room: int, tensors: Mapping[str, Tensor], directions: Mapping[str, str]) -> Sequence[Run]:
    return [(tensors[x.name], x.first, x.lines, x.changed) for x in all_ends(room, tensors, directions)]


def all_ends(room: int, tensors: Mapping[str, Tensor], directions: Mapping[str, str]) -> tuple[Held, ...]:
    """What a launch leaves of its tensors, by their sizes alone."""
    return ends_of([(n, lines_of(x), "out" in directions.get(n, "")) for n, x in tensors.items()], room)
