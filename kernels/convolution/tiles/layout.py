# mypy: disable-error-code="no-untyped-def"
"""Tile kernels that change layouts on the Vector cores, as the vendor's TransData does, with the cast on the way.

Images go from (N, C, positions) to rows of channels (N, positions, C padded to whole blocks) and back; weights from
(groups * narrow, wide, taps) to (merged groups, taps, narrow, wide), block-diagonal in merged groups, and back.
"""

from __future__ import annotations

from math import prod

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.language.extra.cann import extension as al
from ....simulator.products import Product
from ...operator.layout import up
from ...operator.plan import Step
from ...operator.tensors import Tensor, dtype_of
from ..geometry import Geometry, Merging

TILE_BYTES = 16384  # of the wider of the two element types, twice for the transposed tile; of large images twice as much
ITEM_US = 0.35  # of a tile on a Vector core, for the choice of cores only
MANY_TILES = 8  # for each core, from which on larger tiles still share the work evenly
PATCH_ELEMENTS = 4096
SPREAD_ELEMENTS = 1024  # of a tile whose elements lie apart in memory: each lands in a block of its own


@sim.jit
def to_rows(x_ptr, out_ptr, items, C, P, PITCH: tl.constexpr, BC: tl.constexpr, BP: tl.constexpr):
    """out (N, P, PITCH) = x (N, C, P) transposed, in the type of out; channels from C on are zero."""
    across, down = tl.cdiv(P, BP), PITCH // BC
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        n = item // (across * down)
        c = item // across % down * BC + tl.arange(0, BC)
        p = item % across * BP + tl.arange(0, BP)
        inside = (c < C)[:, None] & (p < P)[None, :]
        x = tl.load(x_ptr + n * C * P + c[:, None] * P + p[None, :], mask=inside, other=0.0)
        rows = tl.trans(x.to(out_ptr.dtype.element_ty))
        tl.store(out_ptr + n * P * PITCH + p[:, None] * PITCH + c[None, :], rows, mask=(p < P)[:, None])


@sim.jit
def from_rows(
    x_ptr, out_ptr, items, C, P,
    PITCH: tl.constexpr, BC: tl.constexpr, BP: tl.constexpr, SHARED: tl.constexpr = False,
):  # fmt: skip
    """out (N, C, P) = x (N, P, PITCH) transposed back, in the type of out. SHARED: two Vector cores share the items."""
    across, down = tl.cdiv(P, BP), tl.cdiv(C, BC)
    for item in al.parallel(tl.program_id(0), items, tl.num_programs(0), bind_sub_block=SHARED):
        n = item // (across * down)
        c = item // across % down * BC + tl.arange(0, BC)
        p = item % across * BP + tl.arange(0, BP)
        at = n * P * PITCH + p[:, None] * PITCH + c[None, :]
        rows = tl.load(x_ptr + at, mask=(p < P)[:, None], other=0.0)
        x = tl.trans(rows.to(out_ptr.dtype.element_ty))
        inside = (c < C)[:, None] & (p < P)[None, :]
        tl.store(out_ptr + n * C * P + c[:, None] * P + p[None, :], x, mask=inside)


@sim.jit
def weight_blocks(
    w_ptr, out_ptr, items,
    GROUPS: tl.constexpr, NARROW: tl.constexpr, WIDE: tl.constexpr, TAPS: tl.constexpr,
    EXTENT: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, BA: tl.constexpr, BB: tl.constexpr,
    BACK: tl.constexpr, THROUGH_FP16: tl.constexpr,
):  # fmt: skip
    """Between w (GROUPS * NARROW, WIDE, TAPS) and blocks (merged groups, TAPS, ROWS, COLS).

    Group i of a merged group has rows i * NARROW and columns i * WIDE on. BACK: from blocks to w, by way of FP16 if asked.
    """
    across, down = tl.cdiv(WIDE, BB), tl.cdiv(NARROW, BA)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        a = item // across % down * BA + tl.arange(0, BA)[None, :, None]
        b = item % across * BB + tl.arange(0, BB)[None, None, :]
        tap = item // (across * down) % TAPS
        merged = item // (across * down * TAPS)
        i = tl.arange(0, EXTENT)[:, None, None]
        inside = (i < GROUPS - merged * EXTENT) & (a < NARROW) & (b < WIDE)
        w = merged * EXTENT * NARROW * WIDE * TAPS + tap
        w_at = w + i * (NARROW * WIDE * TAPS) + a * (WIDE * TAPS) + b * TAPS
        block = (merged * TAPS + tap) * ROWS * COLS
        block_at = block + i * (NARROW * COLS + WIDE) + a * COLS + b
        if BACK:
            x = tl.load(w_ptr + block_at, mask=inside, other=0.0)
            if THROUGH_FP16:
                x = x.to(tl.float16)
            tl.store(out_ptr + w_at, x.to(out_ptr.dtype.element_ty), mask=inside)
        else:
            x = tl.load(w_ptr + w_at, mask=inside, other=0.0)
            tl.store(out_ptr + block_at, x.to(out_ptr.dtype.element_ty), mask=inside)


