# mypy: disable-error-code="no-untyped-def"
"""Attention as kernels by hand have it: four stages, each of which is some passes over the keys ahead of the next one.

The Cube makes scores of a pass, tile by tile; the two Vector cores make weights of them, piece by piece, with the maximum of
the whole pass; the Cube adds the products of all tiles of a pass up in L0C; the Vector cores add the sums of the passes up.
All of it is handed over through global memory, so a pass of several tiles saves a sum of each tile but one. The operator of
this project (`attention/tiles.py`) makes passes of one tile.

Sources: PTO-ISA, kernels/manual/common/flash_atten (passes of 256 keys in tiles of 128, scores 4 passes ahead, a block of
queries after the other, sums in UB); ops-transformer, flash_attention_score, design notes and op_kernel (passes of 1024 keys
in tiles of 128, pieces of 8 x 1024 scores, one pass ahead, also from one block of queries into the next, sums in memory;
scores are scaled, masked, weighed and dropped in turn: ProcessVec1). The maxima and sums that a gradient takes and calls of
the vendor's library have no cost here.
"""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.language.extra.cann import buffer as bl
from ....simulator.language.extra.cann import extension as al
from .masks import drop, hide


@sim.jit
def rows_at(ptr, first, B: tl.constexpr, W: tl.constexpr):
    """Addresses of B rows of W elements."""
    return ptr + (first + tl.arange(0, B))[:, None] * W + tl.arange(0, W)[None, :]


@sim.jit
def tile_at(
    ptr, row, part, B: tl.constexpr, W: tl.constexpr, TALL: tl.constexpr, PASS: tl.constexpr, FLAT: tl.constexpr
):  # fmt: skip
    """Addresses of B rows from `row` on of tile `part` of a pass, W wide. FLAT: rows of a pass follow each other; else
    tiles of TALL rows do."""
    slot = row // TALL * (TALL * PASS) + part * (W if FLAT else TALL * W)
    rows = (row % TALL + tl.arange(0, B))[:, None] * (PASS if FLAT else W)
    return ptr + slot + rows + tl.arange(0, W)[None, :]


@sim.jit
def read(state, first, n: tl.constexpr):
    """n numbers of a buffer."""
    return bl.subview(state, [first], [n], [1]).to_tensor()


@sim.jit
def write(state, first, n: tl.constexpr, x):
    """n numbers into a buffer."""
    bl.to_buffer(x, bind_buffer=bl.subview(state, [first], [n], [1]))


@sim.jit
def unit_at(t, first, passes, tiles):
    """(head, block of queries, pass) of a program's step t; its first unit is `first`."""
    unit = first + t // passes * tl.num_programs(0)
    return unit // tiles, unit % tiles, t % passes


@sim.jit
def query(q, q_ptr, row, D: tl.constexpr, BM: tl.constexpr, ON: tl.constexpr):
    """The queries of a step: loaded for it where steps go on from block to block, else those of the block."""
    return tl.load(rows_at(q_ptr, row, BM, D)) if ON else q


