"""Times of attention by hand: a few blocks of queries over a part of the keys are simulated, the rest is more of the same.

A core's time grows by as much for each further block of queries and for each further pass over keys; blocks that are left
when every core has as many come last, on as many cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Any

import numpy as np

from ....simulator.record.run import Run
from ..settings import BYTES, overhead_us, tensor
from .stages import attention_by_hand

Numbers = np.ndarray[Any, np.dtype[np.int64]]
FRACTAL = 16
ROWS = 8  # queries of a piece are a multiple: their maxima fill a block of 32 bytes
PIECE_BYTES = 32 << 10  # scores of a piece (ops-transformer: 8 x 1024 FP32; PTO: 32 x 256)
LONGEST = 8  # passes that are simulated; with more the time grows as it does from half of them to all


@dataclass(frozen=True)
class Staging:
    """How a kernel by hand goes.

    rows, keys: of a tile of scores. width: keys of a pass. ahead: passes by which the scores are ahead of the sums. on:
    whether stages go on from a block of queries into the next one. handed: type of scores and sums in global memory.
    pair: tiles of queries that go through the keys together; flat: how scores lie in memory; as `attention_by_hand` says.
    """

    rows: int
    keys: int
    width: int
    ahead: int
    on: bool
    handed: str = "fp32"
    pair: int = 1
    flat: bool = False

    def smaller(self) -> Iterator[Staging]:
        """This way, then with half as many queries in a tile, and half as many keys, down to a fractal of each: for rows
        too long for the buffers."""
        way = self
        yield way
        while way.rows > FRACTAL or way.keys > FRACTAL:
            if way.rows > FRACTAL:
                way = replace(way, rows=max(FRACTAL, way.rows // 2 // FRACTAL * FRACTAL))
            else:
                keys = max(FRACTAL, way.keys // 2 // FRACTAL * FRACTAL)
                way = replace(way, keys=keys, width=max(keys, way.width // 2 // keys * keys))
            yield way

    def piece(self, width: int) -> int:
        """Queries that a Vector core does at once in a pass of so many keys: a whole part of those that it has."""
        return self._part(PIECE_BYTES // BYTES["fp32"] // width)

    def part(self, d: int, masked: bool) -> int:
        """Queries whose sums a Vector core does at once: all of them where they stay in UB; half as many as else where a
        mask needs room."""
        return self._part(self.rows if self.pair == 1 else PIECE_BYTES // (1 + masked) // BYTES["fp32"] // d)

    def _part(self, most: int) -> int:
        mine = self.rows * self.pair // 2
        return max([ROWS, *(x for x in range(ROWS, min(most, mine) + 1, ROWS) if mine % x == 0)])


@dataclass(frozen=True)
class Attended:
    """heads: of queries, `group` of which share keys. queries, keys: of a head. d: length of a row.

    causal: the last query sees all keys, each one before it one key less (sparse_mode 3, rightDownCausal), and blocks are
    shared so that cores have as much to do. No more queries than keys then: those before them would see none.
    mask: a byte for each query and key is read; without it, and flat, causal ones read one in the last pass of a block.
    dropout: a bit for each score is read.
    """

    heads: int
    group: int
    queries: int
    keys: int
    d: int
    kind: str
    cores: int
    causal: bool = False
    mask: bool = False
    dropout: bool = False

    def blocks(self, way: Staging) -> int:
        """Of queries, of all heads; a pair may have one of two heads each."""
        return -(-self.heads * self.tiles(way) // way.pair)

    def tiles(self, way: Staging) -> int:
        """Blocks of queries of a head."""
        return -(-self.queries // way.rows)

    def seen(self, way: Staging) -> list[int]:
        """Keys that the last query of each block of a head sees."""
        if not self.causal:
            return [self.keys] * self.tiles(way)
        before = self.keys - self.queries
        return [before + min(k * way.rows, self.queries) for k in range(1, self.tiles(way) + 1)]

    def passes(self, way: Staging) -> tuple[int, float]:
        """(keys of a pass, passes) of a block, on average: tiles that no query of a block sees are not multiplied.

        All passes but the last one are whole; where blocks see more and more keys they are as long as the mean one. The Cube
        is active for 287 us in the step of Qwen3: 262 are the tiles up to the diagonal.
        """
        if not self.causal:
            width = min(way.width, -(-self.keys // way.keys) * way.keys)
            return width, max(1.0, self.keys / width)
        seen = self.seen(way)
        mean = sum(seen) / len(seen)
        each = mean / (sum(-(-keys // way.width) for keys in seen) / len(seen))
        width = max(1, round(each / way.keys)) * way.keys
        return width, max(1.0, mean / width)

    def simulated(self, way: Staging) -> tuple[tuple[tuple[int, int], ...], float]:
        """Two lengths for each block, as (keys of a pass, passes), and how far from the first to the second it has to go.

        With keys for one pass the lengths are whole tiles.
        """
        width, passes = self.passes(way)
        if passes > LONGEST:
            few = LONGEST // 2, LONGEST
            return tuple((width, n) for n in few), (passes - few[0]) / (few[1] - few[0])
        if passes > 1 or self.causal:
            return tuple((width, n) for n in (floor(passes), ceil(passes))), passes % 1
        tiles = max(1.0, self.keys / way.keys)
        return tuple((n * way.keys, 1) for n in (floor(tiles), ceil(tiles))), tiles % 1

    def touched(self, way: Staging, blocks: int, keys: int) -> int:
        """Bytes of memory that `blocks` blocks over so many keys of each head take, with what is handed over."""
        rows, width = blocks * way.rows * way.pair, min(way.width, keys)
        of_keys = min(self.heads // self.group, -(-rows // (self.group * self.tiles(way) * way.rows)))
        handed = (BYTES[way.handed] + BYTES[self.kind]) * width + BYTES[way.handed] * self.d
        each = (way.ahead + 1) * handed + BYTES["fp32"] * self.d
        own = 2 * BYTES[self.kind] * self.d * (rows + of_keys * keys)
        return own + min(self.cores, blocks) * way.rows * way.pair * each

    def busiest(self, way: Staging) -> float:
        """Work of the core that has most, over the work of all cores on average: 1 where blocks can be shared evenly.

        The vendor gives each Vector core blocks that follow each other, so that the one with most tiles has as few as
        possible; a pair does those of both (SetSparseStartIdx of op_host, GetS1LoopRange of op_kernel).
        """
        if not (self.causal and way.flat):
            return 1.0
        of_head = [-(-keys // way.keys) for keys in self.seen(way)]
        done = np.concatenate([[0], np.cumsum(np.tile(of_head, self.heads))])
        ends = done[shared(done, 2 * self.cores)]
        pairs = np.diff(ends[::2])
        return float(pairs.max() / pairs.mean())

    def merged(self) -> Attended:
        """With the queries of all heads that share keys in one block, and keys in as many parts as cores have room for.

        So does the vendor with a few new queries (IncreFlashAttention); its adding up of the parts is left out, and so are
        the few keys that causal ones but the last do not see.
        """
        heads = self.heads // self.group
        parts = max(1, min(self.cores // heads, self.keys // FRACTAL))
        return replace(
            self,
            heads=heads * parts,
            group=1,
            queries=self.queries * self.group,
            keys=-(-self.keys // parts),
            causal=False,
        )


def shared(done: Numbers, cores: int) -> Numbers:
    """Where the blocks of each core begin, and the end; the core with most has as little as can be. done: work before each
    block, and all of it."""
    low, high = int(np.diff(done).max()), int(done[-1])
    while low < high:
        most = (low + high) // 2
        low, high = (low, most) if _begins(done, cores, most)[-1] == len(done) - 1 else (most + 1, high)
    return _begins(done, cores, high)


def _begins(done: Numbers, cores: int, most: int) -> Numbers:
    """The first block of each core, and the end: each core takes blocks until it has no room for one more."""
    begin = [0]
    for _ in range(cores):
        begin.append(int(np.searchsorted(done, done[begin[-1]] + most, "right")) - 1)
    return np.array(begin)


def time_of(work: Attended, way: Staging) -> tuple[float, Run]:
    """us of all of it, and a run of a part of it. Raises BufferOverflowError if a tile of queries is too large."""
    (few, more), part = work.simulated(way)
    first, run = _of_passes(work, way, *few)
    if more == few:
        return first, run
    last, run = _of_passes(work, way, *more)
    return first + part * (last - first), run


def written_back_us(work: Attended, way: Staging, late_us: float, room: float, changed_us: float) -> float:
    """us that all of it waits for what others changed in L2, of which each line goes to memory once.

    late_us: of it, of the run that `time_of` gives, which takes a part of L2's `room` bytes. changed_us: memory's time for
    all that is changed.
    """
    width, passes = work.simulated(way)[0][1]
    blocks, keys = work.blocks(way), min(work.keys, width * passes)
    whole, part = (
        min(room, x)
        for x in (
            work.touched(way, blocks, work.keys),
            work.touched(way, min(blocks, work.cores), keys),
        )
    )
    return min(max(0.0, late_us) * whole / part, changed_us * whole / room)


def _of_passes(work: Attended, way: Staging, width: int, passes: int) -> tuple[float, Run]:
    """us with so many passes for each block."""
    blocks, cores = work.blocks(way), work.cores
    rounds, left = divmod(blocks, cores)

    def run(cores: int, units: int, begin: int = 0) -> Run:
        return _run(work, way, width, passes, cores, units, begin)

    if not rounds:
        only = run(left, 1)
        return only.time_us, only
    one = run(cores, 1)
    time, further = one.time_us, run(cores, 2).time_us - one.time_us if rounds > 1 else 0.0
    if work.causal:
        units = work.busiest(way) * blocks / cores
        return time + (units - 1) * (further or time - overhead_us(one)), one
    last = run(left, 1, rounds * cores) if left else None
    return time + (rounds - 1) * further + (last.time_us - overhead_us(last) if last else 0.0), one


def _run(work: Attended, way: Staging, width: int, passes: int, cores: int, units: int, begin: int) -> Run:
    """`units` blocks of queries on each core. Cores that start together read the same keys at the same time as long as
    each has one block; with more they come to them at times of their own."""
    tall, n, places = way.rows * way.pair, passes * width, way.ahead + 1
    m = -(-work.tiles(way) // way.pair) * tall
    q, k = tensor(work.kind, work.heads, m, work.d), tensor(work.kind, work.heads // work.group, n, work.d)
    s, o = (tensor(way.handed, cores, places, tall, x) for x in (width, work.d))
    p, r = tensor(work.kind, cores, places, tall, width), tensor("fp32", cores, tall, work.d)
    mask = tensor("uint8", *((m, n) if work.mask else (tall, n)))
    bits = tensor("uint8", *((work.heads, m, n // 8) if work.dropout else (FRACTAL,)))
    names = {
        "GROUP": work.group,
        "D": work.d,
        "BM": way.rows,
        "BN": way.keys,
        "PASS": width,
        "ROWS": way.piece(width),
        "PART": way.part(work.d, work.mask or work.causal),
        "PAIR": way.pair,
        "HIDE": 2 if work.mask else int(work.causal and way.flat),
        "DROP": work.dropout,
    }
    run: Run = attention_by_hand.time(
        (cores,), q, k, k, q, s, p, o, r, mask, bits, m, n, begin, units, work.d**-0.5,
        **names, AHEAD=way.ahead, STAGGER=work.blocks(way) > work.cores, ON=way.on, FLAT=way.flat,
    )  # fmt: skip
    return run
