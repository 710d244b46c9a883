"""What a launch asks of each unit and of each memory level, and the most that these give: the points of a roofline.

Operations are those of the tile program, counted as it is lowered: one for each element of a result (of the operand, for
reductions and scans), two for each product of a `dot`. Moves, loads and index arithmetic are none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ...ir.operations import operation
from ...ir.program import Op
from ...precision.dtypes import DType
from ...record.run import Roof
from ..costs.cube import depth_bytes, item_bytes
from ..costs.transfers import FRACTALS
from ..engine.engine import EngineResult, Machine, ProgramGroup
from ..lowering.context import LoweringPlan
from ..placement.layouts import align
from .bounds import add_work

# Path between global memory and a core -> the numbers of its channels (`machine._channels`).
PORTS = {
    "GM to UB": (0, 1, 8, 9, 12),
    "UB to GM": (2, 6, 10, 11),
    "GM to L1": (3, 4, FRACTALS),
    "L0C to GM": (5, 7),
}
L0 = {
    "L1 to L0A": ("L0A", "path.l1_to_l0a.bytes_per_cycle"),
    "L1 to L0B": ("L0B", "path.l1_to_l0b.bytes_per_cycle"),
}


def roofs(plan: LoweringPlan, machine: Machine, result: EngineResult, per_us: float) -> dict[str, Roof]:
    """Name -> amount and rate of all cores: "Vector fp32", "Cube fp16" (operations); "HBM", "L2", paths (bytes)."""
    found = {**_units(plan, per_us), **_shared(machine, result, per_us), **_ports(plan, result, per_us)}
    return {n: r for n, r in found.items() if r.amount > 0}


def operations(op: Op) -> int:
    """Operations of one execution on the Vector unit; 0 for what computes nothing there."""
    entry = operation(op)
    tile = (op.args if entry.of_operand else op.results)[0] if entry.flops else None
    return 0 if tile is None or not tile.shape or tile.is_pointer else tile.numel * entry.flops


def _executed(plan: LoweringPlan) -> Iterator[tuple[Op, int]]:
    for op in plan.program.walk():
        count = plan.executed.get(op.id, 0)
        if count:
            yield op, count


def _units(plan: LoweringPlan, per_us: float) -> dict[str, Roof]:
    amounts: dict[tuple[str, str], float] = {}
    for op, count in _executed(plan):
        if op.kind == "dot":
            key, work = ("Cube", plan.operand(op)), _products(op)
        else:
            key, work = ("Vector", _lane_type(op)), operations(op)
        amounts[key] = amounts.get(key, 0.0) + work * count
    return {
        f"{unit} {kind}": Roof(x, "operations", _peak(plan, unit, kind) * per_us)
        for (unit, kind), x in amounts.items()
        if x
    }


def _products(op: Op) -> int:
    a, b = op.args[0], op.args[1]
    assert a is not None
    assert b is not None
    return 2 * a.numel * b.shape[-1]


def _lane_type(op: Op) -> str:
    """The width of lanes that the operation takes: that of its widest element."""
    kinds = [v.dtype for v in (*op.args, *op.results) if v is not None and isinstance(v.dtype, DType)]
    return "fp16" if kinds and all(k.itemsize <= 2 for k in kinds) else "fp32"


def _peak(plan: LoweringPlan, unit: str, kind: str) -> float:
    """Operations per cycle of all cores."""
    product = plan.product
    if unit == "Vector":
        return product.number(f"vector.lanes.{kind}") * product.vector_cores
    rows, columns = product.integer("cube.m"), product.integer("cube.n")
    return 2.0 * rows * columns * plan.cube.k_block(kind)[1] * product.cube_cores


def _shared(machine: Machine, result: EngineResult, per_us: float) -> dict[str, Roof]:
    return {
        r.name: Roof(float(moved), "bytes", r.bytes_per_cycle * per_us)
        for r, moved in zip(machine.resources, result.resource_bytes, strict=True)
    }


def _ports(plan: LoweringPlan, result: EngineResult, per_us: float) -> dict[str, Roof]:
    """Ways into and out of the cores at the faster rate of their channels, and the loads of L0."""
    out, channels = {}, plan.wiring.machine.channels
    for name, numbers in PORTS.items():
        cores = plan.product.vector_cores if "UB" in name else plan.product.cube_cores
        rate = max(channels[n].port_bytes_per_cycle for n in numbers) * cores
        out[name] = Roof(sum(float(result.channel_bytes[n]) for n in numbers), "bytes", rate * per_us)
    for k, (name, (_, key)) in enumerate(L0.items() if plan.spaces.has_dot else ()):
        moved = sum(_operand_bytes(plan, op)[k] * n for op, n in _executed(plan) if op.kind == "dot")
        out[name] = Roof(moved, "bytes", plan.product.number(key) * plan.product.cube_cores * per_us)
    return out


def _operand_bytes(plan: LoweringPlan, op: Op) -> tuple[float, float]:
    """Bytes that one product brings to L0A and to L0B: each L0 tile of one operand once for each of the other."""
    a, b = op.args[0], op.args[1]
    assert a is not None
    assert b is not None
    (m, k), n = a.shape[-2:], b.shape[-1]
    kind = plan.operand(op)
    tile = plan.cube.l0_tile(m, n, k, kind, plan.l0_tile)
    batch, depth = a.numel // (m * k), depth_bytes(k, item_bytes(kind))
    of_a = align(m, 16) * depth * math.ceil(n / tile.n)
    return float(batch * of_a), float(batch * align(n, 16) * depth * math.ceil(m / tile.m))


def core_bytes(
    plan: LoweringPlan, result: EngineResult, groups: Sequence[ProgramGroup]
) -> dict[str, tuple[float, ...]]:
    """Ways without any byte are left out."""
    pipes = plan.wiring.machine.pipes
    own = _moved(plan.wiring.machine, result, groups, [p.unit for p in pipes], 1)
    return own | _moved(plan.wiring.machine, result, groups, [p.twin for p in pipes], 2)


def _moved(
    machine: Machine, result: EngineResult, groups: Sequence[ProgramGroup], unit_of: list[str], ports: int
) -> dict[str, tuple[float, ...]]:
    """Bytes of each port of channels that have at least so many, by units of the pipes."""
    units, cores = list(dict.fromkeys(unit_of)), len(result.core_cycles)
    names = [f"{unit}.{path}" for path in PORTS for unit in units]
    place_of = np.array([units.index(u) for u in unit_of])
    paths = np.full(len(machine.channels) + 1, -1)  # the last one is for what is no transfer
    for k, numbers in enumerate(PORTS.values()):
        paths[[n for n in numbers if machine.channels[n].ports >= ports]] = k
    out = np.zeros((len(names), cores))
    for g in groups:
        path, moved = paths[np.maximum(g.trace.channel, -1)], np.zeros((len(names), len(g.programs)))
        place = np.where(path < 0, -1, path * len(units) + place_of[g.trace.pipe])
        add_work(g.trace, place, np.ones(len(place)), False, moved)
        for total, amounts in zip(out, moved, strict=True):
            total += np.bincount(result.programs["core"][g.programs], amounts, minlength=cores)
    return {n: tuple(x.tolist()) for n, x in zip(names, out, strict=True) if x.any()}
