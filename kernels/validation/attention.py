"""Attention, forward: the tile kernel of `flash_attention` with the cores of the row, and its tile where it is published."""

from __future__ import annotations

from ...simulator.record.run import Run
from ..attention.tiles import forward_tiles
from .registry import Prediction, predicts
from .settings import (
    BYTES,
    Settings,
    dtypes_of,
    fastest,
    measured_time,
    note_of,
    overhead_us,
    roofline_us,
    shape_of,
    tensor,
)
from .table import Row

# Tried where none is published: queries and keys of a tile; programs begin with keys of their own.
USUAL = ((128, 128), (64, 256), (64, 128))


@predicts("flash_attention")
def _attention(row: Row) -> Prediction:
    """shapes: heads x queries x keys x D. tiling: cores; kv_heads (as heads), causal=1; block=queries x keys of a tile.

    With a block all programs begin with the first keys. part: only one of that many equal parts of the queries is simulated,
    as of one head (they follow each other on the cores, and their heads share keys).
    """
    s, (heads, queries, keys, d), (kind, *_) = Settings(row), shape_of(row), dtypes_of(row)[0]
    of_keys, causal, part = s.number("kv_heads", heads), bool(s.number("causal", 0)), s.number("part", 1)
    known, group = s.text("block"), heads // of_keys
    scores = heads * (queries * keys if not causal else min(queries, keys) * (keys + 1) // 2)
    q_bytes, kv_bytes = (BYTES[kind] * x * d for x in (heads * queries, 2 * of_keys * keys))
    if part > 1:
        heads, queries, of_keys, group = 1, heads * queries // part, 1, 1
    q, k, lse = (
        tensor(kind, heads, queries, d),
        tensor(kind, of_keys, keys, d),
        tensor("fp32", heads, queries),
    )
    sizes = {"M": queries, "N": keys, "heads": heads, "scale": d**-0.5, "GROUP": group}
    names = {"CAUSAL": causal, "STAGGER": not known, "D": d}

    def work(block: tuple[int, ...]) -> Run:
        grid = (min(s.number("cores"), heads * -(-queries // block[0])),)
        run: Run = forward_tiles.time(grid, q, k, k, q, lse, **sizes, **names, BM=block[0], BN=block[1])
        return run

    run, block, count = fastest(row, (s.numbers("block", 2),) if known else USUAL, work)
    note = "" if known else note_of(count, f"tiles of {'x'.join(map(str, block))}")
    time = measured_time(row, run) + (part - 1) * (run.time_us - overhead_us(run))
    return Prediction(time, roofline_us(row, (q_bytes + kv_bytes, q_bytes), 2.0 * scores * d, kind), note)
