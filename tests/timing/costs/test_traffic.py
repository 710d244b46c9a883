"""Bytes, bursts and elements of regular accesses, against a count of every element of every program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.simulator.interpreter.regions import AccessRegion
from ascendtile.simulator.interpreter.tensors import Tensor
from ascendtile.simulator.interpreter.values import Affine, Box
from ascendtile.simulator.precision import dtypes as ty
from ascendtile.simulator.timing.costs.transfers import line_requests, traffic

ITEM, BLOCK, LINE, REQUEST = 2, 32, 512, 128
ORIGIN = 7  # the window begins before element 0, which must make no difference


def tensor():
    return Tensor("x", ty.float16, (1 << 20,), None, ORIGIN, 1 << 20, True, 0)


def by_hand(base, strides, shape, lows, highs):
    """(bytes, bursts, elements, requests past L2) of one program."""
    sides = [range(max(lo, 0), min(hi, n)) for lo, hi, n in zip(lows, highs, shape, strict=True)]
    elements = int(np.prod([len(s) for s in sides]))
    run, width = 1, 1
    axes = [x for x in zip(strides, shape, sides, strict=True) if x[1] > 1]
    while axes and abs(axes[-1][0]) == width:
        _, n, side = axes.pop()
        run *= len(side)
        if len(side) < n:
            break
        width *= n
    bursts = elements // run if run else 0
    apart = [stride for stride, *_ in axes]  # bursts begin so far from each other
    grain = min([LINE, *(abs(x) * ITEM & -(abs(x) * ITEM) for x in (base, *apart) if x)])
    run = max(run, 1)
    weight = max(1.0, (1 + (run * ITEM - grain) / LINE) / max(1.0, run * ITEM / LINE))
    alone = grain >= REQUEST and bursts <= 1
    requests = bursts * (1 + (-(-run * ITEM // grain) * grain - grain) / LINE)
    return bursts * -(-run * ITEM // BLOCK) * BLOCK * (1 if alone else weight), bursts, elements, requests


@st.composite
def accesses(draw):
    rank = draw(st.integers(1, 3))
    shape = tuple(draw(st.sampled_from((1, 2, 3, 8, 64))) for _ in range(rank))
    whole = [int(np.prod(shape[k + 1 :])) for k in range(rank)]
    strides = tuple(draw(st.sampled_from((w, -w, 0, 1, 5, 64, 1024))) for w in whole)
    count = draw(st.integers(1, 4))
    numbers = st.integers(0, 40) | st.sampled_from((64, 128, 256))
    bases = [draw(numbers) * draw(st.sampled_from((1, 64))) for _ in range(count)]
    ends = [[sorted(draw(st.tuples(numbers, numbers))) for _ in range(count)] for _ in range(rank)]
    return shape, strides, bases, ends if draw(st.booleans()) else None


@given(accesses())
def test_traffic_of_each_program_is_what_counting_by_hand_gives(access):
    shape, strides, bases, ends = access
    tile, mask = Affine(np.array(bases, np.int64), strides, shape), None
    lows, highs = [[0] * len(shape)] * len(bases), [shape] * len(bases)
    if ends is not None:
        lows, highs = ([[axis[p][k] for axis in ends] for p in range(len(bases))] for k in range(2))
        columns = ([np.array(c, np.int64) for c in zip(*side, strict=True)] for side in (lows, highs))
        mask = Box(*(tuple(c) for c in columns), shape)
    region = AccessRegion(tensor(), tile, mask, len(bases))
    found = (*traffic(tile, ITEM, region), line_requests(tile, ITEM, region))
    for p, base in enumerate(bases):
        mine = [float(np.broadcast_to(x, len(bases))[p]) for x in found]
        assert mine == pytest.approx(by_hand(base, strides, shape, lows[p], highs[p]), rel=1e-12)


@given(accesses())
def test_numbers_and_arrays_of_equal_programs_agree(access):
    shape, strides, bases, _ = access
    one, many = Affine(bases[0], strides, shape), Affine(np.full(3, bases[0], np.int64), strides, shape)
    alone = traffic(one, ITEM, AccessRegion(tensor(), one, None, 1))
    together = traffic(many, ITEM, AccessRegion(tensor(), many, None, 3))
    for x, y in zip(alone, together, strict=True):
        assert isinstance(x, int | float)
        assert (np.broadcast_to(y, 3) == x).all()


def test_bursts_end_at_an_axis_whose_stride_programs_differ_in():
    tile = Affine(0, (np.array([8, 8]), 1), (4, 8))
    assert [list(x) for x in traffic(tile, ITEM, AccessRegion(tensor(), tile, None, 2))][1] == [4, 4]
    rows = Affine(0, (8, 1), (4, 8))
    assert traffic(rows, ITEM, AccessRegion(tensor(), rows, None, 2))[1] == 1
