"""What a call asks the Vector cores to do before its products, gathered into one launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from ...simulator.products import Product
from ..operator.layout import even_part, up
from ..operator.plan import Step
from ..operator.tensors import Tensor, dtype_of
from .geometry import Geometry, Merging
from .tiles.layout import cores_for
from .tiles.prepare import prepare

TILE_BYTES = 16384  # of the wider of two element types; half of it for the transposed tile of a weight
JOBS = ("FIRST", "SECOND", "WEIGHT", "ZERO", "GAPS", "BIAS")
BIAS_BYTES = 24576  # of grad_output: two copies, and FP32 of the tile and of the sums
CLEARED = 8192  # elements that one store sets to zero


@dataclass
class Preparation:
    """Jobs of one launch. A job: its tensors by argument, and its numbers."""

    product: Product
    tensors: dict[str, Tensor] = field(default_factory=dict)
    numbers: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def image(self, x: Tensor, out: Tensor) -> None:
        """From an image (N, C, positions) to blocks of channels (N, blocks, positions, C0)."""
        name = "second" if "FIRST" in self.numbers else "first"
        self.tensors |= {f"{name}_ptr": x, f"{name}_out": out}
        self.numbers[name.upper()] = image_numbers(x, out, self.product.vector_cores)

    def weight(self, w: Tensor, out: Tensor, g: Geometry, m: Merging, c0: int) -> None:
        """From a weight as users have it to FRACTAL_Z; one group in a merged group."""
        deep, wide = (m.wide, m.narrow) if g.transposed else (m.narrow, m.wide)
        bw = min(wide, max(1, TILE_BYTES // (4 * c0 * g.taps)))
        bt = even_part(g.taps, TILE_BYTES // (4 * c0))
        items = m.count * (deep // c0) * -(-wide // bw) * -(-g.taps // bt)
        sizes = g.narrow_channels, g.wide_channels, g.taps, int(not g.transposed)
        self.tensors |= {"weight_ptr": w, "weight_out": out}
        self.numbers["WEIGHT"] = (items, *sizes, deep, wide, c0, bw, bt)

    def zero(self, name: str, out: Tensor) -> None:
        """Zeros: "zero" for sums that are added up by the memory system, "gaps" for what no tap of a window meets."""
        cols = min(CLEARED, up(out.size, 16))
        self.tensors[f"{name}_ptr"] = out
        self.numbers[name.upper()] = -(-out.size // cols), cols

    def bias(self, dy: Tensor, cut: tuple[int, int, int, int], parts: Tensor) -> None:
        """Partial sums (parts, C) fp32 of grad_output over images and positions."""
        rows, across, per_part, count = cut
        items = count * -(-dy.shape[1] // rows)
        self.tensors |= {"dy_ptr": dy, "parts_ptr": parts}
        self.numbers["BIAS"] = (items, dy.shape[0], per_part, dy.shape[1], prod(dy.shape[2:]), rows, across)

    def steps(self, apart: bool = False) -> list[Step]:
        """The launch, none if there is nothing to do; `apart`: one for each job."""
        if not apart:
            return [self.step(self.numbers)] if self.numbers else []
        return [self.step({n: x}) for n, x in self.numbers.items()]

    def step(self, numbers: Mapping[str, tuple[int, ...]]) -> Step:
        """One launch for jobs by name."""
        given = next(iter(self.tensors.values()))
        pointers = "first_ptr first_out second_ptr second_out weight_ptr weight_out zero_ptr gaps_ptr dy_ptr parts_ptr"
        arguments: dict[str, Any] = {n: self.tensors.get(n, given) for n in pointers.split()}
        sizes = {n: self.tensors.get(f"{x}_ptr") for n, x in (("zeros", "zero"), ("gaps", "gaps"))}
        arguments |= {n: 0 if x is None else x.size for n, x in sizes.items()}
        arguments |= {n: numbers.get(n, ()) for n in JOBS}
        items = sum(x[0] for x in numbers.values())
        return Step(prepare, cores_for(items, self.product), {**arguments, "multibuffer": 2})


def image_numbers(x: Tensor, out: Tensor, cores: int) -> tuple[int, ...]:
    """Numbers of `image_blocks`: tiles as large as UB likes, more of them where cores would be idle."""
    batch, blocks, c0 = out.shape[0], out.shape[1], out.shape[-1]
    positions = prod(out.shape[2:-1])
    width = max(dtype_of(x).itemsize, dtype_of(out).itemsize)
    bp = even_part(positions, max(c0, TILE_BYTES * 2 // (width * c0)))
    bc = even_part(blocks, max(1, TILE_BYTES * 2 // (width * c0 * up(bp, 16))))
    while bc > 1 and batch * -(-blocks // bc) * -(-positions // bp) < cores:
        bc = -(-bc // 2)
    items = batch * -(-blocks // bc) * -(-positions // bp)
    return items, x.shape[1], positions, blocks, c0, bc, bp


def bias_cut(dy: Tensor, cores: int) -> tuple[int, int, int, int]:
    """(channels of a tile, positions of a tile, images of a part, parts): as many items as cores, or more."""
    batch, channels, positions = dy.shape[0], dy.shape[1], prod(dy.shape[2:])
    room = BIAS_BYTES // dtype_of(dy).itemsize
    across = even_part(positions, min(room, 2048))
    rows = max(1, min(channels, room // (-(-across // 16) * 16)))
    rows = min(rows, max(1, -(-channels * batch // cores)))
    blocks = -(-channels // rows)
    parts = min(batch, max(1, -(-cores // blocks)))
    per_part = -(-batch // parts)
    return rows, across, per_part, -(-batch // per_part)
