"""Buffers over time: from the instruction that fills a tile to the last one that reads it, and never more than is taken."""

from __future__ import annotations

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels import run_op
from ascendtile.simulator.timing.lowering import loops
from ascendtile.simulator.timing.trace import builder


@sim.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(x_ptr + at) + tl.load(y_ptr + at))


def timed(iterations, copies, block=1024, **options):
    x = sim.shape(iterations * block, "float32")
    with sim.device("ascend910b3", multibuffer=copies, **options):
        return add.time((1,), x, x, x, iterations * block, BLOCK=block).launches[0]


def at(points, cycle):
    """Bytes held just after a cycle."""
    return [size for c, size in points if c <= cycle][-1] if points and points[0][0] <= cycle else 0


def spans(launch, pipe):
    """(start, end) of the instructions of a pipe, in order."""
    t = launch.timeline
    found = t.select(int(t.core[0]), t.pipes.index(pipe))
    return [(float(t.start[i]), float(t.end[i])) for i in found]


def test_a_tile_is_held_from_its_load_to_its_last_reader():
    """One iteration: x and y come one after the other, the sum takes a place of its own or that of x, and is stored."""
    one = timed(1, 1)
    (x, y), (add_span,), (store,) = (spans(one, f"AIV.{p}") for p in ("MTE2", "V", "MTE3"))
    points, tile = one.buffers["UB"].held, 4096
    assert [at(points, (a + b) / 2) for a, b in (x, y)] == [tile, 2 * tile]
    assert at(points, (y[1] + add_span[0]) / 2) == 2 * tile
    assert at(points, (add_span[0] + add_span[1]) / 2) in (2 * tile, 3 * tile)
    assert at(points, (store[0] + store[1]) / 2) == tile
    assert points[0][0] == x[0]
    assert points[-1] == (store[1], 0)


@pytest.mark.parametrize("copies", [1, 2])
def test_two_buffers_hold_the_next_iteration_beside_this_one(copies):
    """Recomputed instruction by instruction from the timeline: iteration k loads x and y, adds them and stores the sum."""
    launch = timed(6, copies)
    loads, adds, stores = (spans(launch, f"AIV.{p}") for p in ("MTE2", "V", "MTE3"))
    tiles = [(a, add_[1]) for k, add_ in enumerate(adds) for a in (loads[2 * k][0], loads[2 * k + 1][0])]
    sums = [(add_[0], store[1]) for add_, store in zip(adds, stores, strict=True)]
    points = launch.buffers["UB"].held
    for cycle in {c + 0.25 for s in (*tiles, *sums) for c in s}:
        expected = sum(a <= cycle < b for a, b in tiles) + sum(a <= cycle < b for a, b in sums)
        in_place = sum(a <= cycle < b for a, b in adds)  # the sum may be in the place of x while it is added
        assert at(points, cycle) in (4096 * expected, 4096 * (expected - in_place))
    most = max(size for _, size in points)
    assert most <= launch.buffers["UB"].placed_bytes
    assert (most > 3 * 4096) == (copies == 2)


CASES = (
    ("rms_norm_grad", "tiny", "ascend910b3"),
    ("matmul", {"m": 300, "n": 260, "k": 700}, "ascend910b3"),
    ("matmul", {"m": 300, "n": 260, "k": 700}, "ascend910a"),
    ("group_norm_backward", "tiny", "ascend910b3"),
    ("convolution_backward", "tiny", "ascend910b3"),
    ("batch_norm_reduce_backward", "tiny", "ascend910a"),
)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("op", "case", "product"), CASES)
def test_never_above_what_is_taken_and_empty_at_the_end(op, case, product):
    for launch in run_op(op, case=case, product=product, values=False).run.launches:
        assert launch.timeline.complete
        for name, buffer in launch.buffers.items():
            if name in ("L0A", "L0B"):
                assert buffer.held == ()
                continue
            sizes = [size for _, size in buffer.held]
            assert 0 < max(sizes) <= buffer.placed_bytes <= buffer.capacity_bytes
            assert min(sizes) == sizes[-1] == 0
            cycles = [c for c, _ in buffer.held]
            assert cycles == sorted(set(cycles))
            assert cycles[-1] <= launch.cycles


def test_records_that_are_made_code_early_tell_the_same(monkeypatch):
    whole = timed(400, 2).buffers["UB"].held
    monkeypatch.setattr(builder, "CHUNK", 500)
    monkeypatch.setattr(loops, "LANES", 100)
    assert len(whole) > 200
    assert timed(400, 2).buffers["UB"].held == whole


def test_without_a_timeline_nothing_is_told():
    assert timed(2, 2, timeline=0).buffers["UB"].held == ()
