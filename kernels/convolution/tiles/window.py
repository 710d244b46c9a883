# mypy: disable-error-code="no-untyped-def"
"""`image_tiles` with the image read once for all taps of a plane: taps are windows of the tile in L1 (LoadData3D).

A step loads the rows that a tile of positions meets in one plane of depth, borders included, and the weights of that plane's
taps; each tap is a window of the image on the way from L1 to L0. Phases of a strided gather are unrolled.
"""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.language.extra.cann import extension as al
from .fractal import load_image, load_weight


@sim.jit
def sums_start(
    bias_ptr,
    c,
    CHANNELS: tl.constexpr,
    BM: tl.constexpr,
    POSITIONS: tl.constexpr,
    TURNED: tl.constexpr,
    BIAS: tl.constexpr,
):
    """What sums of BM channels c start from: zeros, or for each position (the rows; TURNED) the bias, by the bias table."""
    if BIAS:
        row = tl.load(bias_ptr + c, mask=c < CHANNELS, other=0.0).to(tl.float32)
        start = tl.broadcast_to(row[None, :], (POSITIONS, BM))
    elif TURNED:
        start = tl.zeros((POSITIONS, BM), tl.float32)
    else:
        start = tl.zeros((BM, POSITIONS), tl.float32)
    return start


@sim.jit
def phase_sum(
    acc,
    src_ptr,
    w_ptr,
    N,
    n,
    d,
    h,
    w,
    group,
    cm,
    start,
    PHASE: tl.constexpr,
    SRC: tl.constexpr,
    SRC_PITCH: tl.constexpr,
    TAPS: tl.constexpr,
    STEPS: tl.constexpr,
    GATHER: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    BM: tl.constexpr,
    BK: tl.constexpr,
    BN: tl.constexpr,
    BH: tl.constexpr,
    BW: tl.constexpr,
    C0: tl.constexpr,
    WEIGHT_C0: tl.constexpr,
    TURNED: tl.constexpr,
):
    """acc and (BM, BN * BH * BW) fp32: channels cm of images n at one phase of positions from (d, h, w) on; TURNED: the
    other way.

    Sums go round from step `start` on: cores that start apart do not read the same weights at the same time, which L2 serves
    to one after the other.
    """
    K: tl.constexpr = ROWS if GATHER else COLS
    TD: tl.constexpr = PHASE[0]
    TH: tl.constexpr = PHASE[1]
    TW: tl.constexpr = PHASE[2]
    SPAN_H: tl.constexpr = (BH - 1) * STEPS[1] + (TH[1] - 1) * TH[3] + 1
    SPAN_W: tl.constexpr = (BW - 1) * STEPS[2] + (TW[1] - 1) * TW[3] + 1
    k_blocks = tl.cdiv(K, BK)
    at_h = h * STEPS[1] + TH[2] + tl.arange(0, SPAN_H)
    at_w = w * STEPS[2] + TW[2] + tl.arange(0, SPAN_W)
    down = (TH[4] + tl.arange(0, TH[1]) * TH[5])[:, None]
    taps = (
        group * (TAPS[0] * TAPS[1] * TAPS[2])
        + down * TAPS[2]
        + (TW[4] + tl.arange(0, TW[1]) * TW[5])[None, :]
    )
    for turn in range(TD[1] * k_blocks):
        step = (turn + start) % (TD[1] * k_blocks)
        first, plane = step % k_blocks * BK, step // k_blocks
        at_d = d * STEPS[0] + TD[2] + plane * TD[3]
        image = load_image(src_ptr, n, at_d, at_h, at_w, group, first, N, SRC, SRC_PITCH, K, BK, C0)
        block = taps + (TD[4] + plane * TD[5]) * (TAPS[1] * TAPS[2])
        weight = load_weight(w_ptr, block, cm, first, GATHER, ROWS, COLS, BK, WEIGHT_C0)
        for i in tl.static_range(TH[1]):
            for j in tl.static_range(TW[1]):
                place = (0, i * TH[3], j * TW[3], 0)
                window = al.extract_slice(image, place, (BN, BH, BW, BK), (1, STEPS[1], STEPS[2], 1))
                a = tl.reshape(al.extract_slice(weight, (i, j, 0, 0), (1, 1, BM, BK), (1, 1, 1, 1)), (BM, BK))
                rows = tl.reshape(window, (BN * BH * BW, BK))
                if TURNED:
                    acc += tl.dot(rows, tl.trans(a))
                else:
                    acc += tl.dot(a, tl.trans(rows))
    return acc


