"""What to change when a tiling does not fit: the largest value of each knob with which it does, found by trying."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..simulator.errors import AscendtileError
from ..simulator.launch import fit
from .launching import call_of
from .operator import Operator, Plan


def knob_advice(op: Operator, tiling: Mapping[str, Any], replan: Callable[[dict[str, Any]], Plan]) -> str:
    """A sentence with the way out in the operator's own knobs; empty if no single knob helps.

    tiling: the knobs as they were used. replan: makes the plan for other knobs, without data.
    """
    words = []
    for p in op.parameters:
        now = tiling.get(p.name)
        if p.kind != "int" or isinstance(now, bool) or not isinstance(now, int) or now <= (p.low or 1):
            continue
        best = _largest(p.name, max(p.low or 1, p.multiple), now, tiling, replan, p.multiple)
        if best is not None:
            words.append(f"{p.name}={best} (now {now})")
    return f"Of {op.name}'s knobs, the largest that fits: {'; or '.join(words)}." if words else ""


def _largest(
    name: str,
    low: int,
    now: int,
    tiling: Mapping[str, Any],
    replan: Callable[[dict[str, Any]], Plan],
    multiple: int,
) -> int | None:
    """Largest used value below `now` that fits, if the least one does."""
    best = _used(name, low, tiling, replan)
    if best is None:
        return None
    high = now
    while high - best > multiple:
        probe = best + (high - best) // (2 * multiple) * multiple
        used = _used(name, probe, tiling, replan)
        if used is None or not best < used < high:
            high = probe
        else:
            best = used
    return best


def _used(
    name: str, value: int, tiling: Mapping[str, Any], replan: Callable[[dict[str, Any]], Plan]
) -> int | None:
    """The value that the operator really uses when asked for `value`, if everything then fits."""
    try:
        plan = replan({**tiling, name: value})
        used = plan.tiling.get(name)
        if not isinstance(used, int) or used > value:
            return None
        for step in plan.steps:
            fit(call_of(step))
    except AscendtileError:
        return None
    return used
