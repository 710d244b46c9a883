# mypy: disable-error-code="no-untyped-def"
"""Changes between ND and the Cube's blocks and fractals (TransData): tiles are turned in UB.

    NC1HWC0      (N, C1, H * W, C0) of NCHW: rows of C0 channels
    FRACTAL_Z    (C1 * taps, N1, 16, C0) of the weight NCHW, taps = H * W
    FRACTAL_NZ   (N1, M, C0) of a matrix (M, N)

How the vendor's kernels cut is not published: the fastest of a few sizes of tiles counts, on the row's cores. Elements
that fill blocks up are written as zeros and not read. The shares of the pipes in the profiles add up to one where tiles
are turned: these kernels have one buffer (`buffers=1`). Rows of taps, or of an image, that are shorter than a repeat
are turned block by block, each a turn of a loop: the scalar unit works that long for each (board_micro: 13.2 cycles a
turn beside vector work).
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.errors import UsageError
from ...simulator.jit_function import JitFunction
from ...simulator.products import load_product
from ...simulator.record.run import Run
from .registry import Prediction, predicts
from .remarks import remark
from .settings import (
    BYTES,
    Settings,
    dtypes_of,
    fastest,
    measured_time,
    note_of,
    roofline_us,
    shape_of,
    tensor,
)
from .table import Row
from .vector.starts import larger_code_us

FRACTAL = 16
MATRIX_BLOCKS: tl.constexpr = 512  # of a tile of a matrix, 16 KiB
BLOCK_BYTES = 32
TURN_CYCLES = (
    13.2  # of the scalar unit in a loop of vector instructions (board_micro, between its sections 4 and 5)
)


@sim.jit
def image_to_blocks(x_ptr, y_ptr, items, C, P, C0: tl.constexpr, BLOCK: tl.constexpr, BACK: tl.constexpr):
    """y (N, C1, P, C0) of x (N, C, P), BLOCK places a tile; BACK: x of y."""
    across, c1s = tl.cdiv(P, BLOCK), tl.cdiv(C, C0)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        p = item % across * BLOCK + tl.arange(0, BLOCK)
        c1, n = item // across % c1s, item // (across * c1s)
        c = c1 * C0 + tl.arange(0, C0)
        rows = x_ptr + (n * C + c)[:, None] * P + p[None, :]
        blocks = y_ptr + ((n * c1s + c1) * P + p)[:, None] * C0 + tl.arange(0, C0)[None, :]
        inside = (c < C)[:, None] & (p < P)[None, :]
        if BACK:
            tile = tl.load(blocks, mask=(p < P)[:, None], other=0.0)
            tl.store(rows, tl.trans(tile), mask=inside)
        else:
            tl.store(blocks, tl.trans(tl.load(rows, mask=inside, other=0.0)), mask=(p < P)[:, None])


@sim.jit
def weight_to_fractals(
    x_ptr, y_ptr, items, N, C, TAPS: tl.constexpr, C0: tl.constexpr, BLOCK: tl.constexpr, BACK: tl.constexpr
):
    """y (C1, TAPS, N in whole fractals, C0) of x (N, C, TAPS), BLOCK rows of x and C0 channels a tile; BACK: x of y."""
    padded = tl.cdiv(N, 16) * 16
    down = tl.cdiv(padded, BLOCK)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        n, c1 = item % down * BLOCK + tl.arange(0, BLOCK), item // down
        c, taps = c1 * C0 + tl.arange(0, C0), tl.arange(0, TAPS)
        rows = x_ptr + (n[:, None, None] * C + c[None, :, None]) * TAPS + taps[None, None, :]
        blocks = y_ptr + ((c1 * TAPS + taps)[:, None, None] * padded + n[None, :, None]) * C0
        blocks += tl.arange(0, C0)[None, None, :]
        inside, there = (n < N)[:, None, None] & (c < C)[None, :, None], (n < padded)[None, :, None]
        if BACK:
            tile = tl.load(blocks, mask=there, other=0.0)
            tl.store(rows, tl.permute(tile, (1, 2, 0)), mask=inside)
        else:
            tile = tl.load(rows, mask=inside, other=0.0)
            tl.store(blocks, tl.permute(tile, (2, 0, 1)), mask=there)


@sim.jit
def matrix_to_fractals(
    x_ptr, y_ptr, items, M, N, C0: tl.constexpr, BLOCK: tl.constexpr, BACK: tl.constexpr
):  # fmt: skip
    """y (N1, M, C0) of x (M, N): some rows of BLOCK blocks of columns a tile, which copies alone move; BACK: x of y.

    With more than one block x moves in long rows, and y block by block of 32 bytes: 3.9 cycles each on MTE3 of a board
    (msi-qwen-transdata-2). With one block it is the other way round.
    """
    ROWS: tl.constexpr = MATRIX_BLOCKS // BLOCK
    N1 = tl.cdiv(N, C0)
    across = tl.cdiv(N1, BLOCK)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        m, n1 = item // across * ROWS + tl.arange(0, ROWS), item % across * BLOCK + tl.arange(0, BLOCK)
        n = item % across * (BLOCK * C0) + tl.arange(0, BLOCK * C0)
        rows, inside = x_ptr + m[:, None] * N + n[None, :], (m < M)[:, None] & (n < N)[None, :]
        blocks = y_ptr + (n1[None, :, None] * M + m[:, None, None]) * C0 + tl.arange(0, C0)[None, None, :]
        there = (m < M)[:, None, None] & (n1 < N1)[None, :, None]
        if BACK:
            x = tl.reshape(tl.load(blocks, mask=there, other=0.0), (ROWS, BLOCK * C0))
            tl.store(rows, x, mask=inside)
        else:
            x = tl.reshape(tl.load(rows, mask=inside, other=0.0), (ROWS, BLOCK, C0))
            tl.store(blocks, x, mask=there)


class Change(NamedTuple):
    """A kernel, the elements of both sides, what else it takes, and blocks that are tried with how many tiles they make.

    turned: rows that are turned in UB block by block, and 32-byte blocks of each.
    """

    kernel: JitFunction
    sizes: tuple[int, int]
    numbers: tuple[int, ...]
    tried: dict[int, int]
    turned: tuple[int, int] = (0, 0)


LAYOUTS = ("NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ")


@predicts("transdata")
def _transdata(row: Row) -> Prediction:
    """shapes: the sizes in ND. to= or from=: the other layout; c0=: channels of a block, else 32 bytes of them."""
    s, (source, *_) = Settings(row), dtypes_of(row)[0]
    to, back = s.text("to"), s.text("from")
    if bool(to) == bool(back) or (to or back) not in LAYOUTS:
        raise UsageError(
            f"{row.id}: tiling needs one of to= and from= with {', '.join(LAYOUTS)}; got to={to} from={back}"
        )
    c0 = s.number("c0", 32 // BYTES[source])
    if c0 & (c0 - 1):
        raise UsageError(f"{row.id}: tiling c0={c0}: blocks have a power of two of channels")
    change = _change(row, to or back, c0, BYTES[source])
    plain, blocks = (tensor(source, n) for n in change.sizes)
    cores = s.number("cores")

    def work(block: int) -> Run:
        items = change.tried[block]
        arguments = plain, blocks, items, *change.numbers
        grid = (min(items, cores),)
        return change.kernel.time(grid, *arguments, C0=c0, BACK=bool(back), BLOCK=block)  # type: ignore[no-any-return]

    run, block, count = fastest(row, change.tried, work)
    rows, each = change.turned
    sizes = [n * BYTES[source] for n in change.sizes]
    moved = (sizes[1], sizes[0]) if back else (sizes[0], sizes[1])
    note = note_of(count, f"tiles of {block}")
    time = measured_time(row, run) + turns_us(row, -(-rows // cores) * each) + larger_code_us(row)
    return Prediction(time, roofline_us(row, moved), note)


def _change(row: Row, layout: str, c0: int, size: int) -> Change:
    shape = shape_of(row)
    if len(shape) < (2 if layout == "FRACTAL_NZ" else 3):
        raise UsageError(
            f"{row.id}: FRACTAL_NZ is of M x N, NC1HWC0 and FRACTAL_Z of N x C x H x W; got {layout} and {row.shapes!r}"
        )
    n, c, taps = shape[0], shape[1], prod(shape[2:])
    if layout == "FRACTAL_NZ" and taps > 1:  # rows of several matrices follow each other
        n, c = prod(shape[:-1]), shape[-1]
        remark("rows of all matrices are taken as those of one")
    c1 = -(-c // c0)
    if layout == "FRACTAL_NZ" or (
        layout == "FRACTAL_Z" and taps == 1
    ):  # weights of one tap are a matrix: nothing is turned in its blocks
        tried = {b: -(-n * b // MATRIX_BLOCKS) * -(-c1 // b) for b in (1, 4, 16, 64)}
        return Change(matrix_to_fractals, (n * c, n * c1 * c0), (n, c), tried)
    if layout == "NC1HWC0":
        # rows of a whole image follow each other: read at once; from UB each is written by itself, as it begins a block
        whole = -(-taps // 8) * 8 if Settings(row).text("from") else taps
        lengths = sorted({min(p, whole) for p in (128, 256, 512, 768)})
        tried = {p: n * c1 * -(-taps // p) for p in lengths}
        return Change(image_to_blocks, (n * c * taps, n * c1 * c0 * taps), (c, taps), tried)
    whole = -(-n // FRACTAL) * FRACTAL
    tried = {b: -(-whole // b) * c1 for b in (1, 4, 16, 32, 64)}
    turned = n * c, -(-taps * size // BLOCK_BYTES)
    return Change(weight_to_fractals, (n * c * taps, whole * c1 * c0 * taps), (n, c, taps), tried, turned)


def turns_us(row: Row, turns: float) -> float:
    """Time of the scalar unit for so many turns of a loop of vector instructions on one core."""
    return load_product(row.product).cycles_to_us(turns * TURN_CYCLES)
