# mypy: disable-error-code="no-untyped-def"
"""BatchNormReduceBackward's sums on the Cube: products with ones, and the diagonal of products of 16 channels.

For 16 channels of a sample as x, dy (16, S): ones (16, S) dy^T has sum(dy) in every row, and the diagonal of x dy^T is
sum(dy * x). 15 of 16 multiplications are wasted, but the Vector units have nothing to do, nothing passes through UB, and
sums over N and S stay in L0C. Only the uncentred form can be written so: sum(dy * x) - mean * sum(dy) is formed at the end.
The Cube multiplies in the format that cubeMathType says.
"""

from __future__ import annotations

from typing import Any

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.device import current_device
from ....simulator.precision.cube_math import Resolution
from ....simulator.precision.dtypes import float32
from ....simulator.products import Product
from ...matmul.choice import FRACTAL, L1_KEPT
from ...operator.layout import even_part, up
from ...operator.plan import Made, PlanContext, Step, cores_of
from ...operator.tensors import Knobs, Tensor, dtype_of
from ...shared.casts import converted
from ..column_products import fill_ones, operand, resolution
from ..planes import Planes
from .choice import ChannelTensors
from .tiles import put_sums

NAME = "batch_norm_reduce_backward"
CHANNELS = FRACTAL  # of a product
# Cycles that a load takes beside its bytes, and the launches around the products: fitted to the simulator's own times.
LOAD_CYCLES = 600
LAUNCHES_CYCLES = 22_000


@sim.jit
def load_rows(ptr, at, tile, alive, inside, EVEN: tl.constexpr):
    """Channels x elements of S; zeros beyond the tensor."""
    return (
        tl.load(ptr + at + tile)
        if EVEN
        else tl.load(ptr + at + tile, mask=alive[:, None] & inside[None, :], other=0.0)
    )


