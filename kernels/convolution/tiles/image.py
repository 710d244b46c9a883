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
def image_tiles(
    src_ptr,
    w_ptr,
    out_ptr,
    bias_ptr,
    items,
    N,
    SRC: tl.constexpr,
    SRC_PITCH: tl.constexpr,
    OUT: tl.constexpr,
    OUT_CHANNELS: tl.constexpr,
    OUT_PITCH: tl.constexpr,
    AXES: tl.constexpr,
    GATHER: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    GROUPS: tl.constexpr,
    BM: tl.constexpr,
    BK: tl.constexpr,
    BN: tl.constexpr,
    BH: tl.constexpr,
    BW: tl.constexpr,
    C0: tl.constexpr,
    WEIGHT_C0: tl.constexpr,
    BIAS: tl.constexpr,
):
    """out = the product of src (N, *SRC, SRC_PITCH) and w (GROUPS, taps, ROWS, COLS).

    AXES: see `phase_taps`, for D, H, W. GATHER: rows of w are summed over and columns are channels of out, else the other
    way round. OUT_PITCH 0: out is (N, OUT_CHANNELS, *OUT), else rows of that many channels. A tile: BM channels of BN
    images with BH x BW positions of one phase. BIAS: sums start from bias (OUT_CHANNELS,), which asks for OUT_PITCH.
    """
    M: tl.constexpr = COLS if GATHER else ROWS
    K: tl.constexpr = ROWS if GATHER else COLS
    PD: tl.constexpr = AXES[0][1] if GATHER else 1
    PH: tl.constexpr = AXES[1][1] if GATHER else 1
    PW: tl.constexpr = AXES[2][1] if GATHER else 1
    ACROSS: tl.constexpr = tl.minimum(AXES[2][0], AXES[2][1] // AXES[2][4])
    DOWN: tl.constexpr = tl.minimum(AXES[1][0], AXES[1][1] // AXES[1][4])
    m_blocks, k_blocks = tl.cdiv(M, BM), tl.cdiv(K, BK)
    across, down, deep = (
        tl.cdiv(tl.cdiv(OUT[2], PW), BW),
        tl.cdiv(tl.cdiv(OUT[1], PH), BH),
        tl.cdiv(OUT[0], PD),
    )
    batches = tl.cdiv(N, BN)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        m = item % m_blocks * BM
        w = item // m_blocks % across * BW + tl.arange(0, BW)
        h = item // (m_blocks * across) % down * BH + tl.arange(0, BH)
        rest = item // (m_blocks * across * down)
        d = rest % deep
        n = rest // deep % batches * BN + tl.arange(0, BN)
        group = rest // (deep * batches) % GROUPS
        phase = rest // (deep * batches * GROUPS)
        if GATHER:
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
        c = group * M + m + tl.arange(0, BM)
        acc = sums_start(bias_ptr, c, OUT_CHANNELS, BM, BN * BH * BW, OUT_PITCH > 0, BIAS)
        for turn in range(td * th * tw * k_blocks):
            step = (turn + tl.program_id(0)) % (td * th * tw * k_blocks)
            tap = step // k_blocks
            ad, ah, aw = tap // (th * tw), tap // tw % th, tap % tw
            if GATHER:
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
            first = step % k_blocks * BK
            b = load_image(src_ptr, n, at_d, at_h, at_w, group, first, N, SRC, SRC_PITCH, K, BK, C0)
            block = ((group * AXES[0][0] + td_at) * AXES[1][0] + th_at) * AXES[2][0] + tw_at
            one = block + tl.arange(0, 1)[:, None] + tl.arange(0, 1)[None, :]
            cm = m + tl.arange(0, BM)
            a = tl.reshape(load_weight(w_ptr, one, cm, first, GATHER, ROWS, COLS, BK, WEIGHT_C0), (BM, BK))
            if OUT_PITCH:
                acc += tl.dot(tl.reshape(b, (BN * BH * BW, BK)), tl.trans(a))
            else:
                acc += tl.dot(a, tl.trans(tl.reshape(b, (BN * BH * BW, BK))))
        alive = (m + tl.arange(0, BM) < M) if OUT_PITCH else (c < OUT_CHANNELS) & (m + tl.arange(0, BM) < M)
        put_tile(
            out_ptr, acc, N, n, d * PD + pd, h * PH + ph, w * PW + pw, c, alive, OUT, OUT_CHANNELS, OUT_PITCH
        )
