# mypy: disable-error-code="no-untyped-def, assignment"
"""Tile kernel of the gradient of the weight: for each tap the narrow image, transposed, by the shifted wide image.

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
def weight_tiles(narrow_ptr, wide_ptr, out_ptr, done, items, N, chunks, part, part_stride, S: tl.constexpr):
    """out (S.groups, taps, S.rows, S.cols) of narrow (N, *S.narrow, pitch) and wide (N, *S.wide, pitch). S: `WeightSizes`.

    chunks: of bn images x bh x bw positions, `part` of them are summed by one item; items: parts x groups x rows of taps x
    blocks of a row x blocks of ba rows x blocks of bb columns. done: items of other work before this in the same launch.
    Tiles of one part go round its chunks from different ones on, those of cores that work at the same time as far apart as
    can be, see `phase_sum`.
    """
    AXES: tl.constexpr = S.axes
    KH: tl.constexpr = AXES[1][0]
    KW: tl.constexpr = AXES[2][0]
    SPAN: tl.constexpr = (S.bw - 1) * AXES[2][1] + (S.taps - 1) * AXES[2][2] + 1
    a_blocks, b_blocks = tl.cdiv(S.rows, S.ba), tl.cdiv(S.cols, S.bb)
    across, down = tl.cdiv(S.narrow[2], S.bw), tl.cdiv(S.narrow[1], S.bh)
    of_split = a_blocks * b_blocks * AXES[0][0] * KH * S.blocks * S.groups
    for item in range(next_core(done), items, tl.num_programs(0)):
        b_first = item % b_blocks * S.bb
        a_first = item // b_blocks % a_blocks * S.ba
        row = item // (b_blocks * a_blocks * S.blocks) % (AXES[0][0] * KH)
        tap = item // (b_blocks * a_blocks) % S.blocks * S.taps if S.blocks > 1 else 0
        group = item // (b_blocks * a_blocks * S.blocks * AXES[0][0] * KH) % S.groups
        split = item // (b_blocks * a_blocks * S.blocks * AXES[0][0] * KH * S.groups)
        shift_w = tap * AXES[2][2] - AXES[2][3]
        shift_d = row // KH * AXES[0][2] - AXES[0][3]
        shift_h = row % KH * AXES[1][2] - AXES[1][3]
        ca, cb = a_first + tl.arange(0, S.ba), b_first + tl.arange(0, S.bb)
        sums = (tl.zeros((S.ba, S.bb), tl.float32),) * S.taps
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
            at_d, at_h = d * AXES[0][1] + shift_d, h_at * AXES[1][1] + shift_h
            span = tl.arange(0, SPAN) if S.windows else tl.arange(0, S.bw) * AXES[2][1]
            at_w = w * AXES[2][1] + shift_w + span
            b = load_image(wide_ptr, n, at_d, at_h, at_w, group, b_first, N, S.of_wide)
            columns = tl.trans(tl.reshape(a, (S.bn * S.bh * S.bw, S.ba)))
            added = ()
            for j in tl.static_range(S.taps):
                place, steps = (0, 0, j * AXES[2][2], 0), (1, 1, AXES[2][1], 1)
                window = al.extract_slice(b, place, (S.bn, S.bh, S.bw, S.bb), steps) if S.windows else b
                product = tl.dot(columns, tl.reshape(window, (S.bn * S.bh * S.bw, S.bb)))
                added = added + (sums[j] + product,)  # noqa: RUF005
            sums = added
        base = (group * (AXES[0][0] * KH) + row) * (KW * S.rows * S.cols)
        out_at = base + tap * (S.rows * S.cols) + ca[:, None] * S.cols + cb[None, :]
        inside = (ca < S.rows)[:, None] & (cb < S.cols)[None, :]
        for j in tl.static_range(S.taps):
            alive = inside & (tap + j < KW) if S.blocks * S.taps > KW else inside
            if S.atomic:
                tl.atomic_add(out_ptr + j * S.rows * S.cols + out_at, sums[j], mask=alive)
            else:
                whole = sums[j].to(out_ptr.dtype.element_ty)
                tl.store(out_ptr + split * part_stride + j * S.rows * S.cols + out_at, whole, mask=alive)
