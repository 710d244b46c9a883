"""What to try for convolution backward: axes of the tiles of both gradients, and rules of which ones can be.

`weight_parts` is no axis: the operator's rule follows from the tiles, and ends all cores at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from ...simulator.device import device
from ...simulator.errors import AscendtileError
from ...simulator.products import Product
from ..operator.layout import up
from ..operator.tensors import Columns, Options, Tensors
from .bound import SETTINGS, Bounds, Points, Subject, subject
from .geometry import FRACTAL
from .tiles.costs import Image, position_tile
from .tiling import PARAMETERS, has_windows

EDGES = (16, 32, 64, 128, 256)
POSITIONS = (64, 128, 256, 512)
DEPTHS = (16, 32, 64, 128)


def explored(tensors: Tensors, product: Product, options: Options) -> dict[str, tuple[Any, ...]]:
    """Axes: how taps are met, tiles of both gradients, one launch or two. The operator's own choice is among them."""
    return axes_of(subject(tensors, options, product))


def axes_of(what: Subject) -> dict[str, tuple[Any, ...]]:
    """The same of anything that is made by these kernels."""
    call, maker = what.call, what.begun({**{p.name: p.default for p in PARAMETERS}, "bias": "auto"})
    g, m, own = maker.g, maker.merging, maker.tiling
    image = Image.of(g, m, maker.bias is not None)
    axes: dict[str, tuple[Any, ...]] = {}
    if call.wants[0]:
        if has_windows(g, not maker.weight_c0) and not maker.patches:
            axes["taps"] = ("window", "reload")
        axes["block_m"] = _edges(image.channels, own["block_m"])
        axes["block_p"] = _positions(g.batch, image.counts[1], image.counts[2], own["block_p"])
        axes["block_k"] = _values([d for d in DEPTHS if d <= up(image.depth, FRACTAL)], own["block_k"])
    if call.wants[1]:
        axes["weight_m"], axes["weight_n"] = (
            _edges(m.narrow, own["weight_m"]),
            _edges(m.wide, own["weight_n"]),
        )
        axes["weight_p"] = _positions(g.batch, *g.narrow_sizes[1:], own["weight_p"])
    if call.wants[0] and call.wants[1]:
        axes["launches"] = ("whole", "joint", "apart")
    return axes


def fits(tensors: Tensors, product: Product, mode: str, points: Columns, options: Options) -> Columns:
    """Rule -> which points keep it: sums in L0C, and one copy of what is loaded in L1."""
    return rules_of(lambda: subject(tensors, options, product), product, mode, points)


def rules_of(of: Callable[[], Subject], product: Product, mode: str, points: Columns) -> Columns:
    """The same of a subject, which is made on that device."""
    columns = Points(points)
    with device(product, values=False, cube_math_type=mode):
        wants = of().call.wants
    rules: dict[str, np.ndarray] = {}
    for name, wanted in (("grad_input", wants[0]), ("grad_weight", wants[1])):
        if wanted:
            rules[f"the sums of a tile of {name} fit in L0C"] = np.ones(columns.count, bool)
            rules[f"what {name} loads at once fits in L1"] = np.ones(columns.count, bool)
    room = product.l1_bytes - product.integer("buffers.l1_reserved")
    with device(product, values=False, cube_math_type=mode):
        for rows, setting in columns.alike(SETTINGS):
            some = columns.take(rows)
            found = _bounds(of, product, setting, some)
            if found is None:
                continue
            for name, work in (("grad_input", found.image), ("grad_weight", found.weight)):
                for rule in (r for r in rules if name in r):
                    fit = work["l0c"] <= product.l0c_bytes if "L0C" in rule else work["l1"] <= room
                    rules[rule][rows] = fit
    return rules


def _bounds(
    of: Callable[[], Subject], product: Product, setting: Mapping[str, Any], points: Points
) -> Bounds | None:
    """The work of these points; None where the vendor's rules say it, or the Cube does not take the base tiles."""
    if setting["strategy"] == "vendor":
        return None
    try:
        return Bounds(of(), product, setting, points)
    except AscendtileError:
        return None


def _edges(channels: int, own: int) -> tuple[int, ...]:
    return _values([e for e in EDGES if e < channels + FRACTAL], own)


def _positions(batch: int, height: int, width: int, own: int) -> tuple[int, ...]:
    """Positions of whole rows or images, near those of the list."""
    return _values([prod(position_tile(batch, height, width, n)) for n in POSITIONS], own)


def _values(found: list[int], own: int) -> tuple[int, ...]:
    return tuple(sorted({*found, own}))
