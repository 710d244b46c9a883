"""What users of boards reported, checked here: buffer sizes to the bit, and which of two tiles wins.

Sources are the threads named with each test (issue reports, so the figures are their authors').
"""

import math
import re

import numpy as np
import pytest

from ascendtile import simulator as sim
from ascendtile.simulator import language as tl

UB_BITS = 1_572_864


@sim.jit
def copy_blocks(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        i = block * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


@sim.jit
def masked_sampling(p_ptr, q_ptr, u_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        i = block * BLOCK + tl.arange(0, BLOCK)
        p = tl.load(p_ptr + i * stride, mask=i < n)
        q = tl.load(q_ptr + i * stride, mask=i < n)
        u = tl.load(u_ptr + i * stride, mask=i < n)
        tl.store(out_ptr + block, tl.sum(p * q + u))


@sim.jit
def rope_neox(
    x_ptr,
    cos_ptr,
    sin_ptr,
    tokens,
    HEADS: tl.constexpr,
    DIM: tl.constexpr,
    TILE: tl.constexpr,
    PADDED: tl.constexpr,
):
    """Rotates the two halves of every head of x (tokens, HEADS, DIM), TILE heads at a time.

    PADDED: DIM // 2 as a power of two, which a range has in Triton.
    """
    HALF: tl.constexpr = DIM // 2
    i = tl.arange(0, PADDED)
    there = i < HALF
    for token in range(tl.program_id(0), tokens, tl.num_programs(0)):
        cos = tl.load(cos_ptr + token * HALF + i, mask=there, other=0).to(tl.float32)
        sin = tl.load(sin_ptr + token * HALF + i, mask=there, other=0).to(tl.float32)
        for first in range(0, HEADS, TILE):
            head = first + tl.arange(0, TILE)
            at = (token * HEADS + head)[:, None] * DIM + i[None, :]
            inside = (head < HEADS)[:, None] & there[None, :]
            left = tl.load(x_ptr + at, mask=inside, other=0).to(tl.float32)
            right = tl.load(x_ptr + at + HALF, mask=inside, other=0).to(tl.float32)
            tl.store(x_ptr + at, (left * cos - right * sin).to(tl.bfloat16), mask=inside)
            tl.store(x_ptr + at + HALF, (right * cos + left * sin).to(tl.bfloat16), mask=inside)


@sim.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=inside) + tl.load(y_ptr + i, mask=inside), mask=inside)


@sim.jit
def count_matches(ids_ptr, out_ptr, expert, n, BLOCK: tl.constexpr, NARROW: tl.constexpr):
    i = tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + i, mask=i < n, other=-1)
    hit = (ids.to(tl.int32) == expert) if NARROW else (ids == expert)
    tl.store(out_ptr, tl.sum(tl.where(hit, 1.0, 0.0)))


@sim.jit
def swap_middle(x_ptr, out_ptr, H, ROWS: tl.constexpr, TILE: tl.constexpr, COLS: tl.constexpr):
    """(ROWS, H, COLS) -> (H, ROWS, COLS), TILE of H at a time."""
    row = tl.program_id(0)
    col = tl.arange(0, COLS)
    for first in range(0, H, TILE):
        h = first + tl.arange(0, TILE)
        inside = (h < H)[:, None]
        x = tl.load(x_ptr + (row * H + h)[:, None] * COLS + col, mask=inside)
        tl.store(out_ptr + (h * ROWS + row)[:, None] * COLS + col, x, mask=inside)


def overflow_bits(kernel, *arguments, **options):
    with pytest.raises(sim.RunError) as error:
        kernel.time((40,), *arguments, **options)
    found = re.search(r"ub overflow, requires (\d+) bits while (\d+) bits available", str(error.value))
    assert found, error.value
    assert int(found[2]) == UB_BITS
    return int(found[1])


def f32(n):
    return sim.shape((n,), "float32")


def test_copy_of_48000_with_two_buffers():
    """triton-ascend #302: 3 072 000 bits = 48 000 x 32 x 2; a release that tries again after an overflow takes one copy."""
    with sim.device(compiler_version="8.5"):
        assert overflow_bits(copy_blocks, f32(10**6), f32(10**6), 10**6, BLOCK=48_000) == 3_072_000
        once = copy_blocks.time((40,), f32(10**6), f32(10**6), 10**6, BLOCK=48_000, multibuffer=False)
    again = copy_blocks.time((40,), f32(10**6), f32(10**6), 10**6, BLOCK=48_000)
    assert again.buffers["UB"].peak_bytes == once.buffers["UB"].peak_bytes
    assert [n for n in again.notes if "taken back to fit" in n]
    assert not [n for n in once.notes if "taken back to fit" in n]


