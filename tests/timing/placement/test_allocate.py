"""Buffers: which bytes a kernel needs, worked out by hand, and what an overflow says."""

import pickle

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import BufferOverflowError

pytestmark = pytest.mark.usefixtures("by_hand")


@sim.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


@sim.jit
def widen(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    wide = x.to(tl.float32)
    square = wide * wide
    both = square + wide
    tl.store(out_ptr + offsets, both.to(tl.float16))


@sim.jit
def accumulate(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + start + tl.arange(0, BLOCK))
        total = total + x
    tl.store(out_ptr + tl.arange(0, BLOCK), total)


@sim.jit
def rows(x_ptr, out_ptr, ROWS: tl.constexpr, COLS: tl.constexpr):
    offsets = tl.arange(0, ROWS)[:, None] * COLS + tl.arange(0, COLS)[None, :]
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * 2.0)


def ub(kernel, *args, overrides=None, multibuffer=2, **kwargs):
    with sim.device("ascend910b3", overrides=overrides, multibuffer=multibuffer):
        return kernel.time((1,), *args, **kwargs).buffers["UB"]


def half(n):
    return sim.shape(n, "float16")


def single(n):
    return sim.shape(n, "float32")


def test_a_copy_in_a_loop_needs_its_block_once_per_copy():
    # 48 000 float32 twice are 3 072 000 bits: the figure Triton-Ascend users are given for this block
    with pytest.raises(sim.RunError, match=r"requires 3072000 bits while 1572864 bits available"):
        ub(copy, single(480_000), single(480_000), 480_000, BLOCK=48_000)
    assert ub(copy, single(48_000), single(48_000), 48_000, multibuffer=1, BLOCK=48_000).peak_bytes == 192_000


def test_a_value_lives_from_its_definition_to_its_last_use():
    # at the peak: wide and square, float32 (x is dead; square + wide takes over square's place)
    buffer = ub(widen, half(1024), half(1024), BLOCK=1024)
    assert buffer.peak_bytes == 2 * 4096
    assert {v.name for v in buffer.peak} <= {"wide", "square", "both"}


def test_a_carried_value_has_one_buffer_and_a_load_in_the_loop_two():
    buffer = ub(accumulate, single(8192), single(1024), 8192, BLOCK=1024)
    assert buffer.peak_bytes == 4096 + 2 * 4096
    assert {(v.name, v.copies) for v in buffer.peak} == {("total", 1), ("x", 2)}
    assert ub(accumulate, single(8192), single(1024), 8192, BLOCK=1024, multibuffer=3).peak_bytes == 4 * 4096


def test_rows_are_padded_to_a_block_of_32_bytes():
    # 5 rows of 17 float16 are 34 bytes each, 64 in UB; x * 2 takes over the loaded tile's place
    assert ub(rows, half(100), half(100), ROWS=5, COLS=17).peak_bytes == 5 * 64


def test_the_ledger_never_says_more_than_the_peak():
    buffer = ub(accumulate, single(8192), single(1024), 8192, BLOCK=1024)
    assert max(size for _, size in buffer.steps) <= buffer.peak_bytes <= buffer.capacity_bytes


def test_overflow_names_both_numbers_the_culprits_and_the_largest_block_that_fits():
    with pytest.raises(sim.RunError) as e:
        ub(accumulate, single(10**6), single(10**6), 10**6, BLOCK=20_000)
    text = str(e.value)
    assert "accumulate on ascend910b3: ub overflow" in text
    assert "requires 1920000 bits while 1572864 bits available (240000 against 196608 bytes)" in text
    assert "160000 B  x [20000] fp32 x 2 copies  line" in text
    assert "80000 B  total [20000] fp32  line" in text
    assert "BLOCK = 15625 (now 20000)" in text  # nothing is masked, so it divides 1 000 000 as 20 000 does
    assert "multibuffer off (then this size fits)" in text
    ub(accumulate, single(10**6), single(10**6), 10**6, BLOCK=15_625)  # the advice holds
    n = 64 * 16384
    ub(accumulate, single(n), single(n), n, BLOCK=16384)
    with pytest.raises(sim.RunError, match="ub overflow"):
        ub(accumulate, single(n), single(n), n, BLOCK=16385)


def test_an_overflow_is_of_the_public_class_and_travels_with_its_advice():
    with pytest.raises(BufferOverflowError) as e:
        ub(accumulate, single(480_000), single(48_000), 480_000, BLOCK=48_000)
    assert type(e.value) is BufferOverflowError
    other = pickle.loads(pickle.dumps(e.value))
    assert (str(other), other.need_bytes) == (str(e.value), e.value.need_bytes)
    assert str(other).startswith(e.value.words)