@sim.jit
def put_tile(
    out_ptr,
    acc,
    N,
    n,
    d,
    h,
    w,
    c,
    alive_c,
    OUT: tl.constexpr,
    OUT_CHANNELS: tl.constexpr,
    OUT_PITCH: tl.constexpr,
):
    """Store acc (channels c, positions), turned if OUT_PITCH, at planes d, rows h and columns w of images n.

    OUT_PITCH as for `image_tiles`.
    """
    tile = acc.to(out_ptr.dtype.element_ty)
    if OUT_PITCH == 0:
        at = (n[None, :, None, None] * OUT_CHANNELS + c[:, None, None, None]) * (OUT[0] * OUT[1] * OUT[2])
        at += d * (OUT[1] * OUT[2]) + h[None, None, :, None] * OUT[2] + w[None, None, None, :]
        alive = alive_c[:, None, None, None] & (n < N)[None, :, None, None] & (d < OUT[0])
        alive = alive & (h < OUT[1])[None, None, :, None] & (w < OUT[2])[None, None, None, :]
        tl.store(out_ptr + at, tl.reshape(tile, (c.shape[0], n.shape[0], h.shape[0], w.shape[0])), mask=alive)
    else:
        at = (n[:, None, None, None] * OUT[0] + d) * (OUT[1] * OUT[2] * OUT_PITCH)
        at += (
            h[None, :, None, None] * (OUT[2] * OUT_PITCH)
            + w[None, None, :, None] * OUT_PITCH
            + c[None, None, None, :]
        )
        alive = (n < N)[:, None, None, None] & (h < OUT[1])[None, :, None, None] & (d < OUT[0])
        alive = alive & (w < OUT[2])[None, None, :, None] & alive_c[None, None, None, :]
        turned = tl.reshape(tile, (n.shape[0], h.shape[0], w.shape[0], c.shape[0]))
        tl.store(out_ptr + at, turned, mask=alive)


@sim.jit
def image_windows(
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
    PHASES: tl.constexpr,
    TAPS: tl.constexpr,
    STEPS: tl.constexpr,
    EACH: tl.constexpr,
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
    """As `image_tiles`. PHASES: for each phase, for D, H, W (position, taps, place of the first, distance, first tap, step).

    Window a of a phase lies at place + a * distance and meets tap first + a * step. STEPS: elements of src from position to
    position; EACH: positions of out from one of a phase to the next.
    """
    M: tl.constexpr = COLS if GATHER else ROWS
    m_blocks = tl.cdiv(M, BM)
    across, down = tl.cdiv(tl.cdiv(OUT[2], EACH[2]), BW), tl.cdiv(tl.cdiv(OUT[1], EACH[1]), BH)
    deep, batches = tl.cdiv(OUT[0], EACH[0]), tl.cdiv(N, BN)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        cm = item % m_blocks * BM + tl.arange(0, BM)
        w = item // m_blocks % across * BW
        h = item // (m_blocks * across) % down * BH
        d = item // (m_blocks * across * down) % deep
        n = item // (m_blocks * across * down * deep) % batches * BN + tl.arange(0, BN)
        group = item // (m_blocks * across * down * deep * batches)
        c = group * M + cm
        alive = (cm < M) if OUT_PITCH else (c < OUT_CHANNELS) & (cm < M)
        for phase in tl.static_range(len(PHASES)):
            start = sums_start(bias_ptr, c, OUT_CHANNELS, BM, BN * BH * BW, OUT_PITCH > 0, BIAS)
            acc = phase_sum(
                start, src_ptr, w_ptr, N, n, d, h, w, group, cm, tl.program_id(0),
                PHASES[phase], SRC, SRC_PITCH, TAPS, STEPS, GATHER, ROWS, COLS, BM, BK, BN, BH, BW, C0, WEIGHT_C0,
                OUT_PITCH > 0,
            )  # fmt: skip
            out_h = (h + tl.arange(0, BH)) * EACH[1] + PHASES[phase][1][0]
            out_w = (w + tl.arange(0, BW)) * EACH[2] + PHASES[phase][2][0]
            out_d = d * EACH[0] + PHASES[phase][0][0]
            put_tile(out_ptr, acc, N, n, out_d, out_h, out_w, c, alive, OUT, OUT_CHANNELS, OUT_PITCH)
