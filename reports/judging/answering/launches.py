"""Launches of one call, as the log tells them; and what kernels cut off of their values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....simulator.call import Call
from ....simulator.ir.program import Op, Program, Value
from ....simulator.triton_shim.scripts.collecting import Collector, LaunchGroup
from ...facts.json_view import run_json
from ..answer_log import LaunchLog
from ..cheats.evidence import NarrowedValue

THROUGH = (
    "broadcast",
    "expand_dims",
    "reshape",
    "permute",
    "slice",
    "cat",
    "select",
    "gather",
    "extract_slice",
    "for",
    "if",
)


def launch_logs(collected: Collector) -> tuple[LaunchLog, ...]:
    """Launches that are alike together, dearest first."""
    return tuple(map(_log, collected.by_time))


def _log(group: LaunchGroup) -> LaunchLog:
    dearest = group.dearest
    ends = dearest.interval_us
    # Alike launches rest on the same figures: their ends lie as those of the dearest do.
    share = group.time_us / dearest.time_us if dearest.time_us else 0.0
    return LaunchLog(
        kernel=group.kernel,
        grid=tuple(group.grid or ()),
        count=group.count,
        time_us=group.time_us,
        cycles=group.cycles,
        low_us=None if ends is None else ends[0] * share,
        high_us=None if ends is None else ends[1] * share,
        faults=tuple(map(str, group.faults)),
        run=run_json(dearest),
    )


def narrowed_in(call: Call) -> Iterator[NarrowedValue]:
    """Values of FP32 that the kernel makes narrower and computes with: casts, and products in HF32."""
    program = call.program
    users = _users(program)
    for op in program.of_kind("dot"):
        if op.attrs.get("precision") == "hf32":
            yield NarrowedValue(
                kernel=call.kernel.name, line=op.loc.line, source="float32", target="hf32", use="dot"
            )
    for op in program.of_kind("cast"):
        source, target = op.operand(0).dtype, op.results[0].dtype
        if op.operand(0).shape and _narrows(source, target) and (use := _use(op.results[0], users)):
            yield NarrowedValue(
                kernel=call.kernel.name,
                line=op.loc.line,
                source=str(source),
                target=str(target),
                use=use,
                remainder=_has_remainder(op, users),
            )


def narrow_tensors(call: Call, few: int) -> Iterator[NarrowedValue]:
    """Floating tensors of at most 16 bits that a kernel takes, but for small ones."""
    for name, t in call.tensors.items():
        if t.dtype.is_floating() and t.dtype.bits <= 16 and t.elements > few:
            yield NarrowedValue(
                kernel=call.kernel.name, line=0, source=f"tensor {name}", target=str(t.dtype), use="kernel"
            )


def _narrows(source: Any, target: Any) -> bool:
    """From more than 16 bits of floating point to at most 16 bits, or to a byte that the Cube multiplies."""
    if not source.is_floating() or source.bits <= 16:
        return False
    return bool(target.bits <= (16 if target.is_floating() else 8) and not target.is_bool())


def _users(program: Program) -> dict[int, list[Op]]:
    users: dict[int, list[Op]] = {}
    for op in program.walk():
        for x in op.args:
            if x is not None:
                users.setdefault(x.id, []).append(op)
    return users


def _use(value: Value, users: dict[int, list[Op]]) -> str:
    """What is computed with it: "dot", "math", or "" where it is stored only."""
    waiting, seen, found = [value], set(), ""
    while waiting:
        for op in users.get((x := waiting.pop()).id, []):
            if op.kind == "dot" and any(a is not None and a.id == x.id for a in op.args[:2]):
                return "dot"
            if op.kind in ("unary", "binary", "fma", "reduce", "scan"):
                found = "math"
            moves = op.kind in THROUGH or (op.kind == "cast" and op.results[0].shape)
            for y in op.results if moves else ():
                if y.id not in seen:
                    seen.add(y.id)
                    waiting.append(y)
    return found


def _has_remainder(cast: Op, users: dict[int, list[Op]]) -> bool:
    """Whether what the cast cuts off is computed: source minus the narrow value."""
    source = cast.operand(0)
    wide = [op.results[0].id for op in users.get(cast.results[0].id, []) if op.kind == "cast"]
    return any(
        op.kind == "binary" and op.name == "sub" and any(x is not None and x.id in wide for x in op.args)
        for op in users.get(source.id, [])
    )
