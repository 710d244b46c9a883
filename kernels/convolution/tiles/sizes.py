"""What the kernels of the products know when they are compiled, as one compile-time argument `S` each."""

from __future__ import annotations

from typing import NamedTuple

from ..call import Ints


class Loaded(NamedTuple):
    """What `load_image` takes of an image: (D, H, W), channels of a row, channels of a group, of a tile, of a block (c0)."""

    sizes: Ints
    pitch: int
    k: int
    bk: int
    c0: int


class ImageSizes(NamedTuple):
    """Of the kernels that make an image: `out` from `src` and a weight (groups, taps, rows, cols).

    src, out: (D, H, W) of both images. out_pitch 0: out is (N, out_channels, *out), else rows of that many channels. gather:
    rows of the weight are summed over and its columns are channels of out, else the other way round. A tile: bm channels of
    bn images with bh x bw positions of one phase; bk channels of a step of its sums. c0, weight_c0: channels of a block of
    images and of weights, 0 where they are rows and matrices. bias: sums start from bias (out_channels,), which asks for
    out_pitch. axes: of D, H, W (taps, stride, dilation, padding before, common divisor of stride and dilation).

    phases, for `image_windows`: of each phase, of D, H, W (position, taps, place of the first, distance, first tap, step):
    window a lies at place + a * distance and meets tap first + a * step. steps: elements of src from position to position;
    each: positions of out from one of a phase to the next. kept: one tile of weights is all there is, and stays in L1.
    """

    src: Ints
    src_pitch: int
    out: Ints
    out_channels: int
    out_pitch: int
    axes: tuple[Ints, ...]
    gather: bool
    rows: int
    cols: int
    groups: int
    bm: int
    bk: int
    bn: int
    bh: int
    bw: int
    c0: int
    weight_c0: int
    bias: bool
    phases: tuple[tuple[Ints, ...], ...] = ()
    steps: Ints = (1, 1, 1)
    each: Ints = (1, 1, 1)
    kept: bool = False

    @property
    def m(self) -> int:
        """Channels of a group of out."""
        return self.cols if self.gather else self.rows

    @property
    def k(self) -> int:
        """Channels that are summed over."""
        return self.rows if self.gather else self.cols

    @property
    def positions(self) -> int:
        """Of a tile."""
        return self.bn * self.bh * self.bw

    @property
    def channels_last(self) -> bool:
        """Whether sums are rows of channels, (positions, bm), else (bm, positions)."""
        return self.out_pitch > 0

    @property
    def loaded(self) -> Loaded:
        """A tile of src."""
        return Loaded(self.src, self.src_pitch, self.k, self.bk, self.c0)


def window_shape(windows: int, down: int, across: int) -> tuple[int, int]:
    """(rows, taps of a row) of a tile of so many taps of a kernel: a part of a row, or as many whole rows as they fill."""
    return max(1, min(windows // across, down)), max(1, min(windows, across))


class WeightSizes(NamedTuple):
    """Of `weight_tiles`: (groups, taps, rows, cols) of the images narrow and wide, each (D, H, W) in rows of its pitch.

    axes as for an image. A tile: ba rows, bb columns; a step: bn images x bh x bw positions. windows: taps of a tile,
    windows of one load (see `window_shape`); 0: one tap, loaded without what lies between its positions. atomic: parts of
    the sums are added to the result.
    """

    narrow: Ints
    narrow_pitch: int
    wide: Ints
    wide_pitch: int
    axes: tuple[Ints, ...]
    rows: int
    cols: int
    groups: int
    ba: int
    bb: int
    bn: int
    bh: int
    bw: int
    c0: int
    atomic: bool
    windows: int

    @property
    def down(self) -> int:
        """Rows of taps of a tile."""
        return window_shape(self.windows, self.axes[1][0], self.axes[2][0])[0]

    @property
    def across(self) -> int:
        """Taps of a row of them."""
        return window_shape(self.windows, self.axes[1][0], self.axes[2][0])[1]

    @property
    def taps(self) -> int:
        """Of a tile."""
        return self.down * self.across

    @property
    def blocks_down(self) -> int:
        """Blocks of rows of taps."""
        return -(-self.axes[1][0] // self.down)

    @property
    def blocks_across(self) -> int:
        """Blocks of taps of a row of the kernel."""
        return -(-self.axes[2][0] // self.across)

    @property
    def of_narrow(self) -> Loaded:
        """A tile of the narrow image."""
        return Loaded(self.narrow, self.narrow_pitch, self.rows, self.ba, self.c0)

    @property
    def of_wide(self) -> Loaded:
        """A tile of the wide image."""
        return Loaded(self.wide, self.wide_pitch, self.cols, self.bb, self.c0)
