# mypy: disable-error-code="no-untyped-def, assignment"
"""Tile kernel of the gradient of the weight: for each tap the narrow image, turned, times the wide image shifted by the tap.

The taps of one row of the kernel are windows of one tile of the wide image in L1, each with a sum of its own in L0C. Sums
run over all positions of all images. They are cut into parts, which are added into the result by the memory system (atomic),
or written apart and added by a second kernel in a fixed order (two_phase).
"""

from __future__ import annotations

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.language.extra.cann import extension as al


@sim.jit
def weight_tiles(
    narrow_ptr,
    wide_ptr,
    out_ptr,
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
    EVEN: tl.constexpr,
    ATOMIC: tl.constexpr,
):
    """out (GROUPS, taps, ROWS, COLS) fp32 of narrow (N, *NARROW, pitch) and wide (N, *WIDE, pitch).

    AXES: taps, stride, dilation, padding before, for D, H, W. chunks: of BN images x BH x BW positions, `part` of them are
    summed by one item; items: parts x groups x rows of taps x blocks of BA rows x blocks of BB columns. EVEN: chunks and
    blocks divide the narrow image, so that none of it is masked.
    """
    KH: tl.constexpr = AXES[1][0]
    KW: tl.constexpr = AXES[2][0]
    SPAN: tl.constexpr = (BW - 1) * AXES[2][1] + (KW - 1) * AXES[2][2] + 1
    a_blocks, b_blocks = tl.cdiv(ROWS, BA), tl.cdiv(COLS, BB)
    across, down = tl.cdiv(NARROW[2], BW), tl.cdiv(NARROW[1], BH)
    h_wide = (tl.arange(0, BH) * AXES[1][1])[None, :, None, None]
    w_wide = tl.arange(0, SPAN)[None, None, :, None]
    images, h_at, w_at = tl.arange(0, BN), tl.arange(0, BH), tl.arange(0, BW)
    offsets = images[:, None, None, None] * (NARROW[0] * NARROW[1] * NARROW[2] * NARROW_PITCH)
    offsets += (
        h_at[None, :, None, None] * (NARROW[2] * NARROW_PITCH) + w_at[None, None, :, None] * NARROW_PITCH
    )
    seen = images[:, None, None, None] * (WIDE[0] * WIDE[1] * WIDE[2] * WIDE_PITCH)
    seen += h_wide * (WIDE[2] * WIDE_PITCH) + w_wide * WIDE_PITCH
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        b_first = item % b_blocks * BB
        a_first = item // b_blocks % a_blocks * BA
        row = item // (b_blocks * a_blocks) % (AXES[0][0] * KH)
        group = item // (b_blocks * a_blocks * AXES[0][0] * KH) % GROUPS
        split = item // (b_blocks * a_blocks * AXES[0][0] * KH * GROUPS)
        shift_d = row // KH * AXES[0][2] - AXES[0][3]
        shift_h = row % KH * AXES[1][2] - AXES[1][3]
        ca, cb = a_first + tl.arange(0, BA), b_first + tl.arange(0, BB)
        narrow_at = offsets + (group * ROWS + ca)[None, None, None, :]
        wide_at = seen + (group * COLS + cb)[None, None, None, :]
        in_a, in_b = (ca < ROWS)[None, None, None, :], (cb < COLS)[None, None, None, :]
        sums = (tl.zeros((BA, BB), tl.float32),) * KW
        for chunk in range(split * part, tl.minimum(split * part + part, chunks)):
            w = chunk % across * BW
            h = chunk // across % down * BH
            d = chunk // (across * down) % NARROW[0]
            n = chunk // (across * down * NARROW[0]) * BN
            at = (((n * NARROW[0] + d) * NARROW[1] + h) * NARROW[2] + w) * NARROW_PITCH
            if EVEN:
                a = tl.load(narrow_ptr + at + narrow_at)
            else:
                alive = (images < N - n)[:, None, None, None] & (h_at < NARROW[1] - h)[None, :, None, None]
                alive = alive & (w_at < NARROW[2] - w)[None, None, :, None] & in_a
                a = tl.load(narrow_ptr + at + narrow_at, mask=alive, other=0.0)
            first_d = d * AXES[0][1] + shift_d
            first_h, first_w = h * AXES[1][1] + shift_h, w * AXES[2][1] - AXES[2][3]
            at = (((n * WIDE[0] + first_d) * WIDE[1] + first_h) * WIDE[2] + first_w) * WIDE_PITCH
            inside = (h_wide >= 0 - first_h) & (h_wide < WIDE[1] - first_h) & in_b
            inside = inside & (w_wide >= 0 - first_w) & (w_wide < WIDE[2] - first_w)
            if not EVEN:
                inside = inside & (images < N - n)[:, None, None, None]
            if AXES[0][3] > 0 or AXES[0][0] > 1:
                inside = inside & (first_d >= 0) & (first_d < WIDE[0])
            b = tl.load(wide_ptr + at + wide_at, mask=inside, other=0.0)
            turned = tl.trans(tl.reshape(a, (BN * BH * BW, BA)))
            added = ()
            for j in tl.static_range(KW):
                place, steps = (0, 0, j * AXES[2][2], 0), (1, 1, AXES[2][1], 1)
                window = al.extract_slice(b, place, (BN, BH, BW, BB), steps)
                product = tl.dot(turned, tl.reshape(window, (BN * BH * BW, BB)))
                added = added + (sums[j] + product,)  # noqa: RUF005
            sums = added
        base = (group * (AXES[0][0] * KH) + row) * (KW * ROWS * COLS)
        out_at = base + ca[:, None] * COLS + cb[None, :]
        alive = (ca < ROWS)[:, None] & (cb < COLS)[None, :]
        for j in tl.static_range(KW):
            if ATOMIC:
                tl.atomic_add(out_ptr + j * ROWS * COLS + out_at, sums[j], mask=alive)
            else:
                tl.store(out_ptr + split * part_stride + j * ROWS * COLS + out_at, sums[j], mask=alive)
