"""A convolution as the kernels see it: always three spatial axes and always the plain orientation.

A transposed convolution from x to y is the gradient of a plain one from y to x: with the image that the kernels call `wide`
(x of a plain, y of a transposed forward) and the one they call `narrow` (the other), all products are of three kinds:

    gather      wide[i]     = sum over taps j, o with o*stride + j*dilation - before = i  of narrow[o] w[j]
    correlate   narrow[o]   = sum over taps j of wide[o*stride + j*dilation - before] w[j]
    weigh       w[j]        = sum over o of narrow[o] wide[o*stride + j*dilation - before]

Channels of a group: `narrow_channels` and `wide_channels`; w is (groups * narrow_channels, wide_channels, *taps).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd, lcm, prod
from typing import NamedTuple

from ...simulator.errors import UsageError
from ..operator.messages import listed
from .call import ConvolutionCall
from .checks import paddings

FRACTAL = 16
LEAST_PATCHES = 96
DENSE = 16  # elements of an axis for each tap up to which one window is met position by position
MOST_WINDOWS = 64  # taps up to which a window for each is faster than to fold patches (simulated: 4 to 64 by 1.03 to 9.6)


class Phase(NamedTuple):
    """Output positions of one remainder `place`: window a lies at first + a * distance and meets tap + a * tap_step."""

    place: int
    taps: int
    first: int
    distance: int
    tap: int
    tap_step: int


@dataclass(frozen=True)
class Axis:
    """One spatial axis: sizes of the two images, taps, stride, dilation, padding before the first element."""

    wide: int
    narrow: int
    taps: int
    stride: int = 1
    dilation: int = 1
    before: int = 0

    @property
    def common(self) -> int:
        """Greatest common divisor of stride and dilation."""
        return gcd(self.stride, self.dilation)

    @property
    def met(self) -> int:
        """Remainders of output positions modulo the stride that meet a tap: those of the first taps, which come again."""
        return min(self.taps, self.stride // self.common)

    def phases(self, gather: bool) -> tuple[Phase, ...]:
        """Output positions by their remainder modulo the stride, those that meet taps; one if not `gather`."""
        if not gather:
            return (Phase(0, self.taps, -self.before, self.dilation, 0, 1),)
        firsts = {(j * self.dilation - self.before) % self.stride: j for j in range(self.met)}
        return tuple(self._phase(place, first) for place, first in sorted(firsts.items()))

    def _phase(self, place: int, first: int) -> Phase:
        """Windows in ascending place, so that their taps descend. first: the first tap, which comes again at each step."""
        step, apart = self.stride // self.common, self.dilation // self.common
        count = -(-(self.taps - first) // step)
        last = first + (count - 1) * step
        return Phase(
            place, count, (place + self.before - last * self.dilation) // self.stride, apart, last, -step
        )


@dataclass(frozen=True)
class Geometry:
    """Sizes of a convolution, see above. `rank`: spatial axes of the user's tensors."""

    batch: int
    groups: int
    narrow_channels: int
    wide_channels: int
    axes: tuple[Axis, Axis, Axis]
    transposed: bool
    rank: int

    @property
    def taps(self) -> int:
        return prod(a.taps for a in self.axes)

    @property
    def wide_sizes(self) -> tuple[int, int, int]:
        d, h, w = (a.wide for a in self.axes)
        return d, h, w

    @property
    def narrow_sizes(self) -> tuple[int, int, int]:
        d, h, w = (a.narrow for a in self.axes)
        return d, h, w

    @property
    def strided_gather(self) -> bool:
        """Whether the wide image is made phase by phase."""
        return not self.transposed and any(a.stride > 1 for a in self.axes)

    @property
    def sparse(self) -> bool:
        """Whether some positions of the wide image meet no tap: they are cleared before the others are written."""
        return not self.transposed and any(a.met < a.stride for a in self.axes)

    @cached_property
    def phases(self) -> tuple[tuple[Phase, ...], ...]:
        """Of D, H and W: those of the image that is made."""
        return tuple(a.phases(not self.transposed) for a in self.axes)

    @property
    def patches(self) -> bool:
        """Windows that lie side by side and cover the image: each tap is a channel of its own (patch embedding)."""
        side_by_side = all(
            a.stride == a.taps and a.dilation == 1 and a.before == 0 and a.wide == a.narrow * a.taps
            for a in self.axes
        )
        h, w = self.axes[1:]
        worth = h.taps * w.wide >= LEAST_PATCHES  # elements of the tiles that fold the image
        return side_by_side and self.groups == 1 and self.taps > 1 and worth

    def folded(self) -> Geometry:
        """The same products with the taps of patches as channels; the weight keeps its place in memory."""
        axes = tuple(Axis(a.narrow, a.narrow, 1) for a in self.axes)
        return replace(self, wide_channels=self.wide_channels * self.taps, axes=axes)  # type: ignore[arg-type]

    def products(self) -> int:
        """Multiplications of one of the two gradients."""
        return (
            self.batch
            * prod(self.narrow_sizes)
            * self.groups
            * self.narrow_channels
            * self.wide_channels
            * self.taps
        )


