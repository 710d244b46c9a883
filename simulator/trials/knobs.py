"""The knobs of a launch that are tried: copies of buffers, flags of the Cube, sizes of tiles, the number of programs.

A compile-time size is tried where the launch then does the same work (see `work.py`): with the grid that a function
gives, with the grid as it is (where programs go on to the next piece by `tl.num_programs`, or where the size cuts a loop),
or with a fixed grid that has fewer or more programs along one axis. A size of the data is never tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..errors import AscendtileError, NeedsDataError
from ..interpreter.interpreter import DataDependentError
from .reductions import sums_stay
from .search import Trials, neighbours
from .work import Reach, TrialsSpentError, reach

if TYPE_CHECKING:
    from ..call import Call
    from ..device import Device
    from ..record.run import Launch

MOST_COPIES = 16
NO_TILE = "no tile goes by it"
OF_DATA = "a length of {}, so another one is another problem"
OTHER_WORK = "with another one the launch would read or store other elements"
OTHER_SUMS = "a length that is reduced as a whole, so another one is another problem"
OF_WINDOW = (
    "with a larger one the launch loads more, with a smaller one less, so another one is another problem"
)
OF_SIZES = "a function of {}"
SEVERAL_AXES = "it has several axes"
UNKNOWN_WORK = "which work the launch does depends on data"
SPENT = "as many accesses were looked at to find sizes that do the same work as these trials may"
TOO_LONG = "its loops are too long to tell whether another one leaves the work the same"
ANOTHER_GRID = (
    "with this grid another one would leave work undone; a grid that follows it, "
    'grid=lambda meta: (cdiv(n, meta["{}"]),), lets it be tried'
)


class AskedFor(dict[str, Any]):
    """What a grid is a function of, and which of it the grid asks for."""

    def __init__(self, given: dict[str, Any]) -> None:
        super().__init__(given)
        self.names: dict[str, None] = {}

    def __getitem__(self, name: str) -> Any:
        self.names[name] = None
        return super().__getitem__(name)

    def get(self, name: str, other: Any = None) -> Any:
        """As a dict's."""
        try:
            return self[name]
        except KeyError:
            return other


def trials(
    call: Call,
    now_us: float,
    time: Callable[[Call], Launch],
    any_sums: bool = False,
    most_accesses: float = math.inf,
) -> Trials:
    """What was timed with one knob changed, and what could not be. time: of a launch, without its values.

    any_sums: also lengths that are reduced as a whole, where the launch reads and stores the same elements with another one:
    parts of a sum that a loop adds up, as well as sums that are other ones then. For whoever looks at the values again.
    most_accesses: of memory, that are looked at to find which sizes do the same work; what is left then is not tried.
    """
    return _KnobTrials(call, now_us, time, any_sums, most_accesses).found()


def with_size(call: Call, name: str, other: int) -> Call | str:
    """The launch with another compile-time size that does the same work, or why there is none. It can be made again."""

    def untimed(changed: Call) -> Launch:
        raise NotImplementedError

    return _KnobTrials(call, 0.0, untimed)._same_work(name, call.constants[name], other)


