# mypy: disable-error-code="no-untyped-def"
"""Tile kernels of the matrix products in the tables: how operands lie in memory, how the cores share the result.

HOW of each kernel: how a and b lie (`PLAIN`, `TRANSPOSED`, `FRACTALS`, or the transposed matrix in fractals), elements of 32
bytes, whether sums are integers, and what becomes of a tile of sums (`STORED`, `SCALED` by a number for each row and column,
or `ADDED` to what is there).
"""

from __future__ import annotations

from ... import simulator as sim
from ...simulator import language as tl

PLAIN, TRANSPOSED, FRACTALS, FRACTALS_TRANSPOSED = 0, 1, 2, 3
STORED, SCALED, ADDED = 0, 1, 2


@sim.jit
def load_operand(ptr, row, column, bottom, right, pitch, pitch_transposed, TRANSPOSED: tl.constexpr):
    """Rows up to `bottom` and columns up to `right` of a matrix with `pitch` columns, or of a transposed one."""
    if TRANSPOSED:
        across = (column < right)[:, None] & (row < bottom)[None, :]
        return tl.trans(tl.load(ptr + column[:, None] * pitch_transposed + row[None, :], mask=across))
    mask = (row < bottom)[:, None] & (column < right)[None, :]
    return tl.load(ptr + row[:, None] * pitch + column[None, :], mask=mask)


@sim.jit
def load_fractals(ptr, top, left, bottom, right, rows, R: tl.constexpr, C: tl.constexpr, C0: tl.constexpr):
    """R x C of a matrix of `rows` rows in fractals: columns in groups of C0, each with all rows, 16 of them together."""
    n1, k1 = left // C0 + tl.arange(0, C // C0), top // 16 + tl.arange(0, R // 16)
    inside = tl.arange(0, 16)[:, None] * C0 + tl.arange(0, C0)[None, :]
    first = n1[:, None] * (tl.cdiv(rows, 16) * 16 * C0) + k1[None, :] * (16 * C0)
    there = (n1 * C0 < right)[:, None] & (k1 * 16 < bottom)[None, :]
    tile = tl.load(ptr + first[:, :, None, None] + inside[None, None, :, :], mask=there[:, :, None, None])
    return tl.reshape(tl.permute(tile, (1, 2, 0, 3)), (R, C))


@sim.jit
def operand(
    ptr, top, left, bottom, right, rows, columns, R: tl.constexpr, C: tl.constexpr, LAYOUT: tl.constexpr,
    C0: tl.constexpr,
):  # fmt: skip
    """A tile of R x C of a matrix of `rows` x `columns`, up to row `bottom` and column `right`."""
    if LAYOUT == FRACTALS:
        return load_fractals(ptr, top, left, bottom, right, rows, R, C, C0)
    if LAYOUT == FRACTALS_TRANSPOSED:
        return tl.trans(load_fractals(ptr, left, top, right, bottom, columns, C, R, C0))
    row, column = top + tl.arange(0, R), left + tl.arange(0, C)
    return load_operand(ptr, row, column, bottom, right, columns, rows, LAYOUT == TRANSPOSED)


@sim.jit
def put(
    acc, c_ptr, s_ptr, top, left, bottom, right, N, BM: tl.constexpr, BN: tl.constexpr, HOW: tl.constexpr
):
    """The tile of sums at row `top` and column `left`."""
    row, column = top + tl.arange(0, BM), left + tl.arange(0, BN)
    mask = (row < bottom)[:, None] & (column < right)[None, :]
    pointers = c_ptr + row[:, None] * N + column[None, :]
    if HOW[4] == ADDED:
        tl.atomic_add(pointers, acc, mask=mask)
    else:
        if HOW[4] == SCALED:
            of_column = tl.load(s_ptr + column, mask=column < right, other=0.0)
            of_row = tl.load(s_ptr + row, mask=row < bottom, other=0.0)
            acc = acc.to(tl.float32) * of_column[None, :] * of_row[:, None]
        tl.store(pointers, acc.to(c_ptr.dtype.element_ty), mask=mask)


