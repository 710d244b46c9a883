# mypy: disable-error-code="no-untyped-def, assignment"
"""Tile kernel of the gradient of the weight: for each tap the narrow image, turned, times the wide image shifted by the tap.

The taps of one row of the kernel are windows of one tile of the wide image in L1, each with a sum of its own in L0C. Sums
run over all positions of all images. They are cut into parts, which are added into the result by the memory system (atomic),
or written apart and added by a second kernel in a fixed order (two_phase).
"""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.language.extra.cann import extension as al
from .fractal import load_image
from .prepare import next_core


@sim.jit
def weight_tiles(
    narrow_ptr,
    wide_ptr,
    out_ptr,
    done,
    items,
    N,
    chunks,
    part,
    part_stride,
    NARROW: tl.constexpr,
    NARROW_PITCH: tl.constexpr,
    WIDE: tl.constexpr,
    WIDE_PITCH: tl.constexpr,
    AXES: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    GROUPS: tl.constexpr,
    BA: tl.constexpr,
    BB: tl.constexpr,
    BN: tl.constexpr,
    BH: tl.constexpr,
    BW: tl.constexpr,
    C0: tl.constexpr,
    ATOMIC: tl.constexpr,
    WINDOWS: tl.constexpr,
):
    """out (GROUPS, taps, ROWS, COLS) of narrow (N, *NARROW, pitch) and wide (N, *WIDE, pitch).

    AXES: taps, stride, dilation, padding before, for D, H, W. chunks: of BN images x BH x BW positions, `part` of them are
    summed by one item; items: parts x groups x rows of taps x blocks of a row x blocks of BA rows x blocks of BB columns.
    WINDOWS: taps of a block, windows of one load; 0: one tap, loaded without what lies between its positions. C0: as for
    `load_image`. done: items of other work before this in the same launch. Tiles of one part go round its chunks from
    different ones on, those of cores that work at the same time as far apart as can be, see `phase_sum`.
    """
    KH: tl.constexpr = AXES[1][0]
    KW: tl.constexpr = AXES[2][0]
    TAPS: tl.constexpr = WINDOWS if WINDOWS else 1
    BLOCKS: tl.constexpr = (KW + TAPS - 1) // TAPS
    SPAN: tl.constexpr = (BW - 1) * AXES[2][1] + (TAPS - 1) * AXES[2][2] + 1
    a_blocks, b_blocks = tl.cdiv(ROWS, BA), tl.cdiv(COLS, BB)
    across, down = tl.cdiv(NARROW[2], BW), tl.cdiv(NARROW[1], BH)
    of_split = a_blocks * b_blocks * AXES[0][0] * KH * BLOCKS * GROUPS
    for item in range(next_core(done), items, tl.num_programs(0)):
        b_first = item % b_blocks * BB
        a_first = item // b_blocks % a_blocks * BA
        row = item // (b_blocks * a_blocks * BLOCKS) % (AXES[0][0] * KH)
        tap = item // (b_blocks * a_blocks) % BLOCKS * TAPS if BLOCKS > 1 else 0
        group = item // (b_blocks * a_blocks * BLOCKS * AXES[0][0] * KH) % GROUPS
        split = item // (b_blocks * a_blocks * BLOCKS * AXES[0][0] * KH * GROUPS)
        shift_w = tap * AXES[2][2] - AXES[2][3]
        shift_d = row // KH * AXES[0][2] - AXES[0][3]
        shift_h = row % KH * AXES[1][2] - AXES[1][3]
        ca, cb = a_first + tl.arange(0, BA), b_first + tl.arange(0, BB)
        sums = (tl.zeros((BA, BB), tl.float32),) * TAPS
        first, length = split * part, tl.minimum(part, chunks - split * part)
        around = tl.maximum(length, 1)  # the last parts may be empty
        start = item % of_split * tl.maximum(1, around // tl.minimum(of_split, tl.num_programs(0))) % around
        for turn in range(0, length):
            chunk = first + (turn + start) % length
            w = chunk % across * BW
            h = chunk // across % down * BH
            d = chunk // (across * down) % NARROW[0]
            n = chunk // (across * down * NARROW[0]) * BN + tl.arange(0, BN)
            h_at, w_at = h + tl.arange(0, BH), w + tl.arange(0, BW)
            a = load_image(
                narrow_ptr, n, d, h_at, w_at, group, a_first, N, NARROW, NARROW_PITCH, ROWS, BA, C0
            )
            at_d, at_h = d * AXES[0][1] + shift_d, h_at * AXES[1][1] + shift_h
            at_w = (
                w * AXES[2][1] + shift_w + (tl.arange(0, SPAN) if WINDOWS else tl.arange(0, BW) * AXES[2][1])
            )
            b = load_image(wide_ptr, n, at_d, at_h, at_w, group, b_first, N, WIDE, WIDE_PITCH, COLS, BB, C0)
            turned = tl.trans(tl.reshape(a, (BN * BH * BW, BA)))
            added = ()
            for j in tl.static_range(TAPS):
                place, steps = (0, 0, j * AXES[2][2], 0), (1, 1, AXES[2][1], 1)
                window = al.extract_slice(b, place, (BN, BH, BW, BB), steps) if WINDOWS else b
                product = tl.dot(turned, tl.reshape(window, (BN * BH * BW, BB)))
                added = added + (sums[j] + product,)  # noqa: RUF005
            sums = added
        base = (group * (AXES[0][0] * KH) + row) * (KW * ROWS * COLS)
        out_at = base + tap * (ROWS * COLS) + ca[:, None] * COLS + cb[None, :]
        inside = (ca < ROWS)[:, None] & (cb < COLS)[None, :]
        for j in tl.static_range(TAPS):
            alive = inside & (tap + j < KW) if BLOCKS * TAPS > KW else inside
            if ATOMIC:
                tl.atomic_add(out_ptr + j * ROWS * COLS + out_at, sums[j], mask=alive)
            else:
                whole = sums[j].to(out_ptr.dtype.element_ty)
                tl.store(out_ptr + split * part_stride + j * ROWS * COLS + out_at, whole, mask=alive)
