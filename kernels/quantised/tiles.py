# mypy: disable-error-code="no-untyped-def"
"""Tile kernels of products of quantised numbers.

`product_tile` makes one tile of the result; `quantised_tiles` hands out those of one product, `grouped_tiles`
(grouped_tiles.py) those of several. Weights that are multiplied in floating point become so on the Vector cores and go
to the Cube by way of a workspace where the two are apart; sums of int8 leave L0C through the fixpipe, which multiplies
by their scales, or are scaled on the Vector cores.
"""

from __future__ import annotations

from ... import simulator as sim
from ...simulator import language as tl
from ...simulator.language.extra.cann import extension as al
from ..matmul.strips import operand_tile


@sim.jit
def row_of(ptr, cols, right, EVEN: tl.constexpr):
    """A row of something that each column has, as (1, columns)."""
    row = tl.load(ptr + cols) if EVEN else tl.load(ptr + cols, mask=cols < right, other=0.0)
    return row[None, :]


@sim.jit
def scales_of(s_ptr, cols, right, FORM: tl.constexpr):
    """Scales of these columns, or the one of all."""
    return tl.load(s_ptr) if FORM.scale == "number" else row_of(s_ptr, cols, right, FORM.even)


@sim.jit
def along(scales, BN: tl.constexpr, FORM: tl.constexpr):
    """Scales of columns as they lie beside a tile of weights; the one of all as it is."""
    return tl.reshape(scales, (BN, 1)) if FORM.transposed and FORM.scale != "number" else scales