@sim.jit
def give_scores(
    q, other, k_ptr, s_ptr, key, slot, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, PASS: tl.constexpr,
    PAIR: tl.constexpr, FLAT: tl.constexpr,
):  # fmt: skip
    """First stage: scores of a pass, to its place in global memory. other: queries of the second block of a pair."""
    for part in range(PASS // BN):
        k = tl.load(rows_at(k_ptr, key + part * BN, BN, D))
        al.multibuffer(k, 2)
        at = tile_at(s_ptr, slot * BM * PAIR, part, BM, BN, BM * PAIR, PASS, FLAT)
        tl.store(at, tl.dot(q, tl.trans(k)).to(s_ptr.dtype.element_ty))
        if PAIR == 2:
            tl.store(at + BM * (PASS if FLAT else BN), tl.dot(other, tl.trans(k)).to(s_ptr.dtype.element_ty))
    al.sync_block_set("cube", "vector", 0)


@sim.jit
def give_sum(
    v_ptr, p_ptr, o_ptr, key, slot, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, PASS: tl.constexpr,
    PAIR: tl.constexpr, FLAT: tl.constexpr,
):  # fmt: skip
    """Third stage: what the keys of a pass give to the output."""
    al.sync_block_wait("vector", "cube", 1)
    acc = tl.zeros((BM, D), tl.float32)
    if PAIR == 2:
        beside = tl.zeros((BM, D), tl.float32)
    for part in range(PASS // BN):
        at = tile_at(p_ptr, slot * BM * PAIR, part, BM, BN, BM * PAIR, PASS, FLAT)
        p = tl.load(at)
        v = tl.load(rows_at(v_ptr, key + part * BN, BN, D))
        al.multibuffer(p, 2)
        al.multibuffer(v, 2)
        acc = tl.dot(p, v, acc)
        if PAIR == 2:
            second = tl.load(at + BM * (PASS if FLAT else BN))
            al.multibuffer(second, 2)
            beside = tl.dot(second, v, beside)
    tl.store(rows_at(o_ptr, slot * BM * PAIR, BM, D), acc.to(o_ptr.dtype.element_ty))
    if PAIR == 2:
        tl.store(rows_at(o_ptr, slot * BM * PAIR + BM, BM, D), beside.to(o_ptr.dtype.element_ty))
    al.sync_block_set("cube", "vector", 2)


@sim.jit
def weigh(
    s_ptr, p_ptr, mask_ptr, bits_ptr, scores, weights, most, total, shrinks, totals, fresh, hidden, slot, pitch, scale,
    BM: tl.constexpr, BN: tl.constexpr, PASS: tl.constexpr, ROWS: tl.constexpr, FLAT: tl.constexpr,
    DROP: tl.constexpr,
):  # fmt: skip
    """Second stage, of a Vector core: weights of its half of the BM queries of a pass, ROWS queries at a time.

    most, total: maximum and sum of each query so far; shrinks, totals: by pass, what the last stage needs of them.
    fresh: the first pass of a block. hidden: whether a mask hides keys in this pass; mask_ptr and bits_ptr: of the block's
    first query and the pass's first key, bytes in rows of pitch and bits in rows of pitch / 8.
    """
    HALF: tl.constexpr = BM // 2
    PARTS: tl.constexpr = PASS // BN
    if fresh:
        write(most, 0, HALF, tl.full((HALF,), -float("inf"), tl.float32))
        write(total, 0, HALF, tl.zeros((HALF,), tl.float32))
    al.sync_block_wait("cube", "vector", 0)
    part = tl.arange(0, PARTS)[None, :, None] * (BN if FLAT else BM * BN)
    for piece in range(HALF // ROWS):
        row = al.sub_vec_id() * HALF + piece * ROWS + tl.arange(0, ROWS)
        at = (
            row[:, None, None] * (PASS if FLAT else BN)
            + part
            + tl.arange(0, BN)[None, None, :]
            + slot * BM * PASS
        )
        bl.to_buffer(tl.load(s_ptr + at), bind_buffer=scores)
        x = tl.reshape(scores.to_tensor(), (ROWS, PASS)).to(tl.float32)
        before = read(most, piece * ROWS, ROWS)
        if FLAT:
            x = x * scale
            if hidden:
                x = hide(x, mask_ptr, al.sub_vec_id() * HALF + piece * ROWS, pitch, ROWS, PASS)
            now = tl.maximum(before, tl.max(x, axis=1))
            p = tl.exp(x - now[:, None])
        else:
            now = tl.maximum(before, tl.max(x, axis=1) * scale)
            p = tl.exp(x * scale - now[:, None])
        less = tl.exp(before - now)
        write(most, piece * ROWS, ROWS, now)
        write(shrinks, slot * HALF + piece * ROWS, ROWS, less)
        added = read(total, piece * ROWS, ROWS) * less + tl.sum(p, axis=1)
        if DROP:
            p = drop(p, bits_ptr, al.sub_vec_id() * HALF + piece * ROWS, pitch // 8, 0.1, ROWS, PASS)
        write(total, piece * ROWS, ROWS, added)
        write(totals, slot * HALF + piece * ROWS, ROWS, added)
        bl.to_buffer(tl.reshape(p, (ROWS, PARTS, BN)).to(p_ptr.dtype.element_ty), bind_buffer=weights)
        tl.store(p_ptr + at, weights.to_tensor())
    al.sync_block_set("vector", "cube", 1)


@sim.jit
def add_up(
    o_ptr, r_ptr, out_ptr, acc, sums, shrinks, totals, slot, only, last, D: tl.constexpr, BM: tl.constexpr,
    PART: tl.constexpr, KEPT: tl.constexpr,
):  # fmt: skip
    """Last stage, of a Vector core: the sum of a pass to what was summed up before, scaled down for a larger maximum.

    PART: queries at a time. KEPT: what was summed up stays in UB, else it lies in global memory. only: the first pass of a
    block; last: its last one, after which the sum is divided and leaves.
    """
    HALF: tl.constexpr = BM // 2
    al.sync_block_wait("cube", "vector", 2)
    for piece in range(HALF // PART):
        row, state = al.sub_vec_id() * HALF + piece * PART, slot * HALF + piece * PART
        bl.to_buffer(tl.load(rows_at(o_ptr, slot * BM + row, PART, D)), bind_buffer=sums)
        if not KEPT:
            bl.to_buffer(tl.load(rows_at(r_ptr, row, PART, D)), bind_buffer=acc)
        if only:
            bl.to_buffer(tl.zeros((PART, D), tl.float32), bind_buffer=acc)
        bl.to_buffer(acc.to_tensor() * read(shrinks, state, PART)[:, None], bind_buffer=acc)
        bl.to_buffer(acc.to_tensor() + sums.to_tensor().to(tl.float32), bind_buffer=acc)
        if last:
            bl.to_buffer(acc.to_tensor() / read(totals, state, PART)[:, None], bind_buffer=acc)
            tl.store(rows_at(out_ptr, row, PART, D), acc.to_tensor().to(out_ptr.dtype.element_ty))
        elif not KEPT:
            tl.store(rows_at(r_ptr, row, PART, D), acc.to_tensor())


@sim.jit
def score_step(
    t, first, passes, tiles, turn, q, other, q_ptr, k_ptr, s_ptr, M, N, GROUP: tl.constexpr, D: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, PASS: tl.constexpr, PAIR: tl.constexpr, ON: tl.constexpr,
    SLOTS: tl.constexpr, FLAT: tl.constexpr,
):  # fmt: skip
    """The first stage of a program's step t."""
    head, tile, step = unit_at(t, first, passes, tiles)
    row = head * M + tile * (BM * PAIR)
    now = query(q, q_ptr, row, D, BM, ON)
    beside = query(other, q_ptr, row + BM, D, BM, ON) if PAIR == 2 else None
    key = head // GROUP * N + (step + turn) % passes * PASS
    give_scores(now, beside, k_ptr, s_ptr, key, t % SLOTS, D, BM, BN, PASS, PAIR, FLAT)


@sim.jit
def sum_step(
    t, first, passes, tiles, turn, v_ptr, p_ptr, o_ptr, N, GROUP: tl.constexpr, D: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, PASS: tl.constexpr, PAIR: tl.constexpr, SLOTS: tl.constexpr, FLAT: tl.constexpr,
):  # fmt: skip
    """The third stage of a program's step t."""
    head, _, step = unit_at(t, first, passes, tiles)
    key = head // GROUP * N + (step + turn) % passes * PASS
    give_sum(v_ptr, p_ptr, o_ptr, key, t % SLOTS, D, BM, BN, PASS, PAIR, FLAT)


@sim.jit
def attention_by_hand(
    q_ptr, k_ptr, v_ptr, out_ptr, s_ptr, p_ptr, o_ptr, r_ptr, mask_ptr, bits_ptr, M, N, begin, units, scale,
    GROUP: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, PASS: tl.constexpr, ROWS: tl.constexpr,
    PART: tl.constexpr, AHEAD: tl.constexpr, STAGGER: tl.constexpr, ON: tl.constexpr, PAIR: tl.constexpr,
    FLAT: tl.constexpr = False, HIDE: tl.constexpr = 0, DROP: tl.constexpr = False,
):  # fmt: skip
    """out = softmax(scale q k^T) v of heads of M queries and N keys; GROUP of them share keys.

    q and out: (heads, M, D), k and v: (heads / GROUP, N, D), M a multiple of BM * PAIR, N of PASS, PASS of BN. Each program
    does `units` blocks, the first ones from block `begin` on. PAIR: 1, a block has BM queries and each Vector core half of
    them, or 2, it has twice as many and each Vector core BM; the Cube then loads keys once for both, and sums lie in global
    memory. s, p, o: (programs, AHEAD + 1, BM * PAIR, PASS, PASS and D), what is under way; of a pass all tiles of keys lie
    one after the other, or, where FLAT, all rows. r: (programs, BM * PAIR, D) FP32, sums. mask: bytes in rows of N, other
    than 0 where a query does not see a key: HIDE 0, of none; 1, of one block, for its last pass; 2, of M queries, for all.
    bits: (heads, M, N / 8) bytes, of a dropout where DROP; both need FLAT. ROWS: queries of a piece of scores, a multiple
    of 8. PART: of sums; where PAIR is 1, BM / 2. STAGGER: programs begin with keys of their own. ON: stages go on from a
    program's block into its next one.
    """
    TALL: tl.constexpr = BM * PAIR
    tiles, passes = M // TALL, N // PASS
    SLOTS: tl.constexpr = AHEAD + 1
    HALF: tl.constexpr = TALL // 2
    place = tl.program_id(0) * SLOTS
    s_ptr += place * (TALL * PASS)
    p_ptr += place * (TALL * PASS)
    o_ptr += place * (TALL * D)
    r_ptr += tl.program_id(0) * (TALL * D)
    turn = tl.program_id(0) if STAGGER else 0
    rounds, steps = (1, units * passes) if ON else (units, passes)
    early = min(steps, AHEAD)
    with al.scope(core_mode="cube"):
        for part in range(rounds):
            first = begin + tl.program_id(0) + part * tl.num_programs(0)
            q = None if ON else tl.load(rows_at(q_ptr, first * TALL, BM, D))
            other = tl.load(rows_at(q_ptr, first * TALL + BM, BM, D)) if PAIR == 2 and not ON else None
            for t in range(early):
                score_step(
                    t, first, passes, tiles, turn, q, other, q_ptr, k_ptr, s_ptr, M, N, GROUP, D, BM, BN, PASS, PAIR,
                    ON, SLOTS, FLAT,
                )  # fmt: skip
            for t in range(early, steps):
                score_step(
                    t, first, passes, tiles, turn, q, other, q_ptr, k_ptr, s_ptr, M, N, GROUP, D, BM, BN, PASS, PAIR,
                    ON, SLOTS, FLAT,
                )  # fmt: skip
                sum_step(
                    t - early, first, passes, tiles, turn, v_ptr, p_ptr, o_ptr, N, GROUP, D, BM, BN, PASS, PAIR,
                    SLOTS, FLAT,
                )  # fmt: skip
            for t in range(steps - early, steps):
                sum_step(
                    t, first, passes, tiles, turn, v_ptr, p_ptr, o_ptr, N, GROUP, D, BM, BN, PASS, PAIR,
                    SLOTS, FLAT,
                )  # fmt: skip
    with al.scope(core_mode="vector"):
        scores = bl.alloc(s_ptr.dtype.element_ty, [ROWS, PASS // BN, BN], is_mem_unique=True)
        if not FLAT:
            al.multibuffer(scores, 2)
        weights = bl.alloc(p_ptr.dtype.element_ty, [ROWS, PASS // BN, BN], is_mem_unique=True)
        most, total = bl.alloc(tl.float32, [HALF]), bl.alloc(tl.float32, [HALF])
        shrinks, totals = bl.alloc(tl.float32, [SLOTS * HALF]), bl.alloc(tl.float32, [SLOTS * HALF])
        acc = bl.alloc(tl.float32, [PART, D])
        sums = bl.alloc(o_ptr.dtype.element_ty, [PART, D], is_mem_unique=True)
        for part in range(rounds):
            first = begin + tl.program_id(0) + part * tl.num_programs(0)
            for t in range(steps + AHEAD):
                if t < steps:
                    head, tile, step = unit_at(t, first, passes, tiles)
                    key = (step + turn) % passes * PASS
                    hides = mask_ptr + (tile * TALL * N + key if HIDE == 2 else 0)
                    weigh(
                        s_ptr, p_ptr, hides, bits_ptr + ((head * M + tile * TALL) * N + key) // 8, scores, weights,
                        most, total, shrinks, totals, step == 0, HIDE == 2 or (HIDE == 1 and step == passes - 1),
                        t % SLOTS, N, scale, TALL, BN, PASS, ROWS, FLAT, DROP,
                    )  # fmt: skip
                if t >= AHEAD:
                    head, tile, step = unit_at(t - AHEAD, first, passes, tiles)
                    row = out_ptr + (head * M + tile * TALL) * D
                    slot = (t - AHEAD) % SLOTS
                    add_up(
                        o_ptr, r_ptr, row, acc, sums, shrinks, totals, slot, step == 0, step == passes - 1,
                        D, TALL, PART, PAIR == 1,
                    )  # fmt: skip
