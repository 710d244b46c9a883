# mypy: disable-error-code="no-untyped-def"
"""Loads of tiles of images and weights, from rows of channels or from blocks of 32 bytes (C0 channels).

    images    (N, D, H, W, pitch), or NC1HWC0: (N, pitch / C0, D, H, W, C0)
    weights   (groups, taps, ROWS, COLS), or FRACTAL_Z: (groups, taps, depth / C0, channels, C0), `depth` what is summed over

A tile of blocks is a matrix of L1 as it comes, in bursts of whole rows of the image; rows of channels are made into
blocks on the way (ND to NZ), row by row.
"""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl


@sim.jit
def load_image(ptr, n, at_d, at_h, at_w, group, first, N, S: tl.constexpr):
    """(images n, rows at_h, columns at_w, S.bk) of plane at_d: channels of a group from `first` on; else zero.

    S: `Loaded`.
    """
    PLANE: tl.constexpr = S.sizes[1] * S.sizes[2]
    in_h, in_w, in_n = (at_h >= 0) & (at_h < S.sizes[1]), (at_w >= 0) & (at_w < S.sizes[2]), n < N
    if S.c0:
        c, lane = tl.arange(0, S.bk // S.c0), tl.arange(0, S.c0)
        base = (group * S.k + first) * (S.sizes[0] * PLANE) + at_d * (PLANE * S.c0)
        at = n[:, None, None, None, None] * (S.sizes[0] * PLANE * S.pitch) + lane[None, None, None, None, :]
        at += c[None, :, None, None, None] * (S.sizes[0] * PLANE * S.c0)
        at += at_h[None, None, :, None, None] * (S.sizes[2] * S.c0) + at_w[None, None, None, :, None] * S.c0
        inside = in_n[:, None, None, None, None] & (c < (S.k - first) // S.c0)[None, :, None, None, None]
        inside = inside & in_h[None, None, :, None, None] & in_w[None, None, None, :, None]
        inside = inside & (at_d >= 0) & (at_d < S.sizes[0])
        tile = tl.permute(tl.load(ptr + base + at, mask=inside, other=0.0), (0, 2, 3, 1, 4))
        image = tl.reshape(tile, (n.shape[0], at_h.shape[0], at_w.shape[0], S.bk))
    else:
        deep = tl.arange(0, S.bk)
        base = group * S.k + first + at_d * (PLANE * S.pitch)
        at = n[:, None, None, None] * (S.sizes[0] * PLANE * S.pitch) + deep[None, None, None, :]
        at += at_h[None, :, None, None] * (S.sizes[2] * S.pitch) + at_w[None, None, :, None] * S.pitch
        inside = in_n[:, None, None, None] & in_h[None, :, None, None] & in_w[None, None, :, None]
        inside = inside & (deep < S.k - first)[None, None, None, :] & (at_d >= 0) & (at_d < S.sizes[0])
        image = tl.load(ptr + base + at, mask=inside, other=0.0)
    return image


@sim.jit
def load_weights_of_taps(ptr, block, cm, first, S: tl.constexpr):
    """(channels cm, taps x S.bk): the weights of all taps `block` (down, across) side by side, as `img2col` has windows.

    For weights in blocks (S.weight_c0), which lie in L1 as they come. S: `ImageSizes`.
    """
    c, lane = tl.arange(0, S.bk // S.weight_c0), tl.arange(0, S.weight_c0)
    at = block[:, :, None, None, None] * (S.rows * S.cols) + first * S.m + lane[None, None, None, None, :]
    at += c[None, None, :, None, None] * (S.m * S.weight_c0) + cm[None, None, None, :, None] * S.weight_c0
    alive = (c < (S.k - first) // S.weight_c0)[None, None, :, None, None]
    alive = alive & (cm < S.m)[None, None, None, :, None]
    tile = tl.load(ptr + at, mask=alive, other=0.0)
    blocks: tl.constexpr = block.shape[0] * block.shape[1] * (S.bk // S.weight_c0)
    rows = tl.permute(tl.reshape(tile, (1, blocks, cm.shape[0], S.weight_c0)), (0, 2, 1, 3))
    return tl.reshape(rows, (cm.shape[0], blocks * S.weight_c0))


@sim.jit
def load_weight(ptr, block, cm, first, S: tl.constexpr):
    """(blocks down, blocks across, channels cm, S.bk) of the weights of taps `block` (down, across), from depth `first` on.

    S: `ImageSizes`.
    """
    if S.weight_c0:
        c, lane = tl.arange(0, S.bk // S.weight_c0), tl.arange(0, S.weight_c0)
        at = block[:, :, None, None, None] * (S.rows * S.cols) + first * S.m + lane[None, None, None, None, :]
        at += c[None, None, :, None, None] * (S.m * S.weight_c0) + cm[None, None, None, :, None] * S.weight_c0
        alive = (c < (S.k - first) // S.weight_c0)[None, None, :, None, None] & (cm < S.m)[
            None, None, None, :, None
        ]
        tile = tl.permute(tl.load(ptr + at, mask=alive, other=0.0), (0, 1, 3, 2, 4))
        weight = tl.reshape(tile, (block.shape[0], block.shape[1], cm.shape[0], S.bk))
    elif S.gather:
        deep = tl.arange(0, S.bk)
        at = block[:, :, None, None] * (S.rows * S.cols) + first * S.cols
        at += deep[None, None, :, None] * S.cols + cm[None, None, None, :]
        alive = (deep < S.k - first)[None, None, :, None] & (cm < S.m)[None, None, None, :]
        weight = tl.permute(tl.load(ptr + at, mask=alive, other=0.0), (0, 1, 3, 2))
    else:
        deep = tl.arange(0, S.bk)
        at = block[:, :, None, None] * (S.rows * S.cols) + first
        at += cm[None, None, :, None] * S.cols + deep[None, None, None, :]
        alive = (cm < S.m)[None, None, :, None] & (deep < S.k - first)[None, None, None, :]
        weight = tl.load(ptr + at, mask=alive, other=0.0)
    return weight