@sim.jit
def one_tile(
    a_ptr, b_ptr, c_ptr, s_ptr, M, N, K, top, bottom, left, right, start, stop,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, HOW: tl.constexpr,
):  # fmt: skip
    """The tile at row `top` and column `left`, as far as it belongs to this core (up to `bottom` and `right`): a sum over
    columns of a from `start` to `stop`."""
    acc = tl.zeros((BM, BN), tl.int32 if HOW[3] else tl.float32)
    for k in range(start, stop, BK):
        a = operand(a_ptr, top, k, bottom, stop, M, K, BM, BK, HOW[0], HOW[2])
        acc = tl.dot(a, operand(b_ptr, k, left, stop, right, K, N, BK, BN, HOW[1], HOW[2]), acc)
    put(acc, c_ptr, s_ptr, top, left, bottom, right, N, BM, BN, HOW)


@sim.jit
def shared_out(
    a_ptr, b_ptr, c_ptr, s_ptr, M, N, K, SM, SN, ACROSS,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, HOW: tl.constexpr,
):  # fmt: skip
    """Each core has one part of SM x SN of the result, ACROSS of them side by side, and goes through it row of tiles by row.

    Where the parts do not reach the last row, all cores go on to the rows below together.
    """
    pid, down = tl.program_id(0).to(tl.int64), tl.num_programs(0) // ACROSS * SM
    begin = pid % ACROSS * SN
    right = min(begin + SN, N)
    for below in range(0, M, down):
        first = below + pid // ACROSS * SM
        bottom = min(first + SM, M)
        for top in range(first, bottom, BM):
            for left in range(begin, right, BN):
                one_tile(a_ptr, b_ptr, c_ptr, s_ptr, M, N, K, top, bottom, left, right, 0, K, BM, BN, BK, HOW)


@sim.jit
def place_in_groups(t, lines, along, GROUP, BACK: tl.constexpr):
    """Line and place of tile t: groups of GROUP lines, place by place; BACK: every second group from the last place on."""
    group, inside = t // (GROUP * along), t % (GROUP * along)
    height = min(lines - group * GROUP, GROUP)
    place = inside // height
    if BACK:
        place += group % 2 * (along - 1 - 2 * place)
    return group * GROUP + inside % height, place


@sim.jit
def dealt_out(
    a_ptr, b_ptr, c_ptr, s_ptr, M, N, K, PART, GROUP,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, HOW: tl.constexpr,
    BY_ROWS: tl.constexpr = True, BACK: tl.constexpr = False,
):  # fmt: skip
    """Tiles are dealt to the cores in turn, in groups of GROUP tile rows (BY_ROWS) or tile columns (see `place_in_groups`);
    those of each PART of the sum after those of the one before, into a place of their own unless they are added up in
    memory."""
    down, wide = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for item in range(tl.program_id(0).to(tl.int64), down * wide * tl.cdiv(K, PART), tl.num_programs(0)):
        part, t = item // (down * wide), item % (down * wide)
        if BY_ROWS:
            row, column = place_in_groups(t, down, wide, GROUP, BACK)
        else:
            column, row = place_in_groups(t, wide, down, GROUP, BACK)
        top, left = row * BM, column * BN
        start = part * PART
        c = c_ptr if HOW[4] == ADDED else c_ptr + part * M * N
        stop = min(start + PART, K)
        one_tile(a_ptr, b_ptr, c, s_ptr, M, N, K, top, M, left, N, start, stop, BM, BN, BK, HOW)


@sim.jit
def kept_operand(a_ptr, b_ptr, top, left, k, stop, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                 OF_A: tl.constexpr, HOW: tl.constexpr):  # fmt: skip
    """A tile of a at row `top`, or one of b at column `left`."""
    if OF_A:
        return operand(a_ptr, top, k, M, stop, M, K, BM, BK, HOW[0], HOW[2])
    return operand(b_ptr, k, left, stop, N, K, N, BK, BN, HOW[1], HOW[2])


