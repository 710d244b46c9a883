# mypy: disable-error-code="no-untyped-def"
"""`image_tiles` with the image read once for all taps of a plane: taps are windows of the tile in L1 (LoadData3D).

A step loads the rows that a tile of positions meets in one plane of depth, borders included, and the weights of that
plane's taps. Windows are made of the image on the way from L1 to L0: all taps side by side (`img2col`) where weights
are blocks, so that few channels fill the Cube's depth; tap by tap where weights are matrices. Weights that all tiles
share and that one step holds are loaded once. Phases of a strided gather are unrolled.
"""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.language.extra.cann import extension as al
from .fractal import load_image, load_weight, load_weights_of_taps


@sim.jit
def sums_start(src_ptr, bias_ptr, c, S: tl.constexpr):
    """What sums of channels c start from: zeros (INT32 for INT8), or for each position (a row) the bias, by the table."""
    KIND: tl.constexpr = tl.int32 if src_ptr.dtype.element_ty == tl.int8 else tl.float32
    if S.bias:
        row = tl.load(bias_ptr + c, mask=c < S.out_channels, other=0.0).to(tl.float32)
        start = tl.broadcast_to(row[None, :], (S.positions, S.bm))
    elif S.channels_last:
        start = tl.zeros((S.positions, S.bm), KIND)
    else:
        start = tl.zeros((S.bm, S.positions), KIND)
    return start


@sim.jit
def taps_of(PHASE: tl.constexpr, group, plane, S: tl.constexpr):
    """(down, across): which weights the taps of one plane of a phase meet."""
    TD: tl.constexpr = PHASE[0]
    TH: tl.constexpr = PHASE[1]
    TW: tl.constexpr = PHASE[2]
    KD: tl.constexpr = S.axes[0][0]
    KH: tl.constexpr = S.axes[1][0]
    KW: tl.constexpr = S.axes[2][0]
    down = (TH[4] + tl.arange(0, TH[1]) * TH[5])[:, None]
    taps = group * (KD * KH * KW) + down * KW + (TW[4] + tl.arange(0, TW[1]) * TW[5])[None, :]
    return taps + (TD[4] + plane * TD[5]) * (KH * KW)


@sim.jit
def phase_sum(
    acc, src_ptr, w_ptr, kept, N, n, d, h, w, group, cm, start, PHASE: tl.constexpr, S: tl.constexpr
):
    """acc and (S.bm, positions) fp32: channels cm of images n at one phase of positions from (d, h, w) on; transposed if
    S.channels_last. kept: the weights, if S.kept.

    Sums go round from step `start` on: cores that start apart do not read the same weights at the same time, which L2 serves
    to one after the other.
    """
    TD: tl.constexpr = PHASE[0]
    TH: tl.constexpr = PHASE[1]
    TW: tl.constexpr = PHASE[2]
    SPAN_H: tl.constexpr = (S.bh - 1) * S.steps[1] + (TH[1] - 1) * TH[3] + 1
    SPAN_W: tl.constexpr = (S.bw - 1) * S.steps[2] + (TW[1] - 1) * TW[3] + 1
    k_blocks = tl.cdiv(S.k, S.bk)
    at_h = h * S.steps[1] + TH[2] + tl.arange(0, SPAN_H)
    at_w = w * S.steps[2] + TW[2] + tl.arange(0, SPAN_W)
    for k in range(TD[1] * k_blocks):
        step = (k + start) % (TD[1] * k_blocks)
        first, plane = step % k_blocks * S.bk, step // k_blocks
        at_d = d * S.steps[0] + TD[2] + plane * TD[3]
        image = load_image(src_ptr, n, at_d, at_h, at_w, group, first, N, S.loaded)
        block = taps_of(PHASE, group, plane, S)
        if S.weight_c0:
            windows = al.img2col(image, (TH[1], TW[1]), (S.steps[1], S.steps[2]), (TH[3], TW[3]))
            rows = tl.reshape(windows, (S.positions, TH[1] * TW[1] * S.bk))
            a = kept if S.kept else load_weights_of_taps(w_ptr, block, cm, first, S)
            acc = add_product(acc, rows, a, S)
        else:
            weight = load_weight(w_ptr, block, cm, first, S)
            for i in tl.static_range(TH[1]):
                for j in tl.static_range(TW[1]):
                    place, shape = (0, i * TH[3], j * TW[3], 0), (S.bn, S.bh, S.bw, S.bk)
                    window = al.extract_slice(image, place, shape, (1, S.steps[1], S.steps[2], 1))
                    a = al.extract_slice(weight, (i, j, 0, 0), (1, 1, S.bm, S.bk), (1, 1, 1, 1))
                    rows = tl.reshape(window, (S.positions, S.bk))
                    acc = add_product(acc, rows, tl.reshape(a, (S.bm, S.bk)), S)
    return acc


