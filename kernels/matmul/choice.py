"""The choice of a tiling of a matrix product, from the product's buffers and a rough count of cycles."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...simulator.errors import UsageError
from ...simulator.precision.cube_math import Resolution
from ...simulator.precision.splits import Split
from ...simulator.products import Product
from ...simulator.timing.costs.cube import CubeCosts
from ..operator.layout import up
from ..operator.plan import PlanContext, cores_of
from ..operator.tensors import Knobs, Tensor, dtype_of
from .strips import MOST_PIECES, kept_bytes, pieces, strips

FRACTAL = 16  # rows and columns of the Cube's smallest block
WIDEST = 256  # of a tile of the output, per axis
DEEPEST = 512  # of a tile of the operands
LOAD_RATE = 128  # bytes per cycle that a core loads at most, for the choice of a tile only
NOT_HIDDEN = 0.3  # part of the shorter of loading and multiplying that the longer does not hide, likewise
MIN_SPLIT_K = 1024  # least length of the sum of one part
ADDED_CYCLES = 6000  # that the launch takes which adds parts, for the choice of their number only
L1_KEPT = 4096  # bytes of L1 left to what the system keeps there
FEW_ROUNDS = 4  # of tiles, in which cores do not drift apart by much (simulated)


class ChosenTile(NamedTuple):
    """A tile of the output, its depth, and which operand stays in L1 ("none", "a" or "b")."""

    m: int
    n: int
    k: int
    keep: str


def choose(a: Tensor, b: Tensor, knobs: Knobs, context: PlanContext, resolved: Resolution) -> dict[str, Any]:
    """Every knob: as given, else by the size of the product's buffers and the number of its cores."""
    (m, k), n = a.shape, b.shape[1]
    if resolved.split is not None:
        knobs = {**knobs, "keep": "none"}  # slices of an operand do not stay in L1
    cores = cores_of(context.product, "cube", knobs["cores"])
    base = tuple(knobs[f"base_{axis}"] for axis in "mnk")
    if any(base) and not all(base):
        raise UsageError(f"matmul: give base_m, base_n and base_k together or none of them; got {base}")
    count = RoughCount(m, n, k, cores, dtype_of(a).itemsize, context.product, knobs, resolved.split)
    block = count.block()
    tile, split = ChosenTile(*block, count.depth(sum(block)), "none"), count.parts(block, resolved.grouped)
    if knobs["keep"] != "none":
        tile = count.kept(knobs["keep"], split)
    schedule = knobs["schedule"] or count.schedule(block, split)
    chosen = {"block_m": tile.m, "block_n": tile.n, "block_k": tile.k, "split_k": split, "schedule": schedule}
    return {**knobs, **chosen, "cores": cores}


