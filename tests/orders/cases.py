"""What is true of each kernel under two or more configurations, with the reason in a word.

same: the same bits for all finite inputs. zeros: the same but for the sign of zeros. differs: some finite inputs tell them
apart. open: the same for all inputs, or for all that can be tried, but not by the rules of `simulator/orders`; to call it
"same" would be right, to call it "differs" would be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import ascendtile.simulator as sim
from ascendtile.simulator.launch import prepare
from ascendtile.simulator.orders.launches import LaunchSequence
from ascendtile.simulator.orders.variations import Configuration, Variations

from . import meeting, others, sums

SAME, ZEROS, DIFFERS, OPEN = "same", "zeros", "differs", "open"
Arrays = Mapping[str, np.ndarray]


def rows(count: int, n: int, dtype: Any = np.float32) -> np.ndarray:
    g = np.random.default_rng(count * 1000 + n)
    if np.dtype(dtype).kind in "iu":
        return g.integers(0, 15, (count, n), dtype)
    return g.standard_normal((count, n)).astype(dtype)


@dataclass(frozen=True)
class Case:
    """One kernel. ways: constants of each configuration, "grid" and "seed" among them. out: shape and type."""

    kernel: Any
    truth: str
    why: str
    ways: Sequence[Mapping[str, int]]
    x: np.ndarray
    out: tuple[Any, Any] = ((4,), np.float32)
    grid: Any = 4
    scalars: Mapping[str, int] | None = None

    @property
    def name(self) -> str:
        return f"{self.kernel.__name__}-{'-'.join(str(x) for x in self.ways[-1].values())}-{self.x.dtype}"

    @property
    def inputs(self) -> Arrays:
        return {"x": self.x}

    def subject(self) -> Variations:
        made = [Configuration(str(dict(way)), self.launches(way)) for way in self.ways]
        return Variations(self.kernel.__name__, self.inputs, made)

    def launches(self, way: Mapping[str, int]) -> Callable[[Arrays], LaunchSequence]:
        constants = {n: x for n, x in way.items() if n not in ("grid", "seed")}

        def launches(inputs: Arrays) -> LaunchSequence:
            out = np.zeros(*self.out)
            grid = self.grid(way) if callable(self.grid) else way.get("grid", self.grid)
            given = {"n": self.x.shape[-1]} if self.scalars is None else self.scalars
            with sim.device(atomic_seed=way.get("seed"), time=False):
                call = prepare(self.kernel, (grid,), (), {**inputs, "out": out, **given, **constants})
            return LaunchSequence([call], inputs, {"out": out})

        return launches


@dataclass(frozen=True)
class ProductCase(Case):
    """One with a second operand, b (K, N)."""

    @property
    def b(self) -> np.ndarray:
        return np.ascontiguousarray(self.x[:16].T[:, :16])

    @property
    def inputs(self) -> Arrays:
        return {"a": self.x, "b": self.b}


@dataclass(frozen=True)
class LookUp(Case):
    @property
    def inputs(self) -> Arrays:
        return {"table": self.x, "index": np.array([2, 0, 1, 1], np.int32)}


@dataclass(frozen=True)
class Chain(Case):
    """Parts, and a second launch that adds them."""

    def launches(self, way: Mapping[str, int]) -> Callable[[Arrays], LaunchSequence]:
        def launches(inputs: Arrays) -> LaunchSequence:
            out, parts = np.zeros(1, np.float32), np.full(way["COUNT"], np.nan, np.float32)
            count, n = way["COUNT"], self.x.shape[-1]
            with sim.device(atomic_seed=way.get("seed"), time=False):
                first = {**inputs, "parts": parts, "n": n, "BLOCK": n // count}
                last = {"parts": parts, "out": out, "COUNT": count}
                calls = [
                    prepare(meeting.stored_parts, (count,), (), first),
                    prepare(meeting.added_parts, (1,), (), last),
                ]
            return LaunchSequence(calls, inputs, {"out": out})

        return launches


def blocks(*values: int, **more: int) -> list[dict[str, int]]:
    return [{"BLOCK": n, **more} for n in values]


def both(name: str) -> list[dict[str, int]]:
    return [{name: False}, {name: True}]


def seeds(**given: int) -> list[dict[str, int]]:
    return [given, *({**given, "seed": k} for k in range(3))]


X = rows(4, 64)
WIDE = rows(4, 128)
ODD = rows(4, 50)
HALF = rows(4, 64, np.float16)
LONG = rows(1, 256)
INT8 = rows(4, 128, np.int8)
INT32 = rows(4, 64, np.int32)
A = rows(16, 64, np.float16)
A32 = rows(16, 32)
SQUARE, ROW, ONE = ((16, 16), np.float32), ((1, 16), np.float32), ((1,), np.float32)
OF = {"K": 64, "N": 16}
OF32 = {"K": 32, "N": 16}


def programs(way: Mapping[str, int]) -> int:
    return 256 // way["BLOCK"]


CASES = [
    # ---- sums of rows
    Case(sums.whole_row, ZEROS, "masked lanes add +0 behind the row", blocks(64, 128), ODD),
    Case(
        sums.whole_row_of_squares,
        SAME,
        "no square is -0, so adding +0 changes nothing",
        blocks(64, 128, 256),
        ODD,
    ),
    Case(sums.chunks_one_by_one, ZEROS, "a repeat of 64 is the chunk", blocks(64, 128), WIDE),
    Case(sums.chunks_one_by_one, DIFFERS, "half a repeat is another tree", blocks(64, 32), WIDE),
    Case(sums.lanes, DIFFERS, "another number of lanes", blocks(64, 32), WIDE),
    Case(sums.lanes, ZEROS, "all of the row is in the first tile", blocks(64, 128), ODD),
    Case(
        sums.lanes_from_the_end,
        DIFFERS,
        "four chunks from the other end",
        [{"BLOCK": 32, "BACK": k} for k in (0, 1)],
        WIDE,
    ),
    Case(sums.lanes_from_the_end, ZEROS, "two terms commute", [{"BLOCK": 32, "BACK": k} for k in (0, 1)], X),
    Case(
        sums.columns,
        SAME,
        "the width of a tile is no part of a column's sum",
        blocks(8, 16, ROWS=4),
        rows(4, 16),
        ROW,
        lambda w: 16 // w["BLOCK"],
    ),
    Case(
        sums.columns_in_parts,
        DIFFERS,
        "halves onto each other, or part by part",
        [{"ROWS": 16, "PART": k} for k in (4, 16)],
        rows(16, 16),
        ROW,
        1,
    ),
    Case(
        sums.columns_in_parts,
        DIFFERS,
        "two parts of 8 or four of 4",
        [{"ROWS": 16, "PART": k} for k in (8, 4)],
        rows(16, 16),
        ROW,
        1,
    ),
    Case(sums.swapped, SAME, "addition commutes", both("SWAP"), X, ROW, 1),
    Case(sums.three, DIFFERS, "addition does not associate", both("LEFT"), X, ROW, 1),
    Case(sums.difference, OPEN, "a - b is a + (-b), which no rule says", both("NEGATED"), X, ROW, 1),
    Case(sums.mean, DIFFERS, "64ths of tiny numbers are flushed", both("FIRST"), X),
    Case(sums.scaled, DIFFERS, "quarters of tiny numbers are flushed", both("FIRST"), X),
    Case(sums.through_half, DIFFERS, "parts are rounded", both("ROUNDED"), X),
    Case(sums.half_and_back, SAME, "FP16 to FP32 and back is exact", both("ROUNDED"), HALF),
    Case(sums.half_sum, DIFFERS, "rounded to FP16 once or twice", blocks(64, 32), HALF, ((4,), np.float16)),
    Case(sums.with_one, SAME, "times one", both("TIMES"), X),
    Case(sums.product_and_sum, DIFFERS, "one rounding or two", both("CONTRACTED"), X, ROW, 1),
    Case(sums.variance, DIFFERS, "squares cancel", both("TWICE"), X),
    Case(sums.welford, DIFFERS, "chunks of another size", blocks(64, 32), X),
    Case(sums.welford, DIFFERS, "chunks of another size", blocks(32, 16), X),
    Case(sums.kahan, DIFFERS, "lanes are added without compensation", blocks(64, 32), WIDE),
    # ---- extremes, indices, scans, sorts
    Case(others.largest, ZEROS, "a largest zero has either sign", blocks(64, 32, 16), X),
    Case(others.largest, ZEROS, "masked lanes are -inf", blocks(64, 128), ODD),
    Case(others.smallest_size, SAME, "absolute values have no -0", blocks(64, 32, 16), X),
    Case(
        others.softmax, SAME, "exp(-inf) is +0, and no exp is -0", blocks(64, 128), ODD, ((4, 50), np.float32)
    ),
    Case(
        others.online_softmax,
        DIFFERS,
        "what was summed is scaled again",
        blocks(64, 16),
        X,
        ((4, 64), np.float32),
    ),
    Case(others.running_sum, DIFFERS, "chunks add their own sums", blocks(64, 16), X, ((4, 64), np.float32)),
    Case(others.running_count, SAME, "integers", blocks(64, 32, 16), INT32, ((4, 64), np.int32)),
    Case(
        others.cumsum_masked,
        SAME,
        "what comes behind changes nothing before",
        blocks(64, 128),
        ODD[:1],
        ((1, 50), np.float32),
        1,
    ),
    Case(
        others.index_of_largest,
        OPEN,
        "an index that no masked lane has",
        blocks(64, 128),
        ODD,
        ((4,), np.int32),
    ),
    Case(
        others.index_twice,
        DIFFERS,
        "doubled, large numbers overflow to equal infinities",
        both("DOUBLED"),
        X,
        ((4,), np.int32),
    ),
    Case(others.sorted_row, OPEN, "sorting twice", both("TWICE"), X, ((4, 64), np.float32)),
    Case(others.sum_of_sorted, DIFFERS, "sorted terms come in another order", both("SORTED"), X),
    Case(
        others.sorted_flipped,
        SAME,
        "integers sort the same from either end",
        both("FLIPPED"),
        INT32,
        ((4, 64), np.int32),
    ),
    Case(
        others.sorted_flipped,
        ZEROS,
        "zeros of either sign stay as they came",
        both("FLIPPED"),
        X,
        ((4, 64), np.float32),
    ),
    Case(others.counted, SAME, "counts are integers", blocks(64, 32, 16), INT32[:1], ((16,), np.int32), 1),
    Case(others.whole_numbers, SAME, "128 INT8 stay below 2^24", blocks(128, 32, 16), INT8),
    Case(
        others.whole_numbers_in_half,
        SAME,
        "4 INT8 stay below 2^11, lanes are added in FP32",
        blocks(64, 32),
        INT8,
        ((4,), np.float16),
    ),
    Case(
        others.whole_numbers_in_half,
        DIFFERS,
        "128 INT8 pass 2^11",
        blocks(8, 4),
        rows(1, 512, np.int8) + np.int8(100),
        ((1,), np.float16),
        1,
    ),
    Case(others.signs, SAME, "truth values as integers", blocks(64, 16), X, ((4,), np.int32)),
    Case(others.bits, SAME, "xor", blocks(64, 16), INT32, ((4,), np.int32)),
    Case(
        others.wrapped_products, SAME, "wrapped products commute", both("LEFT"), INT32, ((1, 16), np.int32), 1
    ),
    Case(others.chosen, ZEROS, "what is not chosen is +0", blocks(64, 128), ODD),
    Case(others.moved, SAME, "elements are moved", blocks(8, 16), X, ((4, 64), np.float32)),
    Case(
        others.elementwise,
        SAME,
        "each element alone",
        blocks(64, 128, 256),
        LONG,
        ((1, 256), np.float32),
        programs,
    ),
    Case(others.rounded_once_more, DIFFERS, "a root is rounded", both("OFTEN"), X, ROW, 1),
    # ---- programs that meet
    Case(
        meeting.atomic_sum, DIFFERS, "atomics in the order of programs", seeds(BLOCK=32), LONG, ONE, programs
    ),
    Case(meeting.atomic_sum, DIFFERS, "parts of another size", blocks(64, 32), LONG, ONE, programs),
    Case(meeting.atomic_sum, SAME, "two terms commute: 0 + a + b", seeds(BLOCK=128), LONG, ONE, programs),
    Case(
        meeting.atomic_count,
        SAME,
        "integers",
        [*seeds(BLOCK=32), *blocks(64, 128)],
        rows(1, 256, np.int32),
        ((1,), np.int32),
        programs,
    ),
    Case(
        meeting.atomic_whole,
        SAME,
        "floats that are small integers",
        seeds(BLOCK=32),
        rows(1, 256, np.int8),
        ONE,
        programs,
    ),
    Case(
        meeting.atomic_largest, ZEROS, "a largest zero has either sign", seeds(BLOCK=64), LONG, ONE, programs
    ),
    Case(
        meeting.atomic_apart,
        SAME,
        "each program has its own element",
        seeds(BLOCK=64),
        LONG,
        ((4,), np.float32),
        programs,
    ),
    Case(meeting.last_one_stays, DIFFERS, "the last program's element", seeds(BLOCK=1), X, ONE),
    Chain(
        meeting.stored_parts,
        SAME,
        "parts in memory, one program adds them",
        [{"COUNT": 4}, *({"COUNT": 4, "seed": k} for k in range(3))],
        LONG,
    ),
    Chain(meeting.stored_parts, SAME, "half parts make the same tree", [{"COUNT": 4}, {"COUNT": 8}], LONG),
    Chain(
        meeting.stored_parts,
        DIFFERS,
        "repeats of one part are added in turn",
        [{"COUNT": 4}, {"COUNT": 1}],
        LONG,
    ),
    Case(
        meeting.persistent,
        SAME,
        "each row by one program",
        [{"BLOCK": 64, "grid": k} for k in (1, 2, 3)],
        X,
        scalars={"rows": 4, "n": 64},
    ),
    Case(
        meeting.persistent_total,
        DIFFERS,
        "programs add their rows first",
        [{"BLOCK": 64, "grid": k} for k in (1, 2)],
        X,
        ONE,
        scalars={"rows": 4, "n": 64},
    ),
    Case(meeting.branching, OPEN, "the course goes by data", blocks(64, 64), X),
    LookUp(meeting.looked_up, OPEN, "addresses go by data", blocks(64, 64), X, scalars={"n": 64}),
    # ---- products
    ProductCase(
        meeting.product,
        SAME,
        "16 products are a step of the Cube",
        [{"BLOCK_M": 16, "BLOCK_K": k} for k in (16, 32, 64)],
        A,
        SQUARE,
        1,
        OF,
    ),
    ProductCase(
        meeting.product,
        DIFFERS,
        "steps of 8 products",
        [{"BLOCK_M": 16, "BLOCK_K": k} for k in (16, 8)],
        A,
        SQUARE,
        1,
        OF,
    ),
    ProductCase(
        meeting.product,
        SAME,
        "rows of a tile are apart",
        [{"BLOCK_M": k, "BLOCK_K": 16, "grid": 16 // k} for k in (16, 8)],
        A,
        SQUARE,
        1,
        OF,
    ),
    ProductCase(
        meeting.product,
        SAME,
        "4 FP32 products are a step",
        [{"BLOCK_M": 16, "BLOCK_K": k} for k in (8, 16, 32)],
        A32,
        SQUARE,
        1,
        OF32,
    ),
    ProductCase(
        meeting.product,
        ZEROS,
        "masked products add +0 to what may be flushed to -0",
        [{"BLOCK_M": 16, "BLOCK_K": k} for k in (16, 64)],
        rows(16, 40, np.float16),
        SQUARE,
        1,
        {"K": 40, "N": 16},
    ),
    ProductCase(
        meeting.product_in_parts,
        DIFFERS,
        "parts start from zero",
        [{"PARTS": k} for k in (1, 4)],
        A,
        SQUARE,
        1,
        OF,
    ),
    ProductCase(
        meeting.split_product, DIFFERS, "atomics in the order of programs", seeds(PART=16), A, SQUARE, 4, OF
    ),
    ProductCase(
        meeting.split_product,
        DIFFERS,
        "parts of another size",
        [{"PART": k, "grid": 64 // k} for k in (16, 32)],
        A,
        SQUARE,
        1,
        OF,
    ),
    ProductCase(
        meeting.whole_product,
        SAME,
        "INT8 products are exact in INT32",
        [{"BLOCK_K": k} for k in (32, 64)],
        rows(16, 64, np.int8),
        ((16, 16), np.int32),
        1,
        OF,
    ),
    ProductCase(
        meeting.product_then_half,
        DIFFERS,
        "rounded to FP16 twice or four times",
        [{"BLOCK_K": k} for k in (16, 32)],
        A,
        ((16, 16), np.float16),
        1,
        OF,
    ),
]