@sim.jit
def add_product(acc, rows, a, S: tl.constexpr):
    """acc and the product of positions (rows) and weights `a`, whichever are the rows of acc."""
    if S.channels_last:
        acc += tl.dot(rows, tl.trans(a))
    else:
        acc += tl.dot(a, tl.trans(rows))
    return acc


@sim.jit
def put_tile(out_ptr, acc, N, n, d, h, w, c, alive_c, S: tl.constexpr):
    """Store acc (channels c, positions), transposed if S.channels_last, at planes d, rows h and columns w of images n."""
    OUT: tl.constexpr = S.out
    tile = acc.to(out_ptr.dtype.element_ty)
    if S.channels_last:
        at = (n[:, None, None, None] * OUT[0] + d) * (OUT[1] * OUT[2] * S.out_pitch)
        at += (
            h[None, :, None, None] * (OUT[2] * S.out_pitch)
            + w[None, None, :, None] * S.out_pitch
            + c[None, None, None, :]
        )
        alive = (n < N)[:, None, None, None] & (h < OUT[1])[None, :, None, None] & (d < OUT[0])
        alive = alive & (w < OUT[2])[None, None, :, None] & alive_c[None, None, None, :]
        rows = tl.reshape(tile, (n.shape[0], h.shape[0], w.shape[0], c.shape[0]))
        tl.store(out_ptr + at, rows, mask=alive)
    else:
        at = (n[None, :, None, None] * S.out_channels + c[:, None, None, None]) * (OUT[0] * OUT[1] * OUT[2])
        at += d * (OUT[1] * OUT[2]) + h[None, None, :, None] * OUT[2] + w[None, None, None, :]
        alive = alive_c[:, None, None, None] & (n < N)[None, :, None, None] & (d < OUT[0])
        alive = alive & (h < OUT[1])[None, None, :, None] & (w < OUT[2])[None, None, None, :]
        tl.store(out_ptr + at, tl.reshape(tile, (c.shape[0], n.shape[0], h.shape[0], w.shape[0])), mask=alive)


@sim.jit
def image_windows(src_ptr, w_ptr, out_ptr, bias_ptr, items, N, S: tl.constexpr):
    """As `image_tiles`."""
    m_blocks = tl.cdiv(S.m, S.bm)
    across, down = tl.cdiv(tl.cdiv(S.out[2], S.each[2]), S.bw), tl.cdiv(tl.cdiv(S.out[1], S.each[1]), S.bh)
    deep, batches = tl.cdiv(S.out[0], S.each[0]), tl.cdiv(N, S.bn)
    kept = 0
    if S.kept:
        block = taps_of(S.phases[0], 0, 0, S)
        kept = load_weights_of_taps(w_ptr, block, tl.arange(0, S.bm), 0, S)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        cm = item % m_blocks * S.bm + tl.arange(0, S.bm)
        w = item // m_blocks % across * S.bw
        h = item // (m_blocks * across) % down * S.bh
        d = item // (m_blocks * across * down) % deep
        n = item // (m_blocks * across * down * deep) % batches * S.bn + tl.arange(0, S.bn)
        group = item // (m_blocks * across * down * deep * batches)
        c = group * S.m + cm
        alive = (cm < S.m) if S.channels_last else (c < S.out_channels) & (cm < S.m)
        for phase in tl.static_range(len(S.phases)):
            PHASE: tl.constexpr = S.phases[phase]
            start = sums_start(src_ptr, bias_ptr, c, S)
            acc = phase_sum(start, src_ptr, w_ptr, kept, N, n, d, h, w, group, cm, tl.program_id(0), PHASE, S)
            out_h = (h + tl.arange(0, S.bh)) * S.each[1] + PHASE[1][0]
            out_w = (w + tl.arange(0, S.bw)) * S.each[2] + PHASE[2][0]
            put_tile(out_ptr, acc, N, n, d * S.each[0] + PHASE[0][0], out_h, out_w, c, alive, S)
