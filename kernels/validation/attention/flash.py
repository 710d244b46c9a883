"""Attention, forward: a kernel by hand with the cores of the row, and its tile where it is published, else the vendor's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....simulator.device import device
from ....simulator.errors import BufferOverflowError, UsageError
from ....simulator.l2.state import L2State
from ....simulator.products import load_product
from ....simulator.record.run import Run
from ...attention.tiles import forward_tiles
from ..registry import NO_TILING, Prediction, predicts
from ..settings import (
    BYTES,
    Settings,
    dtypes_of,
    fastest,
    measured_time,
    overhead_us,
    roofline_us,
    shape_of,
    sizes_of,
    tensor,
)
from ..table import Row
from .times import FRACTAL, Attended, Staging, time_of, written_back_us

# FlashAttentionScore multiplies tiles of 128 x 128 and weighs 1024 keys at once, the scores of the next ones are made
# meanwhile, in rows of a pass (ops-transformer, flash_attention_score: design notes; Process of S1s2Bn2gs1 in op_kernel).
VENDOR = Staging(128, 128, 1024, 1, True, flat=True)
FEW_ROWS = 64  # of a tile where Vector cores are left over (CalcS1S2BasicBlock of its op_host)
WIDEST_PAIR = 128  # length of a row up to which two blocks share keys in L1, other types than FP32 (SetEnableL1Reuse there)
# Queries and keys of a tile that are tried where Cube and Vector share a core and none is published.
USUAL = ((128, 128), (64, 256), (64, 128))


@predicts("flash_attention")
def _attention(row: Row) -> Prediction:
    """shapes: heads x queries x keys x D. tiling: cores; kv_heads (as heads), causal=1; block=queries x keys of a tile.

    causal: the last query sees all keys, each one before it one key less (the vendor's sparse_mode 3); of more queries than
    keys the first ones see none, and their rows are filled with zeros.
    With a block: pass, keys that are weighed at once (two tiles); ahead, passes by which scores are ahead (4);
    handed=fp16, how scores and sums go through memory (fp32). Without one: the vendor's operator; mask=1, it reads a mask
    of queries x keys bytes (with causal=1 alone the compressed one, for the last pass of a block); dropout=1, it reads a
    bit for each score. part: accepted, of no use any more. Where Cube and Vector share a core it is this project's own
    kernel, which hands nothing over and has no mask or dropout.
    """
    work, s = _work(row), Settings(row)
    split = load_product(row.product).core_model == "split"
    time, run, note = _by_hand(row, work, _way(s, work)) if split else _in_one_core(row, work, s)
    outside = run.time_us - measured_time(row, run)
    value = time + _blank_us(row, work) - outside
    return Prediction(value, _roof(row, work), "" if s.text("block") else f"{NO_TILING}: {note}")


def _roof(row: Row, work: Attended) -> float:
    """The trivial bound, of the scores that are seen."""
    hidden = work.queries * (work.queries - 1) // 2 if work.causal else 0
    read = work.heads * work.queries + 2 * work.heads // work.group * work.keys
    moved = [BYTES[work.kind] * rows * work.d for rows in (read, work.heads * shape_of(row)[1])]
    scores = work.heads * (work.queries * work.keys - hidden)
    return roofline_us(row, (moved[0], moved[1]), 2.0 * scores * work.d, work.kind)


def _blank_us(row: Row, work: Attended) -> float:
    """us in which queries without keys get their zeros, at the rate of L2."""
    rows = work.heads * (shape_of(row)[1] - work.queries)
    filled = float(BYTES[work.kind] * rows * work.d)
    return roofline_us(row, (0.0, filled)) - roofline_us(row, (0.0, 0.0))


def _work(row: Row) -> Attended:
    """What a row states, if memory can hold it, of the queries that see keys."""
    s, (kind, *_) = Settings(row), dtypes_of(row)[0]
    heads, queries, keys, d = sizes_of(row, "heads x queries x keys x D")
    of_keys, cores = s.number("kv_heads", heads), s.number("cores")
    if heads % of_keys:
        raise UsageError(
            f"{row.id}: kv_heads={of_keys}, cores={cores}: both from 1, and the {heads} heads a multiple of kv_heads"
        )
    for rows in (heads * queries, of_keys * keys):
        tensor(kind, rows, d)
    if s.text("block") and (s.number("mask", 0) or s.number("dropout", 0)):
        raise UsageError(
            f"{row.id}: mask and dropout are known of the vendor's operator only: leave them out, or block={s.text('block')}"
        )
    causal, mask, dropout = (_flag(s, name) for name in ("causal", "mask", "dropout"))
    queries = min(queries, keys) if causal else queries
    return Attended(heads, heads // of_keys, queries, keys, d, kind, cores, causal, mask, dropout)


def _flag(s: Settings, name: str) -> bool:
    """Whether a row says name=1."""
    found = s.number(name, 0)
    if found > 1:
        raise UsageError(f"{s.row.id}: {name}={found} is neither 0 nor 1; one other mask is known, mask=1")
    return bool(found)


def _way(s: Settings, work: Attended) -> Staging:
    """Of a row; passes of two tiles and 4 of them ahead as PTO's flash attention has it."""
    if not s.text("block"):
        return _of_vendor(work)
    rows, keys = _block(s)
    width, ahead, handed = s.number("pass", 2 * keys), s.number("ahead", 4), s.text("handed", "fp32")
    if width < keys or handed not in ("fp32", "fp16"):
        raise UsageError(
            f"{s.row.id}: block={rows}x{keys} pass={width} ahead={ahead} handed={handed}: a block and ahead from 1, "
            "pass no less than the keys of the block, handed fp32 or fp16"
        )
    return Staging(rows, keys, width, ahead, False, handed)


def _block(s: Settings) -> tuple[int, int]:
    """Queries and keys of the row's tile."""
    rows, keys = s.numbers("block", 2)
    if not (rows and keys):
        raise UsageError(f"{s.row.id}: block={rows}x{keys}: a block and ahead from 1")
    return rows, keys


def _of_vendor(work: Attended) -> Staging:
    """Each Vector core has blocks of its own; pairs go through the keys together."""
    if work.queries < FRACTAL:
        return VENDOR
    few = work.heads * -(-work.queries // FEW_ROWS) <= 2 * work.cores
    paired = work.d <= WIDEST_PAIR and work.kind != "fp32"
    return replace(VENDOR, rows=FEW_ROWS if few else VENDOR.rows, pair=2 if paired else 1)


def _within_work(way: Staging, work: Attended) -> Staging:
    """Tiles no larger than the work, in whole fractals; passes of whole tiles."""
    rows, keys = (
        -(-min(x, n) // FRACTAL) * FRACTAL for x, n in ((way.rows, work.queries), (way.keys, work.keys))
    )
    return replace(way, rows=rows, keys=keys, width=max(1, way.width // keys) * keys)


def _by_hand(row: Row, work: Attended, way: Staging) -> tuple[float, Run, str]:
    """With tiles of as many queries as fit in the buffers."""
    found: BufferOverflowError | None = None
    work = work.merged() if work.queries < FRACTAL else work
    options = Settings(row).device_options() | {"multibuffer": 1, "unit_flag": True}
    for smaller in _within_work(way, work).smaller():
        try:
            time, run = _of_any_l2(row, work, smaller, options)
            return time, run, "tiles and passes as in the vendor's source"
        except BufferOverflowError as e:
            found = e
    raise found or UsageError(f"{row.id}: no tile of queries fits")


def _of_any_l2(row: Row, work: Attended, way: Staging, options: dict[str, Any]) -> tuple[float, Run]:
    """As `time_of`; what others changed in L2 goes to memory once, and is no part of what there is more of."""
    l2, product = options["l2"], load_product(row.product)
    if not isinstance(l2, L2State):
        with device(**options):
            return time_of(work, way)
    with device(**options | {"l2": l2.words}):
        time, run = time_of(work, way)
    with device(**options):
        late = time_of(work, way)[1].time_us - run.time_us
    room = product.number("l2.size")
    changed_us = l2.changed * room / (product.number("memory.bandwidth_tb_per_s") * 1e6)
    return time + written_back_us(work, way, late, room, changed_us), run


def _in_one_core(row: Row, work: Attended, s: Settings) -> tuple[float, Run, str]:
    """The fastest of a few tiles, or the tile of the row. Causal ones that see more keys than they are do the keys that all
    of them see, then the others."""
    if work.causal and work.queries < work.keys:
        whole = replace(work, keys=work.keys - work.queries, causal=False)
        before = _in_one_core(row, whole, s)
        time, run, note = _in_one_core(row, replace(work, keys=work.queries), s)
        return before[0] - overhead_us(before[1]) + time, run, note
    q, k = (
        tensor(work.kind, n, m, work.d)
        for n, m in ((work.heads, work.queries), (work.heads // work.group, work.keys))
    )
    lse, known = tensor("fp32", work.heads, work.queries), s.text("block")
    sizes = {
        "M": work.queries,
        "N": work.keys,
        "heads": work.heads,
        "scale": work.d**-0.5,
        "GROUP": work.group,
    }
    names = {"CAUSAL": work.causal, "STAGGER": not known, "D": work.d}

    def timed(block: tuple[int, ...]) -> Run:
        grid = (min(work.cores, work.heads * -(-work.queries // block[0])),)
        run: Run = forward_tiles.time(grid, q, k, k, q, lse, **sizes, **names, BM=block[0], BN=block[1])
        return run

    run, block, _ = fastest(row, (_block(s),) if known else USUAL, timed)
    return run.time_us, run, f"tiles of {'x'.join(map(str, block))}"
