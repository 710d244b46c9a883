"""Iterations that repeat, found while they come: where one is the same code as before, the trace has a loop.

Two sorts: iterations that are walked one by one, whose code is compared with that of the iterations before; and loops whose
iterations are walked many at a time, one stretch of them after the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .rotating import Rotating

PERIOD = 12  # iterations, at most, after which they may repeat
OPEN = -(1 << 62)  # in the code, a loop that may still go on


@dataclass(slots=True)
class _Frame:
    """A loop whose iterations come one by one.

    start: of the iteration, in the code. done: the last iterations, as far as the code has them one by one. place: in the
    code, of the loop that iterations have become; -1 for none. unit: iterations that repeat in it.
    """

    start: int
    done: list[tuple[int, ...]] = field(default_factory=list)
    place: int = -1
    unit: list[tuple[int, ...]] = field(default_factory=list)
    trips: int = 0


class Repeats:
    """The code of a trace while it is made, and the loops in it.

    code: numbers of instructions, -1 - k for loop k, and what is put off until its numbers are known. loops: trips, body and
    what an iteration adds to counts. keys: what each instruction is, see `TraceBuilder`.
    """

    def __init__(self, keys: list[tuple[Any, ...]], rotating: Rotating) -> None:
        self.keys, self.rotating = keys, rotating
        self.code: list[Any] = []
        self.loops: list[tuple[int, tuple[int, ...], tuple[tuple[Any, int], ...]]] = []
        self.known_loops: dict[Any, int] = {}
        self.frames: list[_Frame] = []

    def loop(self, trips: int, body: tuple[int, ...], gains: tuple[tuple[Any, int], ...]) -> int:
        """Code of a loop."""
        key = (trips, body, gains)
        k = self.known_loops.setdefault(key, len(self.loops))
        if k == len(self.loops):
            self.loops.append(key)
        return -1 - k

    def begin(self) -> None:
        """A loop is entered whose iterations come one by one."""
        self.frames.append(_Frame(len(self.code)))

    def next(self) -> None:
        """An iteration has ended."""
        frame, code = self.frames[-1], self.code
        mine = tuple(code[frame.start :])
        frame.start = len(code)
        if not all([isinstance(c, int) for c in mine]):
            self._close(frame)
            return
        frame.done.append(mine)
        if frame.place >= 0:
            self._go_on(frame)
        if frame.place < 0:
            self._look_back(frame)

    def end(self) -> None:
        """A loop is left."""
        self._close(self.frames.pop())

    def finish(self) -> None:
        """Nothing that repeats goes on; what comes next is looked at anew."""
        for frame in reversed(self.frames):  # a loop without records goes: what comes after it moves
            self._close(frame)
        for frame in self.frames:
            frame.start = len(self.code)

    def _go_on(self, frame: _Frame) -> None:
        """One more iteration of the unit, or of what comes after the loop."""
        count = len(frame.done)
        if frame.done[-1] != frame.unit[count - 1]:
            done = frame.done
            self._close(frame)
            frame.done = done
        elif count == len(frame.unit):
            frame.trips += 1
            self._drop(frame, count)

    def _look_back(self, frame: _Frame) -> None:
        """Whether the last iterations are as those before them."""
        done = frame.done
        for period in range(1, min(PERIOD, len(done) // 2) + 1):
            if done[-1] == done[-1 - period] and done[-period:] == done[-2 * period : -period]:
                frame.unit, frame.trips = done[-period:], 2
                self._drop(frame, 2 * period)
                frame.place = len(self.code)
                self.code.append(OPEN)
                frame.start = len(self.code)
                frame.done = []
                return
        del done[: -2 * PERIOD]

    def _drop(self, frame: _Frame, count: int) -> None:
        """Take the last iterations out of the code."""
        size = sum(len(x) for x in frame.done[len(frame.done) - count :])
        if size:
            del self.code[-size:]
        del frame.done[len(frame.done) - count :]
        frame.start = len(self.code)

    def _close(self, frame: _Frame) -> None:
        """The loop that iterations have become ends."""
        if frame.place >= 0:
            body = tuple(c for x in frame.unit for c in x)
            code = self.code
            if body:
                code[frame.place] = self.loop(frame.trips, body, ())
            else:
                del code[frame.place]
                frame.start -= 1
        frame.place, frame.unit, frame.trips, frame.done = -1, [], 0, []

    # -- stretches of iterations ---------------------------------------------------------------------------------------

    def append(self, code: int) -> None:
        """Put code behind the rest; a loop that goes on where the one before it has ended becomes one with it."""
        before = self.code
        last = before[-1] if before else 0
        inside = not self.frames or len(before) > self.frames[-1].start
        if code < 0 and inside and isinstance(last, int) and OPEN < last < 0 and self._follows(last, code):
            trips, body, gains = self.loops[-1 - last]
            before[-1] = self.loop(trips + self.loops[-1 - code][0], body, gains)
        else:
            before.append(code)

    def _follows(self, a: int, b: int) -> bool:
        """Whether the iterations of loop b are those that come after loop a."""
        trips, body, gains = self.loops[-1 - a]
        _, other, same = self.loops[-1 - b]
        return gains == same and self._is_later(body, other, dict(gains), trips)

    def _is_later(
        self, body: tuple[int, ...], other: tuple[int, ...], gains: dict[Any, int], trips: int
    ) -> bool:
        if len(body) != len(other):
            return False
        for x, y in zip(body, other, strict=True):
            if (x < 0) != (y < 0):
                return False
            if x < 0:
                (n, inner, one), (m, later, two) = self.loops[-1 - x], self.loops[-1 - y]
                if n != m or one != two or not self._is_later(inner, later, gains, trips):
                    return False
            elif not self._same_later(x, y, gains, trips):
                return False
        return True

    def _same_later(self, x: int, y: int, gains: dict[Any, int], trips: int) -> bool:
        one, two = self.keys[x], self.keys[y]
        if one[:7] != two[:7] or one[8:-1] != two[8:-1] or one[8]:  # rows of numbers do not repeat
            return False
        if min(one[-1], two[-1]) < 0 and one[-1] != two[-1]:
            return False
        if one[-1] >= 0 and not self._same_later(one[-1], two[-1], gains, trips):
            return False
        after = self.rotating.after
        moved = tuple(tuple([after(s, gains, trips) for s in slots]) for slots in one[7])
        return bool(moved == two[7])
