"""Tilings of RmsNormGrad: what fits in UB, which one pays, and what the vendor's tiling takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ....simulator.products import Product
from ...operator.layout import up
from ...operator.plan import PlanContext
from ...operator.tensors import Knobs, Tensor, dtype_of
from ...shared.sums import REPEAT

BLOCK_BYTES = 32
SPLIT_COLUMNS = (256, 512, 1024)  # chunks of split_row that are tried: longer ones leave no room for rows
KEPT_COLUMNS = (512, 1024, 2048, 4096)  # the same of kept_row, in about so many columns
MARGIN_BYTES = 1024
TOGETHER = 2  # chunks of kept_row whose operations alternate
MOST_ELEMENTS = 16384  # of a tile
MOST_CHUNKS = 64  # of a row of kept_row: each is a piece of program of its own


def full_row_bytes(cols: int, rows: int, itemsize: int, copies: int) -> int:
    """UB bytes that full_row needs for tiles of rows x cols, at most (checked against the placement by a test).

    As `kept_row_bytes` with one chunk; gamma and dgamma take the place of what the last of the tiles leaves free. Of one row
    s is still there when the first half of the sum over t * x is made; of several, halves of s * x take more later.
    """
    cols = up(cols, BLOCK_BYTES // itemsize)
    kept = (8 if itemsize == 2 else 0) + (3 * itemsize * copies if copies > 1 else 0)
    return rows * cols * ((kept or 8) + (14 if rows == 1 else 12)) + 4 * cols + 128 * rows + MARGIN_BYTES


def kept_row_bytes(length: int, cols: int, rows: int, itemsize: int, copies: int) -> int:
    """UB bytes of kept_row for `rows` rows of `length` columns in chunks of `cols`, at most.

    dy and x in their own type and dx, `copies` each; x and t in FP32 (FP32 tiles stay where they were loaded, and t becomes
    dx); what is made from them in `TOGETHER` chunks: s or s * x, t * x, their sum, and half of one for the first step of a
    sum. gamma and dgamma in FP32.
    """
    block = BLOCK_BYTES // itemsize
    chunks = -(-length // cols)
    cols = up(cols, block)
    whole = chunks * cols
    if itemsize == 2:
        kept = 8 + (6 * copies if copies > 1 else 4 if chunks > 1 else 0)
    else:
        kept = 12 * copies if chunks > 1 or copies > 1 else 8
    made = 2 * min(TOGETHER, chunks) + (1 if chunks > 1 else 0)
    halves = 2 if rows == 1 or chunks > 1 else 4
    return (
        rows * (whole * kept + cols * (4 * made + halves)) + 8 * whole + 4 * cols + 128 * rows + MARGIN_BYTES
    )


def split_row_bytes(cols: int, rows: int, itemsize: int, copies: int) -> int:
    """UB bytes that split_row needs for tiles of rows x cols, at most, as above; gamma comes anew with every chunk."""
    cols = up(cols, BLOCK_BYTES // itemsize)
    transfers = 3 * itemsize * copies if copies > 1 else 0
    temporaries = 15 if copies == 1 else 12 if itemsize == 2 else 6
    return rows * cols * (transfers + temporaries) + (8 + 4 * copies) * cols + 128 * rows


class Candidate(NamedTuple):
    """A tiling: strategy, rows of a tile, columns of a chunk, copies."""

    strategy: str
    rows: int
    cols: int
    buffers: int


def needs(c: Candidate, length: int, itemsize: int) -> int:
    """UB bytes of a candidate, at most."""
    if c.strategy == "split_row":
        return split_row_bytes(c.cols, c.rows, itemsize, c.buffers)
    if c.strategy == "full_row":
        return full_row_bytes(c.cols, c.rows, itemsize, c.buffers)
    return kept_row_bytes(length, c.cols, c.rows, itemsize, c.buffers)


def written_bytes(c: Candidate) -> int:
    """UB bytes, at most, of what combine cube writes out to be added up: FP32 tiles of as many chunks as alternate."""
    return TOGETHER * c.rows * up(c.cols, BLOCK_BYTES // 4) * 4 * c.buffers


def choose(x: Tensor, gamma: Tensor, knobs: Knobs, context: PlanContext) -> dict[str, Any]:
    """Every knob: as given, or by the rules here; cut to what the shapes allow.

    strategy vendor: see `vendor_tile`. What is left open is the candidate that fits and has the least time by `cycles`.
    """
    row_count, length = x.size // gamma.size, gamma.size
    share = -(-row_count // min(context.cores(knobs["cores"]), row_count))
    itemsize, product = dtype_of(x).itemsize, context.product
    used = {**knobs, "cores": -(-row_count // share)}
    if knobs["strategy"] == "vendor":
        return {**used, **vendor_tiling(length, share, itemsize, knobs, product.ub_bytes)}
    found = list(candidates(length, share, itemsize, knobs))
    on_cube = knobs["combine"] == "cube"
    size = {c: needs(c, length, itemsize) + on_cube * written_bytes(c) for c in found}
    fitting = [c for c in found if size[c] <= context.ub_bytes]
    if not fitting:  # what was asked for does not fit: the placement says by how much
        fitting = [min(found, key=size.__getitem__)]
    costs = Costs(product, itemsize)
    best = min(fitting, key=lambda c: costs.cycles(c, length, share))
    return {**used, **best._asdict()}


def candidates(length: int, share: int, itemsize: int, knobs: Knobs) -> Iterator[Candidate]:
    """Tilings to choose from: what is given is kept."""
    every = ("full_row", "kept_row", "split_row")
    wanted = knobs["strategy"]
    for strategy in every if wanted == "auto" else (wanted,):
        if wanted == "auto" and strategy == "kept_row" and length < 2 * KEPT_COLUMNS[0]:
            continue  # one chunk: full_row
        for cols in chunk_lengths(strategy, length, knobs["cols"]):
            for buffers in (knobs["buffers"],) if knobs["buffers"] else (2, 1):
                yield from _rows(strategy, cols, buffers, length, share, itemsize, knobs["rows"])


def _rows(
    strategy: str, cols: int, buffers: int, length: int, share: int, itemsize: int, wanted: int | None
) -> Iterator[Candidate]:
    """Rows of a tile: what is given, or few for long rows, and numbers that leave little of the last tile empty."""
    if wanted is not None:
        yield Candidate(strategy, min(wanted, share), cols, buffers)
        return
    most = max(1, min(share, MOST_ELEMENTS // cols))
    iterations = (-(-share // rows) for rows in range(1, most + 1))
    for rows in sorted({-(-share // n) for n in iterations}):
        yield Candidate(strategy, rows, cols, buffers)


def chunk_lengths(strategy: str, length: int, wanted: int | None) -> list[int]:
    """Columns of a chunk: whole rows; or what was asked for in whole repeats; or equal parts of about the usual lengths."""
    if strategy == "full_row":
        return [length]
    if wanted is not None:
        least = -(-length // MOST_CHUNKS) if strategy == "kept_row" else 1
        return [min(length, up(max(wanted, least), REPEAT))]
    if strategy == "split_row":
        return sorted({min(length, up(-(-length // -(-length // n)), REPEAT)) for n in SPLIT_COLUMNS})
    parts = {max(2, -(-length // cols)) for cols in KEPT_COLUMNS}
    return sorted({min(length, up(-(-length // n), REPEAT)) for n in parts if length > REPEAT}) or [length]


VENDOR_FULL_ROW, VENDOR_SMALL_ROW, VENDOR_CHUNK = 6080, 640, 4096  # columns
VENDOR_BLOCK = 32  # rows
VENDOR_UB = 195_584


def vendor_tile(length: int, share: int, itemsize: int) -> tuple[int, int]:
    """(rows, columns) of a tile by the vendor's rules (hicann/ops-nn, rms_norm_grad/op_host/rms_norm_grad_tiling.cpp).

    `share`: rows of a core. Rows of at most 640 columns go in blocks, up to 6080 one at a time, longer ones in chunks of
    4096 and blocks of 32 rows, whose sums are kept between the two sweeps.
    """
    cols = up(length, BLOCK_BYTES // itemsize)
    if cols > VENDOR_FULL_ROW:
        return VENDOR_BLOCK, VENDOR_CHUNK
    rows = (VENDOR_UB - 10 * cols) // (24 * cols + 268) if cols <= VENDOR_SMALL_ROW else 1
    return max(1, min(rows, share)), length


def vendor_tiling(length: int, share: int, itemsize: int, knobs: Knobs, capacity: int) -> dict[str, Any]:
    """The vendor's tile. Its kernel computes in place on buffers of FP32 width; ours needs more for a row."""
    rows, cols = vendor_tile(length, share, itemsize)
    buffers = knobs["buffers"] or 2
    while cols == length and rows > 1 and vendor_bytes(cols, rows, itemsize, buffers) > capacity:
        rows -= 1
    if cols == length and vendor_bytes(cols, rows, itemsize, buffers) > capacity:
        buffers = 1
    return {"rows": rows, "cols": cols, "buffers": buffers, "banks": "packed"}


