"""Launches that follow each other: each finds in L2 what those before it left.

    with sim.chain():
        first[grid](x, y)
        second[grid](y, z)  # finds y in L2, as far as it fits, and has to write what of it memory has not

Tensors are known by the object that owns their memory (the array, the storage of a torch tensor, the `sim.shape`), never by
an address, which another tensor may get later: the same script takes the same cycles on every machine.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..interpreter.tensors import Shape, Tensor
from ..observers import is_quiet
from .state import COLD, LINE_BYTES, LOOP, InL2, L2State, ends_of, lines_of

if TYPE_CHECKING:
    from ..call import Call


GONE = 0  # number of owners that are not known any more
MANY = 1000  # parts of L2 that are told apart


class Lines(NamedTuple):
    """Lines of an owner's memory, by its number. changed: the last so many of them have to go to memory."""

    owner: int
    first: int
    end: int
    changed: int = 0


class L2Chain:
    """What launches left in L2, oldest first. cold: whether nothing is there before the first; else it is in a loop.

    together: launches of one operator, so that a device's "cold" is what the first of them finds, and not each.
    """

    def __init__(self, cold: bool = False, together: bool = False) -> None:
        self.together = together
        self.left: list[Lines] = []
        self.owners: dict[int, tuple[weakref.ref[Any], int]] = {}
        self.numbers = GONE
        self.product = ""
        self.empty = not cold

    def entered(self, call: Call) -> Call:
        """The launch as it finds L2; as it is where nothing was launched before it, or the user says how it finds it."""
        words = call.device.l2
        follows = words == LOOP or not isinstance(words, str) or (self.together and words == COLD)
        if not follows or self._other(call):
            return call
        state = L2State(
            tuple(_joined(self.left, self._spans(call))), words=words if isinstance(words, Mapping) else None
        )
        out = replace(call, device=replace(call.device, l2=state))
        vars(out).update({n: x for n, x in vars(call).items() if n == "program"})
        return out

    def leaves(self, call: Call, held: Sequence[InL2]) -> None:
        """A launch is over, and has left so much of its tensors; what there is no room for goes."""
        if self._other(call):
            self.left, self.product = [], call.device.product.name
        self.empty = False
        spans = self._spans(call)
        for span in spans.values():
            self._take_out(span)
        for x in held:
            owner, first, _, _ = spans[x.name]
            new = Lines(owner, first + x.first, first + x.first + x.lines, x.changed)
            self._take_out(new)
            self.left.append(new)
        self._cut(call.device.product.integer("l2.size") // LINE_BYTES)
        if len(self.left) > MANY:
            self._forget()

    def _take_out(self, other: Lines) -> None:
        """What is there of the same lines has been touched again."""
        if any([x.owner == other.owner for x in self.left]):
            self.left = [x for lines in self.left for x in _without(lines, other)]

    def _forget(self) -> None:
        """The older half becomes memory that no launch reaches: a script may make any number of small tensors."""
        old, self.left = self.left[: MANY // 2], self.left[MANY // 2 :]
        lines, changed = sum(x.end - x.first for x in old), sum(x.changed for x in old)
        self.left.insert(0, Lines(GONE, 0, lines, changed))

    def _other(self, call: Call) -> bool:
        """Whether nothing is known of what was before."""
        return self.empty or self.product not in ("", call.device.product.name)

    def _cut(self, room: int) -> None:
        for k in range(len(self.left) - 1, -1, -1):
            owner, first, end, changed = self.left[k]
            if end - first > room:
                part = [Lines(owner, end - room, end, min(changed, room))] if room else []
                self.left = [*part, *self.left[k + 1 :]]
                return
            room -= end - first

    def _spans(self, call: Call) -> dict[str, Lines]:
        """Where the tensors of a launch lie."""
        return {n: self._span(x.whole) for n, x in call.tensors.items()}

    def _span(self, x: Tensor) -> Lines:
        owner, at = owner_of(x.source, x.address)
        known = self.owners.get(id(owner))
        if known is None or known[0]() is not owner:
            if len(self.owners) > 2 * MANY:
                self.owners = {key: x for key, x in self.owners.items() if x[0]() is not None}
            self.numbers += 1
            known = self.owners[id(owner)] = weakref.ref(owner), self.numbers
        first = at // LINE_BYTES
        return Lines(known[1], first, first + lines_of(x))


def ends_of_all(call: Call) -> tuple[InL2, ...]:
    """What a launch leaves of its tensors, by their sizes alone."""
    from ..interpreter.program_order.order import directions

    room = call.device.product.integer("l2.size") // LINE_BYTES
    return ends_of(call.tensors, directions(call.program), room)


def owner_of(x: Any, address: int) -> tuple[Any, int]:
    """The object that owns the memory of a tensor, and how many bytes into it the address lies."""
    if isinstance(x, Shape):
        return (x, 0) if x.part_of is None else x.part_of
    while isinstance(x, np.ndarray) and x.base is not None and not isinstance(x.base, memoryview | bytes):
        x = x.base
    if hasattr(x, "untyped_storage"):
        storage = x.untyped_storage()
        return storage, address - storage.data_ptr()
    return x, address - x.ctypes.data if isinstance(x, np.ndarray) else 0


def _as_held(lines: Lines, spans: Mapping[str, Lines]) -> Iterator[InL2]:
    """Lines as the launch knows them; those that it does not reach have no name."""
    rest = lines.end - lines.first
    for name, span in spans.items():
        first, end = max(lines.first, span.first), min(lines.end, span.end)
        if span.owner == lines.owner and first < end:
            changed = max(0, min(end, lines.end) - max(first, lines.end - lines.changed))
            yield InL2(name, first - span.first, end - first, changed)
            rest -= end - first
    if rest > 0:
        yield InL2("", 0, rest, min(rest, lines.changed) if rest == lines.end - lines.first else 0)


def _joined(left: Sequence[Lines], spans: Mapping[str, Lines]) -> Iterator[InL2]:
    """Lines as a launch knows them; neighbours that it does not reach are one."""
    reached = {span.owner for span in spans.values()}
    lines = changed = 0
    for x in left:
        for part in _as_held(x, spans) if x.owner in reached else (InL2("", 0, x.end - x.first, x.changed),):
            if not part.name:
                lines, changed = lines + part.lines, changed + part.changed
                continue
            if lines:
                yield InL2("", 0, lines, changed)
            lines = changed = 0
            yield part
    if lines:
        yield InL2("", 0, lines, changed)


def _without(lines: Lines, other: Lines) -> Iterator[Lines]:
    """What is left of lines when others are taken out."""
    if lines.owner != other.owner or other.first >= lines.end or other.end <= lines.first:
        yield lines
        return
    changed_from = lines.end - lines.changed
    for first, end in ((lines.first, other.first), (other.end, lines.end)):
        if first < end:
            yield Lines(lines.owner, first, end, max(0, end - max(first, changed_from)))


_chains: list[L2Chain | None] = []  # of the process: threads of a script launch kernels, too


def current_chain() -> L2Chain | None:
    """The chain in force; None for a launch on its own, and for one that only tries something out."""
    return None if is_quiet() or not _chains else _chains[-1]


@contextmanager
def chain(cold: bool = False) -> Iterator[L2Chain]:
    """Launches inside find in L2 what those before them left. The first one is timed as in a loop of its own.

    cold: the first one finds nothing. With `l2="cold"` or "warm" on the device each launch is as that says.
    """
    with following(L2Chain(cold)) as found:
        yield found


@contextmanager
def following(found: L2Chain) -> Iterator[L2Chain]:
    """Launches inside belong to that chain."""
    _chains.append(found)
    try:
        yield found
    finally:
        _chains.remove(found)


@contextmanager
def again_and_again(calls: Sequence[Call]) -> Iterator[L2Chain | None]:
    """The chain of launches that are made in this order again and again: the first finds what the last one left.

    What that is, is told by their sizes; with `l2="cold"` the first finds nothing. A chain that is in force goes on; a
    launch alone needs none.
    """
    if current_chain() is not None or len(calls) < 2:
        yield current_chain()
        return
    found = L2Chain(cold=calls[0].device.l2 == COLD, together=True)
    for call in calls if found.empty else ():
        found.leaves(call, ends_of_all(call))
    yield found
