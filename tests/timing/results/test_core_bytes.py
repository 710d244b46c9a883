"""Bytes that each core moved: all cores together the launch's, and each core those of the programs that it ran."""

from __future__ import annotations

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels import run_op
from ascendtile.simulator.record.loading import load_run
from ascendtile.simulator.record.saving import save_run

WAYS = ("GM to UB", "UB to GM", "GM to L1", "L0C to GM")


@sim.jit
def uneven(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Program p goes p + 1 times round; odd ones load once more."""
    program = tl.program_id(0)
    for iteration in range(program + 1):
        at = iteration * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at)
        if program % 2 == 1:
            x += tl.load(x_ptr + at + BLOCK)
        tl.store(out_ptr + at, x)


@sim.jit
def doubled(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """The last block is cut by the mask: 452 elements, in whole pieces of 32 bytes."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2.0, mask=at < n)


def test_each_core_has_the_bytes_of_its_programs():
    x = sim.shape(64 * 1024, "float32")
    (found,) = uneven.time((7,), x, x, BLOCK=1024).launches
    stored, loaded = found.core_bytes["AIV.UB to GM"], found.core_bytes["AIV.GM to UB"]
    assert len(stored) == found.cores
    assert stored[:7] == tuple(4096.0 * (p + 1) for p in range(7))
    assert loaded[:7] == tuple(4096.0 * (p + 1) * (1 + p % 2) for p in range(7))
    assert not any(stored[7:])


def test_a_mask_leaves_bytes_out():
    x = sim.shape(2500, "float16")
    (found,) = doubled.time((3,), x, x, 2500, BLOCK=1024).launches
    assert found.core_bytes["AIV.UB to GM"][:3] == (2048.0, 2048.0, 928.0)


@pytest.mark.parametrize(
    ("op", "product"),
    [
        ("matmul", "ascend910b3"),
        ("matmul", "ascend910a"),
        ("group_norm_backward", "ascend910b3"),
        ("convolution_backward", "ascend910b3"),
    ],
)
def test_all_cores_together_move_what_the_launch_does(op, product):
    for found in run_op(op, dtype="float16", product=product, values=False).run.launches:
        for way in WAYS:
            together = sum(sum(x) for n, x in found.core_bytes.items() if n.endswith(f".{way}"))
            amount = found.roofs[way].amount if way in found.roofs else 0.0
            assert together == pytest.approx(amount, rel=1e-9), way


def test_they_are_kept_in_records_and_absent_without_a_timeline(tmp_path):
    x = sim.shape(4096, "float32")
    run = doubled.time((4,), x, x, 4096, BLOCK=1024)
    save_run(run, tmp_path / "x.run")
    assert load_run(tmp_path / "x.run").launches[0].core_bytes == run.launches[0].core_bytes
    with sim.device("ascend910b3", timeline=0):
        assert doubled.time((4,), x, x, 4096, BLOCK=1024).launches[0].core_bytes == {}