@dataclass
class _KnobTrials:
    """Of one launch."""

    call: Call
    now_us: float
    time: Callable[[Call], Launch]
    any_sums: bool = False
    left: float = math.inf  # accesses of memory that may still be looked at
    trials: Trials = field(default_factory=Trials)
    same: Reach | None = None

    def found(self) -> Trials:
        for text, changed in self._switches():
            self._try(text, lambda changed=changed: changed)  # type: ignore[misc]
        device = self.call.device
        self._numbers("multibuffer", device.multibuffer, lambda n: self._with(multibuffer=n), MOST_COPIES)
        if self._mixed():
            now = device.tiles_under_way
            self._numbers(
                "set_workspace_multibuffer", now, lambda n: self._with(workspace_copies=n), MOST_COPIES
            )
        for name, now in self.call.constants.items():
            if isinstance(now, int) and not isinstance(now, bool) and now >= 1 and self.call.again:
                self._size(name, now)
        if self.call.again and self.call.program.of_kind("num_programs"):
            self._programs()
        self.trials.loaded = self._loaded()
        return self.trials

    def _loaded(self) -> dict[str, tuple[int, int]]:
        if self.same is None:
            return {}
        sizes = {n: t.dtype.itemsize for n, t in self.call.tensors.items()}
        hulls = {n: last - first + 1 for n, (first, last) in self.same.read.items()}
        return {
            n: (count * sizes[n], hulls[n] * sizes[n]) for n, count in self.same.loaded.items() if n in sizes
        }

    # -- choices of the device --

    def _mixed(self) -> bool:
        split = self.call.device.product.core_model == "split"
        return split and bool(self.call.program.of_kind("dot"))

    def _switches(self) -> Iterator[tuple[str, Call]]:
        flag = self.call.device.unit_flag
        if self._mixed():
            yield f"unit_flag {flag} -> {not flag}", self._with(unit_flag=not flag)

    def _numbers(self, name: str, now: int, make: Callable[[int], Call], most: int) -> None:
        def time(n: int) -> float | None:
            return self._try(f"{name} {now} -> {n}", lambda: make(n))

        list(neighbours(now, self.now_us, time, lambda n: 1 <= n <= most))

    def _with(self, **options: Any) -> Call:
        return replace(self.call, device=replace(self.call.device, **options))

    # -- sizes --

    def _size(self, name: str, now: int) -> None:
        """Twice, half and so on of one compile-time size."""

        def time(n: int) -> float | None:
            try:
                changed = self._same_work(name, now, n)
            except AscendtileError as e:
                self.trials.refuse(name, n, e)
                return None
            if isinstance(changed, str):
                reasons.append(changed)
                return None
            grid = self._grid_text(changed)
            return self._try(f"{name} {now} -> {n}{grid}", lambda: changed)

        reasons: list[str] = []
        if not list(neighbours(now, self.now_us, time)) and reasons:
            self.trials.untried[name] = reasons[0]

    def _grid_text(self, changed: Call) -> str:
        if self.call.grid_asks or changed.grid == self.call.grid:
            return ""
        return f", grid {grid_text(self.call.grid)} -> {grid_text(changed.grid)}"

    def _same_work(self, name: str, now: int, other: int) -> Call | str:
        """The launch with another size that does the same work, or why there is none."""
        assert self.call.again is not None
        changed = self.call.again({name: other}, None)
        asked = name in self.call.grid_asks
        if not asked and _shapes(changed) == _shapes(self.call):
            return NO_TILE
        if not asked and not self.any_sums and not sums_stay(self.call.program, changed.program):
            return OTHER_SUMS
        try:
            before = self._now()
            if before is None:
                return changed if asked else TOO_LONG
            after = self._reach(changed)
            # What is stored may change with a size that the grid asks for, as partial results do; what is read may not.
            if after is not None and (before.read == after.read if asked else before.same(after)):
                if not _cuts(before, after, other > now):
                    return OF_WINDOW
                return self._fewest(changed, now, other) if not asked else changed
            if not self.call.program.of_kind("num_programs"):
                for grid in _other_grids(changed.grid, now, other):
                    scaled = self.call.again({name: other}, grid)
                    if self._alike(scaled):
                        return scaled
        except (DataDependentError, NeedsDataError):
            return changed if asked else UNKNOWN_WORK
        return self._other_work(name, now)

    def _fewest(self, changed: Call, now: int, other: int) -> Call:
        """With a larger tile and the same grid some programs may have nothing to do; then fewer are started."""
        assert self.call.again is not None
        if other <= now or self.call.program.of_kind("num_programs"):
            return changed
        constants = changed.constants
        for grid in _other_grids(changed.grid, now, other):
            scaled = self.call.again(constants, grid)
            if self._alike(scaled):
                return scaled
        return changed

    def _other_work(self, name: str, now: int) -> str:
        from ..timing.sizes_of_data import with_length

        data = with_length(self.call, now) if now > 1 else []
        if data:
            return OF_DATA.format(data[0])
        if self.call.grid_asks or self.call.program.of_kind("num_programs"):
            return OTHER_WORK
        return ANOTHER_GRID.format(name)

    def _alike(self, changed: Call) -> bool:
        now, found = self._now(), self._reach(changed)
        return now is not None and found is not None and now.same(found)

    def _now(self) -> Reach | None:
        self.same = self.same or self._reach(self.call)
        return self.same

    def _reach(self, call: Call) -> Reach | None:
        """None where another tile leaves its tensors, which is other work, and where a loop is too long to go through."""
        try:
            return reach(call, self._spend)
        except (DataDependentError, NeedsDataError, TrialsSpentError):
            raise
        except AscendtileError:
            return None

    def _spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TrialsSpentError(SPENT)

    # -- programs --

    def _programs(self) -> None:
        """How many programs share the work, where they go by their number; one for each core is always tried."""
        again, now = self.call.again, self.call.grid[0]
        if again is None or self._grid_stays():
            return
        reasons: list[str] = []

        def time(n: int) -> float | None:
            try:
                changed = again({}, (n, 1, 1))
                alike = self._alike(changed)
            except (DataDependentError, NeedsDataError):
                reasons.append(UNKNOWN_WORK)
                return None
            except AscendtileError as e:
                self.trials.refuse("grid", n, e)
                return None
            if not alike:
                reasons.append(TOO_LONG if self._now() is None else OTHER_WORK)
            return self._try(f"grid {now} -> {n}", lambda: changed) if alike else None

        cores = self._cores()
        found = dict(neighbours(now, self.now_us, time, lambda n: 1 <= n <= cores))
        if now != cores and cores not in found and time(cores) is None and reasons:
            self.trials.untried[f"grid={cores}"] = reasons[-1]

    def _grid_stays(self) -> bool:
        """Whether the grid is none to try another one of, which is said."""
        if self.call.grid_asks:
            self.trials.untried["grid"] = OF_SIZES.format(", ".join(self.call.grid_asks))
        elif self.call.grid[1:] != (1, 1):
            self.trials.untried["grid"] = SEVERAL_AXES
        return "grid" in self.trials.untried

    def _cores(self) -> int:
        from ..timing.estimate import make_plan

        return make_plan(self.call).wiring.machine.cores

    # -- one trial --

    def _try(self, text: str, make: Callable[[], Call]) -> float | None:
        """Time in us of a change, which is kept; None where it is refused."""
        before, _, value = text.partition(", grid ")[0].partition(" -> ")
        try:
            changed = make()
            us = self.time(replace(changed, warnings=(), device=_plain(changed.device))).time_us
        except AscendtileError as e:
            self.trials.refuse(before.split()[0], value, e)
            return None
        self.trials.changes[text] = us
        if (changed.grid, changed.named_constants) != (self.call.grid, self.call.named_constants):
            self.trials.remade[text] = before.split()[0], value, changed
        return us


