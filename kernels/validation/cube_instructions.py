"""Mmad on one core. Rows: shapes `m=16 n=32 k=16`, dtypes of an operand and the result, unit FLOP/cycle or cycles."""

from __future__ import annotations

from ascendtile.simulator.timing.costs.cube import CubeCosts

from .microbench import cube_core, cycles_each, in_unit, number, product, types, waits
from .registry import Prediction, predicts
from .table import Row


@predicts("mmad")
def _mmad(row: Row) -> Prediction:
    m, n, k = (number(row, name) for name in "mnk")
    operand = types(row, 1)[0]
    costs, wiring = CubeCosts(product(row.product)), cube_core(row.product)
    work = costs.mmad_cycles(m, n, k, operand)
    cycles = cycles_each(
        wiring, wiring.mmad, waits(row), occupancy=costs.startup + work, latency=costs.drain_cycles
    )
    units = {"cycles": float, "FLOP/cycle": lambda c: 2 * m * n * k / c}
    rows, columns = (product(row.product).integer(f"cube.{name}") for name in "mn")
    peak = m * n * k / (rows * columns * costs.k_block(operand)[1])
    return Prediction(in_unit(row, units, cycles), in_unit(row, units, peak))
