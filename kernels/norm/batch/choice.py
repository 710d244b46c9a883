"""Tilings of BatchNormReduceBackward: what fits, how the cores are shared out, and the launches that follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ....simulator.errors import UsageError
from ....simulator.precision.dtypes import float32
from ....simulator.products import Product
from ...operator.layout import even_part, up
from ...operator.plan import PlanContext, Step, bank_switches
from ...operator.tensors import Knobs, Tensor
from ...shared.sums import REPEAT, SUM_COLUMNS, zero_fill_step
from ..planes import Planes
from .tiles import columns, finish, planes

BLOCK = 16  # elements to which a row of a tile is padded at most
# What the latencies of one iteration of the loop, the end of a block and a second launch cost, in elements of a core's
# share: fitted to the simulator's own times.
ITERATION_ELEMENTS = 350
BLOCK_ELEMENTS = 1000
FINISH_ELEMENTS = 22_000
CYCLES_PER_ELEMENT = 0.146  # of a program that does not wait for memory, likewise
UNCENTRED = 0.85  # of these, without the difference to the mean
NOT_HIDDEN = 0.05  # part of the shorter of reading and computing that shows beside the longer one
LEAST_ITERATIONS = 4  # so that copies and arithmetic overlap


@dataclass(frozen=True)
class Grid:
    """parts: programs along N and S; groups: along C; tiles of samples x rows x cols; iterations and blocks of a program."""

    parts: int
    groups: int
    samples: int
    rows: int
    cols: int
    iterations: int
    blocks: int

    def work(self, memory: float) -> float:
        """Elements that the busiest program passes over: the first tile is waited for, a block ends with a reduction.

        memory: what all cores read from memory takes, in elements; the longer of the two hides most of the other.
        """
        tile = self.samples * self.rows * up(self.cols, BLOCK)
        block = self.iterations * (tile + ITERATION_ELEMENTS) + tile + BLOCK_ELEMENTS
        low, high = sorted((memory, tile + self.blocks * block))
        return high + NOT_HIDDEN * low + (FINISH_ELEMENTS if self.parts > 1 else 0)


def element_bytes(itemsize: int, copies: int, sums: str, with_x: bool, centred: bool) -> int:
    """UB bytes per element of a tile, at most (checked against the placement by a test).

    dy and x in their own type, `copies` each; FP32 accumulators (two, four if compensated); FP32 temporaries: the product,
    widened inputs (FP32 tiles are computed on where they were loaded), first sums of a tile, what compensation needs.
    """
    tensors = 1 + with_x
    transfers = tensors * itemsize * copies
    accumulators = tensors * {"lanes": 4, "kahan": 8, "tile": 0}[sums]
    temporaries = 4 * tensors if itemsize == 2 else 4
    temporaries += {"lanes": 0, "tile": 4, "kahan": 8 if itemsize == 2 else 12}[sums]
    return transfers + accumulators + temporaries + (4 if copies == 1 and itemsize == 4 and centred else 0)


def choose(view: Planes, itemsize: int, with_x: bool, knobs: Knobs, context: PlanContext) -> dict[str, Any]:
    """Every knob: as given, or by the rules here.

    strategy columns where S is 1. Else tiles of whole rows of S if several fit, or chunks of one row; the grid of programs
    is the one with the least work of its busiest program by `Grid.work`: channel_split has no second launch, batch_split
    gives every program all channels, hybrid is anything between.
    """
    if knobs["strategy"] == "columns" and view.space != 1:
        raise UsageError(
            f"batch_norm_reduce_backward: strategy columns is for inputs (N, C), S = 1; here S is {view.space}: "
            "take channel_split, batch_split, hybrid or auto"
        )
    by_columns = knobs["strategy"] == "columns" or (knobs["strategy"] == "auto" and view.space == 1)
    best, _ = _best_grid(view, itemsize, with_x, knobs, context)
    named = "columns" if by_columns else _name(best, view)
    strategy = named if knobs["strategy"] == "auto" else knobs["strategy"]
    return {
        **knobs,
        "strategy": strategy,
        "samples": best.samples,
        "rows": best.rows,
        "cols": best.cols,
        "parts": best.parts,
        "cores": best.parts * best.groups,
    }


def _best_grid(
    view: Planes, itemsize: int, with_x: bool, knobs: Knobs, context: PlanContext
) -> tuple[Grid, float]:
    """The grid with the least work that the knobs allow, and that work."""
    centred = knobs["form"] == "centred"
    each = element_bytes(itemsize, knobs["buffers"], knobs["sums"], with_x, centred)
    budget = max(BLOCK, (context.ub_bytes - 4096) // each)
    by_columns = knobs["strategy"] == "columns" or (knobs["strategy"] == "auto" and view.space == 1)
    cores = context.cores(knobs["cores"])
    make = column_grid if by_columns else plane_grid
    grids = [make(view, budget, p, g, knobs) for p, g in _shares(view, cores, knobs)]
    memory = 0.0
    if not by_columns:
        memory = _memory_cycles(view, itemsize * (1 + with_x), context.product) / CYCLES_PER_ELEMENT
    best = min(grids, key=lambda grid: grid.work(memory))
    return best, best.work(memory)


def fastest_cycles(view: Planes, itemsize: int, with_x: bool, knobs: Knobs, context: PlanContext) -> float:
    """About the cycles of the best grid of Vector cores."""
    work = _best_grid(view, itemsize, with_x, knobs, context)[1]
    return work * CYCLES_PER_ELEMENT * (1.0 if knobs["form"] == "centred" else UNCENTRED)


def _memory_cycles(view: Planes, itemsize: int, product: Product) -> float:
    """Cycles in which memory gives all elements, `itemsize` bytes each."""
    size = view.samples * view.channels * view.space * itemsize
    return size / (product.hbm_bytes_per_cycle * product.number("memory.read_efficiency"))


def _name(grid: Grid, view: Planes) -> str:
    return "channel_split" if grid.parts == 1 else "batch_split" if grid.groups == 1 else "hybrid"


def _shares(view: Planes, cores: int, knobs: Knobs) -> Iterator[tuple[int, int]]:
    """(parts, groups) that the strategy allows, on at most `cores` programs."""
    strategy, wanted = knobs["strategy"], knobs["parts"]
    if wanted is not None:
        parts = min(wanted, cores)
        yield parts, max(1, min(view.channels, cores // parts))
    elif strategy == "channel_split":
        yield 1, min(view.channels, cores)
    elif strategy == "batch_split":
        yield cores, 1
    else:
        for parts in range(1, cores + 1):
            yield parts, max(1, min(view.channels, cores // parts))


def plane_grid(view: Planes, budget: int, parts: int, groups: int, knobs: Knobs) -> Grid:
    """Tiles of samples x rows = channels x cols = elements of S."""
    share = -(-view.channels // groups)
    cols = min(view.space, knobs["cols"] or even_part(view.space, budget))
    width = up(cols, BLOCK)
    rows = min(share, knobs["rows"] or even_part(share, max(1, budget // width)))
    chunks = -(-view.space // cols)
    samples = min(view.samples, knobs["samples"] or _samples(view, chunks, budget // (rows * width), parts))
    items = -(-view.samples // samples) * chunks
    iterations = -(-items // min(parts, items))
    return Grid(
        -(-items // iterations),
        -(-view.channels // share),
        samples,
        rows,
        cols,
        iterations,
        -(-share // rows),
    )


def _samples(view: Planes, chunks: int, fit: int, parts: int) -> int:
    """Samples of a tile: as many as fit, but so that a program has LEAST_ITERATIONS iterations if it can."""
    if chunks > 1:
        return 1
    share = -(-view.samples // parts)
    return even_part(share, max(1, min(fit, share // LEAST_ITERATIONS)))


def column_grid(view: Planes, budget: int, parts: int, groups: int, knobs: Knobs) -> Grid:
    """Tiles of rows = samples, cols = channels."""
    channels = view.channels
    share = min(channels, up(-(-channels // groups), BLOCK))
    cols = min(share, knobs["cols"] or even_part(share, budget))
    per_part = -(-view.samples // min(parts, view.samples))
    fit = min(max(1, budget // up(cols, BLOCK)), max(1, per_part // LEAST_ITERATIONS))
    rows = min(per_part, knobs["rows"] or even_part(per_part, fit))
    groups = -(-channels // share)
    return Grid(-(-view.samples // per_part), groups, 1, rows, cols, -(-per_part // rows), -(-share // cols))


# -- launches --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChannelTensors:
    """Tensors of the sums: x None where only sums of dy are wanted; outputs as `put_sums` takes them."""

    dy: Tensor
    x: Tensor | None
    mean: Tensor | None
    invstd: Tensor | None
    outputs: tuple[Tensor | None, ...]


def sum_steps(given: ChannelTensors, view: Planes, tiling: Knobs, context: PlanContext) -> list[Step]:
    """The launch that sums, and with several parts the one that adds them up and writes the outputs."""
    parts, cores = tiling["parts"], context.product.vector_cores
    atomic = tiling["combine"] == "atomic"
    steps: list[Step] = []
    workspace = None
    if parts > 1:
        workspace = context.tensor((2 * (1 if atomic else parts), view.channels), float32)
        if atomic:
            steps.append(zero_fill_step(workspace, cores))
    steps.append(_main(given, view, tiling, workspace))
    if workspace is not None:
        steps.append(finish_step(given, workspace, tiling, cores))
    return steps


def _main(given: ChannelTensors, view: Planes, tiling: Knobs, workspace: Tensor | None) -> Step:
    """Sizes follow from the tiling as `Grid` has them."""
    by_columns = tiling["strategy"] == "columns"
    groups, parts = tiling["cores"] // tiling["parts"], tiling["parts"]
    share = -(-view.channels // groups)
    chunks = 1 if by_columns else -(-view.space // tiling["cols"])
    items = -(-view.samples // tiling["samples"]) * chunks
    arguments = {
        "dy_ptr": given.dy,
        "x_ptr": given.x,
        "mean_ptr": given.mean,
        "invstd_ptr": given.invstd,
        "parts_ptr": workspace,
        "outputs": given.outputs,
        "channels": view.channels,
        "items": items,
        "items_per_part": -(-items // parts),
        "parts": parts,
        "channels_per_core": min(view.channels, up(share, BLOCK)) if by_columns else share,
        "ROWS": tiling["rows"],
        "COLS": tiling["cols"],
        "CENTRED": tiling["form"] == "centred",
        "SUM": tiling["sums"],
        "ATOMIC": tiling["combine"] == "atomic",
        "multibuffer": tiling["buffers"],
    }
    if by_columns:
        return Step(columns, tiling["cores"], arguments, bank_switches(tiling))
    own = {"samples": view.samples, "space": view.space, "chunks": chunks, "SAMPLES": tiling["samples"]}
    return Step(planes, tiling["cores"], {**arguments, **own}, bank_switches(tiling))


def finish_step(
    given: ChannelTensors, workspace: Tensor, tiling: Knobs, cores: int, cols: int | None = None
) -> Step:
    """Launch that adds the parts up, split over channels, `cols` at a time if that is given."""
    channels = workspace.shape[1]
    cols = cols or min(SUM_COLUMNS, up(-(-channels // cores), REPEAT))
    arguments = {
        "parts_ptr": workspace,
        "mean_ptr": given.mean,
        "invstd_ptr": given.invstd,
        "outputs": given.outputs,
        "channels": channels,
        "PARTS": workspace.shape[0] // 2,
        "COLS": cols,
        "CENTRED": tiling["form"] == "centred",
        "WITH_X": given.x is not None,
        "multibuffer": tiling["buffers"],
    }
    return Step(finish, min(cores, -(-channels // cols)), arguments)