@sim.jit
def chosen(x_ptr, y_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    keep = tl.load(x_ptr + tl.arange(0, M))[:, None] >= tl.load(y_ptr + tl.arange(0, N))[None, :]
    tl.store(out_ptr + at, tl.where(keep, tl.load(out_ptr + at), 0.0))


def test_scratch_is_named_by_what_it_holds_and_shows_no_shape_that_is_not_its_own():
    """A mask of 64 x 128 bits takes 1 KiB; its operands as whole tiles, of a buffer of 32 KiB, are an expansion."""
    with sim.device("ascend910b3"):
        page = str(chosen.time((1,), single(64), single(128), single((64, 128)), M=64, N=128))
    assert "expansion of select" in page
    with sim.device("ascend910b3", compiler="triton-ascend"):
        run = chosen.time((1,), single(64), single(128), single((64, 128)), M=64, N=128)
    (large,) = (v for v in run.buffers["UB"].peak if v.name == "keep")
    assert (large.bytes, large.shape, large.dtype) == (32 * 1024, (), "")


def test_an_overflow_tells_the_most_copies_that_fit():
    """A sum of 40 000 bytes and tiles of as much: of five, one to three in turn fit in 192 KiB."""
    n = 10_000
    with pytest.raises(sim.RunError, match=r"multibuffer 3 \(then this size fits\)"):
        ub(accumulate, single(8 * n), single(n), 8 * n, multibuffer=5, BLOCK=n)
    assert ub(accumulate, single(8 * n), single(n), 8 * n, multibuffer=3, BLOCK=n).peak_bytes == 4 * 4 * n


def test_a_smaller_ub_is_a_smaller_limit():
    with pytest.raises(sim.RunError, match=r"\(49152 against 32768 bytes\)"):
        ub(accumulate, single(8192), single(4096), 8192, BLOCK=4096, overrides={"buffers.ub": 32768})


def test_a_kernel_that_does_not_fit_writes_nothing():
    import numpy as np

    x, out = np.ones(40_000, np.float32), np.zeros(40_000, np.float32)
    with sim.device("ascend910b3"), pytest.raises(sim.RunError, match="ub overflow"):
        accumulate[(1,)](x, out, 40_000, BLOCK=40_000)
    assert not out.any()


# -- the tight plan ----------------------------------------------------------------------------------------------------


@sim.jit
def softmax_backward(y_ptr, dy_ptr, dx_ptr, n, COLS: tl.constexpr):
    """Alive at once: y, dy and their product, then y, dy and dx."""
    cols = tl.arange(0, COLS)
    for row in range(tl.program_id(0), n, tl.num_programs(0)):
        y = tl.load(y_ptr + row * COLS + cols)
        dy = tl.load(dy_ptr + row * COLS + cols)
        dot = tl.sum(y * dy)
        tl.store(dx_ptr + row * COLS + cols, y * (dy - dot))


def rows_of(n, cols):
    return sim.shape((n, cols), "float32")


def test_what_does_not_fit_with_a_buffer_for_everything_may_fit_with_shared_ones():
    """Seven buffers of 24 KiB are 168, of 32 KiB 224: with 32 KiB the tile that is stored takes a loaded one's place."""
    wide, narrow = (
        softmax_backward.time((4,), *[rows_of(64, c)] * 3, 64, COLS=c).buffers["UB"] for c in (8192, 6144)
    )
    assert narrow.peak_bytes >= 7 * 6144 * 4
    assert wide.peak_bytes == 5 * 8192 * 4 < 7 * 8192 * 4 > wide.capacity_bytes
    with pytest.raises(sim.RunError, match="ub overflow"):
        softmax_backward.time((4,), *[rows_of(64, 12288)] * 3, 64, COLS=12288)


def test_sharing_costs_time_and_no_value():
    import numpy as np

    generator = np.random.default_rng(0)
    y, dy = (generator.standard_normal((64, 8192)).astype(np.float32) for _ in "ab")
    dx = np.zeros_like(y)
    softmax_backward[(4,)](y, dy, dx, 64, COLS=8192)
    exact = y * (dy - (y.astype(np.float64) * dy).sum(1, keepdims=True))
    assert np.abs(dx - exact).max() < 1e-4 * np.abs(exact).max()
    shared = softmax_backward.time((4,), *[rows_of(64, 8192)] * 3, 64, COLS=8192).cycles
    with sim.device(overrides={"buffers.ub": 2**20}):
        apart = softmax_backward.time((4,), *[rows_of(64, 8192)] * 3, 64, COLS=8192).cycles
    assert apart <= shared < 2 * apart


@sim.jit
def two_operands(q, k, v, out, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Attention's shape of work: two tiles of `N` by `D` are loaded in each iteration, and both go to L1."""
    i, j, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    queries = tl.load(q + i[:, None] * D + d[None, :])
    acc = tl.zeros([M, D], tl.float32)
    for iteration in range(n):
        at = (iteration * N + j)[:, None] * D + d[None, :]
        scores = tl.dot(queries, tl.trans(tl.load(k + at)))
        acc = tl.dot(scores.to(tl.float16), tl.load(v + at), acc)
    tl.store(out + i[:, None] * D + d[None, :], acc)


@pytest.mark.parametrize(("n", "copies"), [(128, 2), (256, 1)])
def test_a_kernel_with_products_does_with_one_copy_in_l1_where_two_do_not_fit(n, copies):
    """k and v of 256 x 256 fp16 are 128 KiB each: 512 KiB in two copies, all that L1 has, and the other operands come on
    top."""
    shape = sim.shape((2 * n, 256), "float16")
    rows = sim.shape((32, 256), "float16")
    run = two_operands.time((1,), rows, shape, shape, sim.shape((32, 256), "float32"), 2, M=32, N=n, D=256)
    alive = {v.name: v for v in run.buffers["L1"].peak if v.bytes == n * 256 * 2}
    assert {v.copies for v in alive.values()} == {copies}
    assert any("tiles of L1 have one copy" in note for note in run.notes) == (copies == 1)
    assert run.buffers["L1"].peak_bytes <= run.buffers["L1"].capacity_bytes


@pytest.mark.parametrize(("asked", "given"), [(1, 1), (2, 2), (3, 3), (4, 3), (8, 3)])
def test_of_copies_in_l1_that_do_not_fit_the_most_that_do_are_given(asked, given):
    """k and v of 160 x 256 fp16 are 80 KiB each: 480 KiB in three copies, and four are more than L1 has."""
    n = 160
    shape, rows = sim.shape((8 * n, 256), "float16"), sim.shape((16, 256), "float16")
    out = sim.shape((16, 256), "float32")
    with sim.device(multibuffer=asked):
        run = two_operands.time((1,), rows, shape, shape, out, 8, M=16, N=n, D=256)
    alive = [v for v in run.buffers["L1"].peak if v.bytes == n * 256 * 2]
    assert {v.copies for v in alive} == {given}
    said = [note for note in run.notes if note.startswith("tiles of L1")]
    need = 4 * 2 * 81920 + (run.buffers["L1"].peak_bytes - 3 * 2 * 81920)
    words = f"tiles of L1 have 3 copies, not the {asked} asked for: 4 take {need} of 524032 bytes"
    assert [note.startswith(words) for note in said] == ([] if asked == given else [True]), said


@sim.jit
def matrix(a_ptr, b_ptr, out_ptr, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, q = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        a = tl.load(a_ptr + i[:, None] * k + (start + q)[None, :])
        acc = tl.dot(a, tl.load(b_ptr + (start + q)[:, None] * N + j[None, :]), acc)
    tl.store(out_ptr + i[:, None] * N + j[None, :], acc)


def test_a_request_for_more_copies_than_fit_is_as_fast_as_the_most_that_fit():
    """Tiles of 64 and 128 KiB: two copies of both fit in 512 KiB."""

    def cycles(copies):
        with sim.device(multibuffer=copies):
            return matrix.time(
                (1,), half((128, 2048)), half((2048, 256)), single((128, 256)), 2048, M=128, N=256, K=256
            ).cycles

    assert cycles(1) > cycles(2) == cycles(3) == cycles(8)


def test_what_cannot_fit_even_once_is_told_without_the_copies():
    shape, rows = sim.shape((4096, 256), "float16"), sim.shape((16, 256), "float16")
    with sim.device(multibuffer=4), pytest.raises(sim.RunError, match="l1 overflow") as e:
        two_operands.time((1,), rows, shape, shape, sim.shape((16, 256), "float32"), 2, M=16, N=2048, D=256)
    assert "copies" not in str(e.value)


# -- shared bytes ------------------------------------------------------------------------------------------------------


@sim.jit
def one_after_the_other(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Two loops whose tiles are never alive together."""
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x_ptr + start + tl.arange(0, BLOCK))
    for start in range(0, n, BLOCK):
        total *= tl.load(y_ptr + start + tl.arange(0, BLOCK))
    tl.store(out_ptr + tl.arange(0, BLOCK), total)


def test_buffers_share_bytes_only_where_they_have_to():
    """The second loop's loads need not wait for the first one's sums if UB has room for both."""
    block = 4096
    x, out = single(4 * block), single(block)
    roomy = ub(one_after_the_other, x, x, out, 4 * block, BLOCK=block)
    assert (roomy.peak_bytes, roomy.placed_bytes) == (3 * 4 * block, 5 * 4 * block)

    def cycles(size):
        with sim.device(overrides={"buffers.ub": size}):
            return one_after_the_other.time((1,), x, x, out, 4 * block, BLOCK=block).cycles

    assert cycles(5 * 4 * block) == cycles(196608) < cycles(3 * 4 * block)
