"""Cost of a matrix product on the Cube: how it is cut into L0 tiles, and the cycles of each part.

Cycles of one Mmad = start-up + ceil(m/16) ceil(n/16) ceil(k/k0) (k0 / k per cycle)   (DOC Cube appendix; PTO).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ...errors import UsageError
from ...precision.dtypes import named
from ...products import Product
from ...products.product import WHAT_IF_RATE, what_if_k
from ...units.cube_rules import BLOCK_K
from ..placement.l0_tiles import L0Tile, check_fits, check_given
from ..placement.layouts import BLOCK_BYTES, align
from ..placement.windows import MORE_TO_L0B, Window

# A window of an image on its way to L0, where the product's file has no figure of LoadData3D: 1.1 times the cycles of a
# plain load and 32 more (TIK cost model, see the note at path.l1_to_l0a.fixed_cycles).
LOAD3D_FACTOR, LOAD3D_CYCLES = 1.1, 32.0
ITEM_BYTES = {"fp16": 2, "bf16": 2, "fp32": 4, "hf32": 4, "int8": 1}


def item_bytes(operand: str) -> float:
    """Bytes of an element in L0: half of one for formats of four bits."""
    return ITEM_BYTES.get(operand) or named(operand).bits / 8


def depth_bytes(k: int, size: float) -> int:
    """Bytes of a row of an operand in L0: k elements of that size, in whole blocks."""
    return align(math.ceil(k * size), BLOCK_BYTES)


class IntoL0(NamedTuple):
    """Into L0A or L0B: fixed cycles, bytes per cycle, and what a window takes more (see `Window.slowdown`)."""

    fixed: float
    rate: float
    more: int


class CubeCosts:
    """Costs of matrix products on one product."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.rows, self.columns = product.integer("cube.m"), product.integer("cube.n")
        self.startup = product.number("cube.startup_cycles")
        self.switch = _optional(product, "cube.operand_switch_cycles", 0.0)
        self.barrier_tiles = product.integer("cube.accumulate_barrier_tiles")
        self.drain_cycles = _optional(
            product, "cube.drain_cycles", product.number("sync.pipe_barrier_v_cycles")
        )
        self.to_l0a = _path(product, "l1_to_l0a")
        self.to_l0b = _path(product, "l1_to_l0b", MORE_TO_L0B)
        self.loads_3d = product.has("path.l1_to_l0a.load3d_slowdown")
        self.blocks: dict[str, tuple[int, int]] = {}

    def k_block(self, operand: str) -> tuple[int, int]:
        """(k0: elements of 32 bytes, k per cycle) of an operand type."""
        found = self.blocks.get(operand)
        if found is None:
            found = self.blocks[operand] = self._k_block(operand)
        return found

    def _k_block(self, operand: str) -> tuple[int, int]:
        key = self.rate_figure(operand)
        if key == WHAT_IF_RATE:
            size = item_bytes(operand)
            return int(BLOCK_BYTES / size), what_if_k(self.product, named(operand).bits)
        if not self.product.has(key):
            have = ", ".join(self.product.texts("dtypes.cube_inputs"))
            raise UsageError(f"the Cube of {self.product.name} takes no {operand} operands; it takes {have}")
        k0_key = f"cube.k0.{operand}"
        k0 = (
            self.product.integer(k0_key)
            if self.product.has(k0_key)
            else int(BLOCK_BYTES / item_bytes(operand))
        )
        return k0, self.product.integer(key)

    def rate_figure(self, operand: str) -> str:
        """The product's figure that says how much of k a cycle takes."""
        return WHAT_IF_RATE if self.what_if(operand) else f"cube.k_per_cycle.{operand}"

    def what_if(self, operand: str) -> bool:
        """Whether the Cube of this product lacks a format that no vendor's type is: it reads as many bytes of it a cycle."""
        lacks = not self.product.has(f"cube.k_per_cycle.{operand}")
        ours = operand not in BLOCK_K and named(operand).is_foreign
        return lacks and ours and self.product.has(WHAT_IF_RATE)

    def mmad_cycles(self, m: int, n: int, k: int, operand: str) -> float:
        """Cycles of one Mmad, without the start-up."""
        k0, per_cycle = self.k_block(operand)
        return -(-m // self.rows) * -(-n // self.columns) * -(-k // k0) * k0 / per_cycle

    def load_cycles(self, path: IntoL0, rows: int, depth_bytes: int, window: Window | None) -> float:
        """Cycles from L1 to L0A or L0B; a window of an image takes LoadData3D, which `path` may be of already."""
        fixed, rate, more = path
        cycles = align(rows, 16) * depth_bytes / rate * (window.slowdown(more) if window else 1.0)
        extra = window is not None and not self.loads_3d
        return LOAD3D_CYCLES + LOAD3D_FACTOR * cycles if extra else fixed + cycles

    def scale_cycles(self, path: IntoL0, rows: int, depth: int, group: int) -> float:
        """Cycles for the scales of an operand, a byte for each group of its depth; 0 without any. Assumed: behind the tile,
        at the rate of its path."""
        return align(rows, 16) * -(-depth // group) / path.rate if group else 0.0

    def barrier_cycles(self, m: int, n: int) -> float:
        """An accumulation that is too short to hide the drain waits for it."""
        return self.drain_cycles if -(-m // 16) * -(-n // 16) < self.barrier_tiles else 0.0

    def l0_tile(
        self, m: int, n: int, k: int, operand: str, given: tuple[int, int, int] | None = None
    ) -> L0Tile:
        """The largest L0 tile of which two fit in L0A and in L0B: as wide as possible, then as deep as possible.

        given: a tile of the user's, checked. Raises `UsageError` or `BufferOverflowError` (l0_tiles.py).
        """
        size = item_bytes(operand)
        k0, _ = self.k_block(operand)
        capacities = self.product.l0a_bytes, self.product.l0b_bytes
        if given is not None:
            check_given(given, k0, operand)
            tile = L0Tile(*given, *_l0_bytes(*given, size))
            check_fits(tile, capacities, size)
            return tile
        half_a, half_b = (x // 2 for x in capacities)
        base_m, base_n = align(m, 16), align(n, 16)
        base_m = min(base_m, max(16, half_a // int(k0 * size) // 16 * 16))
        base_n = min(base_n, max(16, half_b // int(k0 * size) // 16 * 16))
        deep = int(min(half_a // (base_m * size), half_b // (base_n * size))) // k0 * k0
        base_k = min(align(k, k0), max(k0, deep))
        return L0Tile(base_m, base_n, base_k, *_l0_bytes(base_m, base_n, base_k, size))


def _l0_bytes(m: int, n: int, k: int, size: float) -> tuple[int, int]:
    deep = depth_bytes(k, size)
    return align(m, 16) * deep, align(n, 16) * deep


def _optional(product: Product, key: str, other: float) -> float:
    return product.number(key) if product.has(key) else other


def _path(product: Product, name: str, more: int = 0) -> IntoL0:
    """A path into L0, as the loads of a product (LoadData3D) take it."""
    fixed, rate = (product.number(f"path.{name}.{key}") for key in ("fixed_cycles", "bytes_per_cycle"))
    if product.has(f"path.{name}.load3d_slowdown"):
        rate /= product.number(f"path.{name}.load3d_slowdown")
        fixed = product.number(f"path.{name}.load3d_fixed_cycles")
    return IntoL0(fixed, rate, more)
