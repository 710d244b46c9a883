"""How the vendor's kernels tile and what they launch, as far as it is published (hicann/ops-nn, conv3d_backprop, arch22).

Each layout is a launch of its own, and so is each of the two gradients; grad_input leaves the Cube as rows of channels and
is transposed by one more launch. A stride is met by zeros between the elements of grad_output, which are multiplied like any
others. Base tiles of grad_input follow the published rule, those of grad_weight are 128 x 128 x 256 bytes, of which a row
of taps with sums of its own takes what L0C holds. Tilings of the closed 2D kernels are not published: these stand in.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...simulator.products import Product
from ..operator.layout import up
from ..operator.tensors import Knobs
from .geometry import FRACTAL, Axis, Geometry, Merging

BASE_WEIGHT = 128  # rows, columns, and depth of 16-bit elements


def stuffed(g: Geometry) -> Geometry:
    """The same gradient of the wide image from a narrow image with zeros between its elements."""
    axes = tuple(replace(a, narrow=(a.narrow - 1) * a.stride + 1, stride=1) for a in g.axes)
    return replace(g, axes=axes)  # type: ignore[arg-type]


def is_stuffed(g: Geometry) -> bool:
    """Whether zeros come between: a strided gather of more than one tap (one tap is multiplied first and spread after)."""
    return g.strided_gather and g.taps > 1


def base_image(g: Geometry, m: Merging, product: Product, itemsize: int) -> tuple[int, int, int]:
    """(positions, channels, depth) of a tile in L0 for grad_input."""
    rows, cols = (g.narrow_sizes, m.narrow) if g.transposed else (g.wide_sizes, m.wide)
    positions, channels = up(rows[1] * rows[2], FRACTAL), up(cols, FRACTAL)
    c0 = 32 // itemsize
    length = g.axes[1].taps * g.axes[2].taps * c0
    deep = 128 // itemsize
    while deep > c0 and length % deep and deep % length:
        deep -= c0
    base_m, base_n = (128, 256) if positions < channels else (256, 128)
    base_m, base_n = min(base_m, positions), min(base_n, channels)
    half_a, half_b = (
        n // (2 * deep * itemsize) // FRACTAL * FRACTAL for n in (product.l0a_bytes, product.l0b_bytes)
    )
    sums = product.l0c_bytes // 4
    if base_m < positions:
        base_m = max(min(base_m, half_a), min(positions, half_a, sums // base_n // FRACTAL * FRACTAL))
    else:
        base_n = max(min(base_n, half_b), min(channels, half_b, sums // base_m // FRACTAL * FRACTAL))
    return base_m, base_n, deep


def base_weight(itemsize: int) -> tuple[int, int, int]:
    """(rows, columns, depth) of a tile in L0 for grad_weight."""
    return BASE_WEIGHT, BASE_WEIGHT, BASE_WEIGHT * 2 // itemsize


def vendor_knobs(g: Geometry, m: Merging, knobs: Knobs, product: Product, itemsize: int) -> dict[str, Any]:
    """What the vendor's rules say of knobs that were not given."""
    base_m, base_n, deep = base_image(g, m, product, itemsize)
    image: Axis = g.axes[2]
    width = image.narrow if g.transposed else image.wide
    whole = max(base_m // width, 1) * width if base_m >= width else base_m
    room = product.l1_bytes // 4 // (itemsize * max(1, base_n * g.axes[1].taps * g.axes[2].taps))
    most = product.l1_bytes // (itemsize * (base_n + base_m))  # one copy of both operands, taps one by one
    channels = max(deep, min(room, most) // deep * deep)
    taps = g.axes[2].taps
    taps = min(taps, product.l0c_bytes // (4 * BASE_WEIGHT * FRACTAL))
    wide = min(BASE_WEIGHT, product.l0c_bytes // (4 * BASE_WEIGHT * taps) // FRACTAL * FRACTAL)
    rules = {
        **{"block_m": base_n, "block_p": min(whole, base_m), "block_k": channels},
        **{"weight_m": min(BASE_WEIGHT, up(m.narrow, FRACTAL)), "weight_n": max(FRACTAL, wide)},
    }
    found = {**knobs, **{n: knobs[n] or v for n, v in rules.items()}}
    found["weight_taps"] = taps if knobs["weight_taps"] is None else knobs["weight_taps"]
    given = all(knobs[f"base_{axis}"] for axis in "mnk")
    base = {} if given else dict(zip(("base_m", "base_n", "base_k"), (base_m, base_n, deep), strict=True))
    return {**found, **base, "launches": "apart", "unit_flag": "off"}