def as_patches(g: Geometry, asked: str, split: bool) -> bool:
    """Whether patches are folded. asked: knob `taps`; split: whether one launch can do all but that (`tiles/whole.py`)."""
    if not g.patches or asked not in ("auto", "patch"):
        return False
    return asked == "patch" or g.taps > MOST_WINDOWS or (not split and g.wide_channels < FRACTAL)


def geometry(call: ConvolutionCall) -> Geometry:
    """The geometry of a checked call."""
    wide, narrow = call.input.shape, call.grad_output.shape
    if call.transposed:
        wide, narrow = narrow, wide
    w = call.weight.shape
    pads = paddings(call.padding, call.spatial)
    steps, apart = call.stride, call.dilation
    axes = [
        with_least_stride(Axis(wide[k + 2], narrow[k + 2], w[k + 2], steps[k], apart[k], pads[k][0]))
        for k in range(call.spatial)
    ]
    d, h, x = [*[Axis(1, 1, 1)] * (3 - len(axes)), *axes]
    return Geometry(
        batch=wide[0],
        groups=call.groups,
        narrow_channels=w[0] // call.groups,
        wide_channels=w[1],
        axes=(d, h, x),
        transposed=call.transposed,
        rank=call.spatial,
    )


def with_least_stride(a: Axis) -> Axis:
    """The same axis; where there is but one window, with a stride that does not depend on the one that was given."""
    if a.narrow > 1 or (a.stride == 1 and a.dilation == 1):
        return a
    if a.taps > 1 and a.dilation > 1:
        return replace(a, stride=a.dilation)  # all positions that meet taps are of one phase
    if a.before == 0 and a.wide == a.taps:
        return replace(a, stride=a.taps)
    return replace(a, stride=1 if a.wide <= DENSE * a.taps else a.wide + a.before)


@dataclass(frozen=True)
class Merging:
    """Groups merged so that one merged group fills fractals; its weight is block-diagonal (hicann/ops-nn, conv tilings).

    extent: groups in one merged group; count: merged groups; narrow, wide: their channels, padded to whole blocks.
    """

    extent: int
    count: int
    narrow: int
    wide: int

    @property
    def narrow_pitch(self) -> int:
        """Channels of a row of the narrow image, padding included."""
        return self.count * self.narrow

    @property
    def wide_pitch(self) -> int:
        return self.count * self.wide


def merge_groups(g: Geometry, block: int, asked: int | None = None) -> Merging:
    """Merged groups for blocks of `block` channels (C0); asked: groups in one, instead of the vendor's rule.

    Images in memory are blocks of channels, so that each merged group but the last must begin with a block of its own.
    """
    wide, narrow = g.wide_channels, g.narrow_channels
    rule = lcm(lcm(wide, block) // wide, lcm(narrow, FRACTAL) // narrow)
    extent = min(asked or rule, g.groups)
    if extent < g.groups and (extent * wide % block or extent * narrow % block):
        raise UsageError(_misfit(g, block, extent))
    count = -(-g.groups // extent)
    return Merging(extent, count, _up(extent * narrow, block), _up(extent * wide, block))


def _misfit(g: Geometry, block: int, asked: int) -> str:
    wide, narrow = g.wide_channels, g.narrow_channels
    least = min(lcm(lcm(wide, block) // wide, lcm(narrow, block) // narrow), g.groups)
    legal = [n for n in range(least, g.groups, least)][:2]
    return (
        f"convolution_backward: tiling parameter 'merged_groups' is {asked}; groups of {narrow} and {wide} channels fill "
        f"blocks of {block} channels by multiples of {least}, or all {g.groups} groups in one: take "
        f"{listed((*legal, g.groups), 'or')}"
    )


def _up(n: int, to: int) -> int:
    return -(-n // to) * to
