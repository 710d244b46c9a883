"""Copies between memories on one core. Rows: op `copy GM->UB`, shapes `bytes=N`, unit cycles/1024 or GiB/s.

Rates were published as GiB/s at 1.8 GHz whatever the product's clock; what was measured is cycles. `nz` is a copy that turns
ND into NZ or back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ascendtile.simulator.timing.costs.model import CostModel
from ascendtile.simulator.timing.engine.engine import Channel
from ascendtile.simulator.timing.engine.machine import L2, Wiring

from .microbench import cube_core, cycles_each, in_unit, number, product, vector_core, waits
from .registry import Prediction, predicts
from .table import Row

FROM_MEMORY = "as from memory"  # in a row's note
TOOL_HZ = 1.8e9  # clock with which the tables' GiB/s were computed


def _predicted(row: Row, cycles: float, peak_rate: float, note: str) -> Prediction:
    size = number(row, "bytes")
    units: dict[str, Callable[[float], float]] = {
        "cycles/1024": lambda c: 1024 * c,
        "cycles": float,
        "GiB/s": lambda c: size / c * TOOL_HZ / 2**30,
        "GB/s": lambda c: size / c * product(row.product).us_to_cycles(1.0) / 1e3,
    }
    return Prediction(in_unit(row, units, cycles), in_unit(row, units, size / peak_rate), note)


@predicts("copy GM->UB")
def _to_ub(row: Row) -> Prediction:
    """Rows whose note says so read memory, others what L2 holds."""
    wiring = vector_core(row.product)
    channel = wiring.read[0 if FROM_MEMORY in row.note else 1]
    return _through(row, wiring, wiring.mte2, channel, "gm_to_ub")


@predicts("copy UB->GM")
def _to_gm(row: Row) -> Prediction:
    wiring = vector_core(row.product)
    return _through(row, wiring, wiring.mte3, wiring.write[0], "ub_to_gm")


def _through(row: Row, wiring: Wiring, pipe: int, channel: int, path: str) -> Prediction:
    """A transfer over a channel of the machine, as a load or a store of a kernel is one."""
    figures = product(row.product)
    cycles = cycles_each(
        wiring, pipe, waits(row), channel=channel, amount=number(row, "bytes"),
        occupancy=figures.number(f"path.{path}.issue_interval_cycles"),
        latency=figures.number(f"path.{path}.fixed_cycles"),
    )  # fmt: skip
    found = wiring.machine.channels[channel]
    return _predicted(row, cycles, found.port_bytes_per_cycle, found.name)


@predicts("copy GM->L1", "copy GM->L1 nz")
def _to_l1(row: Row) -> Prediction:
    """What kernels of ours load turns ND into NZ on the way; a plain copy has figures of its own."""
    wiring = cube_core(row.product)
    if row.op.endswith("nz"):
        channel = wiring.cube_read[0 if FROM_MEMORY in row.note else 1]
        return _through(row, wiring, wiring.cube_mte2, channel, "gm_to_l1_nd2nz")
    wiring, channel = _with_channel(wiring, row, "gm_to_l1")
    return _through(row, wiring, wiring.cube_mte2, channel, "gm_to_l1")


def _with_channel(wiring: Wiring, row: Row, path: str) -> tuple[Wiring, int]:
    """The same machine with a channel for a path that kernels do not take, drawing on L2."""
    rate = product(row.product).number(f"path.{path}.bytes_per_cycle")
    machine = wiring.machine
    more = Channel(name=path, port_bytes_per_cycle=rate, resources=(L2,))
    return replace(wiring, machine=replace(machine, channels=(*machine.channels, more))), len(
        machine.channels
    )


@predicts("copy L0C->GM", "copy L0C->GM nz")
def _out_of_l0c(row: Row) -> Prediction:
    """The fixpipe: a least time for small transfers, the rate for large ones."""
    figures, wiring = product(row.product), cube_core(row.product)
    path = "path.l0c_to_gm"
    channel, fixed = wiring.cube_write[0], figures.number(f"{path}.fixed_cycles")
    if not row.op.endswith("nz"):
        wiring, channel = _with_channel(wiring, row, "l0c_to_gm")
    least = figures.number(f"{path}.min_cycles")
    cycles = cycles_each(
        wiring, wiring.fixp, waits(row), channel=channel, amount=number(row, "bytes"), occupancy=least,
        latency=fixed,
    )  # fmt: skip
    return _predicted(row, cycles, wiring.machine.channels[channel].port_bytes_per_cycle, "")


@predicts("copy L1->L0A", "copy L1->L0B")
def _to_l0(row: Row) -> Prediction:
    """Whole fractals by the plain load; the loads of a matrix product may cost more."""
    figures, wiring = product(row.product), cube_core(row.product)
    path = f"path.l1_to_l0{row.op[-1].lower()}"
    fixed, rate = (figures.number(f"{path}.{name}") for name in ("fixed_cycles", "bytes_per_cycle"))
    cycles = cycles_each(wiring, wiring.mte1, waits(row), occupancy=fixed + number(row, "bytes") / rate)
    return _predicted(row, cycles, rate, "")


@predicts("copy UB->UB")
def _within_ub(row: Row) -> Prediction:
    """The Vector unit's copy."""
    model, wiring = CostModel(product(row.product)), vector_core(row.product)
    cost = model.vector("copy", "fp16", number(row, "bytes") // 2, 16)
    cycles = cycles_each(
        wiring, wiring.vector, waits(row), occupancy=cost.occupancy, latency=cost.latency,
        instructions=cost.instructions,
    )  # fmt: skip
    return _predicted(row, cycles, float(model.repeat_bytes), "")