class RoughCount:
    """A rough count of the cycles of tilings, for their choice: of each core's tiles, for each element of the sum."""

    def __init__(
        self,
        m: int,
        n: int,
        k: int,
        cores: int,
        itemsize: int,
        product: Product,
        knobs: Knobs,
        split: Split | None = None,
    ) -> None:
        """split: operands are in slices, so that an element is as many bytes, and as many products."""
        self.sliced = split is not None
        slices, products = (max(split.counts), max(map(len, split.groups))) if split else (1, 1)
        self.m, self.n, self.k, self.cores, self.size, self.knobs = m, n, k, cores, itemsize * slices, knobs
        self.product, self.l1 = product, product.l1_bytes - L1_KEPT
        self.macs: float = (
            FRACTAL**3 * 2 // itemsize if products == 1 else FRACTAL**3 * 2 / itemsize / products
        )
        self.whole_sums = split is not None and len(split.groups) > 1  # each kind of product is a launch
        cube = CubeCosts(product)
        self.to_l0 = cube.to_l0a[1], cube.to_l0b[1]  # bytes per cycle
        self.rate = min(LOAD_RATE, product.l2_bytes_per_cycle / product.cube_cores)

    def block(self) -> tuple[int, int]:
        """The tile of the output with the least time of all rounds; the larger one of equals."""
        return min(self._blocks(), key=lambda tile: (self._plain(*tile), -tile[0] * tile[1]))

    def parts(self, block: tuple[int, int], grouped: bool) -> int:
        """Parts of the sum: as many as occupy the cores, where that saves more than adding them takes; else 1.

        Grouped accumulation has at least 2 (assumed).
        """
        if self.whole_sums:
            return 1
        if self.knobs["split_k"]:
            return int(self.knobs["split_k"])
        tiles = -(-self.m // block[0]) * -(-self.n // block[1])
        wanted = max(1, min(max(1 + grouped, self.cores // tiles), self.k // MIN_SPLIT_K))
        saved = (self.k - self.k / wanted) * self._cycles(*block, sum(block))
        return wanted if grouped or saved > ADDED_CYCLES else 1

    def schedule(self, block: tuple[int, int], parts: int) -> str:
        """per_tile for slices with one accumulator, many rounds, and a round that L2 does not hold; else persistent.

        Cores with a list of tiles each drift apart in long sums, and read from HBM again what others had. Programs for each
        tile begin in the order of the tiles. Whole operands and sums in launches of their own gain nothing (simulated).
        """
        down, across = -(-self.m // block[0]), -(-self.n // block[1])
        high = min(self.knobs["group"], down)
        wide = min(across, -(-self.cores // high))
        loaded = (high * block[0] + wide * block[1]) * -(-self.k // parts) * self.size
        large = loaded + self.cores * block[0] * block[1] * 4 > self.product.integer("l2.size")
        many = down * across * parts > FEW_ROUNDS * self.cores
        return "per_tile" if self.sliced and not self.whole_sums and large and many else "persistent"

    def depth(self, edges: int, taken: int = 0) -> int:
        """Columns of a tile of a: all copies of what is loaded again and again in L1, no deeper than `DEEPEST`.

        edges: sum of their edges. taken: bytes of L1 that something else has.
        """
        if self.knobs["block_k"]:
            return int(self.knobs["block_k"])
        room = (self.l1 - taken) // (self.knobs["buffers"] * edges * self.size)
        deepest = min(DEEPEST, 1 << max(4, room.bit_length() - 1))
        return int(min(up(self.k, FRACTAL), deepest))

    def kept(self, keep: str, parts: int) -> ChosenTile:
        """The tile with the least time of those with which that operand stays in L1. Raises `UsageError` if none fits."""
        found = list(self._fitting(keep, parts))
        if not found:
            raise self._no_room(keep, parts)
        return min(found, key=lambda x: self._strips(x, parts))

    def _fitting(self, keep: str, parts: int) -> Iterator[ChosenTile]:
        """Tiles with which an operand stays in L1 beside the copies of the other one."""
        part = -(-self.k // parts)
        for m, n in self._blocks():
            taken, depth = self._needs(m, n, keep, part)
            if taken <= self.l1 and pieces(part, depth) <= MOST_PIECES:
                yield ChosenTile(m, n, depth, keep)

    def _needs(self, m: int, n: int, keep: str, part: int) -> tuple[int, int]:
        """Bytes of L1 for what stays and the copies of a tile of the other operand, and the depth of that tile."""
        stays, comes = (m, n) if keep == "a" else (n, m)
        depth = min(self.depth(comes, stays * up(part, FRACTAL) * self.size), up(part, FRACTAL))
        held, other = kept_bytes(stays, comes, part, depth, self.size)
        return int(held + self.knobs["buffers"] * other), depth

    def _no_room(self, keep: str, parts: int) -> UsageError:
        """Says what is wrong with the tile that needs the least of L1."""
        part, copies = -(-self.k // parts), self.knobs["buffers"]
        taken, depth = min(self._needs(m, n, keep, part) for m, n in self._blocks())
        if taken > self.l1:
            return UsageError(
                f"matmul: keep={keep}: {keep} for sums of {part} terms and {copies} copies of a tile of the other operand "
                f"take {taken} bytes at least, and L1 of {self.product.name} has {self.l1} for them: split the sum "
                "(split_k), take a smaller block, or keep=none"
            )
        return UsageError(
            f"matmul: keep={keep}: sums of {part} terms in tiles of {depth} are {pieces(part, depth)} pieces, and "
            f"{keep} stays in L1 in {MOST_PIECES} pieces at most: take a larger block_k, split the sum (split_k), or "
            "keep=none"
        )

    def _cycles(self, m: int, n: int, loaded: int) -> float:
        """Of a tile of m x n results, for which `loaded` rows and columns come."""
        low, high = sorted((m * n / self.macs, loaded * self.size / self.rate))
        return high + NOT_HIDDEN * low

    def _plain(self, m: int, n: int) -> float:
        rounds = -(-(-(-self.m // m) * -(-self.n // n)) // self.cores)
        return rounds * self._cycles(m, n, m + n)

    def _strips(self, x: ChosenTile, parts: int) -> float:
        stays, comes = (x.m, x.n) if x.keep == "a" else (x.n, x.m)
        cut = strips((self.m, self.n), (x.m, x.n), x.keep == "a", parts, self.cores)
        to_l0 = (x.m / self.to_l0[0] + x.n / self.to_l0[1]) * self.size
        each = stays * self.size / self.rate + int(cut.wide) * (
            self._cycles(x.m, x.n, comes) + NOT_HIDDEN * to_l0
        )
        return -(-int(cut.count) // self.cores) * each / parts

    def _blocks(self) -> list[tuple[int, int]]:
        """Tiles whose accumulator fits L0C and, where that has to pass there, half of a UB of the same size.

        Of slices, whose sums are stored as they are, it may take all of UB.
        """
        wanted = self.knobs["block_m"], self.knobs["block_n"]
        room = self.product.l0c_bytes if self.sliced else min(self.product.l0c_bytes, 128 * 1024)
        edges = itertools.product(_edges(self.m, wanted[0]), _edges(self.n, wanted[1]))
        found = [(i, j) for i, j in edges if i * j * 4 <= room]
        return found or [(wanted[0] or FRACTAL, wanted[1] or FRACTAL)]


def _edges(length: int, wanted: int | None) -> list[int]:
    return [wanted] if wanted else sorted({min(e, up(length, FRACTAL)) for e in (64, 128, WIDEST)})