@sim.jit
def stored_weights(w_ptr, k, column, stop, N, K, BK: tl.constexpr, BN: tl.constexpr, FORM: tl.constexpr):
    """A tile of weights as they lie in memory, (BK, BN) or transposed; those that the Vector cores scale as FLOAT16."""
    pairs: tl.constexpr = 2 if FORM.weight == "int4" else 1
    outer, inner, bottom, right, pitch = k, column, stop, N, N
    ROWS: tl.constexpr = BN if FORM.transposed else BK
    WIDE: tl.constexpr = (BK if FORM.transposed else BN) // pairs
    if FORM.transposed:
        outer, inner, bottom, right, pitch = column, k, N, stop, K
    rows, cols = outer + tl.arange(0, ROWS), inner // pairs + tl.arange(0, WIDE)
    w = operand_tile(w_ptr, rows, cols, bottom, tl.cdiv(right, pairs), pitch // pairs, FORM.even)
    if FORM.weight == "int4":
        return al.unpack_int4(w)
    return w.to(tl.float16) if FORM.where == "weights" else w


@sim.jit
def weight_tile(
    w_ptr, s_ptr, o_ptr, k, column, stop, N, K, BK: tl.constexpr, BN: tl.constexpr, FORM: tl.constexpr, TO: tl.constexpr
):  # fmt: skip
    """Weights from row k and that column on, as the Cube multiplies them: as they are, or (w + offset) * scale in TO.

    BFLOAT16 is computed in FP32, as the Vector unit does; FLOAT16 in its own format.
    """
    w = stored_weights(w_ptr, k, column, stop, N, K, BK, BN, FORM)
    if FORM.where == "weights":
        if tl.bfloat16 == TO:
            w = w.to(tl.float32)
        cols, group = column + tl.arange(0, BN), k // FORM.group * N if FORM.group else 0
        if FORM.offset:
            w += along(scales_of(o_ptr + group, cols, N, FORM).to(w.dtype), BN, FORM)
        w = (w * along(scales_of(s_ptr + group, cols, N, FORM).to(w.dtype), BN, FORM)).to(TO)
        al.multibuffer(w, 2)
    return tl.trans(w) if FORM.transposed else w


@sim.jit
def summed(
    acc, x_ptr, w_ptr, s_ptr, o_ptr, rows, below, column, start, stop, N, K,
    BK: tl.constexpr, BN: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """acc and the products of terms from `start` to `stop`."""
    for k in range(start, stop, BK):
        a = operand_tile(x_ptr, rows, k + tl.arange(0, BK), below, stop, K, FORM.even)
        b = weight_tile(w_ptr, s_ptr, o_ptr, k, column, stop, N, K, BK, BN, FORM, x_ptr.dtype.element_ty)
        acc = tl.dot(a, b, acc)
    return acc


@sim.jit
def summed_by_group(
    x_ptr, w_ptr, s_ptr, o_ptr, rows, below, column, start, stop, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """Sums of int8 that are scaled group by group on the Vector cores, and added there in FP32."""
    total = tl.zeros((BM, BN), tl.float32)
    cols = column + tl.arange(0, BN)
    for k in range(start, stop, FORM.group):
        acc = tl.zeros((BM, BN), tl.int32)
        acc = summed(
            acc, x_ptr, w_ptr, s_ptr, o_ptr, rows, below, column, k, k + FORM.group, N, K, BK, BN, FORM
        )
        total += acc.to(tl.float32) * scales_of(s_ptr + k // FORM.group * N, cols, N, FORM).to(tl.float32)
    return total


@sim.jit
def dequantised(acc, s_ptr, t_ptr, b_ptr, rows, cols, below, N, FORM: tl.constexpr):
    """Sums as FP32, times the scales of their columns (unless their groups had some) and of their rows, and a bias."""
    out = acc.to(tl.float32)
    if FORM.scale != "none" and not FORM.group and FORM.where == "vector":
        out = out * scales_of(s_ptr, cols, N, FORM).to(tl.float32)
    if FORM.tokens:
        token = tl.load(t_ptr + rows) if FORM.even else tl.load(t_ptr + rows, mask=rows < below, other=0.0)
        out = out * token[:, None]
    if FORM.bias == "after":
        out = out + row_of(b_ptr, cols, N, FORM.even).to(tl.float32)
    return out


@sim.jit
def stored(out_ptr, value, rows, cols, below, N, FORM: tl.constexpr):
    """A tile of the result, in its type."""
    at = out_ptr + rows[:, None] * N + cols[None, :]
    value = value.to(out_ptr.dtype.element_ty)
    if FORM.even:
        tl.store(at, value)
    else:
        tl.store(at, value, mask=(rows < below)[:, None] & (cols < N)[None, :])


@sim.jit
def product_tile(
    x_ptr, w_ptr, s_ptr, o_ptr, t_ptr, b_ptr, out_ptr, first, below, column, start, stop, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """The tile of the result from row `first` and that column on: rows up to `below`, terms from `start` to `stop`."""
    rows, cols = first + tl.arange(0, BM), column + tl.arange(0, BN)
    if FORM.x8 and FORM.group:
        acc = summed_by_group(
            x_ptr, w_ptr, s_ptr, o_ptr, rows, below, column, start, stop, N, K, BM, BN, BK, FORM
        )
    else:
        kind: tl.constexpr = tl.int32 if FORM.x8 else tl.float32
        acc = tl.zeros((BM, BN), kind)
        if FORM.bias == "start":
            acc = tl.broadcast_to(row_of(b_ptr, cols, N, FORM.even).to(kind), (BM, BN))
        acc = summed(acc, x_ptr, w_ptr, s_ptr, o_ptr, rows, below, column, start, stop, N, K, BK, BN, FORM)
    if FORM.where == "fixpipe":
        scale = (
            tl.load(s_ptr) if FORM.scale == "number" else tl.reshape(scales_of(s_ptr, cols, N, FORM), (BN,))
        )
        stored(out_ptr, al.fixpipe_scaled(acc, scale, out_ptr.dtype.element_ty), rows, cols, below, N, FORM)
    elif FORM.where == "vector":
        stored(
            out_ptr,
            dequantised(acc, s_ptr, t_ptr, b_ptr, rows, cols, below, N, FORM),
            rows,
            cols,
            below,
            N,
            FORM,
        )
    else:
        stored(out_ptr, acc, rows, cols, below, N, FORM)


@sim.jit
def place_of(tile, down, across, band):
    """(row, column) of a tile of down x across, of which `band` rows are taken together, column by column."""
    top, inside = tile // (band * across) * band, tile % (band * across)
    height = tl.minimum(down - top, band)
    return top + inside % height, inside // height


@sim.jit
def quantised_tiles(
    x_ptr, w_ptr, s_ptr, o_ptr, t_ptr, b_ptr, out_ptr, M, N, K, items, part, band,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """out (parts, M, N) of x (M, K) and weight (K, N), sums of `part` terms; items: tiles of all parts, of which `band` rows
    are taken together."""
    down, across = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        split, tile = item // (down * across), item % (down * across)
        row, column = place_of(tile, down, across, band)
        start = split * part
        product_tile(
            x_ptr, w_ptr, s_ptr, o_ptr, t_ptr, b_ptr, out_ptr + split * M * N, row * BM, M, column * BN,
            start, tl.minimum(K, start + part), N, K, BM, BN, BK, FORM,
        )  # fmt: skip


@sim.jit
def finished_tiles(
    parts_ptr, s_ptr, t_ptr, b_ptr, out_ptr, M, N, items,
    PARTS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """out (M, N) of PARTS parts of its sums, added in their order, with scales and bias; programs take tiles in turn."""
    across = tl.cdiv(N, COLS)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        rows, cols = item // across * ROWS + tl.arange(0, ROWS), item % across * COLS + tl.arange(0, COLS)
        acc = operand_tile(parts_ptr, rows, cols, M, N, N, FORM.even)
        for p in tl.static_range(1, PARTS):
            acc += operand_tile(parts_ptr + p * M * N, rows, cols, M, N, N, FORM.even)
        if FORM.bias == "start":
            acc += row_of(b_ptr, cols, N, FORM.even).to(acc.dtype)
        stored(out_ptr, dequantised(acc, s_ptr, t_ptr, b_ptr, rows, cols, M, N, FORM), rows, cols, M, N, FORM)


@sim.jit
def unpacked_tiles(
    w_ptr, s_ptr, o_ptr, out_ptr, N, K, items, BK: tl.constexpr, BN: tl.constexpr, FORM: tl.constexpr
):  # fmt: skip
    """All weights in the type of out and the order of memory, scaled; programs take tiles in turn."""
    across = tl.cdiv(N, BN)
    for item in range(tl.program_id(0), items, tl.num_programs(0)):
        k, column = item // across * BK, item % across * BN
        w = weight_tile(w_ptr, s_ptr, o_ptr, k, column, K, N, K, BK, BN, FORM, out_ptr.dtype.element_ty)
        if FORM.transposed:
            stored(out_ptr, tl.trans(w), column + tl.arange(0, BN), k + tl.arange(0, BK), N, K, FORM)
        else:
            stored(out_ptr, w, k + tl.arange(0, BK), column + tl.arange(0, BN), K, N, FORM)
