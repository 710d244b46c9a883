# mypy: disable-error-code="no-untyped-def"
"""Loads of tiles of images and weights, from rows of channels or from blocks of 32 bytes (C0 channels).

    images    (N, D, H, W, pitch), or NC1HWC0: (N, pitch / C0, D, H, W, C0)
    weights   (groups, taps, ROWS, COLS), or FRACTAL_Z: (groups, taps, depth / C0, channels, C0), `depth` what is summed over

A tile of blocks is a matrix of L1 as it comes, in bursts of whole rows of the image; rows of channels are turned into
blocks on the way (ND to NZ), row by row.
"""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl


@sim.jit
def load_image(
    ptr,
    n,
    at_d,
    at_h,
    at_w,
    group,
    first,
    N,
    SIZES: tl.constexpr,
    PITCH: tl.constexpr,
    K: tl.constexpr,
    BK: tl.constexpr,
    C0: tl.constexpr,
):
    """(images n, rows at_h, columns at_w, BK) of plane at_d: channels of a group from `first` on; else zero."""
    PLANE: tl.constexpr = SIZES[1] * SIZES[2]
    in_h, in_w, in_n = (at_h >= 0) & (at_h < SIZES[1]), (at_w >= 0) & (at_w < SIZES[2]), n < N
    if C0:
        c, lane = tl.arange(0, BK // C0), tl.arange(0, C0)
        base = (group * K + first) * (SIZES[0] * PLANE) + at_d * (PLANE * C0)
        at = n[:, None, None, None, None] * (SIZES[0] * PLANE * PITCH) + lane[None, None, None, None, :]
        at += c[None, :, None, None, None] * (SIZES[0] * PLANE * C0)
        at += at_h[None, None, :, None, None] * (SIZES[2] * C0) + at_w[None, None, None, :, None] * C0
        inside = in_n[:, None, None, None, None] & (c < (K - first) // C0)[None, :, None, None, None]
        inside = inside & in_h[None, None, :, None, None] & in_w[None, None, None, :, None]
        inside = inside & (at_d >= 0) & (at_d < SIZES[0])
        tile = tl.permute(tl.load(ptr + base + at, mask=inside, other=0.0), (0, 2, 3, 1, 4))
        image = tl.reshape(tile, (n.shape[0], at_h.shape[0], at_w.shape[0], BK))
    else:
        deep = tl.arange(0, BK)
        base = group * K + first + at_d * (PLANE * PITCH)
        at = n[:, None, None, None] * (SIZES[0] * PLANE * PITCH) + deep[None, None, None, :]
        at += at_h[None, :, None, None] * (SIZES[2] * PITCH) + at_w[None, None, :, None] * PITCH
        inside = in_n[:, None, None, None] & in_h[None, :, None, None] & in_w[None, None, :, None]
        inside = inside & (deep < K - first)[None, None, None, :] & (at_d >= 0) & (at_d < SIZES[0])
        image = tl.load(ptr + base + at, mask=inside, other=0.0)
    return image


@sim.jit
def load_weight(
    ptr,
    block,
    cm,
    first,
    GATHER: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    BK: tl.constexpr,
    C0: tl.constexpr,
):
    """(blocks down, blocks across, channels cm, BK) of the weights of taps `block` (down, across), from depth `first` on."""
    M: tl.constexpr = COLS if GATHER else ROWS
    K: tl.constexpr = ROWS if GATHER else COLS
    if C0:
        c, lane = tl.arange(0, BK // C0), tl.arange(0, C0)
        at = block[:, :, None, None, None] * (ROWS * COLS) + first * M + lane[None, None, None, None, :]
        at += c[None, None, :, None, None] * (M * C0) + cm[None, None, None, :, None] * C0
        alive = (c < (K - first) // C0)[None, None, :, None, None] & (cm < M)[None, None, None, :, None]
        tile = tl.permute(tl.load(ptr + at, mask=alive, other=0.0), (0, 1, 3, 2, 4))
        weight = tl.reshape(tile, (block.shape[0], block.shape[1], cm.shape[0], BK))
    elif GATHER:
        deep = tl.arange(0, BK)
        at = block[:, :, None, None] * (ROWS * COLS) + first * COLS
        at += deep[None, None, :, None] * COLS + cm[None, None, None, :]
        alive = (deep < K - first)[None, None, :, None] & (cm < M)[None, None, None, :]
        weight = tl.permute(tl.load(ptr + at, mask=alive, other=0.0), (0, 1, 3, 2))
    else:
        deep = tl.arange(0, BK)
        at = block[:, :, None, None] * (ROWS * COLS) + first
        at += cm[None, None, :, None] * COLS + deep[None, None, None, :]
        alive = (cm < M)[None, None, :, None] & (deep < K - first)[None, None, None, :]
        weight = tl.load(ptr + at, mask=alive, other=0.0)
    return weight
