"""Instructions on one core. Rows: op is the instruction's name, shapes `repeat=N`, dtypes of sources and result.

tiling: `back to back, 1 core` or `one after the other, 1 core`, `sources apart` where they share no group of UB's banks, and
`result meets a source` where it is written to banks that a source is read from.
The tables of the profiler were measured with both in one group: the vendor's conflict-free example takes half as long.
"""

from __future__ import annotations

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.timing.costs.cube import CubeCosts
from ascendtile.simulator.timing.costs.model import Cost, CostModel
from ascendtile.simulator.timing.costs.reductions import repeated

from .microbench import (
    apart,
    cube_core,
    cycles_each,
    in_unit,
    meets,
    number,
    product,
    types,
    vector_core,
    waits,
)
from .registry import Prediction, predicts
from .table import Row

# Instruction: row of the product's table.
ROWS = {
    "vabs": "abs", "vadd": "add", "vaddrelu": "addrelu", "vadds": "adds", "vaxpy": "axpy", "vbrcb": "brcb",
    "vcadd": "reduce_repeat_sum", "vcgadd": "reduce_block_sum", "vcgmax": "reduce_block_max",
    "vcgmin": "reduce_block_max", "vcmax": "reduce_repeat_max", "vcmin": "reduce_repeat_max", "vcmp": "compare",
    "vcmpv": "compare", "vcmpvs": "compares", "vcopy": "copy", "vcpadd": "reduce_pair_sum", "vdiv": "div",
    "vectordup": "duplicate", "vexp": "exp", "vgather": "gather", "vgatherb": "gatherb", "vln": "ln",
    "vlrelu": "lrelu", "vmadd": "fusedmuladd", "vmax": "max", "vmaxs": "maxs", "vmin": "min", "vmins": "mins",
    "vmla": "muladddst", "vmul": "mul", "vmuls": "muls", "vrec": "rec", "vreduce": "gather_mask",
    "vreducev2": "gather_mask_user", "vrelu": "relu", "vrsqrt": "rsqrt", "vsel": "select", "vshl": "shift",
    "vshr": "shift", "vsqrt": "sqrt", "vsub": "sub",
}  # fmt: skip
BITS = {"fp16": 16, "bf16": 16, "fp32": 32, **{f"{u}int{n}": n for u in ("", "u") for n in (8, 16, 32, 64)}}


@predicts(*ROWS)
def _instruction(row: Row) -> Prediction:
    """Of one row of the table, on the type of its first source."""
    dtype = types(row, 1)[0]
    bits = _bits(row, dtype)
    model = CostModel(product(row.product))
    elements = number(row, "repeat") * model.repeat_bytes * 8 // bits
    cost = model.vector(ROWS[row.op], dtype, elements, bits, conflict=not apart(row))
    # The first repeat has no write before it.
    late = model.write_conflict_cycles(number(row, "repeat") - 1) if meets(row) else 0.0
    return _timed(row, cost._replace(occupancy=cost.occupancy + late), model)


@predicts("vconv")
def _cast(row: Row) -> Prediction:
    """A conversion; one repeat passes over 256 bytes of the wider type."""
    source, target = types(row, 2)[:2]
    bits = max(_bits(row, source), _bits(row, target))
    model = CostModel(product(row.product))
    elements = number(row, "repeat") * model.repeat_bytes * 8 // bits
    return _timed(row, model.cast(source, target, elements, bits), model)


@predicts("vmrgsort")
def _merge(row: Row) -> Prediction:
    model = CostModel(product(row.product))
    return _timed(row, repeated(model, "mrgsort4", number(row, "repeat")), model)


def _timed(row: Row, cost: Cost, model: CostModel) -> Prediction:
    """The roofline is one repeat a cycle: the width of the unit."""
    wiring = vector_core(row.product)
    cycles = cycles_each(
        wiring,
        wiring.vector,
        waits(row),
        occupancy=cost.occupancy,
        latency=cost.latency,
        instructions=cost.instructions,
    )
    return Prediction(
        in_unit(row, {"cycles": float}, cycles), float(number(row, "repeat")), "; ".join(model.notes)
    )


def _bits(row: Row, dtype: str) -> int:
    if dtype not in BITS:
        raise UsageError(f"{row.id}: dtype {dtype[:20]!r} is not one of {', '.join(BITS)}")
    return BITS[dtype]


@predicts("mmad")
def _mmad(row: Row) -> Prediction:
    """shapes `m=16 n=32 k=16`, dtypes of an operand and the result, unit FLOP/cycle or cycles."""
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
