"""Slices of tiles and single elements: what `extension` calls its vector operations on a part of a tile."""

from __future__ import annotations

from typing import Any

from ....ir.building import slices
from ....ir.building.registry import Builder, builtin
from ....ir.program import Value


@builtin(method=True)
def extract_slice(b: Builder, ful: Value, offsets: Any, sizes: Any, strides: Any) -> Value:
    """The elements of `ful` at offset + stride * i, 0 <= i < size, on each axis: a tile of shape `sizes`.

    ful: any type, any rank. offsets: one for each axis, integers or integer scalars of the program (which may differ
    between programs). sizes, strides: compile-time integers of at least 1. A slice that leaves the tile is a `CompileError`
    for constant offsets, a `RunError` with program and line for others.
    """
    return slices.extract_slice(b, ful, offsets, sizes, strides)


@builtin(method=True)
def insert_slice(b: Builder, ful: Value, sub: Value, offsets: Any, sizes: Any, strides: Any) -> Value:
    """`ful` with `sub` in the place that `extract_slice(ful, offsets, sizes, strides)` would take.

    sub: of shape `sizes` and of the type of `ful`. A tile that is not used again is changed in its own buffer.
    """
    return slices.insert_slice(b, ful, sub, offsets, sizes, strides)


@builtin(method=True)
def img2col(b: Builder, image: Value, taps: Any, steps: Any, apart: Any) -> Value:
    """Windows of an image side by side, each as a row of a matrix: what LoadData3D makes on the way from L1 to L0.

    image: (images, rows, columns, channels), any type. taps, steps, apart: two compile-time integers each, down and across:
    taps of a window, elements from window to window, and from tap to tap. Gives (images, windows down, windows across,
    taps down * taps across * channels) of all windows that lie within the image. As operand of a product it takes no time of
    its own and no room: the load to L0 reads the image in L1. A window larger than the image is a `CompileError`.

    Triton-Ascend has no such builtin; Ascend C calls it LoadData with LoadData3DParamsV2.
    """
    return slices.img2col(b, image, taps, steps, apart)


@builtin(method=True)
def get_element(b: Builder, src: Value, indice: Any) -> Value:
    """The scalar of `src` at `indice`, one integer or integer scalar for each axis. The scalar unit reads it from UB."""
    return slices.get_element(b, src, indice)


__all__ = ["extract_slice", "get_element", "img2col", "insert_slice"]
