"""Convolutions in 2D, forward and backward: the launch on the Cube; what changes layouts before and after is left out.

The boards' kernels read images and weights whose channels lie in blocks of 32 bytes, which other launches make; so do
ours. They make windows of an image in L1 on its way to L0 (LoadData3D). The forward has a bias, which comes by the bias
table, and positions as rows of its product. No tiling is published: the operator's own choice counts, of the gradient
of the weight the best of a few.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import simulator as sim
from ...simulator.errors import BufferOverflowError, UsageError
from ...simulator.products import load_product
from ..convolution.forward import convolution
from ..convolution.op import convolution_backward
from .registry import Prediction, predicts
from .settings import BYTES, NAMES, Settings, dtypes_of, float_of, note_of, roofline_us, tensor
from .table import Row

CUBE_KERNELS = ("image_windows", "image_tiles", "weight_tiles")
TRIED: dict[str, tuple[dict[str, Any], ...]] = {
    "forward": ({"taps": "window"},),
    "image": ({"taps": "window"},),
    "weight": ({}, *({"weight_parts": n} for n in (1, 2, 4, 8))),
}


class Sizes(NamedTuple):
    """images x channels in x channels out x height x kernel x stride x padding; squares."""

    n: int
    c_in: int
    c_out: int
    size: int
    taps: int
    stride: int
    padding: int

    @property
    def out(self) -> int:
        """Height of the output."""
        return (self.size + 2 * self.padding - self.taps) // self.stride + 1

    @property
    def stuffed(self) -> Sizes:
        """The same gradient of the image with zeros between the elements of the output's gradient, in place of a stride."""
        size = (self.out - 1) * self.stride + self.taps - 2 * self.padding
        return self._replace(size=size, stride=1) if size > 0 else self


@predicts("conv2d_backward_input", "conv2d_backward_filter")
def _backward(row: Row) -> Prediction:
    """A stride of a gradient of the image is met by zeros that are multiplied (hicann/ops-nn, conv3d_backprop)."""
    s = _sizes(row)
    if row.op.endswith("filter"):
        return _best(row, s, s, "weight")
    return _best(row, s, s.stuffed if s.taps > 1 and s.stride > 1 else s, "image")


@predicts("conv2d")
def _forward(row: Row) -> Prediction:
    s = _sizes(row)
    return _best(row, s, s, "forward")


def _sizes(row: Row) -> Sizes:
    parts = row.shapes.split("x")
    numbers = [int(p) for p in parts if p.isdecimal()]
    if len(numbers) != len(parts) or len(numbers) != len(Sizes._fields):
        raise UsageError(
            f"{row.id}: shapes must be {' x '.join(Sizes._fields)}, {len(Sizes._fields)} numbers; got {row.shapes!r}"
        )
    found = Sizes(*numbers)
    if not (min(found[:6]) and 1 <= found.taps <= found.size + 2 * found.padding):
        raise UsageError(
            f"{row.id}: the kernel of {found.taps} must not be larger than the padded image of "
            f"{found.size} + 2 * {found.padding} = {found.size + 2 * found.padding}, and no size but the padding is 0; "
            f"got {row.shapes} ({' x '.join(Sizes._fields)})"
        )
    return found


def _best(row: Row, s: Sizes, done: Sizes, what: str) -> Prediction:
    """done: the sizes of what the kernel multiplies. Raises BufferOverflowError, of the last one, if no tiling fits."""
    found: list[tuple[float, int]] = []
    overflow: BufferOverflowError | None = None
    for k, tried in enumerate(TRIED[what]):
        try:
            found.append((_time(row, done, what, tried), k))
        except BufferOverflowError as e:
            overflow = e
    if not found:
        raise overflow or ValueError(f"{row.id}: nothing to try")
    time, best = min(found)
    knobs = " ".join(f"{k}={v}" for k, v in TRIED[what][best].items()) or "the operator's own choice"
    multiplications = float(s.n) * s.out**2 * s.c_out * s.c_in * s.taps**2
    x, y, w = s.n * s.c_in * s.size**2, s.n * s.c_out * s.out**2, s.c_in * s.c_out * s.taps**2
    size, written = BYTES[dtypes_of(row)[0][0]], {"forward": y, "image": x, "weight": w}[what]
    operand = "hf32" if Settings(row).hf32() else dtypes_of(row)[0][0]
    roofline = roofline_us(row, ((x + y + w - written) * size, written * size), multiplications, operand)
    return Prediction(time, roofline, note_of(len(found), knobs))


def _time(row: Row, s: Sizes, what: str, knobs: dict[str, Any]) -> float:
    settings, kind = Settings(row), NAMES[float_of(row)]
    dy = tensor(kind, s.n, s.c_out, s.out, s.out)
    x = tensor(kind, s.n, s.c_in, s.size, s.size)
    weight = tensor(kind, s.c_out, s.c_in, s.taps, s.taps)
    same: dict[str, Any] = {
        "stride": s.stride,
        "padding": s.padding,
        "cube_math_type": "USE_HF32" if settings.hf32() else "KEEP_DTYPE",
        # What the boards timed is one kernel of several, so layouts and products are launches of their own here, too.
        "tiling": {"cores": settings.number("cores"), "launches": "apart", **knobs},
        "values": False,
    }
    mask = (what == "image", what == "weight", False)
    with sim.device(**settings.device_options()):
        if what == "forward":
            found = _forward_of(row, x, weight, s.c_out, same)
        else:
            found = convolution_backward(dy, x, weight, output_mask=mask, **same)
    products = [x.time_us for x in found.launches if x.kernel in CUBE_KERNELS]
    if not products:
        names = ", ".join(x.kernel for x in found.launches)
        raise RuntimeError(f"{row.id}: none of {CUBE_KERNELS} is among the launches ({names})")
    return float(sum(products))


def _forward_of(row: Row, x: Any, weight: Any, channels: int, same: dict[str, Any]) -> Any:
    """With a bias, where there is a table for it: so positions are the rows of the product."""
    if load_product(row.product).core_model != "split":
        return convolution(x, weight, **same)
    bias = tensor("fp32", channels)
    return convolution(x, weight, bias, **{**same, "tiling": {**same["tiling"], "bias": "table"}})
