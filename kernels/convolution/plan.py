"""The launches of one call: layouts, products, what follows them."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np

from ...simulator.device import current_device
from ...simulator.precision import dtypes as ty
from ...simulator.precision.cube_math import Resolution
from ...simulator.products import Product
from ..operator.notes import cube_notes
from ..operator.plan import Plan, PlanContext, Step
from ..operator.tensors import Knobs, Options, Tensor, Tensors, dtype_of, element_type
from ..shared.casts import cast_step
from ..shared.sums import sum_partials_step
from .call import INPUTS, RESULTS, ConvolutionCall, call_of
from .checks import is_empty, resolve_mode
from .geometry import Geometry, Merging, as_patches, geometry, merge_groups
from .preparation import Preparation, bias_cut
from .tiles.costs import Image, Weights
from .tiles.image import image_tiles
from .tiles.layout import blocks_step, clear_step, patches_step, rows_step, stuff_step
from .tiles.sizes import ImageSizes, WeightSizes
from .tiles.weight import weight_tiles
from .tiles.whole import joined, whole_step
from .tiles.window import image_windows
from .tiling import choose
from .vendor import base_weight, is_stuffed, stuffed, vendor_knobs


def resolution(tensors: Tensors, product: Product, mode: str, terms: int = 0) -> Resolution:
    """What a mode means for these inputs. terms: of the longest sum, if known."""
    kinds = [dtype_of(tensors[n]).name for n in INPUTS]
    rank = min(3, max(1, len(tensors["input"].shape) - 2))
    return resolve_mode(product, kinds, mode, rank, terms)


def adds_int32(product: Product) -> bool:
    """Whether memory adds up parts of INT32 sums."""
    return not product.has("dtypes.atomic_add") or "int32" in product.texts("dtypes.atomic_add")


def plan(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Plan:
    """All launches of a checked call."""
    call = call_of(tensors, options)
    if is_empty(call):
        return _empty(call, context, knobs)
    maker = made(tensors, options, knobs, context)
    return Plan(maker.steps, maker.outputs, maker.tiling, maker.notes())


def made(tensors: Tensors, options: Options, knobs: Knobs, context: PlanContext) -> Maker:
    """All results of a checked call that is not empty."""
    maker = Maker(tensors, call_of(tensors, options), knobs, context)
    makers = maker.grad_input, maker.grad_weight, maker.grad_bias
    for n, make, wanted in zip(RESULTS, makers, maker.call.wants, strict=True):
        if wanted:
            maker.outputs[n] = make()
    return maker


def _empty(call: ConvolutionCall, context: PlanContext, knobs: Knobs) -> Plan:
    """Nothing to multiply: gradients of weight and bias are zero."""
    outputs: dict[str, Tensor] = {}
    for n, wanted in zip(RESULTS, call.wants, strict=True):
        view = getattr(call, n)
        if wanted:
            outputs[n] = context.output(n, view.shape, element_type(view.dtype))
    steps = [clear_step(x, context.product) for x in outputs.values() if x.size]
    return Plan(
        tuple(steps), outputs, dict(knobs), ("an empty input: gradients of weight and bias are zero",)
    )


class Maker:
    """Collects the launches of a call; images and weights that two products need are converted once."""

    def __init__(
        self,
        tensors: Tensors,
        call: ConvolutionCall,
        knobs: Knobs,
        context: PlanContext,
        bias: Tensor | None = None,
    ) -> None:
        """bias: what the sums of grad_input start from, by the bias table; for the forward."""
        self.bias = bias
        self.tensors, self.call, self.context = tensors, call, context
        self.product = context.product
        self.found = resolution(tensors, self.product, current_device().cube_math_type)
        self.compute = element_type(self.found.compute)
        self.unfolded: Geometry = geometry(call)
        self.vendor = knobs["strategy"] == "vendor"
        self.patches = as_patches(self.unfolded, knobs["taps"], self.product.core_model == "split")
        self.g: Geometry = self.unfolded.folded() if self.patches else self.unfolded
        self.merging: Merging = merge_groups(self.g, 32 // self.compute.itemsize, knobs["merged_groups"])
        operand, size = self.found.operand, self.compute.itemsize
        # What grad_input is made from: with the vendor's strategy perhaps an image with zeros in it.
        self.stuffed = self.vendor and is_stuffed(self.g)
        self.seen = stuffed(self.g) if self.stuffed else self.g
        if self.vendor:
            knobs = vendor_knobs(self.seen, self.merging, knobs, self.product, size)
        self.chosen = choose(
            self.g, self.merging, knobs, self.product, operand, size, self.seen, bias is not None
        )
        self.tiling = self.chosen.knobs
        if self.compute == ty.int8 and not adds_int32(self.product):
            self.tiling["combine"] = "two_phase"
        if self.patches:
            self.tiling["taps"] = "patch"
        rows = self.patches or (knobs["image_layout"] == "NHWC" and not self.vendor)
        matrices = self.merging.extent > 1 or (knobs["filter_layout"] == "ND" and not self.vendor)
        self.tiling["image_layout"] = "NHWC" if rows else "NC1HWC0"
        self.tiling["filter_layout"] = "ND" if matrices else "FRACTAL_Z"
        self.written: ty.DType | None = None  # type in which results leave the Cube, if not that of the mode
        self.first = Preparation(self.product)
        self.before: list[Step] = []
        self.products: list[Step] = []
        self.after: list[Step] = []
        self.transposed_back: Step | None = None  # of `after`, what one launch can do with all the rest
        self.bias_sum: Step | None = None
        self.images: dict[str, Tensor] = {}
        self.outputs: dict[str, Tensor] = {}

    @property
    def steps(self) -> tuple[Step, ...]:
        """Layouts, then products, then what makes results of their sums; or one launch for most of it."""
        if self.is_whole:
            done = [s for s in (self.transposed_back, self.bias_sum) if s is not None]
            return self._whole(), *(s for s in self.after if not any(s is x for x in done))
        return (*self.first.steps(apart=self.vendor), *self.before, *self._joined(), *self.after)

    @property
    def is_whole(self) -> bool:
        """Whether one launch does layouts and products: blocks on both sides, taps as windows, cores that have a barrier.

        The compiler of a kernel with a barrier leaves rows for the bias table to the Vector cores (see `MemorySpaces`).
        """
        asked = (
            self.tiling["launches"] == "whole" and self.product.core_model == "split" and self.bias is None
        )
        windows = not self.call.wants[0] or self.tiling["taps"] == "window"
        return asked and windows and bool(self.first.numbers and self.products) and not self.before

    def _whole(self) -> Step:
        (prepared,) = self.first.steps()
        image, weight = (
            next((s for s in self.products if s.kernel is k), None) for k in (image_windows, weight_tiles)
        )
        return whole_step(prepared, image, weight, self.transposed_back, self.bias_sum, self.tiling["cores"])

    def _joined(self) -> list[Step]:
        """The launches of products: one for both where windows make grad_input."""
        apart = self.tiling["launches"] == "apart" or len(self.products) < 2
        if apart or self.tiling["taps"] == "reload":
            return self.products
        image, weight = self.products
        return [joined(image, weight, self.tiling["cores"])]

    # -- operands ----------------------------------------------------------------------------------------------------

    def image(self, which: str) -> Tensor:
        """Rows of channels of the "wide" or the "narrow" image, in the type that is multiplied."""
        if which not in self.images:
            g, m = self.g, self.merging
            wide = which == "wide"
            source = self.tensors["grad_output" if wide == g.transposed else "input"]
            pitch, sizes = (m.wide_pitch, g.wide_sizes) if wide else (m.narrow_pitch, g.narrow_sizes)
            c0 = self.c0
            shape = (g.batch, pitch // c0, *sizes, c0) if c0 else (g.batch, *sizes, pitch)
            rows = self.context.tensor(shape, self.compute)
            if c0:
                self.first.image(source, rows)
            elif wide and self.patches:
                self.before.append(patches_step(source, rows, self.unfolded, self.product))
            else:
                self.before.append(rows_step(source, rows, source.shape[1], self.product))
            self.images[which] = rows
        return self.images[which]

    @property
    def c0(self) -> int:
        """Channels of a block of images, or 0: rows of all channels."""
        return 0 if self.tiling["image_layout"] == "NHWC" else 32 // self.compute.itemsize

    @property
    def weight_c0(self) -> int:
        """Channels of a block of weights, or 0: matrices as they are."""
        return 0 if self.tiling["filter_layout"] == "ND" else 32 // self.compute.itemsize

    def weight_blocks(self) -> Tensor:
        """The weight, tap by tap, as what makes grad_input reads it."""
        g, m = self.g, self.merging
        blocks = self.context.tensor((m.count, g.taps, m.narrow, m.wide), self.compute)
        if self.weight_c0:
            self.first.weight(self.tensors["weight"], blocks, g, m, self.weight_c0)
        elif self.dense:
            taps = _seen_as(blocks, (m.count, g.taps, m.narrow * m.wide), self.context)
            weight = _seen_as(self.tensors["weight"], (m.count, m.narrow * m.wide, g.taps), self.context)
            self.before.append(rows_step(weight, taps, taps.shape[2], self.product))
        else:
            self.before.append(clear_step(blocks, self.product))
            self.before.append(blocks_step(self.tensors["weight"], blocks, g, m, self.product))
        return blocks

    @property
    def dense(self) -> bool:
        """Whether the weight of a merged group is one group's without padding: a transposition changes its layout."""
        g, m = self.g, self.merging
        return m.extent == 1 and (m.narrow, m.wide) == (g.narrow_channels, g.wide_channels)

    def switches(self, weight: bool = False) -> dict[str, Any]:
        base = tuple(self.tiling[f"base_{axis}"] for axis in "mnk")
        if self.vendor and weight:
            base = base_weight(self.compute.itemsize)
        return {
            "l0_tile": base if all(base) else None,
            "accumulate": self.tiling["accumulate"],
            "hf32_round": self.found.hf32_round,
            "unit_flag": self.tiling["unit_flag"] == "on",
        }

    # -- results -----------------------------------------------------------------------------------------------------

    def grad_input(self) -> Tensor:
        """The wide image of a plain, the narrow image of a transposed convolution."""
        g, m, view = self.g, self.merging, self.call.grad_input
        assert view is not None
        written, wanted = (
            self.written or element_type(self.found.output("grad_input")),
            element_type(view.dtype),
        )
        source, blocks = self.image("wide" if g.transposed else "narrow"), self.weight_blocks()
        sizes, channels, pitch = (
            (g.narrow_sizes, g.groups * g.narrow_channels, m.narrow_pitch)
            if g.transposed
            else (g.wide_sizes, g.groups * g.wide_channels, m.wide_pitch)
        )
        if self.stuffed:
            source = self.with_zeros(source)
        apart = self.unfolded.strided_gather or self.vendor or self.bias is not None
        shape = (g.batch, *sizes, pitch) if apart else (g.batch, channels, *sizes)
        out = self.context.output("grad_input", view.shape, wanted)
        direct = not apart and written == wanted
        target = _seen_as(out, shape, self.context) if direct else self.context.tensor(shape, written)
        if self.seen.sparse:
            self.first.zero("gaps", target)
        self.products.append(self._image_step(source, blocks, target, sizes, channels, pitch if apart else 0))
        if direct:
            return out
        self.after.append(
            patches_step(target, out, self.unfolded, self.product, back=True)
            if self.patches and not g.transposed
            else rows_step(target, out, channels, self.product, back=True)
            if apart
            else cast_step(target, out, self.product.vector_cores, self.tiling["buffers"])
        )
        return out

    def with_zeros(self, source: Tensor) -> Tensor:
        """The narrow image with zeros between its positions."""
        out = self.context.tensor((*source.shape[:2], *self.seen.narrow_sizes, source.shape[5]), self.compute)
        stride = tuple(a.stride for a in self.g.axes)
        self.before += [clear_step(out, self.product), stuff_step(source, out, stride, self.product)]
        return out

    def _image_step(
        self,
        source: Tensor,
        blocks: Tensor,
        out: Tensor,
        out_sizes: tuple[int, int, int],
        channels: int,
        pitch: int,
    ) -> Step:
        g, m, t = self.seen, self.merging, self.tiling
        gather = not g.transposed
        strides = tuple(a.stride for a in g.axes)
        tiles_of = Image.of(g, m, self.bias is not None, not self.weight_c0)
        tiles = tiles_of.tiles(t["block_m"], self.chosen.image)
        src = (g.narrow_sizes, m.narrow_pitch) if gather else (g.wide_sizes, m.wide_pitch)
        weight = (m.narrow, m.wide, m.count)
        tile = (t["block_m"], t["block_k"], *self.chosen.image)
        blocked = (self.c0, self.weight_c0)
        sizes = ImageSizes(
            *src,
            out_sizes,
            channels,
            pitch,
            _axes(g),
            gather,
            *weight,
            *tile,
            *blocked,
            self.bias is not None,
        )
        kernel, items = image_tiles, tiles * prod(len(p) for p in g.phases)
        if t["taps"] != "reload":
            kernel, items = image_windows, tiles
            phases = tuple(tuple(tuple(x) for x in ps) for ps in product(*g.phases))
            each, steps = (strides, (1, 1, 1)) if gather else ((1, 1, 1), strides)
            kept = tiles_of.keeps(t["block_m"], t["block_k"])
            sizes = sizes._replace(phases=phases, each=each, steps=steps, kept=kept)
        arguments = {
            **{"src_ptr": source, "w_ptr": blocks, "out_ptr": out, "items": items, "N": g.batch, "S": sizes},
            **{"bias_ptr": out if self.bias is None else self.bias, "multibuffer": t["buffers"]},
        }
        return Step(kernel, min(items, t["cores"]), arguments, self.switches())

    def grad_weight(self) -> Tensor:
        g, m, t, view = self.g, self.merging, self.tiling, self.call.grad_weight
        assert view is not None
        narrow, wide = self.image("narrow"), self.image("wide")
        parts, through = t["weight_parts"], self.through_fp16()
        # Sums that are whole leave L0C in the type of the result, where they do not come by UB.
        direct = parts == 1 and not through and self.product.core_model == "split"
        summed = element_type(view.dtype) if direct else self.written or ty.float32
        blocks = self.context.tensor((m.count, g.taps, m.narrow, m.wide), summed)
        if parts > 1 and t["combine"] == "atomic":
            self.first.zero("zero", blocks)
        target = blocks
        if parts > 1 and t["combine"] == "two_phase":
            target = self.context.tensor((parts, *blocks.shape), summed)
        self.products.append(self._weight_step(narrow, wide, target, parts, blocks.size))
        if target is not blocks:
            self.after.append(sum_partials_step(target, blocks, self.product.vector_cores, t["buffers"]))
        out = self.context.output("grad_weight", view.shape, element_type(view.dtype))
        if self.dense and not through:
            rows = _seen_as(blocks, (m.count, g.taps, m.narrow * m.wide), self.context)
            transposed = rows_step(rows, out, rows.shape[2], self.product, back=True)
            self.transposed_back = transposed if target is blocks else None
            self.after.append(transposed)
        else:
            self.after.append(blocks_step(blocks, out, g, m, self.product, back=True, through_fp16=through))
        return out

    def through_fp16(self) -> bool:
        """Grouped 1D and 2D gradients of 16-bit products pass FP16 on their way out, whatever their type is."""
        return self.g.groups > 1 and self.g.rank < 3 and self.compute.itemsize == 2 and self.written is None

    def _weight_step(self, narrow: Tensor, wide: Tensor, out: Tensor, parts: int, stride: int) -> Step:
        g, m, t = self.g, self.merging, self.tiling
        weights = Weights(g, m, t["weight_taps"])
        chunks = weights.chunks(self.chosen.weight)
        items = weights.tiles(t["weight_m"], t["weight_n"]) * parts
        images = (g.narrow_sizes, m.narrow_pitch, g.wide_sizes, m.wide_pitch)
        weight = (m.narrow, m.wide, m.count)
        tile = (t["weight_m"], t["weight_n"], *self.chosen.weight)
        atomic = parts > 1 and t["combine"] == "atomic"
        sizes = WeightSizes(*images, _axes(g), *weight, *tile, self.c0, atomic, t["weight_taps"])
        arguments = {
            **{
                "narrow_ptr": narrow,
                "wide_ptr": wide,
                "out_ptr": out,
                "items": items,
                "N": g.batch,
                "S": sizes,
            },
            **{"done": 0, "chunks": chunks, "part": -(-chunks // parts), "part_stride": stride},
            "multibuffer": t["buffers"],
        }
        return Step(weight_tiles, min(items, t["cores"]), arguments, self.switches(weight=True))

    def grad_bias(self) -> Tensor:
        """Partial sums of grad_output by channel, then their sum."""
        view, dy, cores = self.call.grad_bias, self.tensors["grad_output"], self.product.vector_cores
        assert view is not None
        cut = bias_cut(dy, cores)
        out = self.context.output("grad_bias", view.shape, element_type(view.dtype))
        parts = self.context.tensor((cut[3], dy.shape[1]), ty.float32)
        self.first.bias(dy, cut, parts)
        self.bias_sum = sum_partials_step(parts, out, cores, self.tiling["buffers"])
        self.after.append(self.bias_sum)
        return out

    def notes(self) -> tuple[str, ...]:
        notes = cube_notes(self.found, self.tiling)
        if self.call.wants[1] and self.through_fp16():
            notes.append(
                "grad_weight of several groups passes FP16 on its way out, as the vendor's 2D path does"
            )
        return tuple(notes)


def _axes(g: Geometry) -> tuple[tuple[int, ...], ...]:
    """What `phase_taps` needs of each axis."""
    return tuple((a.taps, a.stride, a.dilation, a.before, a.common) for a in g.axes)


def _seen_as(x: Tensor, shape: tuple[int, ...], context: PlanContext) -> Tensor:
    """The same elements in another shape."""
    return x.reshape(shape) if isinstance(x, np.ndarray) else context.tensor(shape, x.dtype)