def vendor_bytes(cols: int, rows: int, itemsize: int, copies: int) -> int:
    """UB bytes of full_row_vendor, at most."""
    cols = up(cols, BLOCK_BYTES // itemsize)
    transfers = 3 * itemsize * copies if copies > 1 else 0
    temporaries = (16 if rows == 1 else 19) - (4 if itemsize == 4 and copies > 1 else 0)
    return rows * cols * (transfers + temporaries) + (8 if rows == 1 else 12) * cols + 128 * rows


class Costs:
    """Cycles of a core that has most rows, by a count of what the kernels do; fitted to the simulator's own times.

    Of a launch in a loop, whose tensors are in L2 if they fit, and of one on a cold L2, which counts half: a tiling is
    chosen before anybody knows what it will find, and a loop is the usual case.
    An operation passes over a tile in repeats of 64 elements; one that waits for another's result takes longer.
    """

    def __init__(self, product: Product, itemsize: int) -> None:
        self.itemsize = itemsize
        self.port = product.number("path.gm_to_ub.bytes_per_cycle")
        self.memory, self.l2 = (
            rate / product.vector_cores
            for rate in (
                product.hbm_bytes_per_cycle * product.number("memory.read_efficiency"),
                product.l2_bytes_per_cycle,
            )
        )
        self.cores, self.l2_size = product.vector_cores, product.number("l2.size")
        self.again = product.number("path.gm_to_ub.l2_hit_bytes_per_cycle")
        self.start = product.number("path.gm_to_ub.fixed_cycles")

    def cycles(self, c: Candidate, length: int, share: int) -> float:
        """Of all iterations of the loop over rows."""
        moved = 2 * length * self.itemsize  # of a row
        fits = 1.5 * moved * share * self.cores <= self.l2_size  # dx is written, too
        split = c.strategy == "split_row"
        of_cycles = self._split if split else self._kept
        spilled = 1.0 if fits or split else 1.5  # dx has to go to memory
        cold = max(1 / self.port, spilled / self.memory)
        loop = 1 / self.l2 if fits else cold
        return sum(
            weight * of_cycles(c, length, share, c.rows * moved * each)
            for weight, each in ((1.0, loop), (COLD, cold))
        )

    def _kept(self, c: Candidate, length: int, share: int, loads: float) -> float:
        """Of full_row and kept_row, whose loads take so many cycles an iteration."""
        iterations = -(-share // c.rows)
        vector, alone = self._vector(c, length), 0.0
        if (
            c.buffers == 1
        ):  # a load waits until its place is free: FP32 is computed on in place, by other chunks beside it
            shown = KEPT_SHOWN * min(vector, loads) if self.itemsize == 2 else 0.0
            alone = (self.start + shown) / -(-length // c.cols)
        return float(iterations * (max(vector, loads) + alone) + loads)

    def _vector(self, c: Candidate, length: int) -> float:
        """Vector cycles of an iteration of full_row and kept_row."""
        chunks, repeats, narrow = -(-length // c.cols), c.rows * up(c.cols, 8) / REPEAT, self.itemsize == 2
        operations = 8.9 + 2.3 * narrow + 0.4 * (chunks > 1)
        operations += (2.3 if narrow else 0.2) * (c.buffers > 1)  # banks of UB
        operations += 1.2 * (c.rows > 1) + 0.7 * (c.rows & (c.rows - 1) > 0)  # sums over rows
        each = operations * repeats + CHUNK + SHORT * max(0.0, LATENCY - repeats)
        return chunks * each + ALONE * (chunks % 2) + START + HALVING * sum_steps(c.cols) + ROW * c.rows

    def _split(self, c: Candidate, length: int, share: int, loads: float) -> float:
        """Of split_row, whose copies overlap from chunk to chunk; gamma comes with every chunk, twice."""
        chunks, iterations = -(-length // c.cols), -(-share // c.rows)
        operations, waits, rows, shown = SPLIT[self.itemsize]
        repeats = c.rows * up(c.cols, 8) / REPEAT
        vector = chunks * (operations * repeats + (waits + sum_steps(c.cols)) * LATENCY + rows * c.rows)
        again = c.rows * 2 * length * self.itemsize / self.again
        loads += again + 2 * length * self.itemsize / GAMMA_RATE
        if c.buffers == 1:
            return float(iterations * (vector + NOT_HIDDEN * loads + self.start))
        return float(iterations * (max(vector, loads) + shown * min(vector, loads)) + loads / chunks)


def sum_steps(cols: int) -> int:
    """Steps until 64 sums of a row are left."""
    return max(0, (-(-cols // REPEAT) - 1).bit_length())


LATENCY = 26  # cycles until a result can be used: vector.op.muls.fixed_cycles
COLD = 0.5  # weight of the time on a cold L2 beside that in a loop
# Of an iteration of kept_row in cycles: its start; for each chunk; for each repeat that a chunk is too short to hide a
# latency; of a chunk whose operations have no other chunk's between them; for a step of the sum of a row; for each row.
START, CHUNK, SHORT, ALONE, HALVING, ROW = 147, 56, 1.4, 142, 15, 5.5
# Of split_row by bytes of an element: operations on a tile, latencies that a chunk waits, cycles of a row's sum, part of the
# shorter of loading and computing that shows beside the longer one.
SPLIT = {2: (16.6, 13.5, 10.0, 0.12), 4: (14.1, 13.6, 7.8, 0.0)}
NOT_HIDDEN = 0.38  # part of its loads that shows with one copy of a tile
KEPT_SHOWN = 0.3  # the same of kept_row and of narrow types, over the chunks of a row: of the shorter one
GAMMA_RATE = 14.0  # bytes in a cycle of what all cores load at once