@sim.jit
def clear(out_ptr, n, COLS: tl.constexpr):
    """Elements [0, n) of out become zero, in any type."""
    for first in range(tl.program_id(0) * COLS, n, tl.num_programs(0) * COLS):
        cols = first + tl.arange(0, COLS)
        tl.store(out_ptr + cols, tl.zeros((COLS,), out_ptr.dtype.element_ty), mask=cols < n)


@sim.jit
def stuff_zeros(
    x_ptr, out_ptr, items,
    SIZES: tl.constexpr, OUT: tl.constexpr, STRIDE: tl.constexpr, C0: tl.constexpr, BW: tl.constexpr,
):  # fmt: skip
    """out (planes, *OUT, C0) = x (planes, *SIZES, C0) with STRIDE - 1 zeros between neighbours; out is zero before."""
    across = tl.cdiv(SIZES[2], BW)
    lane = tl.arange(0, C0)[None, :]
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        w = item % across * BW + tl.arange(0, BW)[:, None]
        row = item // across
        plane, d, h = row // (SIZES[0] * SIZES[1]), row // SIZES[1] % SIZES[0], row % SIZES[1]
        inside = w < SIZES[2]
        x = tl.load(x_ptr + row * (SIZES[2] * C0) + w * C0 + lane, mask=inside, other=0.0)
        at = ((plane * OUT[0] + d * STRIDE[0]) * OUT[1] + h * STRIDE[1]) * (OUT[2] * C0)
        tl.store(out_ptr + at + w * (STRIDE[2] * C0) + lane, x, mask=inside)


# -- launches --------------------------------------------------------------------------------------------------------


