"""Finds iterations that repeat: where their code is that of the iterations before, the trace has a loop.

There are two sorts. Iterations that are lowered one by one are compared with those before them. Loops whose iterations are
lowered many at a time, one range after the other, are joined.
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
    code, of the loop that iterations have become; -1 for none. unit: iterations that repeat in it. past: what `done` was before
    that loop. An entry of them is an iteration, or a loop of some.
    """

    start: int
    done: list[tuple[int, ...]] = field(default_factory=list)
    place: int = -1
    unit: list[tuple[int, ...]] = field(default_factory=list)
    past: list[tuple[int, ...]] = field(default_factory=list)
    trip_count: int = 0


class Repeats:
    """The code of a trace while it is made, and the loops in it.

    code: numbers of instructions, -1 - k for loop k, and what waits until its numbers are known. loops: trip count, body
    and what an iteration adds to counts. keys: what each instruction is, see `TraceBuilder`.
    """

    def __init__(self, keys: list[tuple[Any, ...]], rotating: Rotating) -> None:
        self.keys, self.rotating = keys, rotating
        self.code: list[Any] = []
        self.loops: list[tuple[int, tuple[int, ...], tuple[tuple[Any, int], ...]]] = []
        self.known_loops: dict[Any, int] = {}
        self.frames: list[_Frame] = []

    def loop(self, trip_count: int, body: tuple[int, ...], gains: tuple[tuple[Any, int], ...]) -> int:
        """Code of a loop."""
        key = (trip_count, body, gains)
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
        self._add(frame, mine)

    def end(self) -> None:
        """A loop is left."""
        self._close(self.frames.pop())

    def finish(self) -> None:
        """Nothing that repeats goes on; what comes next is looked at anew."""
        for frame in reversed(self.frames):  # a loop without records goes: what comes after it moves
            self._close(frame)
        for frame in self.frames:
            frame.start = len(self.code)

    def _add(self, frame: _Frame, iteration: tuple[int, ...]) -> None:
        """One more iteration, which the code has at its end."""
        frame.done.append(iteration)
        if frame.place < 0:
            self._look_back(frame)
            return
        count = len(frame.done)
        if iteration == frame.unit[count - 1]:
            if count == len(frame.unit):
                frame.trip_count += 1
                self._drop(frame, count)
            return
        done, past, place, body = frame.done[:], frame.past, frame.place, any(frame.unit)
        self._drop(frame, count)
        self._close(frame)
        frame.done = [*past, (self.code[place],)] if body else past
        self._look_back(frame)
        for x in done:
            self.code += x
            frame.start = len(self.code)
            self._add(frame, x)

    def _look_back(self, frame: _Frame) -> None:
        """Whether the last iterations are as those before them."""
        done = frame.done
        for period in range(1, min(PERIOD, len(done) - 1) + 1):
            if self._joins(frame, period):
                return
            if done[-1] == done[-1 - period] and done[-period:] == done[-2 * period : -period]:
                frame.unit, frame.trip_count = done[-period:], 2
                self._drop(frame, 2 * period)
                frame.place = len(self.code)
                self.code.append(OPEN)
                frame.start = len(self.code)
                frame.past, frame.done = frame.done, []
                return
        del done[: -2 * PERIOD]

    def _joins(self, frame: _Frame, period: int) -> bool:
        """Whether the last iterations are one more of the loop before them, which then has it."""
        before, done = frame.done[-1 - period], frame.done
        if len(before) != 1 or before[0] >= 0:
            return False
        trip_count, body, gains = self.loops[-1 - before[0]]
        if gains or body != tuple(c for x in done[-period:] for c in x):
            return False
        self._drop(frame, period)
        self.code[-1] = self.loop(trip_count + 1, body, gains)
        done[-1] = (self.code[-1],)
        return True

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
                code[frame.place] = self.loop(frame.trip_count, body, ())
            else:
                del code[frame.place]
                frame.start -= 1
        frame.place, frame.trip_count, frame.done, frame.past = -1, 0, [], []

    # -- ranges of iterations ------------------------------------------------------------------------------------------

    def append(self, code: int) -> None:
        """Put code behind the rest; a loop that goes on where the one before it has ended becomes one with it."""
        before = self.code
        last = before[-1] if before else 0
        inside = not self.frames or len(before) > self.frames[-1].start
        if code < 0 and inside and isinstance(last, int) and OPEN < last < 0 and self._follows(last, code):
            trip_count, body, gains = self.loops[-1 - last]
            before[-1] = self.loop(trip_count + self.loops[-1 - code][0], body, gains)
        else:
            before.append(code)

    def _follows(self, a: int, b: int) -> bool:
        """Whether the iterations of loop b are those that come after loop a."""
        trip_count, body, gains = self.loops[-1 - a]
        _, other, same = self.loops[-1 - b]
        return gains == same and self._is_later(body, other, dict(gains), trip_count)

    def _is_later(
        self, body: tuple[int, ...], other: tuple[int, ...], gains: dict[Any, int], trip_count: int
    ) -> bool:
        if len(body) != len(other):
            return False
        for x, y in zip(body, other, strict=True):
            if (x < 0) != (y < 0):
                return False
            if x < 0:
                (n, inner, one), (m, later, two) = self.loops[-1 - x], self.loops[-1 - y]
                if n != m or one != two or not self._is_later(inner, later, gains, trip_count):
                    return False
            elif not self._same_later(x, y, gains, trip_count):
                return False
        return True

    def _same_later(self, x: int, y: int, gains: dict[Any, int], trip_count: int) -> bool:
        one, two = self.keys[x], self.keys[y]
        if one[:7] != two[:7] or one[8:-1] != two[8:-1] or one[8]:  # rows of numbers do not repeat
            return False
        if min(one[-1], two[-1]) < 0 and one[-1] != two[-1]:
            return False
        if one[-1] >= 0 and not self._same_later(one[-1], two[-1], gains, trip_count):
            return False
        after = self.rotating.after
        moved = tuple(tuple([after(s, gains, trip_count) for s in slots]) for slots in one[7])
        return bool(moved == two[7])