def grid_text(grid: tuple[int, int, int]) -> str:
    """385, or (64, 8) where there are several axes."""
    axes = list(grid)
    while len(axes) > 1 and axes[-1] == 1:
        axes.pop()
    return str(axes[0]) if len(axes) == 1 else str(tuple(axes))


def _plain(device: Device) -> Device:
    return replace(device, values=False, time=True, timeline=0, explain=False, details=False)


def _shapes(call: Call) -> set[tuple[int, ...]]:
    return {r.shape for op in call.program.walk() for r in op.results}


def _cuts(before: Reach, after: Reach, larger: bool) -> bool:
    """Whether a size cuts the work. One of a window, or of what is repeated, is more of it where it is larger."""
    return after.loads_as_larger_tiles(before) if larger else before.loads_as_larger_tiles(after)


def _other_grids(grid: tuple[int, int, int], now: int, other: int) -> Iterator[tuple[int, int, int]]:
    """Fixed grids with the programs along one axis that tiles of `other` in place of `now` ask for: the fewest, the most."""
    for axis, n in enumerate(grid):
        fewest, most = (n - 1) * now // other + 1, -(-n * now // other)
        for programs in dict.fromkeys((fewest, most)):
            if programs != n:
                yield (*grid[:axis], programs, *grid[axis + 1 :])  # type: ignore[misc]