def test_strided_access_is_expanded():
    """vllm-ascend #17193: BLOCK 8192 and element stride 2 take 12 583 424 bits, about 192 bytes an element."""
    with sim.device(compiler_version="8.5"):
        needed = overflow_bits(masked_sampling, *[f32(2 * 10**6)] * 3, f32(1000), 2, 10**6, BLOCK=8192)
    assert 190 <= needed / 8 / 8192 <= 200
    contiguous = masked_sampling.time((40,), *[f32(2 * 10**6)] * 3, f32(1000), 1, 10**6, BLOCK=4096)
    assert contiguous.buffers["UB"].peak_bytes < 4096 * 4 * 10


@pytest.mark.parametrize(
    ("heads", "dim", "tile", "fits"), [(128, 192, 64, False), (128, 256, 32, True), (128, 128, 32, True)]
)
def test_rotary_embedding_in_bfloat16(heads, dim, tile, fits):
    """vllm-ascend #12733, #10388: 64-head tiles of 192 overflow, 32-head tiles fit up to a head size of 256.

    The kernel is known in words only; ours has no more than the tiles they name, which take all of UB there.
    """
    x, half = sim.shape((512, heads, dim), "bfloat16"), sim.shape((512, dim // 2), "bfloat16")
    arguments = (x, half, half, 512)
    sizes = {"HEADS": heads, "DIM": dim, "TILE": tile, "PADDED": 1 << (dim // 2 - 1).bit_length()}
    buffers = rope_neox.time((40,), *arguments, **sizes).buffers
    assert (buffers["UB"].peak_bytes * 8 < UB_BITS) == fits


def test_add_prefers_blocks_of_1024():
    """triton-ascend #633: a board's autotuner chose 1024 among 16, 256, 512 and 1024 for 98 432 elements."""
    n = 98_432
    time_us = {
        b: add.time((math.ceil(n / b),), f32(n), f32(n), f32(n), n, BLOCK=b).time_us
        for b in (16, 256, 512, 1024)
    }
    assert min(time_us, key=time_us.__getitem__) == 1024
    assert sorted(time_us, key=time_us.__getitem__) == [1024, 512, 256, 16]


def test_an_integer_comparison_costs_tens_of_vector_ones():
    """FlagTree #1156: 2.42 us with a vector operation, 107.3 us as a scalar loop over 256 x 8 elements, here of int64."""
    ids, out = sim.shape((2048,), "int64"), f32(1)
    slow, fast = (
        count_matches.time((1,), ids, out, 3, 2048, BLOCK=2048, NARROW=narrow) for narrow in (False, True)
    )
    [words] = [w for w in slow.warnings if "int64 comparison has no vector instruction" in w]
    scalar, vector = map(int, re.search(r"\((\d+) cycles, (\d+) as a vector", words).groups())
    assert 20 < scalar / 2048 < 120
    assert vector < 2048 / 20
    assert 5 < slow.time_us / fast.time_us < 100
    assert not any("comparison" in w for w in fast.warnings)


def test_a_tile_that_takes_the_whole_axis_beats_one_that_needs_two_iterations():
    """triton-ascend #1611: 748.7 us with 16 for an axis of 13, 926.1 us with 12."""
    rows, cols = 512, 64
    x, out = sim.shape((rows, 13, cols), "float16"), sim.shape((13, rows, cols), "float16")
    time_us = {
        t: swap_middle.time((rows,), x, out, 13, ROWS=rows, TILE=t, COLS=cols).time_us for t in (12, 16)
    }
    assert time_us[16] < time_us[12]


# -- what a launch is told ---------------------------------------------------------------------------------------------


def warnings_of(programs, block):
    n = programs * block
    return add.time((programs,), f32(n), f32(n), f32(n), n, BLOCK=block).warnings


def test_grids_that_do_not_fit_the_cores():
    assert warnings_of(40, 64) == warnings_of(80, 64) == ()
    assert warnings_of(41, 64) == (
        "41 programs on 40 cores take 2 rounds; in the last one 39 cores are idle (49% of the time, if programs are alike)",
    )
    assert (
        "the grid has 70,000 programs; Triton-Ascend refuses more than 65,535" in warnings_of(70_000, 16)[0]
    )


def test_rows_that_end_inside_a_block_are_named_with_their_padded_size():
    n = 4096
    x = sim.shape((n, 13), "float16")

    @sim.jit
    def rows_of_13(x_ptr, ROWS: tl.constexpr):
        at = tl.arange(0, ROWS)[:, None] * 13 + tl.arange(0, 13)
        tl.store(x_ptr + at, tl.load(x_ptr + at) * 2)

    run = rows_of_13.time((1,), x, ROWS=64)
    assert any("load of [64, 13] fp16: rows of 26 bytes are padded to 32 in UB" in w for w in run.warnings)
    assert np.all([w.count(":") for w in run.warnings])
