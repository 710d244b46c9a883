# mypy: disable-error-code="no-untyped-def"
"""Tile kernels of the products that make an image: `gather` and `correlate` of geometry.py as implicit matrix products.

For each tap a tile of the other image, shifted by the tap, is multiplied by the tap's weight and added up in L0C. Loads are
boxes: what lies in the padding is masked and reads as zero. A strided gather goes phase by phase: output positions of one
remainder modulo the stride meet every stride-th tap, so that no zero is multiplied.
"""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from .fractal import load_image, load_weight
from .window import put_tile, sums_start


@sim.jit
def phase_taps(phase, AXIS: tl.constexpr):
    """(place, taps, offset of the first) of the output positions modulo the stride that tap `phase` is the first to meet.

    AXIS: taps, stride, dilation, padding before, their common divisor. The taps are an arithmetic sequence.
    """
    step: tl.constexpr = AXIS[1] // AXIS[4]
    place = (phase * AXIS[2] + (AXIS[1] - AXIS[3] % AXIS[1])) % AXIS[1]
    count = (AXIS[0] - phase + step - 1) // step
    return place, count, (place + AXIS[3] - phase * AXIS[2]) // AXIS[1]


@sim.jit
def image_tiles(src_ptr, w_ptr, out_ptr, bias_ptr, items, N, S: tl.constexpr):
    """out = the product of src (N, *S.src, S.src_pitch) and w (S.groups, taps, S.rows, S.cols). S: `ImageSizes`."""
    AXES: tl.constexpr = S.axes
    PD: tl.constexpr = AXES[0][1] if S.gather else 1
    PH: tl.constexpr = AXES[1][1] if S.gather else 1
    PW: tl.constexpr = AXES[2][1] if S.gather else 1
    ACROSS: tl.constexpr = tl.minimum(AXES[2][0], AXES[2][1] // AXES[2][4])
    DOWN: tl.constexpr = tl.minimum(AXES[1][0], AXES[1][1] // AXES[1][4])
    m_blocks, k_blocks = tl.cdiv(S.m, S.bm), tl.cdiv(S.k, S.bk)
    across, down = tl.cdiv(tl.cdiv(S.out[2], PW), S.bw), tl.cdiv(tl.cdiv(S.out[1], PH), S.bh)
    deep, batches = tl.cdiv(S.out[0], PD), tl.cdiv(N, S.bn)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        m = item % m_blocks * S.bm
        w = item // m_blocks % across * S.bw + tl.arange(0, S.bw)
        h = item // (m_blocks * across) % down * S.bh + tl.arange(0, S.bh)
        rest = item // (m_blocks * across * down)
        d = rest % deep
        n = rest // deep % batches * S.bn + tl.arange(0, S.bn)
        group = rest // (deep * batches) % S.groups
        phase = rest // (deep * batches * S.groups)
        if S.gather:
            jd, jh, jw = phase // (DOWN * ACROSS), phase // ACROSS % DOWN, phase % ACROSS
            pd, td, od = phase_taps(jd, AXES[0])
            ph, th, oh = phase_taps(jh, AXES[1])
            pw, tw, ow = phase_taps(jw, AXES[2])
            sd, sh, sw = d, h, w
        else:
            pd, ph, pw = 0, 0, 0
            jd, td, od = 0, AXES[0][0], -AXES[0][3]
            jh, th, oh = 0, AXES[1][0], -AXES[1][3]
            jw, tw, ow = 0, AXES[2][0], -AXES[2][3]
            sd, sh, sw = d * AXES[0][1], h * AXES[1][1], w * AXES[2][1]
        c = group * S.m + m + tl.arange(0, S.bm)
        acc = sums_start(src_ptr, bias_ptr, c, S)
        for k in range(td * th * tw * k_blocks):
            step = (k + tl.program_id(0)) % (td * th * tw * k_blocks)
            tap = step // k_blocks
            ad, ah, aw = tap // (th * tw), tap // tw % th, tap % tw
            if S.gather:
                at_d = sd + od - ad * (AXES[0][2] // AXES[0][4])
                at_h = sh + (oh - ah * (AXES[1][2] // AXES[1][4]))
                at_w = sw + (ow - aw * (AXES[2][2] // AXES[2][4]))
                td_at = jd + ad * (AXES[0][1] // AXES[0][4])
                th_at = jh + ah * (AXES[1][1] // AXES[1][4])
                tw_at = jw + aw * (AXES[2][1] // AXES[2][4])
            else:
                at_d = sd + od + ad * AXES[0][2]
                at_h = sh + (oh + ah * AXES[1][2])
                at_w = sw + (ow + aw * AXES[2][2])
                td_at, th_at, tw_at = ad, ah, aw
            first = step % k_blocks * S.bk
            b = load_image(src_ptr, n, at_d, at_h, at_w, group, first, N, S.loaded)
            block = ((group * AXES[0][0] + td_at) * AXES[1][0] + th_at) * AXES[2][0] + tw_at
            one = block + tl.arange(0, 1)[:, None] + tl.arange(0, 1)[None, :]
            cm = m + tl.arange(0, S.bm)
            a = tl.reshape(load_weight(w_ptr, one, cm, first, S), (S.bm, S.bk))
            if S.channels_last:
                acc += tl.dot(tl.reshape(b, (S.positions, S.bk)), tl.trans(a))
            else:
                acc += tl.dot(a, tl.trans(tl.reshape(b, (S.positions, S.bk))))
        alive = (
            (m + tl.arange(0, S.bm) < S.m)
            if S.channels_last
            else (c < S.out_channels) & (m + tl.arange(0, S.bm) < S.m)
        )
        put_tile(out_ptr, acc, N, n, d * PD + pd, h * PH + ph, w * PW + pw, c, alive, S)
