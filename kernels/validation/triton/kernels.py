# mypy: disable-error-code="no-untyped-def"
"""Triton kernels whose times are published, written anew from their descriptions, as Triton-Ascend compiles them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.errors import UsageError
from ....simulator.record.run import Run
from ..registry import NO_TILING, Prediction, predicts
from ..settings import (
    BYTES,
    Choice,
    Settings,
    fastest,
    measured_time,
    note_of,
    roofline_us,
    sizes_of,
    tensor,
)
from ..table import Row
from .attention import attention_time
from .rows import block_of, number_of, types_of

STREAMS = 4  # of the mHC kernels
SLOT_BLOCK = (
    1024  # tokens of a program: what vLLM launches this kernel with (TRITON_BLOCK_SIZE, vllm/v1/worker)
)


@sim.jit
def weighted_sum(x_ptr, w_ptr, out_ptr, M, D, BM: tl.constexpr, BD: tl.constexpr):
    """out[m, d] = sum over four streams n of x[m, n, d] w[m, n]."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    n = tl.arange(0, 4)
    w = tl.load(w_ptr + m[:, None] * 4 + n[None, :], mask=m[:, None] < M, other=0.0)
    at = m[:, None, None] * (4 * D) + n[None, :, None] * D + d[None, None, :]
    x = tl.load(x_ptr + at, mask=(m[:, None, None] < M) & (d[None, None, :] < D), other=0.0).to(tl.float32)
    total = tl.sum(x * w[:, :, None], axis=1)
    mask = (m[:, None] < M) & (d[None, :] < D)
    tl.store(out_ptr + m[:, None] * D + d[None, :], total.to(out_ptr.dtype.element_ty), mask=mask)


@sim.jit
def product_and_squares(x_ptr, w_ptr, out_ptr, M, K, BM: tl.constexpr, BK: tl.constexpr, N: tl.constexpr):
    """The rows of x, in fp32, times a narrow weight, over the root of their mean square, then a sigmoid."""
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, N)
    total = tl.zeros((BM, N), dtype=tl.float32)
    squares = tl.zeros((BM,), dtype=tl.float32)
    for first in range(0, K, BK):
        k = first + tl.arange(0, BK)
        mask = (m < M)[:, None] & (k < K)[None, :]
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=mask, other=0.0).to(tl.float32)
        squares += tl.sum(x * x, axis=1)
        w = tl.load(w_ptr + k[:, None] * N + n[None, :], mask=(k < K)[:, None], other=0.0)
        total = tl.dot(x, w, total)
    inverse = tl.rsqrt(squares / K + 1e-6)
    result = tl.sigmoid(total * inverse[:, None] * 0.5)
    tl.store(out_ptr + m[:, None] * N + n[None, :], result, mask=(m < M)[:, None])


@sim.jit
def stream(x_ptr, t, d, D, STREAM: tl.constexpr, mask):
    """One of four streams, in fp32."""
    return tl.load(x_ptr + (t[:, None] * 4 + STREAM) * D + d[None, :], mask=mask, other=0.0).to(tl.float32)


@sim.jit
def weights(res_ptr, post_ptr, t, TO: tl.constexpr, ok):
    """Of one stream of the result: those of four streams and of h."""
    at = res_ptr + t * 16 + TO
    a, b = tl.load(at, mask=ok, other=0.0), tl.load(at + 4, mask=ok, other=0.0)
    c, e = tl.load(at + 8, mask=ok, other=0.0), tl.load(at + 12, mask=ok, other=0.0)
    return (
        a[:, None],
        b[:, None],
        c[:, None],
        e[:, None],
        tl.load(post_ptr + t * 4 + TO, mask=ok, other=0.0)[:, None],
    )


@sim.jit
def mixed(out_ptr, a, b, c, e, h, w, t, d, D, TO: tl.constexpr, mask):
    """One stream of the result."""
    total = h * w[4] + a * w[0] + b * w[1] + c * w[2] + e * w[3]
    at = (t[:, None] * 4 + TO) * D + d[None, :]
    tl.store(out_ptr + at, total.to(out_ptr.dtype.element_ty), mask=mask)


@sim.jit
def mixed_streams(
    x_ptr, res_ptr, post_ptr, h_ptr, out_ptr, T, D, BT: tl.constexpr, BD: tl.constexpr
):  # fmt: skip
    """out[t, i, :] = sum over four streams j of res[t, j, i] x[t, j, :], and post[t, i] h[t, :]."""
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    ok = t < T
    first, second = weights(res_ptr, post_ptr, t, 0, ok), weights(res_ptr, post_ptr, t, 1, ok)
    third, fourth = weights(res_ptr, post_ptr, t, 2, ok), weights(res_ptr, post_ptr, t, 3, ok)
    for left in range(0, D, BD):
        d = left + tl.arange(0, BD)
        mask = ok[:, None] & (d < D)[None, :]
        h = tl.load(h_ptr + t[:, None] * D + d[None, :], mask=mask, other=0.0).to(tl.float32)
        a, b = stream(x_ptr, t, d, D, 0, mask), stream(x_ptr, t, d, D, 1, mask)
        c, e = stream(x_ptr, t, d, D, 2, mask), stream(x_ptr, t, d, D, 3, mask)
        mixed(out_ptr, a, b, c, e, h, first, t, d, D, 0, mask)
        mixed(out_ptr, a, b, c, e, h, second, t, d, D, 1, mask)
        mixed(out_ptr, a, b, c, e, h, third, t, d, D, 2, mask)
        mixed(out_ptr, a, b, c, e, h, fourth, t, d, D, 3, mask)


