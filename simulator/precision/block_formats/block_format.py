"""What a block format is, and tensors that are stored in one.

The scale of a block follows from its largest finite magnitude, amax. Rule "power" (OCP MX 1.0, section 6.3): 2 to the
floor(log2 amax) less the exponent of the element's largest value, within what the scale format holds. Rule "amax": amax
over the element's largest value, rounded to nearest in the scale format; in NVFP4 first divided by a scale of the whole
tensor, amax of the tensor over the largest values of element and scale. Elements are values over scales, rounded once, too
large ones clamped; integers stay symmetric. A block of zeros has the least scale by rule "power", scale 0 by rule "amax".
NaN and infinite values keep a code where the element format has one; elsewhere the scale of their block is NaN, and where
scales have no code for that, as FP32 scales here, they are refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import UsageError
from ..formats import MODES, Format, get_format
from ..rounding import decode, encode, round_to, to_integer

RULES = ("power", "amax")
LARGEST_TENSOR_SCALE = float(np.finfo(np.float32).max)
Array = NDArray[Any]
Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class BlockFormat:
    """Elements of `element`, of which `block` neighbours share a scale of `scale`; block None: all along the axis.

    element, scale: formats, as `get_format` takes them. rule: "power" or "amax" (see the module), by default "power" where
    the scale format has no mantissa. tensor_scale: whether an FP32 scale of the whole tensor comes on top.
    """

    element: Format
    scale: Format
    block: int | None
    rule: str = ""
    tensor_scale: bool = False
    name: str = ""
    aliases: tuple[str, ...] = field(default=(), compare=False)
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for part in ("element", "scale"):
            object.__setattr__(self, part, get_format(getattr(self, part)))
        if not self.rule:
            object.__setattr__(self, "rule", "amax" if self.scale.mantissa else "power")
        if not self.name:
            size = "axis" if self.block is None else self.block
            object.__setattr__(self, "name", f"{self.element}/{self.scale}/{size}")
        _check(self)

    def __str__(self) -> str:
        return self.name

    @property
    def bits_per_element(self) -> float:
        """Bits of an element and its share of the scale, packed; the scale of the tensor or of a whole axis left out."""
        return self.element.bits + (self.scale.bits / self.block if self.block else 0.0)

    def quantise(
        self,
        x: ArrayLike,
        axis: int | None = -1,
        mode: str | None = None,
        *,
        scales: ArrayLike | None = None,
        seed: int | None = None,
    ) -> Blocks:
        """`x` in this format, blocks along `axis`; axis None: one scale for all, for formats without a block size.

        x: floats of any shape. A last block that is not full is filled with zeros, which `Blocks.padding` tells.
        scales: positive numbers to take instead of the rule's, of the shape that the scales have. mode, seed: of
        `round_to`, for the elements, which are counted block by block, zeros included, the axis of blocks last.
        """
        values = self._doubles(x)
        shape = values.shape
        if axis is None and self.block is not None:
            raise UsageError(
                f"{self}: axis None is for formats whose block is the axis; its blocks have {self.block}"
            )
        flat = values.reshape(-1) if axis is None else values
        at = _axis(flat, -1 if axis is None else axis, self)
        parts = _blocked(np.moveaxis(flat, at, -1), self.block)
        whole = self._tensor_scale(parts)
        stored = self._given(parts, scales, at) if scales is not None else self._scales(parts, whole)
        codes = self._elements(parts, decode(stored).astype(np.float64) * whole, mode, seed)
        codes = codes.reshape(*codes.shape[:-2], codes.shape[-2] * codes.shape[-1])[..., : flat.shape[at]]
        return Blocks(
            self, np.moveaxis(codes, -1, at).reshape(shape), np.moveaxis(stored, -1, at), axis, whole
        )

    def blocks(self, codes: Array, scales: Array, axis: int | None = -1, tensor_scale: float = 1.0) -> Blocks:
        """A stored tensor from its parts: codes in the dtype of the element format, scales in that of the scale format."""
        return Blocks(self, np.asarray(codes), np.asarray(scales), axis, tensor_scale)

    # ---- the rule

    def _doubles(self, x: ArrayLike, use: str = "quantise") -> Doubles:
        array = np.asarray(x)
        array = decode(array) if array.dtype.names else array  # codes of a format
        if array.dtype.kind in "cOUSMm":
            raise UsageError(f"{self}: cannot {use} {array.dtype}; give floats or integers")
        return array.astype(np.float64)

    def _tensor_scale(self, parts: Doubles) -> float:
        if not self.tensor_scale:
            return 1.0
        most = float(_amax(parts).max(initial=0.0)) / (float(self.element.max) * float(self.scale.max))
        return float(np.float32(min(most, LARGEST_TENSOR_SCALE))) or 1.0

    def _scales(self, parts: Doubles, whole: float) -> Array:
        amax = _amax(parts)
        if self.rule == "power":
            exponents = np.frexp(amax)[1] - np.frexp(float(self.element.max))[1]
            found = np.ldexp(1.0, exponents)
            found = np.where(amax > 0, found, self.scale.min_subnormal)
            found = np.clip(found, self.scale.min_subnormal, float(self.scale.max))
        else:
            found = amax / float(self.element.max) / whole
        if self.element.nan == "none":  # nothing else can say it
            if (self.scale.bits > 16 or self.scale.nan == "none") and not np.isfinite(parts).all():
                raise UsageError(
                    f"{self}: the values have NaN or infinity; {self.element} has no code for it, nor have scales"
                )
            found = np.where(np.isfinite(parts).all(-1), found, np.nan)
        return encode(found, self.scale, overflow="clamp")

    def _given(self, parts: Doubles, scales: ArrayLike, at: int) -> Array:
        rows = self._doubles(scales, "scale by")
        need = list(parts.shape[:-2])
        need.insert(at, parts.shape[-2])
        if rows.shape != tuple(need):
            raise UsageError(f"{self}: scales of {rows.shape}; blocks of this tensor need {tuple(need)}")
        given = np.moveaxis(rows, at, -1)
        if not (np.isfinite(given) & (given > 0)).all():
            raise UsageError(
                f"{self}: a scale is {given[~(np.isfinite(given) & (given > 0))][0]}; scales are above 0"
            )
        return encode(given, self.scale, overflow="clamp")

    def _elements(self, parts: Doubles, scales: Doubles, mode: str | None, seed: int | None) -> Array:
        scales = scales[..., None]
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            scaled = np.where(scales == 0, 0.0, parts / scales)
        if self.element.is_integer and seed is not None:
            raise UsageError(
                f"{self}: a seed is for floating-point elements; {self.element} is rounded by {MODES}"
            )
        if self.element.is_integer:
            most = float(self.element.max)
            return to_integer(np.clip(np.nan_to_num(scaled), -most, most), self.element, mode or "RINT")
        held = encode(scaled, self.element, mode, "clamp", seed=seed)
        lost = np.isinf(parts)
        if self.element.nan != "none" and lost.any():
            held[lost] = encode(parts[lost], self.element, overflow="inf_nan")
        return held


def _check(fmt: BlockFormat) -> None:
    if fmt.block is not None and (isinstance(fmt.block, bool) or not isinstance(fmt.block, int)):
        raise UsageError(
            f"block format {fmt.name}: block {fmt.block!r}: elements that share a scale, or None for all along the axis"
        )
    if fmt.block is not None and fmt.block < 1:
        raise UsageError(f"block format {fmt.name}: block of {fmt.block}; at least 1 element has a scale")
    if fmt.rule not in RULES:
        raise UsageError(f"block format {fmt.name}: rule {fmt.rule!r}: known are {', '.join(RULES)}")
    if not fmt.scale.is_float or fmt.scale.bits > 32:
        raise UsageError(
            f"block format {fmt.name}: scales in {fmt.scale}; they take a floating-point format up to fp32"
        )
    if fmt.element.bits > 16:
        raise UsageError(
            f"block format {fmt.name}: elements in {fmt.element}; they take a format of at most 16 bits"
        )


def _axis(x: Array, axis: int, fmt: BlockFormat) -> int:
    if isinstance(axis, bool) or not isinstance(axis, int | np.integer):
        raise UsageError(f"{fmt}: axis {axis!r}: a whole number, or None")
    if not x.ndim or not -x.ndim <= axis < x.ndim:
        raise UsageError(f"{fmt}: axis {axis} of a tensor of shape {x.shape}; it has {x.ndim} axes")
    return axis % x.ndim


def _blocked(x: Doubles, block: int | None) -> Doubles:
    """(..., n) as (..., blocks, block), filled with zeros."""
    size = max(x.shape[-1], 1) if block is None else block
    missing = -x.shape[-1] % size
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)]) if missing else x
    return padded.reshape(*x.shape[:-1], padded.shape[-1] // size, size)


def _amax(parts: Doubles) -> Doubles:
    return np.asarray(np.where(np.isfinite(parts), np.abs(parts), 0.0).max(-1, initial=0.0))


@dataclass(frozen=True)
class Blocks:
    """A tensor in a block format.

    codes: one an element, in the dtype of the element format and the shape of the tensor. scales: in the dtype of the scale
    format, the axis of the blocks shortened to their number. tensor_scale: 1, where there is none.
    """

    format: BlockFormat
    codes: Array
    scales: Array
    axis: int | None = -1
    tensor_scale: float = 1.0

    def __post_init__(self) -> None:
        fmt = self.format
        for what, array, own in (("codes", self.codes, fmt.element), ("scales", self.scales, fmt.scale)):
            if array.dtype != own.dtype:
                raise UsageError(f"{fmt}: {what} of dtype {array.dtype}; those of {own} have {own.dtype}")
        at = _axis(self._flat, -1 if self.axis is None else self.axis, fmt)
        need = list(self._flat.shape)
        need[at] = -(-need[at] // self.block)
        if self.scales.shape != tuple(need):
            raise UsageError(
                f"{fmt}: scales of shape {self.scales.shape}; codes of shape {self.codes.shape} with blocks of "
                f"{self.block} along axis {self.axis} need {tuple(need)}"
            )
        number = isinstance(self.tensor_scale, int | float | np.floating | np.integer)
        if not number or not 0 < self.tensor_scale <= LARGEST_TENSOR_SCALE:
            raise UsageError(
                f"{fmt}: tensor_scale is {self.tensor_scale!r}; it is a number above 0 that float32 holds"
            )
        if self.format.scale.bits > 16 and not np.isfinite(self.scales).all():
            where = np.argwhere(~np.isfinite(self.scales))[0].tolist()
            raise UsageError(
                f"{fmt}: the scale at {where} is {self.scales[tuple(where)]}; scales of {fmt.scale} are finite"
            )

    @property
    def _flat(self) -> Array:
        return self.codes.reshape(-1) if self.axis is None else self.codes

    @property
    def _along(self) -> int:
        """Elements along the axis of the blocks."""
        return int(self._flat.shape[-1 if self.axis is None else self.axis])

    @property
    def block(self) -> int:
        """Elements that share a scale."""
        return self.format.block or max(self._along, 1)

    @property
    def padding(self) -> int:
        """Zeros that fill the last block of each row."""
        return -self._along % self.block

    @property
    def bytes(self) -> int:
        """Bytes in memory: codes of less than a byte packed, padding and scales included."""
        rows = self.codes.size // max(self._along, 1)
        row = -(-(self._along + self.padding) * self.format.element.bits // 8)
        return rows * row + self.scales.nbytes + (4 if self.format.tensor_scale else 0)

    def values(self) -> NDArray[np.float32]:
        """What the codes stand for, float32 in the shape of the tensor: element times scale, rounded once."""
        whole = self.format.element.is_integer
        elements = (self._flat if whole else decode(self._flat)).astype(np.float64)
        at = -1 if self.axis is None else self.axis
        scales = np.repeat(decode(self.scales).astype(np.float64), self.block, at)
        scales = np.take(scales, np.arange(elements.shape[at]), at)
        with np.errstate(over="ignore", invalid="ignore"):
            return round_to(elements * scales * self.tensor_scale, "fp32").reshape(self.codes.shape)

    def __repr__(self) -> str:
        rest = f", {self.padding} zeros in the last of each row" if self.padding else ""
        return f"Blocks({self.format}, shape {self.codes.shape}, blocks of {self.block} along axis {self.axis}{rest})"
