"""Parts of buffers at offsets that only the program knows must begin on blocks of 32 bytes, as at constant offsets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
import ascendtile.simulator.language.extra.cann.extension as al
from ascendtile.simulator.errors import CompileError
from ascendtile.simulator.language.extra.cann import buffer as bl


@sim.jit
def reads(at, x, out):
    whole = bl.to_buffer(tl.load(x + tl.arange(0, 64)))
    part = bl.subview(whole, [tl.load(at + tl.program_id(0))], [16], [1])
    tl.store(out + tl.program_id(0) * 16 + tl.arange(0, 16), bl.to_tensor(part))


@sim.jit
def writes(at, x, out):
    whole = bl.alloc(tl.float32, [64], al.ascend_address_space.UB)
    part = bl.subview(whole, [tl.load(at + tl.program_id(0))], [16], [1])
    bl.to_buffer(tl.load(x + tl.arange(0, 16)), bind_buffer=part)
    tl.store(out + tl.program_id(0) * 16 + tl.arange(0, 16), bl.to_tensor(part))


@sim.jit
def nested(at, x, out):
    whole = bl.to_buffer(tl.load(x + tl.arange(0, 64)))
    half = bl.subview(whole, [tl.load(at + tl.program_id(0))], [32], [1])
    tl.store(out + tl.program_id(0) * 16 + tl.arange(0, 16), bl.to_tensor(half.subview([8], [16], [1])))


@sim.jit
def rows(at, x, out):
    whole = bl.to_buffer(tl.load(x + tl.arange(0, 48)).reshape((4, 12)))
    part = bl.subview(whole, [tl.load(at), 0], [2, 8], [1, 1])
    tl.store(out + tl.arange(0, 16), bl.to_tensor(part).reshape((16,)))


def launch(kernel: Any, *offsets: int) -> np.ndarray:
    x, out = np.arange(64, dtype=np.float32), np.zeros(16 * len(offsets), np.float32)
    kernel[(len(offsets),)](np.array(offsets, np.int32), x, out)
    return out


@pytest.mark.parametrize("kernel", [reads, writes, nested])
def test_a_part_that_begins_off_the_blocks_is_refused_with_its_program_and_byte(kernel: Any) -> None:
    with pytest.raises(
        sim.RunError, match=r"test_misaligned_parts\.py:\d+:\d+: subview of .* in program 1"
    ) as e:
        launch(kernel, 8, 3)
    assert f"it begins at byte {(3 + 8 * (kernel is nested)) * 4}, which must be a multiple of 32" in str(
        e.value
    )


@pytest.mark.parametrize(("kernel", "first"), [(reads, (8, 16)), (writes, (0, 0)), (nested, (16, 24))])
def test_a_part_that_begins_on_a_block_is_read_and_written(kernel: Any, first: tuple[int, int]) -> None:
    out = launch(kernel, 8, 16).reshape(2, 16)
    assert (out == np.array(first)[:, None] + np.arange(16)).all()


def test_rows_off_the_blocks_are_refused_wherever_the_part_begins() -> None:
    with pytest.raises(CompileError, match="its rows are apart by bytes 48"):
        launch(rows, 0)
