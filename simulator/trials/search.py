"""The values of one knob that are tried: twice and half as much, and on in that direction while it gets faster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import AscendtileError, BufferOverflowError, NeedsDataError

if TYPE_CHECKING:
    from ..call import Call

VALUES = "values"  # of a change that is recommended, as what was not tried
MOST_LETTERS = 100  # of a reason
MOST_STEPS = 6  # in one direction
QUARTERS = (7, 6, 5)  # of the last value that has room, where twice as much has none


@dataclass
class Trials:
    """changes: "multibuffer 1 -> 2" -> time in us with it. untried: knob, or knob with a value ("ROWS=64"), -> why not.

    known: knobs with the kinds of errors by which values of them were refused. remade: change of a size or the grid ->
    knob, value and the changed launch, of which the values may differ. loaded: tensor -> bytes that the launch loads of it,
    each time, and bytes from the first to the last of them; empty where no size was tried.
    """

    changes: dict[str, float] = field(default_factory=dict)
    untried: dict[str, str] = field(default_factory=dict)
    known: set[tuple[str, type]] = field(default_factory=set)
    remade: dict[str, tuple[str, str, Call]] = field(default_factory=dict)
    loaded: dict[str, tuple[int, int]] = field(default_factory=dict)

    def sorted_changes(self, now_us: float) -> dict[str, float]:
        """Best first, of equal ones that with fewer copies of buffers; what changes nothing is left out."""
        kept = [(n, us) for n, us in self.changes.items() if us != now_us]
        return dict(sorted(kept, key=lambda item: (item[1], _copies(item[0]))))

    def refuse(self, knob: str, value: object, error: AscendtileError) -> None:
        """Keep why a value could not be timed: of a knob the first value for each kind of reason."""
        if (knob, type(error)) not in self.known:
            self.known.add((knob, type(error)))
            self.untried[f"{knob}={value}"] = _reason(error)


def _copies(change: str) -> int:
    """ "multibuffer 2 -> 4": 4; 0 of other knobs, where no value is simpler than another."""
    knob, _, value = change.partition(" -> ")
    return int(value) if "multibuffer" in knob else 0


def _reason(e: AscendtileError) -> str:
    if isinstance(e, BufferOverflowError):
        return f"does not fit in {e.space}"
    if isinstance(e, NeedsDataError):
        return "its time depends on data"
    return f"refused: {str(e).strip().splitlines()[0][:MOST_LETTERS]}"


def neighbours(
    now: int,
    now_us: float,
    time: Callable[[int], float | None],
    allowed: Callable[[int], bool] = lambda n: n >= 1,
) -> Iterator[tuple[int, float]]:
    """Values near `now` with their times in us.

    time: of a value, None where it cannot be timed, as it has no room. allowed: whether the knob takes a value at all.
    """
    yield from _larger(now, now_us, time, allowed)
    yield from _while_faster(now, now_us, lambda n: n // 2, time, allowed)


def _larger(
    now: int, now_us: float, time: Callable[[int], float | None], allowed: Callable[[int], bool]
) -> Iterator[tuple[int, float]]:
    """Where twice as much has no room, the most of what lies between and has."""
    found = list(_while_faster(now, now_us, lambda n: 2 * n or 2, time, allowed))
    yield from found
    last, last_us = found[-1] if found else (now, now_us)
    before_us = found[-2][1] if len(found) > 1 else now_us
    if len(found) == MOST_STEPS or (found and last_us >= before_us):
        return  # it was slower there, not without room
    for n in (last * q // 4 for q in QUARTERS):
        if last < n < 2 * last and allowed(n) and (us := time(n)) is not None:
            yield n, us
            return


def _while_faster(
    now: int,
    now_us: float,
    step: Callable[[int], int],
    time: Callable[[int], float | None],
    allowed: Callable[[int], bool],
) -> Iterator[tuple[int, float]]:
    value, best = now, now_us
    for _ in range(MOST_STEPS):
        value = step(value)
        us = time(value) if allowed(value) else None
        if us is None:
            return
        yield value, us
        if us >= best:
            return
        best = us