@sim.jit
def kept_in_l1(
    a_ptr, b_ptr, c_ptr, s_ptr, M, N, K, PART, STRETCHES,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, HOW: tl.constexpr,
    PIECES: tl.constexpr, KEEP_A: tl.constexpr,
):  # fmt: skip
    """A tile of one operand stays in L1 over a strip of tiles, in PIECES; the other comes tile by tile, one ahead.

    STRETCHES: strips of a line of tiles. Parts of the sum as in `dealt_out`.
    """
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    lines, along = (down, across) if KEEP_A else (across, down)
    wide = tl.cdiv(along, STRETCHES)
    for item in range(
        tl.program_id(0).to(tl.int64), lines * STRETCHES * tl.cdiv(K, PART), tl.num_programs(0)
    ):
        part, line, first = item // (lines * STRETCHES), item % lines, item // lines % STRETCHES * wide
        start = part * PART
        c = c_ptr if HOW[4] == ADDED else c_ptr + part * M * N
        stop = min(start + PART, K)
        top, left = line * BM, line * BN
        deep = [start + p * BK for p in tl.static_range(PIECES)]
        kept = [
            kept_operand(a_ptr, b_ptr, top, left, k, stop, M, N, K, BM, BN, BK, KEEP_A, HOW) for k in deep
        ]
        tiles = min(wide, along - first)
        for i in range(tiles):
            tile = first + (i + line) % tiles
            if KEEP_A:
                left = tile * BN
            else:
                top = tile * BM
            acc = tl.zeros((BM, BN), tl.int32 if HOW[3] else tl.float32)
            for _ in range(0, 1):  # once: the sum has one place in L0C
                other = [
                    kept_operand(a_ptr, b_ptr, top, left, k, stop, M, N, K, BM, BN, BK, not KEEP_A, HOW)
                    for k in deep[:1]
                ]
                for p in tl.static_range(PIECES):
                    if p + 1 < PIECES:
                        k = deep[p + 1]
                        other += [
                            kept_operand(
                                a_ptr, b_ptr, top, left, k, stop, M, N, K, BM, BN, BK, not KEEP_A, HOW
                            )
                        ]
                    acc = tl.dot(kept[p], other[p], acc) if KEEP_A else tl.dot(other[p], kept[p], acc)
            put(acc, c, s_ptr, top, left, M, N, N, BM, BN, HOW)


@sim.jit
def added_up(x_ptr, s_ptr, y_ptr, n, PARTS: tl.constexpr, BLOCK: tl.constexpr, SCALE: tl.constexpr):
    """Parts of a sum, n elements each, added up and put into the type of the result; SCALE: times a number for each."""
    for first in range(tl.program_id(0).to(tl.int64) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        total = tl.load(x_ptr + at, mask=at < n, other=0)
        for p in tl.static_range(1, PARTS):
            total += tl.load(x_ptr + p * n + at, mask=at < n, other=0)
        out = total.to(tl.float32)
        if SCALE:
            out = out * tl.load(s_ptr + at, mask=at < n, other=0.0)
        tl.store(y_ptr + at, out.to(y_ptr.dtype.element_ty), mask=at < n)


@sim.jit
def place_in_diagonals(t, lines, along, BLOCK: tl.constexpr):
    """Line and place of tile t: bands of BLOCK lines, each in blocks of BLOCK places, each diagonal by diagonal."""
    band, inside = t // (BLOCK * along), t % (BLOCK * along)
    height = min(lines - band * BLOCK, BLOCK)
    block, i = inside // (height * BLOCK), inside % (height * BLOCK)
    width = min(along - block * BLOCK, BLOCK)
    return band * BLOCK + i % height, block * BLOCK + (i // height + i % height) % width


@sim.jit
def many_products(
    a_ptr, b_ptr, c_ptr, M, N, K, GROUPS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, HOW: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """GROUPS products with weights of their own (K x N each), of M rows each; tiles are dealt to the cores in turn: of each
    product row by row, or in diagonals of blocks of BLOCK x BLOCK."""
    down, wide = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for t in range(tl.program_id(0).to(tl.int64), GROUPS * down * wide, tl.num_programs(0)):
        group, tile = t // (down * wide), t % (down * wide)
        a, b, c = a_ptr + group * M * K, b_ptr + group * K * N, c_ptr + group * M * N
        if BLOCK:
            row, column = place_in_diagonals(tile, down, wide, BLOCK)
        else:
            row, column = tile // wide, tile % wide
        top, left = row * BM, column * BN
        one_tile(a, b, c, c, M, N, K, top, M, left, N, 0, K, BM, BN, BK, HOW)
