"""Bank conflicts of UB between a write and a read: counted block by block, and charged as the vendor measured it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.timing.costs.model import CostModel
from ascendtile.simulator.timing.placement.banks import _met

pytestmark = pytest.mark.usefixtures("by_hand")

B3 = sim.load_product("ascend910b3")
LATE = B3.number("ub_banks.read_write_conflict_cycles")


def bank(address: int) -> int:
    """The product's own formula."""
    formula = B3.text("ub_banks.bank_of_address")
    assert re.fullmatch(r"[\daddr*>&+() ]+", formula)
    return eval(formula, {"addr": address})


def met_one_by_one(places, moves, repeats):
    """Repeats, each with its 32-byte blocks and those that the one before writes."""
    found = 0
    for r in range(1, repeats):
        read = {bank(places[0] + r * moves[0] + k) for k in range(0, moves[0], 32)}
        wrote = {bank(places[1] + (r - 1) * moves[1] + k) for k in range(0, moves[1], 32)}
        found += bool(read & wrote)
    return found


BLOCKS = st.integers(0, 4095).map(lambda n: 32 * n)


@given(st.tuples(BLOCKS, BLOCKS), st.sampled_from([(256, 256), (128, 256), (256, 128)]), st.integers(1, 200))
def test_repeats_that_meet_are_those_whose_blocks_share_a_bank(places, moves, repeats):
    found = _met(places, moves, repeats, 1, 32, 16, True)
    assert found == met_one_by_one(places, moves, repeats)


@pytest.mark.parametrize(
    ("behind", "met"),
    [(0, 0), (512, 0), (8192, 0), (32, 63), (256, 63), (480, 63), (65536 + 32, 0), (65536 + 256, 0)],
)
def test_a_result_meets_its_source_unless_it_starts_in_its_group_or_another_area(behind, met):
    """A write trails by one repeat: the same place, or whole rounds of 512 bytes further, is safe (DOC)."""
    assert _met((0, behind), (256, 256), 64, 1, 32, 16, True) == met


def test_the_vendors_example_takes_what_was_measured():
    """EX bank_conflict_ub, Add of 64 repeats of FP32: 86 cycles without conflict, 135 with the result a block behind."""
    model = CostModel(B3)
    cost = model.vector("add", "fp32", 4096, 32)
    assert cost.occupancy + cost.latency == pytest.approx(86, rel=0.01)
    assert cost.occupancy + cost.latency + model.write_conflict_cycles(63) == pytest.approx(135, rel=0.01)


@sim.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(x_ptr + at) + tl.load(y_ptr + at))


@sim.jit
def widen(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at).to(tl.float32))


def busy(kernel, *args, **constants):
    with sim.device(B3, multibuffer=1):
        run = kernel.time((1,), *args, **constants)
    return run.pipes["AIV.V"].busy_cycles, run


@pytest.mark.parametrize(
    ("block", "meets"),
    [
        (16384, False),  # the sources share their groups, the result starts in those of both
        (
            16256,
            False,
        ),  # the sources are half a round apart, the result is in the next 64 KiB but for two repeats
        (8064, True),  # the same, and all in one area: the result meets the second source
    ],
)
def test_placement_decides(block, meets):
    half = sim.shape(2 * block, "float16")
    cycles, run = busy(add, half, half, half, 2 * block, BLOCK=block)
    repeats = block // 128
    apart = 512 * (block * 2 // 512) != block * 2
    clean = 2 * repeats * (1 if apart else 2)
    late = (cycles - clean) / (2 * LATE)
    assert (late > 0.9 * repeats) == meets
    assert late <= (repeats if meets else 2)
    assert ("ub_banks.read_write_conflict_cycles" in " ".join(run.notes)) == B3.figure(
        "ub_banks.read_write_conflict_cycles"
    ).assumed


def test_a_product_whose_banks_do_not_meet_pays_nothing():
    half = sim.shape(8064, "float16")
    with sim.device(B3, multibuffer=1, overrides={"ub_banks.read_write_conflict": "none"}):
        free = add.time((1,), half, half, half, 8064, BLOCK=8064)
    assert free.pipes["AIV.V"].busy_cycles == 63
    assert busy(add, half, half, half, 8064, BLOCK=8064)[0] == pytest.approx(63 + 62 * LATE, rel=0.05)


@given(st.integers(1, 200))
def test_never_faster_for_it(blocks):
    n = 64 * blocks
    shapes = (sim.shape(n, "float16"), sim.shape(n, "float32"))
    with_it = busy(widen, *shapes, BLOCK=n)[0]
    with sim.device(B3, multibuffer=1, overrides={"ub_banks.read_write_conflict": "none"}):
        without = widen.time((1,), *shapes, BLOCK=n).pipes["AIV.V"].busy_cycles
    assert without <= with_it <= without + blocks * LATE