def rows_step(x: Tensor, out: Tensor, channels: int, product: Product, back: bool = False) -> Step:
    """Launch between an image (N, C, positions) and rows of channels; `back`: x has the rows."""
    rows = x if back else out
    pitch, batch = rows.shape[-1], rows.shape[0]
    positions = prod(rows.shape[1:-1])
    width = max(dtype_of(x).itemsize, dtype_of(out).itemsize)
    many = batch * positions * pitch * width > MANY_TILES * product.vector_cores * TILE_BYTES
    bc, bp = transposed_tile(pitch, positions, (2 if many else 1) * TILE_BYTES // width)
    across = -(-positions // bp)
    items = batch * across * (-(-channels // bc) if back else pitch // bc)
    arguments = {
        **{"x_ptr": x, "out_ptr": out, "items": items, "C": channels, "P": positions},
        **{"PITCH": pitch, "BC": bc, "BP": bp, "multibuffer": 2},
    }
    return Step(from_rows if back else to_rows, cores_for(items, product), arguments)


def cores_for(items: int, product: Product) -> int:
    """Vector cores for a launch of so many tiles: one that wakes fewer cores starts earlier."""
    most = min(items, product.vector_cores)
    one, every = (product.number(f"launch.{n}_overhead_us") for n in ("single_core", "all_cores"))
    wake = (every - one) / max(1, product.vector_cores - 1)
    return min(range(1, most + 1), key=lambda n: (-(-items // n) * ITEM_US + n * wake, n))


def transposed_tile(pitch: int, positions: int, elements: int) -> tuple[int, int]:
    """(channels, positions) of a tile of about `elements`; channels divide the row, few positions take more of them."""
    across = min(positions, 128)
    most = max(16, elements // up(across, 16))
    bc = max((c for c in range(8, min(pitch, most) + 1, 8) if pitch % c == 0), default=pitch)
    return bc, min(up(positions, 16) if positions > 128 else positions, max(16, elements // bc // 16 * 16))


def blocks_step(
    w: Tensor,
    out: Tensor,
    g: Geometry,
    m: Merging,
    product: Product,
    back: bool = False,
    through_fp16: bool = False,
) -> Step:
    """Launch between a weight as users have it and blocks of merged groups; `back`: w has the blocks."""
    narrow, wide = g.narrow_channels, g.wide_channels
    bb = min(wide, max(1, SPREAD_ELEMENTS // m.extent))
    ba = min(narrow, max(1, SPREAD_ELEMENTS // (m.extent * bb)))
    items = m.count * g.taps * -(-narrow // ba) * -(-wide // bb)
    arguments = {
        **{"w_ptr": w, "out_ptr": out, "items": items, "GROUPS": g.groups, "NARROW": narrow, "WIDE": wide},
        **{"TAPS": g.taps, "EXTENT": m.extent, "ROWS": m.narrow, "COLS": m.wide, "BA": ba, "BB": bb},
        **{"BACK": back, "THROUGH_FP16": through_fp16, "multibuffer": 2},
    }
    return Step(weight_blocks, cores_for(items, product), arguments)


def clear_step(out: Tensor, product: Product) -> Step:
    """Launch that fills a tensor with zero."""
    cols = min(8192, up(out.size, 16))
    arguments = {"out_ptr": out, "n": out.size, "COLS": cols}
    return Step(clear, cores_for(-(-out.size // cols), product), arguments)


@sim.jit
def fold_patches(
    x_ptr, out_ptr, items, C,
    PATCHES: tl.constexpr, TAPS: tl.constexpr, PITCH: tl.constexpr, BW: tl.constexpr, BACK: tl.constexpr,
):  # fmt: skip
    """Between an image (N, C, *PATCHES * TAPS) and rows (N, *PATCHES, PITCH) of C * TAPS channels; BACK: x has the rows."""
    PLANE: tl.constexpr = PATCHES[1] * TAPS[1] * PATCHES[2] * TAPS[2]
    across = tl.cdiv(PATCHES[2], BW)
    kh = tl.arange(0, TAPS[1])[:, None, None]
    kw = tl.arange(0, TAPS[2])[None, None, :]
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        w = item % across * BW + tl.arange(0, BW)[None, :, None]
        h = item // across % PATCHES[1]
        jd = item // (across * PATCHES[1]) % TAPS[0]
        d = item // (across * PATCHES[1] * TAPS[0]) % PATCHES[0]
        c = item // (across * PATCHES[1] * TAPS[0] * PATCHES[0]) % C
        n = item // (across * PATCHES[1] * TAPS[0] * PATCHES[0] * C)
        plane = (n * C + c) * (PATCHES[0] * TAPS[0]) + d * TAPS[0] + jd
        image = plane * PLANE + (h * TAPS[1] + kh) * (PATCHES[2] * TAPS[2]) + w * TAPS[2] + kw
        row = ((n * PATCHES[0] + d) * PATCHES[1] + h) * (PATCHES[2] * PITCH)
        rows = row + w * PITCH + (c * TAPS[0] + jd) * (TAPS[1] * TAPS[2]) + kh * TAPS[2] + kw
        alive = w < PATCHES[2]
        if BACK:
            x = tl.load(x_ptr + rows, mask=alive, other=0.0)
            tl.store(out_ptr + image, x.to(out_ptr.dtype.element_ty), mask=alive)
        else:
            x = tl.load(x_ptr + image, mask=alive, other=0.0)
            tl.store(out_ptr + rows, x.to(out_ptr.dtype.element_ty), mask=alive)


def patches_step(x: Tensor, out: Tensor, g: Geometry, product: Product, back: bool = False) -> Step:
    """Launch between an image and rows of whole patches; `back`: x has the rows."""
    rows, taps = x if back else out, tuple(a.taps for a in g.axes)
    patches = tuple(a.narrow for a in g.axes)
    bw = min(patches[2], max(1, PATCH_ELEMENTS // (taps[1] * up(taps[2], 16))))
    items = g.batch * g.wide_channels * patches[0] * taps[0] * patches[1] * -(-patches[2] // bw)
    arguments = {
        **{
            "x_ptr": x,
            "out_ptr": out,
            "items": items,
            "C": g.wide_channels,
            "PATCHES": patches,
            "TAPS": taps,
        },
        **{"PITCH": rows.shape[-1], "BW": bw, "BACK": back, "multibuffer": 2},
    }
    return Step(fold_patches, cores_for(items, product), arguments)


def stuff_step(x: Tensor, out: Tensor, stride: tuple[int, ...], product: Product) -> Step:
    """Launch that puts zeros between the positions of an image of blocks of channels; `out` holds zeros."""
    sizes, c0 = tuple(x.shape[2:5]), x.shape[5]
    bw = min(sizes[2], 512)
    items = x.shape[0] * x.shape[1] * sizes[0] * sizes[1] * -(-sizes[2] // bw)
    arguments = {
        **{"x_ptr": x, "out_ptr": out, "items": items, "SIZES": sizes, "OUT": tuple(out.shape[2:5])},
        **{"STRIDE": stride, "C0": c0, "BW": bw, "multibuffer": 2},
    }
    return Step(stuff_zeros, min(product.vector_cores, items), arguments)