@sim.jit
def slots_of_tokens(table_ptr, out_ptr, pages, tokens, PAGE: tl.constexpr, BLOCK: tl.constexpr):
    """Where each token of a request lies in a paged cache: a look-up of its page."""
    request = tl.program_id(0)
    token = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    page = tl.load(table_ptr + request * pages + token // PAGE, mask=token < tokens, other=0)
    tl.store(out_ptr + request * tokens + token, page * PAGE + token % PAGE, mask=token < tokens)


@sim.jit
def gathered(x_ptr, out_ptr, M, N, outer, inner, BM: tl.constexpr, BN: tl.constexpr):
    """Elements that lie `inner` apart, to neighbours."""
    at = (tl.program_id(0) * BM, tl.program_id(1) * BN)
    source = tl.make_block_ptr(
        base=x_ptr, shape=(M, N), strides=(outer, inner), offsets=at, block_shape=(BM, BN), order=(1, 0)
    )
    target = tl.make_block_ptr(
        base=out_ptr, shape=(M, N), strides=(N, 1), offsets=at, block_shape=(BM, BN), order=(1, 0)
    )
    tl.store(target, tl.load(source) * 1.001 + 0.125)


@sim.jit
def strided_read(
    x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, outer, inner, BM: tl.constexpr, BN: tl.constexpr
):
    """With strides of the launch."""
    gathered(x_ptr, out_ptr, M, N, outer, inner, BM, BN)


@sim.jit
def strided_read_of_constants(
    x_ptr, out_ptr, M, N, OUTER: tl.constexpr, INNER: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """With strides that the compiler knows."""
    gathered(x_ptr, out_ptr, M, N, OUTER, INNER, BM, BN)


@sim.jit
def rows_by_row(
    x_ptr, y_ptr, out_ptr, rows, columns, CORES: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    """Each row divided by one row, element by element."""
    share = (rows + CORES - 1) // CORES
    start = tl.program_id(0) * share
    end = tl.minimum(start + share, rows)
    for top in range(start, end, BM):
        m = top + tl.arange(0, BM)
        for left in range(0, columns, BN):
            n = left + tl.arange(0, BN)
            y = tl.load(y_ptr + n, mask=n < columns, other=1.0)
            at = m[:, None] * columns + n[None, :]
            mask = (m < end)[:, None] & (n < columns)[None, :]
            x = tl.load(x_ptr + at, mask=mask, other=0.0)
            tl.store(out_ptr + at, x / y[None, :], mask=mask)


def _best(
    row: Row,
    choices: Iterable[Choice],
    work: Callable[[Choice], Run],
    read: float,
    written: float,
    flops: float = 0.0,
) -> Prediction:
    """The one choice that a row states, or the fastest of some. read, written: bytes."""
    choices = list(choices)
    run, choice, count = fastest(row, choices, work, compiler="triton-ascend")
    note = note_of(count, f"blocks of {_text(choice)}") if len(choices) > 1 else ""
    return Prediction(measured_time(row, run), roofline_us(row, (read, written), flops / 2, "fp32"), note)


def _text(choice: object) -> str:
    return "x".join(map(str, choice)) if isinstance(choice, tuple) else str(choice)


@predicts("triton weighted sum")
def _weighted_sum(row: Row) -> Prediction:
    """shapes: rows x columns of the result; tiling: block=rows x columns of a program."""
    (m, d), (x, w, y) = sizes_of(row, "rows x columns"), types_of(row, 2)
    tensors = tensor(x, m, STREAMS, d), tensor(w, m, STREAMS), tensor(y, m, d)

    def work(block: tuple[int, ...]) -> Run:
        grid = (-(-m // block[0]), -(-d // block[1]))
        run: Run = weighted_sum.time(grid, *tensors, m, d, BM=block[0], BD=block[1])
        return run

    return _best(row, block_of(row), work, m * d * STREAMS * BYTES[x], m * d * BYTES[y])


@predicts("triton product and squares")
def _product_and_squares(row: Row) -> Prediction:
    """shapes: rows x columns of the result x depth; tiling: block=rows x depth of a tile."""
    (m, n, k), (x, w, y) = sizes_of(row, "rows x columns x depth"), types_of(row, 2)
    tensors = tensor(x, m, k), tensor(w, k, n), tensor(y, m, n)

    def work(block: tuple[int, ...]) -> Run:
        run: Run = product_and_squares.time(
            (-(-m // block[0]),), *tensors, m, k, BM=block[0], BK=block[1], N=n
        )
        return run

    return _best(
        row, block_of(row), work, m * k * BYTES[x] + k * n * BYTES[w], m * n * BYTES[y], 2.0 * m * n * k
    )


@predicts("triton mixed streams")
def _mixed_streams(row: Row) -> Prediction:
    """shapes: tokens x width of one of four streams; tiling: block=tokens x width, if it is published."""
    (t, d), (x, _) = sizes_of(row, "tokens x width"), types_of(row, 1)
    streams, weights = tensor(x, t, STREAMS, d), (tensor("fp32", t, 16), tensor("fp32", t, 4))

    def work(block: tuple[int, ...]) -> Run:
        tensors = streams, *weights, tensor(x, t, d), streams
        run: Run = mixed_streams.time((-(-t // block[0]),), *tensors, t, d, BT=block[0], BD=block[1])
        return run

    tried, one = block_of(row, (2, 1024), (4, 512), (8, 256), (16, 128)), t * d * BYTES[x]
    return _best(row, tried, work, 5.0 * one, 4.0 * one)


@predicts("triton slot mapping")
def _slot_mapping(row: Row) -> Prediction:
    """shapes: requests x tokens; tiling: page=tokens of one, block=tokens of a program, else as many as vLLM has."""
    requests, tokens = sizes_of(row, "requests x tokens")
    page, given = number_of(row, "page"), Settings(row).text("block")
    block = number_of(row, "block") if given else SLOT_BLOCK
    pages = -(-tokens // page)
    tensors = tensor("int32", requests, pages), tensor("int32", requests, tokens)

    def work(_: None) -> Run:
        grid = (requests, -(-tokens // block))
        run: Run = slots_of_tokens.time(grid, *tensors, pages, tokens, PAGE=page, BLOCK=block)
        return run

    run, _, _ = fastest(row, (None,), work, compiler="triton-ascend")
    note = "" if given else f"{NO_TILING}: blocks of {block}, as vLLM has"
    return Prediction(
        measured_time(row, run), roofline_us(row, (4.0 * requests * pages, 4.0 * requests * tokens)), note
    )


@predicts("triton strided read")
def _strided_read(row: Row) -> Prediction:
    """shapes: rows x columns; tiling: block=rows x columns, step=elements from one to the next, strides=constant (the
    compiler knows them) or launch."""
    (m, n), (kind, _) = sizes_of(row, "rows x columns"), types_of(row, 1)
    step, constant = number_of(row, "step"), Settings(row).word("strides", "launch", "constant") == "constant"
    x, y = tensor(kind, m * n * step), tensor(kind, m, n)

    def work(block: tuple[int, ...]) -> Run:
        grid, tile = (-(-m // block[0]), -(-n // block[1])), {"BM": block[0], "BN": block[1]}
        if constant:
            run: Run = strided_read_of_constants.time(grid, x, y, m, n, OUTER=n * step, INNER=step, **tile)
            return run
        run = strided_read.time(grid, x, y, m, n, n * step, step, **tile)
        return run

    return _best(row, block_of(row), work, m * n * BYTES[kind], m * n * BYTES[kind])


@predicts("triton div rows")
def _rows_by_row(row: Row) -> Prediction:
    """shapes: rows x columns; tiling: programs, block=rows x columns of a tile."""
    (m, n), (kind, _) = sizes_of(row, "rows x columns"), types_of(row, 1)
    x, programs = tensor(kind, m, n), number_of(row, "programs")

    def work(block: tuple[int, ...]) -> Run:
        run: Run = rows_by_row.time(
            (programs,), x, tensor(kind, n), x, m, n, CORES=programs, BM=block[0], BN=block[1]
        )
        return run

    return _best(row, block_of(row), work, m * n * BYTES[kind], m * n * BYTES[kind])


@predicts("triton attention")
def _attention(row: Row) -> Prediction:
    """shapes: heads x length x D; tiling: cores (of the persistent grid), block=queries x keys, causal=1, maximum=running or
    none. One head a core is simulated: heads follow each other there.
    """
    heads, length, d = sizes_of(row, "heads x length x D")
    (kind, _), (bm, bn) = types_of(row, 1), block_of(row)[0]
    if length % bm or length % bn:
        raise UsageError(f"{row.id}: blocks of {bm} queries and {bn} keys must divide the length {length}")
    scores = heads * length * (length + 1) // 2 if Settings(row).number("causal", 0) else heads * length**2
    time = attention_time(row, number_of(row, "cores"))
    one = prod((heads, length, d)) * BYTES[kind]
    return Prediction(time, roofline_us(row, (3.0 * one, one), 2.0 * scores * d, kind))
