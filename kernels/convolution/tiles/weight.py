# mypy: disable-error-code="no-untyped-def, assignment"
"""Tile kernel of the gradient of the weight: for each tap the narrow image, transposed, by the shifted wide image.

The taps of one row of the kernel, or of several rows, are windows of one tile of the wide image in L1, which stand side
by side as columns of one product (`img2col`). Sums run over all positions of all images. They are cut into parts, which
are added into the result by the memory system (atomic), or written apart and added by a second kernel in a fixed order
(two_phase).
"""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.language.extra.cann import extension as al
from .fractal import load_image
from .prepare import next_core


@sim.jit
def weight_tiles(narrow_ptr, wide_ptr, out_ptr, done, items, N, chunks, part, part_stride, S: tl.constexpr):
    """out (S.groups, taps, S.rows, S.cols) of narrow (N, *S.narrow, pitch) and wide (N, *S.wide, pitch). S: `WeightSizes`.

    chunks: of bn images x bh x bw positions, `part` of them are summed by one item; items: parts x groups x planes of
    taps x blocks of rows of taps x blocks of a row x blocks of ba rows x blocks of bb columns. done: items of other
    work before this in the same launch. Tiles of one part go round its chunks from different ones on, those of cores
    that work at the same time as far apart as can be, see `phase_sum`.
    """
    AXES: tl.constexpr = S.axes
    KH: tl.constexpr = AXES[1][0]
    KW: tl.constexpr = AXES[2][0]
    KIND: tl.constexpr = tl.int32 if narrow_ptr.dtype.element_ty == tl.int8 else tl.float32
    SPAN: tl.constexpr = (S.bw - 1) * AXES[2][1] + (S.across - 1) * AXES[2][2] + 1
    SPAN_H: tl.constexpr = (S.bh - 1) * AXES[1][1] + (S.down - 1) * AXES[1][2] + 1
    POSITIONS: tl.constexpr = S.bn * S.bh * S.bw
    a_blocks, b_blocks = tl.cdiv(S.rows, S.ba), tl.cdiv(S.cols, S.bb)
    across, down = tl.cdiv(S.narrow[2], S.bw), tl.cdiv(S.narrow[1], S.bh)
    of_plane = a_blocks * b_blocks * S.blocks_across * S.blocks_down
    of_split = of_plane * AXES[0][0] * S.groups
    for item in range(next_core(done), items, tl.num_programs(0)):
        b_first = item % b_blocks * S.bb
        a_first = item // b_blocks % a_blocks * S.ba
        tap_w = item // (b_blocks * a_blocks) % S.blocks_across * S.across
        tap_h = item // (b_blocks * a_blocks * S.blocks_across) % S.blocks_down * S.down
        tap_d = item // of_plane % AXES[0][0]
        group = item // (of_plane * AXES[0][0]) % S.groups
        split = item // of_split
        shift_w = tap_w * AXES[2][2] - AXES[2][3]
        shift_d = tap_d * AXES[0][2] - AXES[0][3]
        shift_h = tap_h * AXES[1][2] - AXES[1][3]
        sums = tl.zeros((S.ba, S.taps * S.bb), KIND)
        first, length = split * part, tl.minimum(part, chunks - split * part)
        around = tl.maximum(length, 1)  # the last parts may be empty
        start = item % of_split * tl.maximum(1, around // tl.minimum(of_split, tl.num_programs(0))) % around
        for k in range(0, length):
            chunk = first + (k + start) % length
            w = chunk % across * S.bw
            h = chunk // across % down * S.bh
            d = chunk // (across * down) % S.narrow[0]
            n = chunk // (across * down * S.narrow[0]) * S.bn + tl.arange(0, S.bn)
            h_at, w_at = h + tl.arange(0, S.bh), w + tl.arange(0, S.bw)
            a = load_image(narrow_ptr, n, d, h_at, w_at, group, a_first, N, S.of_narrow)
            at_d = d * AXES[0][1] + shift_d
            lines = tl.arange(0, SPAN_H) if S.down > 1 else tl.arange(0, S.bh) * AXES[1][1]
            span = tl.arange(0, SPAN) if S.windows else tl.arange(0, S.bw) * AXES[2][1]
            at_h, at_w = h * AXES[1][1] + shift_h + lines, w * AXES[2][1] + shift_w + span
            b = load_image(wide_ptr, n, at_d, at_h, at_w, group, b_first, N, S.of_wide)
            columns = tl.trans(tl.reshape(a, (POSITIONS, S.ba)))
            if S.windows:
                steps = (AXES[1][1] if S.down > 1 else 1, AXES[2][1])
                b = al.img2col(b, (S.down, S.across), steps, (AXES[1][2], AXES[2][2]))
            sums += tl.dot(columns, tl.reshape(b, (POSITIONS, S.taps * S.bb)))
        taps_h, taps_w = tap_h + tl.arange(0, S.down), tap_w + tl.arange(0, S.across)
        ca, cb = a_first + tl.arange(0, S.ba), b_first + tl.arange(0, S.bb)
        taps = ((group * AXES[0][0] + tap_d) * KH + taps_h[:, None]) * KW + taps_w[None, :]
        at = taps[None, :, :, None] * (S.rows * S.cols) + ca[:, None, None, None] * S.cols
        at += cb[None, None, None, :]
        alive = (ca < S.rows)[:, None, None, None] & (cb < S.cols)[None, None, None, :]
        if S.blocks_down * S.down > KH:
            alive = alive & (taps_h < KH)[None, :, None, None]
        if S.blocks_across * S.across > KW:
            alive = alive & (taps_w < KW)[None, None, :, None]
        whole = tl.reshape(sums, (S.ba, S.down, S.across, S.bb))
        if S.atomic:
            tl.atomic_add(out_ptr + at, whole, mask=alive)
        else:
            tl.store(out_ptr + split * part_stride + at, whole.to(out_ptr.dtype.element_ty), mask=alive)
