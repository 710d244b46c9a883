"""Operands in a block format as tensors of an operator: codes, beside them their scales, and the scale of whole tensors.

The Cube reads groups of 32 elements of the sum with a power of two (MX) and groups of 16 with an E4M3 scale (NVFP4), as
`tl.dot_scaled` has them. Codes of four bits lie two a byte along the sum, those of six take a byte.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.interpreter.tensors import Shape
from ...simulator.precision.block_formats import BLOCK_FORMATS, BlockFormat, Blocks, get_block_format
from ...simulator.precision.code_tables import pack
from ...simulator.precision.dtypes import element_type, float32, uint8
from .messages import listed
from .tensors import Arrays

FACTOR = "factor"  # the input that has the product of the scales of whole tensors
READ = {("e8m0", 32), ("e4m3", 16)}  # format of the scales, and how many elements of the sum share one
PACKED = 4  # bits of codes that lie two a byte


def block_format(name: str) -> BlockFormat | None:
    """That of this name or description, "mxfp8", "e3m2/e8m0/32"; None for a name of none. Raises `UsageError` for a format
    whose scales the Cube does not read."""
    known = any(name.lower() in (n, *f.aliases) for n, f in BLOCK_FORMATS.items())
    if not known and ("/" not in name or name.endswith(".toml")):
        return None
    found = get_block_format(name)
    if (found.scale.name, found.block) not in READ:
        ways = listed([f"{block} with {scale}" for scale, block in sorted(READ)], "or")
        raise UsageError(
            f"{found}: a product reads scales of groups of {ways}; these are {found.block} with {found.scale}"
        )
    return found


def scale_of(name: str) -> str:
    """The name of the input that has the scales of an operand."""
    return f"{name}_scale"


def quantised(
    exact: Mapping[str, np.ndarray],
    fmt: BlockFormat,
    axes: Mapping[str, int],
    mode: str | None = None,
    seed: int | None = None,
) -> dict[str, Blocks]:
    """Operands in blocks along the axes of their sums. mode, seed: of the rounding; each has random bits of its own."""
    seeds = {n: None if seed is None else seed + k for k, n in enumerate(axes)}
    return {n: fmt.quantise(exact[n], axis, mode, seed=seeds[n]) for n, axis in axes.items()}


def as_tensors(blocks: Mapping[str, Blocks]) -> Arrays:
    """What memory holds of them: scales (groups, rows), the groups first whatever the axis, so that those of a tile are rows
    of the width of the tile and not single bytes."""
    out: Arrays = {}
    for n, x in blocks.items():
        codes = np.moveaxis(x.codes, x.axis or 0, -1)
        codes = pack(codes, PACKED) if x.format.element.bits == PACKED else codes
        out[n] = np.ascontiguousarray(np.moveaxis(codes, -1, x.axis or 0))
        scales = np.ascontiguousarray(np.moveaxis(x.scales, x.axis or 0, 0))
        out[scale_of(n)] = scales.view(np.uint8) if x.format.scale.name == "e8m0" else scales
    if any(x.format.tensor_scale for x in blocks.values()):
        out[FACTOR] = np.full(1, math.prod(x.tensor_scale for x in blocks.values()), np.float32)
    return out


def as_shapes(
    shapes: Mapping[str, tuple[int, ...]], fmt: BlockFormat, axes: Mapping[str, int]
) -> dict[str, Shape]:
    """The same without data."""
    packed = fmt.element.bits == PACKED
    codes = uint8 if packed else element_type(fmt.element.name)
    scales = uint8 if fmt.scale.name == "e8m0" else element_type(fmt.scale.name)
    out: dict[str, Shape] = {}
    for n, axis in axes.items():
        dims, depth = shapes[n], shapes[n][axis]
        out[n] = Shape(tuple(-(-d // 2) if packed and k == axis else d for k, d in enumerate(dims)), codes)
        rows = tuple(d for k, d in enumerate(dims) if k != axis)
        out[scale_of(n)] = Shape((-(-depth // (fmt.block or depth)), *rows), scales)
    return out | ({FACTOR: Shape((1,), float32)} if fmt.tensor_scale else {})


def block_inputs(operands: Iterable[str]) -> tuple[str, ...]:
    """Names of the inputs that come beside operands in blocks."""
    return (*map(scale_of, operands), FACTOR)