@sim.jit
def diagonals(
    dy_ptr, x_ptr, ones_ptr, sums_ptr, samples, channels, space, blocks, parts, samples_per_part,
    ROWS: tl.constexpr, COLS: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """Items are a block of ROWS channels and a part of the samples. sums (2, parts, blocks, ROWS, ROWS): ones dy^T, x dy^T.

    x_ptr None: only the first half. EVEN: no tile reaches beyond the tensor.
    """
    row, col = tl.arange(0, ROWS), tl.arange(0, COLS)
    tile, square = row[:, None] * space + col[None, :], row[:, None] * ROWS + row[None, :]
    ones = tl.load(ones_ptr + row[:, None] * COLS + col[None, :])
    for item in range(tl.program_id(0), blocks * parts, tl.num_programs(0)):
        first, part = item // parts * ROWS, item % parts
        alive = row < channels - first
        dy_sum, dyx_sum = tl.zeros((ROWS, ROWS), tl.float32), tl.zeros((ROWS, ROWS), tl.float32)
        for n in range(part * samples_per_part, min(part * samples_per_part + samples_per_part, samples)):
            for start in range(0, space, COLS):
                at = (n * channels + first) * space + start
                inside = col < space - start
                dy = tl.trans(load_rows(dy_ptr, at, tile, alive, inside, EVEN))
                dy_sum += tl.dot(ones, dy)
                if x_ptr is not None:
                    dyx_sum += tl.dot(load_rows(x_ptr, at, tile, alive, inside, EVEN), dy)
        here = sums_ptr + (part * blocks + item // parts) * (ROWS * ROWS) + square
        tl.store(here, dy_sum)
        if x_ptr is not None:
            tl.store(here + parts * blocks * (ROWS * ROWS), dyx_sum)


@sim.jit
def finish_diagonals(
    sums_ptr, mean_ptr, invstd_ptr, outputs, channels, blocks,
    PARTS: tl.constexpr, ROWS: tl.constexpr, WITH_X: tl.constexpr,
):  # fmt: skip
    """The outputs from what `diagonals` wrote; blocks of channels in turn."""
    part, row = tl.arange(0, PARTS), tl.arange(0, ROWS)
    size = blocks * (ROWS * ROWS)
    line = part[:, None] * size + row[None, :]
    tile = part[:, None, None] * size + row[None, :, None] * ROWS + row[None, None, :]
    for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
        here, at = sums_ptr + block * (ROWS * ROWS), block * ROWS + row
        dy = tl.sum(tl.load(here + line), axis=0)
        dyx = None
        if WITH_X:
            squares = tl.sum(tl.load(here + PARTS * size + tile), axis=0)
            dyx = tl.sum(tl.where(row[:, None] == row[None, :], squares, 0.0), axis=0)
        put_sums(dy, dyx, mean_ptr, invstd_ptr, outputs, at, at < channels, False)


# -- tiling ----------------------------------------------------------------------------------------------------------


def resolved(x: Tensor, product: Product) -> Resolution:
    """What the current cubeMathType means for a product of tensors of that type."""
    return resolution(dtype_of(x), product, current_device().cube_math_type)


def choose_cube(view: Planes, itemsize: int, with_x: bool, knobs: Knobs, product: Product) -> dict[str, Any]:
    """Every knob: whole channels of a sample where they fit in L1, parts so that the cores have about the same to do."""
    cores = cores_of(product, "cube", knobs["cores"])
    room = (product.l1_bytes - L1_KEPT) // itemsize // CHANNELS // ((1 + with_x) * knobs["buffers"] + 1)
    longest = max(FRACTAL, room // FRACTAL * FRACTAL)
    cols = up(min(view.space, knobs["cols"] or even_part(view.space, longest)), FRACTAL)
    blocks = -(-view.channels // CHANNELS)
    parts = min(knobs["parts"] or _parts(view.samples, blocks, cores), view.samples)
    parts = -(-view.samples // -(-view.samples // parts))
    return {
        **knobs,
        "strategy": "cube",
        "samples": 1,
        "rows": CHANNELS,
        "cols": cols,
        "parts": parts,
        "cores": min(cores, blocks * parts),
        "combine": "two_phase",
        "form": "uncentred",
    }


def _parts(samples: int, blocks: int, cores: int) -> int:
    """Parts of the samples, with the least samples of the busiest core; the fewest of equals."""
    return min(
        range(1, min(samples, 2 * cores) + 1), key=lambda p: -(-blocks * p // cores) * -(-samples // p)
    )


def cube_cycles(view: Planes, itemsize: int, with_x: bool, tiling: Knobs, product: Product) -> float:
    """About the cycles of a tiling: what a core loads at its port, or all of them from memory, and the launches around."""
    blocks, chunks = -(-view.channels // CHANNELS), -(-view.space // tiling["cols"])
    iterations = (
        -(-blocks * tiling["parts"] // tiling["cores"]) * -(-view.samples // tiling["parts"]) * chunks
    )
    load = CHANNELS * tiling["cols"] * itemsize / product.number("path.gm_to_l1_nd2nz.bytes_per_cycle")
    own = iterations * (1 + with_x) * (load + LOAD_CYCLES / tiling["buffers"])
    size = view.samples * view.channels * view.space * itemsize * (1 + with_x)
    shared = size / (product.hbm_bytes_per_cycle * product.number("memory.read_efficiency"))
    return float(max(own, shared)) + LAUNCHES_CYCLES


# -- launches --------------------------------------------------------------------------------------------------------


def cube_steps(given: ChannelTensors, view: Planes, knobs: Knobs, context: PlanContext) -> Made:
    """Casts to what the Cube multiplies, a tile of ones, the products, and the outputs from them."""
    product, with_x = context.product, given.x is not None
    compute, found = operand(NAME, dtype_of(given.dy), product)
    tiling = choose_cube(view, compute.itemsize, with_x, knobs, product)
    steps: list[Step] = []
    dy, x = (t if t is None else converted(t, compute, context, steps) for t in (given.dy, given.x))
    assert dy is not None
    sums = diagonal_sums(dy, x, view, tiling, found, context, steps)
    blocks = sums.shape[2]
    arguments = {
        **{"sums_ptr": sums, "mean_ptr": given.mean, "invstd_ptr": given.invstd, "outputs": given.outputs},
        **{"channels": view.channels, "blocks": blocks, "PARTS": tiling["parts"], "ROWS": CHANNELS},
        "WITH_X": with_x,
    }
    steps.append(Step(finish_diagonals, min(blocks, product.vector_cores), arguments))
    return steps, tiling


def diagonal_sums(
    dy: Tensor, x: Tensor | None, view: Planes, tiling: Knobs,
    found: Resolution, context: PlanContext, steps: list[Step],
) -> Tensor:  # fmt: skip
    """What `diagonals` writes: (1 or 2, parts, blocks, 16, 16) in FP32. Adds a tile of ones and the products to `steps`.

    dy, x: in the type that is multiplied; x None: only the first half. tiling: cols (elements of a channel in a tile),
    parts (of the samples), cores (at most), buffers.
    """
    cols, parts = tiling["cols"], tiling["parts"]
    ones = context.tensor((CHANNELS, cols), dtype_of(dy))
    steps.append(Step(fill_ones, 1, {"out_ptr": ones, "n": ones.size, "BLOCK": up(ones.size, FRACTAL)}))
    blocks = -(-view.channels // CHANNELS)
    sums = context.tensor((1 if x is None else 2, parts, blocks, CHANNELS, CHANNELS), float32)
    arguments = {
        **{"dy_ptr": dy, "x_ptr": x, "ones_ptr": ones, "sums_ptr": sums},
        **{"samples": view.samples, "channels": view.channels, "space": view.space},
        **{"blocks": blocks, "parts": parts, "samples_per_part": -(-view.samples // parts)},
        **{"ROWS": CHANNELS, "COLS": cols, "multibuffer": tiling["buffers"]},
        "EVEN": view.channels % CHANNELS == 0 and view.space % cols == 0,
    }
    grid = min(tiling["cores"], blocks * parts)
    steps.append(Step(diagonals, grid, arguments, {"hf32_round": found.hf32_round}))
    return sums
