"""Whether a `while` that counts goes on up to the step limit, found by carrying out no more than its condition depends on.

That is many times faster than the loop itself, so an endless one is told soon. Only integers of one program are followed,
with the operations of `symbolic.py`; whatever else a condition depends on is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...ir.program import Op, Region, Value
from ...precision import dtypes as ty
from .. import symbolic
from ..values import take
from .condition import Slice


class _Step(NamedTuple):
    """target: number of the value that is made of those numbered a and b; bits, signed: of its type."""

    target: int
    make: Callable[[Any, Any], Any]
    a: int
    b: int
    bits: int
    signed: bool


def reaches(op: Op, frame: Any, carried: Sequence[Any], iterations: int) -> bool:
    """Whether the first program in a `while` begins that many further iterations; False also where that is not known.

    frame: with the values around the loop. carried: what the next iteration begins with.
    """
    found = Slice(op)
    found.add(op.regions[0].yields[:1])
    parts = [_steps(region, found) for region in op.regions]
    if found.reads or None in parts:
        return False
    places = sorted(found.carried)
    env = _constants(op)
    for region in op.regions:
        env |= {region.args[k].id: _first(carried[k]) for k in places}
    made = {s.target for steps in parts for s in steps or ()}
    for v in _used(op, found, places):
        if v.id not in made and v.id not in env:
            env[v.id] = _first(frame.get(v))
    return all(type(x) in (int, bool) for x in env.values()) and _runs(op, parts, places, env, iterations)


def _constants(op: Op) -> dict[int, Any]:
    every = (o for region in op.regions for o in region.ops if o.kind == "const")
    return {o.results[0].id: x for o in every if type(x := o.attrs["value"]) in (int, bool)}


def _used(op: Op, found: Slice, places: list[int]) -> list[Value]:
    """What the steps read, and what goes on to the next iteration."""
    ops = (o for region in op.regions for o in region.ops if any(r.id in found.seen for r in o.results))
    yields = [op.regions[0].yields[0], *(op.regions[1].yields[k] for k in places)]
    return [*(v for o in ops for v in o.args if v is not None), *yields]


def _runs(op: Op, parts: Any, places: list[int], env: dict[int, Any], iterations: int) -> bool:
    (condition, body), going = parts, op.regions[0].yields[0].id
    yields = [op.regions[1].yields[k].id for k in places]
    taken = [[region.args[k].id for k in places] for region in op.regions]
    for _ in range(iterations):
        _carry_out(condition, env)
        if not env[going]:
            return False
        _carry_out(body, env)
        after = [env[y] for y in yields]
        for names in taken:
            env.update(zip(names, after, strict=True))
    return True


def _carry_out(steps: list[_Step], env: dict[int, Any]) -> None:
    for target, make, a, b, bits, signed in steps:
        x = make(env[a], env[b])
        half = 1 << (bits - 1)
        env[target] = x if -half <= x < half and (signed or x >= 0) else symbolic.wrap(x, bits, signed)


def _steps(region: Region, found: Slice) -> list[_Step] | None:
    """What a region does to values that matter; None if that is more than arithmetic on integers."""
    ops = [op for op in region.ops if op.kind != "const" and any(r.id in found.seen for r in op.results)]
    steps = [_step(op) for op in ops]
    return None if None in steps else steps  # type: ignore[return-value]


def _step(op: Op) -> _Step | None:
    r = op.results[0]
    if not all(v is not None and _is_integer(v) for v in (*op.args, r)):
        return None
    kind = (64, True) if r.dtype.is_bool() else (r.number.bits, r.number.kind == "int")
    if op.kind == "binary" and op.name in symbolic.INTEGER and op.name not in ("floordiv", "mod"):
        return _Step(r.id, symbolic.INTEGER[op.name], op.operand(0).id, op.operand(1).id, *kind)
    if op.kind == "compare":
        return _Step(r.id, symbolic.COMPARE[op.name], op.operand(0).id, op.operand(1).id, 64, True)
    if op.kind == "cast" and not op.attrs.get("overflow") and not r.dtype.is_bool():
        return _Step(r.id, lambda x, _: int(x), op.operand(0).id, op.operand(0).id, *kind)
    return None


def _is_integer(v: Value) -> bool:
    return not v.shape and not v.is_pointer and v.dtype.is_int() and v.dtype != ty.uint64


def _first(x: Any) -> Any:
    """The value of the first program."""
    if isinstance(x, np.ndarray) and x.ndim == 1 and len(x):
        return take(x, np.zeros(1, np.int64))[0].item()
    return x
