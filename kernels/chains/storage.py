"""How the tensors of a chain are stored: in types of the vendor's, or in any other number or block format, a what-if.

Memory holds the codes of a what-if. Most operators of ours do not load them: a cast of its own, before the step, makes a
type of them that the operator has, and one behind a step makes them. What such a cast takes the launch states
(`simulator/call.py`). Scales of blocks are cast beside the elements; they are found, and multiplied with, on the way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.precision.block_formats import BLOCK_FORMATS, BlockFormat, get_block_format
from ...simulator.precision.dtypes import DType, of_format
from ...simulator.precision.formats import FP32, Format, get_format
from ...simulator.precision.rounding import decode, encode, round_to
from ...simulator.products import Product
from ..operator.tensors import DTYPE_NAMES

WIDTHS = ("float16", "bfloat16", "float32")
AXIS = "@"  # before the axis of the blocks, mxfp8@0


@dataclass(frozen=True)
class Storage:
    """A format of a tensor. what_if: whether it is none of the types that the product stores."""

    fmt: Format
    what_if: bool

    @property
    def name(self) -> str:
        """The format's name, which `storage_of` knows."""
        return self.fmt.name

    @property
    def ulp_of(self) -> Format:
        """The format in whose ulp errors are told."""
        return self.fmt

    def types(self, shape: tuple[int, ...]) -> dict[DType, tuple[int, ...]]:
        """Element types that memory holds of a tensor, and how many of each; the tensor's own comes first."""
        return {of_format(self.fmt): shape}

    def stored(self, x: np.ndarray) -> np.ndarray:
        """Float32 or float64 values as they are stored: codes, or float32 on the grid of a format above 16 bits."""
        with np.errstate(over="ignore", invalid="ignore"):
            return encode(x, self.fmt) if self.fmt.stored else round_to(x, self.fmt)

    @property
    def coded(self) -> bool:
        """Whether an array of its values says by its dtype that it is stored so."""
        return not self.what_if or of_format(self.fmt).is_coded

    def held_by(self, wide: Format) -> bool:
        """Whether every value is one of another format."""
        return holds(wide, self.fmt)

    def lost(self, x: np.ndarray) -> dict[str, float]:
        """Shares of the elements of x, in float64, that are too large, become zero, or lie below the normal numbers."""
        size, kept = np.abs(x), np.abs(values_of(self.stored(x)))
        largest = float(self.fmt.max)
        with np.errstate(invalid="ignore"):
            over = np.isfinite(size) & (size >= largest + 0.5 * self.fmt.ulp(largest))
            below = (kept > 0) & (kept < self.fmt.min_normal)
        return _shares(over, (size > 0) & (kept == 0), below)


@dataclass(frozen=True)
class BlockStorage:
    """A block format of a tensor, blocks along an axis; values are held in float32."""

    blocks: BlockFormat
    axis: int = -1
    what_if = True
    coded = False
    ulp_of = FP32

    @property
    def name(self) -> str:
        """Its name, with the axis of the blocks where that is not the last one."""
        return self.blocks.name + ("" if self.axis == -1 else f"{AXIS}{self.axis}")

    def types(self, shape: tuple[int, ...]) -> dict[DType, tuple[int, ...]]:
        """Elements and scales."""
        fmt, scales = self.blocks, list(shape)
        if not -len(shape) <= self.axis < len(shape):
            raise UsageError(
                f"{fmt}: axis {self.axis} of a tensor of shape {shape}; it has {len(shape)} axes"
            )
        scales[self.axis] = -(-scales[self.axis] // (fmt.block or scales[self.axis]))
        return {of_format(fmt.element): shape, of_format(fmt.scale): tuple(scales)}

    def stored(self, x: np.ndarray) -> np.ndarray:
        """Elements times scales, in float32."""
        return np.asarray(self.blocks.quantise(x, self.axis).values())

    def held_by(self, wide: Format) -> bool:
        """A scale may bring an element anywhere in the range of FP32."""
        return wide is FP32

    def lost(self, x: np.ndarray) -> dict[str, float]:
        """As of `Storage`: elements that are too large for their scale, zero, or below the element's normal numbers."""
        found, element = self.blocks.quantise(x, self.axis), self.blocks.element
        codes = found.codes if element.is_integer else decode(found.codes)
        size, kept = np.abs(x), np.abs(found.values().astype(np.float64))
        elements = np.abs(codes.astype(np.float64))
        with np.errstate(invalid="ignore"):
            most = elements == float(element.max)
            over = np.isfinite(size) & (
                ~np.isfinite(kept) | most & (size > kept * (1 + element.unit_roundoff))
            )
            below = (elements > 0) & (elements < element.min_normal)
        return _shares(over, (size > 0) & (kept == 0), below)


AnyStorage = Storage | BlockStorage


def _shares(over: np.ndarray, under: np.ndarray, below: np.ndarray) -> dict[str, float]:
    """By the names that runs have them under."""
    masks = {"overflow": over, "underflow": under, "subnormal": below}
    return {n: float(np.mean(mask)) for n, mask in masks.items()}


def values_of(stored: np.ndarray) -> np.ndarray:
    """Stored values as float64."""
    wide = stored if stored.dtype in (np.float32, np.float64) else decode(stored)
    return wide.astype(np.float64)


def carriers(storage: AnyStorage, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Those of some types that hold every value, the narrowest first."""
    return tuple(d for d in WIDTHS if d in dtypes and storage.held_by(get_format(d)))


def storage_of(given: str, product: Product) -> AnyStorage:
    """The storage of that name on a product: a format as `get_format` takes it, or a block format, with the axis of its
    blocks where that is not the last one ("mxfp8@0"). Raises `UsageError`, also for a type of the vendor's that it does not
    have."""
    name, _, axis = given.partition(AXIS)
    if not given.endswith(".toml") and ("/" in name or name.lower() in _block_names()):
        if axis and not axis.lstrip("-").isdecimal():
            raise UsageError(
                f"{given!r}: the axis of the blocks is a number such as {name}{AXIS}0, got {axis!r}"
            )
        return BlockStorage(get_block_format(name), int(axis or -1))
    fmt = get_format(given)
    if not fmt.is_float or not fmt.zero or fmt.bits > 32:
        raise UsageError(
            "a tensor is stored in a floating-point format with a zero and at most 32 bits, or in a block format, "
            f"got {given!r}"
        )
    if fmt.name in DTYPE_NAMES and fmt.name not in product.texts("dtypes.storage"):
        have = [n for n in DTYPE_NAMES if n in product.texts("dtypes.storage")]
        raise UsageError(f"{product.name} does not store {fmt.name}; it stores {', '.join(have)}")
    return Storage(fmt, fmt.name not in DTYPE_NAMES)


def _block_names() -> set[str]:
    return {alias for f in BLOCK_FORMATS.values() for alias in (f.name, *f.aliases)}


def holds(wide: Format, narrow: Format) -> bool:
    """Whether every value of one format is one of another."""
    return (
        wide.mantissa >= narrow.mantissa
        and wide.max >= narrow.max
        and wide.min_subnormal <= narrow.min_subnormal
    )


def type_name(dtype: DType) -> str:
    """An element type as users write it."""
    return DTYPE_NAMES.get(dtype.name, dtype.format.name)
