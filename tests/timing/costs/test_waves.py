"""Which loads find their tile in L2, where there are more programs than cores: by the order in which cores come to them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

pytestmark = pytest.mark.usefixtures("cold_l2")

LINE = 128
CORES = 4
SMALL = {"cores.cube_cores": CORES // 2, "cores.vector_cores": CORES}


@sim.jit
def pairs(
    x,
    y,
    out,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    STEPS: tl.constexpr,
    GROUP: tl.constexpr,
    B: tl.constexpr,
):
    """A program for each pair of a row of x and a row of y; both are read in STEPS tiles."""
    p = tl.program_id(0)
    first = p // (GROUP * COLS) * GROUP
    height = tl.minimum(ROWS - first, GROUP)
    i, j = first + p % (GROUP * COLS) % height, p % (GROUP * COLS) // height
    total = tl.zeros((B,), tl.float32)
    for k in range(STEPS):
        at = k * B + tl.arange(0, B)
        total += tl.load(x + i * STEPS * B + at) * tl.load(y + j * STEPS * B + at)
    tl.store(out + p * B + tl.arange(0, B), total)


@sim.jit
def matmul(
    a, b, c, ROWS: tl.constexpr, COLS: tl.constexpr, K: tl.constexpr, GROUP: tl.constexpr, B: tl.constexpr
):
    p = tl.program_id(0)
    first = p // (GROUP * COLS) * GROUP
    height = tl.minimum(ROWS - first, GROUP)
    i, j = first + p % (GROUP * COLS) % height, p % (GROUP * COLS) // height
    rows, cols, deep = i * B + tl.arange(0, B), j * B + tl.arange(0, B), tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        u = tl.load(a + rows[:, None] * K + (k + deep)[None, :])
        v = tl.load(b + (k + deep)[:, None] * (COLS * B) + cols[None, :])
        acc = tl.dot(u, v, acc)
    tl.store(c + rows[:, None] * (COLS * B) + cols[None, :], acc.to(tl.float16))


def order_of(program, rows, cols, group):
    """The same formula as the kernels'."""
    first = program // (group * cols) * group
    height = min(rows - first, group)
    return first + program % (group * cols) % height, program % (group * cols) // height


class Lines:
    """L2 as lines: one is there while no more than `room` others came since it was touched last."""

    def __init__(self, room):
        self.room, self.came, self.last = room, 0, {}

    def missing(self, lines):
        found = 0
        for line in lines:
            if line not in self.last or self.came - self.last[line] > self.room:
                self.came += 1
                found += 1
            self.last[line] = self.came
        return found


def bytes_by_wave(rows, cols, steps, group, tile_lines, room):
    """Bytes from memory when CORES programs at a time go through their steps side by side."""
    cache, total, programs = Lines(room), 0.0, rows * cols
    for wave in range(0, programs, CORES):
        mine = range(wave, min(wave + CORES, programs))
        for k in range(steps):
            for which in (0, 1):
                for p in mine:
                    at = order_of(p, rows, cols, group)[which] * steps + k
                    new = cache.missing([(which, at * tile_lines + n) for n in range(tile_lines)])
                    exact = 1.0 if new >= tile_lines - 2 else 0.0 if new <= 2 else new / tile_lines
                    total += exact * tile_lines * LINE
        for p in mine:
            cache.missing([("out", p * tile_lines + n) for n in range(tile_lines)])
    return total


def from_memory(rows, cols, steps, group, tile_lines, room):
    block = tile_lines * LINE // 4
    shapes = [sim.shape(n * block, "float32") for n in (rows * steps, cols * steps, rows * cols)]
    with sim.device("ascend910b3", overrides={**SMALL, "l2.size": room * LINE}):
        run = pairs.time((rows * cols,), *shapes, ROWS=rows, COLS=cols, STEPS=steps, GROUP=group, B=block)
    stored = rows * cols * tile_lines * LINE
    found = run.launches[0].resources["HBM"]
    return found, stored


@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.integers(1, 7),
    st.integers(1, 6),
    st.sampled_from([16, 32]),
    st.integers(200, 700),
)
def test_bytes_from_memory_are_those_of_programs_side_by_side_wave_after_wave(
    rows, cols, steps, group, tile, room
):
    found, stored = from_memory(rows, cols, steps, group, tile, room)
    most = bytes_by_wave(rows, cols, steps, group, tile, room)
    least = bytes_by_wave(rows, cols, steps, group, tile, room + 2 * tile)  # a tile leaves L2 as a whole
    assert least * (1 - 1e-9) <= found
    assert found <= (most + stored) * (1 + 1e-9)  # and what stores push out to memory


@pytest.mark.parametrize("rows", [16])
def test_the_order_of_tiles_decides_what_l2_saves(rows):
    """A band of rows at a time keeps its rows and columns in a small L2; row after row reads all columns again."""
    edge, k = 64, 512
    n = rows * edge
    half = [sim.shape((n, k), "float16"), sim.shape((k, n), "float16"), sim.shape((n, n), "float16")]
    read, took = {}, {}
    with sim.device(
        "ascend910b3", overrides={**SMALL, "l2.size": "512KiB", "memory.bandwidth_tb_per_s": 0.02}
    ):
        for group in (1, 2, 4, rows):
            run = matmul.time((rows * rows,), *half, ROWS=rows, COLS=rows, K=k, GROUP=group, B=edge)
            read[group], took[group] = run.launches[0].resources["HBM"], run.cycles
    assert read[2] < 0.6 * read[1]
    assert took[2] < 0.7 * took[1]
    assert read[4] < read[1]
    assert min(read, key=lambda g: read[g]) in (2, 4)
    with sim.device("ascend910b3", overrides=SMALL):  # all of it fits: no order saves anything
        whole = [
            matmul.time((rows * rows,), *half, ROWS=rows, COLS=rows, K=k, GROUP=g, B=edge)
            .launches[0]
            .resources["HBM"]
            for g in (1, 4)
        ]
    assert whole[0] == whole[1] == 2 * 2 * n * k


def test_one_program_a_core_is_one_wave():
    """The order of a wave is that of the steps, whoever asks: so it was before there were waves."""
    found, _ = from_memory(2, 2, 5, 1, 16, 100)
    assert found == 2 * 2 * 5 * 16 * LINE
