"""What is in L2 when a launch starts: the words of a user, and what launches that follow each other leave behind.

loop   as if the same had been launched again and again: what the launch before left, its changed lines included
cold   nothing is there, and nothing has to be written back
warm   the arguments are there as far as they fit, and memory has the same
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError

LINE_BYTES = 128  # MSO counts reads of L2 in requests of 128 bytes: that much comes from memory at least
LOOP, COLD, WARM = "loop", "cold", "warm"
WORDS = (LOOP, COLD, WARM)
AS_LEFT = "(as launches before left it)"  # ends the word of a launch in a chain
RULE = "loop, cold or warm, or these by tensor argument such as {'x': 'warm'}"
REPLACED = {  # options of earlier releases -> what to give now
    "warm_l2": "l2='warm', or by tensor argument l2={'x': 'warm'}; without, l2 is 'loop'",
    "changed_l2": "l2='loop' (the usual one), which has to write what the launch before left",
}


@dataclass(frozen=True)
class InL2:
    """Lines of 128 bytes that are in L2.

    name: the tensor argument that they belong to, "" for memory that the launch does not reach. first, lines: which, from
    the beginning of that tensor. changed: the last so many of them have to go to memory.
    """

    name: str
    first: int
    lines: int
    changed: int = 0


@dataclass(frozen=True)
class L2State:
    """L2 as launches before left it. held: what was touched last comes last.

    changed: part of L2, 0 to 1, that is full of what other kernels wrote, evenly over all ages. words: as a user gives
    `l2`, for tensors that are not as they were left; None for none.
    """

    held: tuple[InL2, ...] = ()
    changed: float = 0.0
    words: Any = None

    def word(self, name: str) -> str:
        """How a tensor argument is found, if the user says so; else empty."""
        return word_of(self.words, name) if self.words else ""


def word_of(l2: Any, name: str) -> str:
    """What `l2` says of a tensor argument. Names of pointers may be given without their `_ptr`; "*" is every other one."""
    if isinstance(l2, L2State):
        return l2.word(name)
    if isinstance(l2, str):
        return l2
    plain = name.removesuffix("_ptr")
    names = (name, plain, f"{plain}_ptr", "*")
    return next((l2[n] for n in names if n in l2), LOOP)


def told(l2: Any) -> str:
    """As a record has it, and as the command line takes it: "loop", "x=warm,y=cold"."""
    if isinstance(l2, L2State):
        return f"{told(l2.words or LOOP)} {AS_LEFT}"
    return l2 if isinstance(l2, str) else ",".join(f"{n}={w}" for n, w in l2.items()) or LOOP


def is_l2(x: Any) -> bool:
    """Whether it may be given as `l2`."""
    if isinstance(x, Mapping):
        return all(isinstance(n, str) and w in WORDS for n, w in x.items())
    return isinstance(x, L2State) or (isinstance(x, str) and x in WORDS)


def lines_of(tensor: Any) -> int:
    """Lines of L2 that a `Tensor` takes at most."""
    whole = tensor.whole
    return int(whole.elements * whole.dtype.itemsize // LINE_BYTES + 1)


def ends_of(tensors: Mapping[str, Any], directions: Mapping[str, str], room: int) -> tuple[InL2, ...]:
    """What a launch leaves in L2 of its tensors, by their sizes alone, as if it went through all of them side by side.

    The end of each is left; all of those that are smaller than an even share of `room` lines. directions: "in", "out" or
    "in out"; what it writes is changed.
    """
    sizes = {n: lines_of(x) for n, x in tensors.items()}
    level, rest = room, sorted(sizes.values())
    for k, lines in enumerate(rest):
        level = (room - sum(rest[:k])) // (len(rest) - k)
        if level < lines:
            break
        level = lines
    parts = ((n, lines, min(lines, level), "out" in directions.get(n, "")) for n, lines in sizes.items())
    return tuple(InL2(n, lines - part, part, part * written) for n, lines, part, written in parts if part)


def check_names(l2: Any, names: Iterable[str], what: str) -> None:
    """Raise `UsageError` for a tensor that `l2` names and `what` does not have."""
    known = {n.removesuffix("_ptr") for n in names}
    for name in unknown(l2, known):
        raise UsageError(f"l2: {what} has no tensor argument {name!r}; it has {', '.join(sorted(known))}")


def unknown(l2: Any, names: Iterable[str]) -> list[str]:
    """Tensors that `l2` names and that are not among these."""
    known = {n.removesuffix("_ptr") for n in names}
    asked = l2 if isinstance(l2, Mapping) else ()
    return [n for n in asked if n != "*" and n.removesuffix("_ptr") not in known]
