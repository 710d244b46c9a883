"""What one change of a launch's knobs would do to its time: copies of buffers, the unit flag, sizes that the grid goes by.

A compile-time size is tried twice and half as large where the grid is a function that asks for it, as in
`lambda meta: (cdiv(n, meta["BLOCK"]),)`: then the grid follows, and the launch does the same work. Where twice has no room,
one and a half times is tried. Any other size may be a part of the problem, and is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .errors import AscendtileError

if TYPE_CHECKING:
    from .call import Call
    from .device import Device
    from .record.run import Launch

MOST_NAMED = 4  # sizes in the words of `untried_sizes`
Again = Callable[[dict[str, Any]], "Call"]


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


def changes(call: Call, now_us: float, time: Callable[[Call], Launch]) -> dict[str, float]:
    """ "multibuffer 1 -> 2" -> time in us with that knob changed, best first.

    What does not fit, is refused or needs data to be timed is left out, and so is what changes nothing.
    """
    found: dict[str, float] = {}
    for change, make in _others(call):
        try:
            changed = make()
            us = time(replace(changed, warnings=(), device=_plain(changed.device))).time_us
        except AscendtileError:
            continue
        if us != now_us:
            found[change] = us
    return dict(sorted(found.items(), key=lambda item: item[1]))


def untried_sizes(call: Call) -> tuple[str, ...]:
    """One line on the sizes that are not tried because the grid does not follow them, with the way out."""
    sizes = [
        n
        for n, x in call.constants.items()
        if n not in call.grid_asks and isinstance(x, int) and not isinstance(x, bool) and x > 1
    ]
    if not sizes or call.grid_asks:
        return ()
    advice = f'a function of them, grid=lambda meta: (cdiv(n, meta["{sizes[0]}"]),), lets explain try others'
    return (f"the grid is fixed, so no other {', '.join(sizes[:MOST_NAMED])} was timed; {advice}",)


def _plain(device: Device) -> Device:
    return replace(device, values=False, time=True, timeline=0, explain=False, details=False)


def _others(call: Call) -> Iterator[tuple[str, Callable[[], Call]]]:
    for copies in (2 * call.device.multibuffer, call.device.multibuffer // 2):
        if 1 <= copies <= 16:
            change = f"multibuffer {call.device.multibuffer} -> {copies}"
            yield change, lambda copies=copies: _with(call, multibuffer=copies)  # type: ignore[misc]
    if call.device.product.core_model == "split" and any(op.kind == "dot" for op in call.program.walk()):
        flag = call.device.unit_flag
        yield f"unit_flag {flag} -> {not flag}", lambda: _with(call, unit_flag=not flag)
        tiles = call.device.tiles_under_way
        change = f"set_workspace_multibuffer {tiles} -> {2 * tiles}"
        yield change, lambda: _with(call, workspace_copies=min(2 * tiles, 16))
    for name in call.grid_asks:
        now = call.constants.get(name)
        if call.again is None or isinstance(now, bool) or not isinstance(now, int) or now < 2:
            continue
        larger = next((n for n in (2 * now, now * 3 // 2) if n > now and _has_room(call.again, name, n)), 0)
        for other in filter(None, (larger, now // 2)):
            yield f"{name} {now} -> {other}", _again(call.again, name, other)


def _has_room(again: Again, name: str, value: int) -> bool:
    from .timing.fitting import require_places

    try:
        require_places(again({name: value}))
    except AscendtileError:
        return False
    return True


def _again(again: Again, name: str, value: int) -> Callable[[], Call]:
    return lambda: again({name: value})


def _with(call: Call, **options: Any) -> Call:
    return replace(call, device=replace(call.device, **options))
