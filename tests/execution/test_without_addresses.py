"""The search for shared memory leaves out operations that say nothing of addresses, and no others."""

from __future__ import annotations

import numpy as np

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.interpreter.program_order.without_addresses import without_addresses
from ascendtile.simulator.launch import prepare

from .runs import one_by_one


@sim.jit
def sums(x, out, n, reach, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    at = tl.program_id(0) * n
    while at < (tl.program_id(0) + 1) * n:
        row = tl.load(x + at + i, mask=i < n - at % n)
        total += tl.exp(row) * 2.0
        tl.store(out + at + i, total, mask=i < reach)
        at += B


def skipped(matters: bool) -> tuple[set[str], set[str]]:
    """Kinds of the operations left out, and of those that stay."""
    call = prepare(sums, (2,), (np.zeros(64, np.float32), np.zeros(64, np.float32), 32, 16), {"B": 16})
    out = without_addresses(call.program, lambda op: matters)
    kinds = [(op.id in out, f"{op.kind}.{op.name}".rstrip(".")) for op in call.program.walk()]
    return {k for gone, k in kinds if gone}, {k for gone, k in kinds if not gone}


def test_arithmetic_on_elements_goes_and_addresses_stay() -> None:
    gone, stay = skipped(True)
    assert {"unary.exp", "binary.mul"} <= gone
    assert {"load", "store", "while", "addptr", "binary.add", "compare.lt"} <= stay
    assert "load" not in gone


def test_accesses_that_do_not_matter_go_with_their_addresses() -> None:
    """What is left is what the loop's condition needs."""
    gone, stay = skipped(False)
    assert {"load", "store", "addptr", "unary.exp"} <= gone
    assert {"while", "program_id", "compare.lt"} <= stay
    assert "addptr" not in stay


def test_the_answer_is_that_of_the_addresses() -> None:
    """Programs with rows of their own may run together; where the mask lets one reach into the next, they may not."""
    x, out = np.zeros(96, np.float32), np.zeros(96, np.float32)
    assert not one_by_one(sums, (2,), x, out, 32, 16, B=16)
    assert one_by_one(sums, (2,), x, out, 24, 16, B=16)
    assert not one_by_one(sums, (2,), x, out, 24, 8, B=16)
