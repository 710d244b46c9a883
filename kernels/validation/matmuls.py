"""Matrix products with the tiling that the row states: how the cores share the result, and the tiles in L1 and L0.

A tile is no larger than the product, rounded up to whole fractals, as the vendor's kernels cut theirs; at the edges code by
hand multiplies what is there (`simulator/timing/lowering/cut_products.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

from ... import simulator as sim
from ...simulator.errors import UsageError
from ...simulator.record.run import Run
from ...simulator.timing.lowering.context import BARRIER
from ..matmul.strips import MOST_PIECES, kept_bytes, pieces, strips
from ..operator.layout import up
from . import matmul_kernels as kernels
from .registry import Prediction, predicts
from .remarks import remark
from .settings import (
    BYTES,
    Settings,
    dtypes_of,
    fastest,
    measured_time,
    note_of,
    overhead_us,
    roofline_us,
    sizes_of,
    tensor,
    vector_cores_us,
)
from .table import Row

FRACTAL = 16
SUM_BLOCK = 4096  # elements that a Vector core adds up at once
LAYOUTS = {
    "": kernels.PLAIN,
    "T": kernels.TRANSPOSED,
    "NZ": kernels.FRACTALS,
    "NZT": kernels.FRACTALS_TRANSPOSED,
}
# Tried where none is published: tiles in L1 as the vendor's libraries have them (rows, columns, depth).
USUAL = ((128, 256, 256), (256, 128, 256), (128, 128, 256), (64, 256, 256), (32, 256, 512), (16, 256, 512))
LARGE = 5e11  # multiplications
MOST_TILES = 1024  # of a product that is tried with an operand that stays in L1, for the time that it takes
# Order of the tiles of a group: thresholdBlockNum and thresholdDimM of ops-transformer, gmm/grouped_matmul/op_kernel/
# grouped_matmul.h (MNBlockIdxCompute), for cores as those of A2.
DIAGONAL, FEW_ROWS = 8, 5
Sizes = tuple[int, int, int]


class Way(NamedTuple):
    """How a product is done. tile: in L1. keep: operand that stays there over several tiles ("" for none). parts: of the
    sum, one after the other on the cores."""

    tile: Sizes
    keep: str = ""
    parts: int = 1

    @property
    def text(self) -> str:
        """As the note of a row says it."""
        kept = f", {self.keep} stays in L1" if self.keep else ""
        return f"{'x'.join(map(str, self.tile))} in L1{kept}{f', sum in {self.parts} parts' if self.parts > 1 else ''}"


class RowProduct:
    """A row's product: its sizes, and how its operands lie in memory."""

    def __init__(self, row: Row) -> None:
        self.row, self.s = row, Settings(row)
        self.sizes: Sizes = sizes_of(row, "M x N x K")  # type: ignore[assignment]
        inputs, outputs = dtypes_of(row)
        self.a, self.b, self.c = inputs[0], inputs[-1], outputs[0]
        self.cores, self.product = self.s.number("cores"), sim.load_product(row.product)
        self.layouts = tuple(self._layout(name) for name in "ab")
        self.integer = self.a == "int8"
        self.scaled = self.integer and self.c != "int32"  # sums go as they are into int32
        if row.op == "quant_matmul" and not self.integer:
            remark(f"quant_matmul of {self.a}: timed as a product whose results are not scaled")

    def _layout(self, name: str) -> int:
        return LAYOUTS[self.s.one_of(name, LAYOUTS)]

    def cut(self, tile: Sizes) -> Sizes:
        """A tile that is no larger than the product, in whole fractals; of what lies in fractals at least one."""
        to = max(
            FRACTAL, 32 // BYTES[self.a]
        )  # rows of one operand are columns of the other, or lie transposed
        nz, nzt, (a, b) = kernels.FRACTALS, kernels.FRACTALS_TRANSPOSED, self.layouts
        whole = (a == nzt, b == nz, a == nz or b == nzt)
        cut = (min(x, up(size, to)) for x, size in zip(tile, self.sizes, strict=True))
        m, n, k = (up(x, to) if w else x for x, w in zip(cut, whole, strict=True))
        return m, n, k

    @property
    def moved(self) -> tuple[int, int]:
        """Bytes of operands and of the result."""
        m, n, k = self.sizes
        return BYTES[self.a] * m * k + BYTES[self.b] * n * k, BYTES[self.c] * m * n

    def arguments(self, result: str, parts: int = 1) -> tuple[Any, ...]:
        """a, b, c and the numbers that scale c."""
        m, n, _ = self.sizes
        whole = any(x >= kernels.FRACTALS for x in self.layouts)
        padded = [up(x, 32) for x in self.sizes] if whole else self.sizes
        a, b = tensor(self.a, padded[0] * padded[2]), tensor(self.b, padded[1] * padded[2])
        return a, b, tensor(result, parts * m * n), tensor("fp32", max(m, n))

    def run(self, way: Way, rows: int = 0, l2: Any = None) -> Run:
        """The launch of the product, of its first rows if told so. l2: what is there, if it is not as the row says."""
        m, n, k = (rows or self.sizes[0], *self.sizes[1:])
        bm, bn, bk = way.tile
        last = kernels.STORED
        if self.scaled and way.parts == 1:
            last = kernels.SCALED
        elif way.parts > 1 and self.s.word("sums", "", "atomic") == "atomic":
            last = kernels.ADDED
        result = self.c if way.parts == 1 else "int32" if self.integer else "fp32"
        how = (*self.layouts, 32 // BYTES[self.a], self.integer, last)
        named = {"BM": bm, "BN": bn, "BK": bk, "HOW": how}
        part = -(-k // way.parts)
        copies = 1 if last == kernels.ADDED else way.parts
        given = (*self.arguments(result, copies), m, n, k)
        with sim.device(**self.s.device_options() | ({} if l2 is None else {"l2": l2})):
            return self._launch(way, given, part, named)

    def _launch(self, way: Way, given: tuple[Any, ...], part: int, named: dict[str, Any]) -> Run:
        m, n, _ = given[-3:]
        bm, bn, bk = way.tile
        run: Run
        if way.keep:
            cut = strips((m, n), (bm, bn), way.keep == "a", way.parts, self.cores)
            named |= {"PIECES": pieces(part, bk), "KEEP_A": way.keep == "a"}
            if named["PIECES"] > 1:
                named["multibuffer"] = 1  # each piece is a tile of the kernel's own
            run = kernels.kept_in_l1.time((self.cores,), *given, part, int(cut.stretches), **named)
        elif self.s.text("split"):
            across, single = self.s.numbers("split", 2)[1], self.s.numbers("single", 2)
            run = kernels.shared_out.time((self.cores,), *given, *single, across, **named)
        else:
            group, how = self._groups()
            run = kernels.dealt_out.time((self.cores,), *given, part, group, **named, **how)
        return run

    def _groups(self) -> tuple[int, dict[str, bool]]:
        """Tile rows or columns of a group, and which of them: swizzle=OFFSETxDIRECTION as CATLASS names them (direction 0
        for rows, 1 for columns; every second group comes back), or group= for rows."""
        if not self.s.text("swizzle"):
            return self.s.number("group", 3), {}
        group, direction = self.s.numbers("swizzle", 2)
        if not group or direction > 1:
            raise UsageError(
                f"{self.row.id}: swizzle={group}x{direction} is not an offset of 1 or more and 0 or 1"
            )
        return group, {"BY_ROWS": direction == 0, "BACK": True}

    def time(self, way: Way, run: Run) -> float:
        """In us: with the Vector cores that start, too, and what they add up after a barrier, in the same task."""
        time = measured_time(self.row, run) + vector_cores_us(self.row, run, self._vector_cores(way))
        if way.parts == 1:
            return time
        added = self._added(1 if self.s.word("sums", "", "atomic") == "atomic" else way.parts)
        barrier = self.product.number(BARRIER) if self.product.has(BARRIER) else 0.0
        return time + self.product.cycles_to_us(barrier) + added.time_us - overhead_us(added)

    def _vector_cores(self, way: Way) -> int:
        """How many start beside a Cube core: all where they add up, otherwise as the row says."""
        most = self.product.aiv_per_aic
        each = self.s.number("aiv", 0) if way.parts == 1 else most
        if each > most:
            raise UsageError(f"{self.row.id}: aiv={each}, but {most} Vector cores are beside a Cube core")
        return each

    def _added(self, parts: int) -> Run:
        m, n, _ = self.sizes
        vectors = self.cores * self.product.aiv_per_aic
        sums = tensor("int32" if self.integer else "fp32", parts * m * n)
        block = min(SUM_BLOCK, up(-(-m * n // vectors), 64))
        with sim.device(**self.s.device_options() | {"l2": "warm"}):
            return kernels.added_up.time(  # type: ignore[no-any-return]
                (min(vectors, -(-m * n // block)),), sums, tensor("fp32", m * n), tensor(self.c, m * n), m * n,
                PARTS=parts, BLOCK=block, SCALE=self.scaled,
            )  # fmt: skip


@predicts("matmul", "quant_matmul")
def _matmul(row: Row) -> Prediction:
    """shapes: M x N x K. tiling: cores, l1=BMxBNxBK; split=CMxCN with single=SMxSN, or group, or swizzle; a, b: T
    (transposed), NZ (in fractals) or NZT (the transposed matrix in fractals); keep=a or b: that operand stays in L1 over
    several tiles; parts: of the sum, which Vector cores add up, or memory with sums=atomic; aiv: Vector cores that start
    beside each Cube core though they have no work on the tiles (they ask for products, or return at once); part: see below.

    part: only the first of that many equal parts of the rows is simulated (they follow each other on one core).
    """
    product, notes = RowProduct(row), []
    part = product.s.number("part", 1)
    if part > 1:
        time, note = _in_parts(product, part)
    elif product.s.text("l1"):
        time, note = _as_told(product), ""
    else:
        time, note = _best(product)
    if product.scaled:
        notes.append("results are scaled on the Vector cores")
    return Prediction(time, _bound(row, product.s, product.moved, float(prod(product.sizes)), product.a),
                      "; ".join(filter(None, [note, *notes])))  # fmt: skip


def _way(product: RowProduct) -> Way:
    tile: Sizes = product.s.numbers("l1", 3)  # type: ignore[assignment]
    return Way(product.cut(tile), product.s.one_of("keep", ("a", "b")), product.s.number("parts", 1))


def _as_told(product: RowProduct) -> float:
    way = _way(product)
    return product.time(way, product.run(way))


def _in_parts(product: RowProduct, part: int) -> tuple[float, str]:
    way, rows = _way(product), product.sizes[0] // part
    if not rows:
        raise UsageError(
            f"{product.row.id}: part={part}, but there are {product.sizes[0]} rows; give at most as many"
        )
    first, again = product.run(way, rows), product.run(way, rows, {"b": "warm", "*": "cold"})
    time = measured_time(product.row, first) + (again.time_us - overhead_us(again)) * (part - 1)
    return (
        time,
        f"1/{part} of the rows simulated, once as the first and once as one of the rest, with B in L2",
    )


def _bound(row: Row, s: Settings, moved: tuple[int, int], multiplications: float, operand: str) -> float:
    """The trivial bound, with the peak of the cores that the row uses."""
    cores = sim.load_product(row.product).cube_cores
    operand = "hf32" if operand == "fp32" and s.hf32() else operand
    return roofline_us(row, moved, multiplications * cores / min(cores, s.number("cores")), operand)


def _best(product: RowProduct) -> tuple[float, str]:
    """With the usual tile that comes out fastest; of large products only those that load least are tried."""
    run, way, count = fastest(product.row, _ways(product), product.run)
    return product.time(way, run), note_of(count, way.text)


def _ways(product: RowProduct) -> Iterator[Way]:
    """Usual tiles, each cut to the product, and with a whole operand in L1 where there is room for it."""
    usual = USUAL[:2] if prod(product.sizes) > LARGE else USUAL
    size = max(2, BYTES[product.a])
    tiles = list(dict.fromkeys(product.cut((m, n, k * 2 // size)) for m, n, k in usual))
    yield from map(Way, tiles)
    for keep in "ab":
        yield from (Way(tile, keep) for tile in tiles if _whole_in_l1(product, tile, keep))


def _whole_in_l1(product: RowProduct, tile: Sizes, keep: str) -> bool:
    """Whether a tile of an operand is all of it, and stays in L1 beside two copies of a tile of the other."""
    (m, n, k), (bm, bn, bk) = product.sizes, tile
    whole, tiles = ((bm, bn), -(-n // bn)) if keep == "a" else ((bn, bm), -(-m // bm))
    machine = product.product
    room = machine.l1_bytes - machine.integer("buffers.l1_reserved")
    held, other = kept_bytes(*whole, k, bk, BYTES[product.a])
    fits = held + 2 * other <= room and pieces(k, bk) <= MOST_PIECES
    return bool(fits and 1 < tiles <= MOST_TILES and whole[0] >= (m if keep == "a" else n))


def _blocks(rows: int, tile: Sizes) -> int:
    """The blocks of tiles that the vendor's GroupedMatmul goes through in diagonals; 0: row by row, as few rows of tiles."""
    return DIAGONAL if -(-rows // tile[0]) > FEW_ROWS else 0


@predicts("grouped_matmul")
def _grouped(row: Row) -> Prediction:
    """shapes: rows in all x N x K. tiling: cores, groups (of equal rows)."""
    s, (m, n, k), (kind, *_) = Settings(row), sizes_of(row, "rows x N x K"), dtypes_of(row)[0]
    groups, cores = s.number("groups"), s.number("cores")
    rows = -(-m // groups)
    if m % groups:
        remark(f"{m} rows in {groups} groups: each is taken to have {rows}")
    arguments = tensor(kind, groups * rows * k), tensor(kind, groups * k * n), tensor(kind, groups * rows * n)
    how = (kernels.PLAIN, kernels.PLAIN, 32 // BYTES[kind], False, kernels.STORED)

    def work(tile: Sizes) -> Run:
        names = dict(zip(("BM", "BN", "BK"), tile, strict=True)) | {"BLOCK": _blocks(rows, tile)}
        return kernels.many_products.time((cores,), *arguments, rows, n, k, GROUPS=groups, HOW=how, **names)  # type: ignore[no-any-return]

    cut = ((min(i, up(rows, FRACTAL)), min(j, up(n, FRACTAL)), min(q, up(k, FRACTAL))) for i, j, q in USUAL)
    run, tile, count = fastest(row, dict.fromkeys(cut), work)
    moved = BYTES[kind] * (m * k + groups * k * n), BYTES[kind] * m * n
    note = f"{note_of(count, 'x'.join(map(str, tile)))} in L1; groups taken to be equal"
    return Prediction(measured_time(row, run), _bound(row, s, moved, float(m) * n * k, kind), note)
