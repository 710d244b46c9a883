"""Two programs that store to one address are named with element, programs and lines; everything else is left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl


def races(kernel: Any, grid: Any, *args: Any, time: bool = False, **kw: Any) -> list[str]:
    with sim.device(time=time):
        return [w for w in kernel[grid](*args, **kw).warnings if "without an atomic" in w]


@sim.jit
def stretch(out, step, n, B: tl.constexpr):
    i = tl.program_id(0) * step + tl.arange(0, B)
    tl.store(out + i, tl.program_id(0), mask=i < n)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 5), st.integers(0, 60))
def test_overlapping_blocks_are_found_exactly(step: int, block: int, programs: int, n: int) -> None:
    written = [{p * step + k for k in range(block) if p * step + k < n} for p in range(programs)]
    meets = any(written[p] & written[q] for p in range(programs) for q in range(p))
    found = races(stretch, (programs,), np.zeros(100, np.int32), step, n, B=block)
    assert bool(found) == meets
    if meets:
        element = step  # the first that programs 0 and 1 share
        assert f"programs 0 and 1 both store to element {element} of 'out'" in found[0]


@sim.jit
def columns(out, rows, width, B: tl.constexpr, R: tl.constexpr):
    r = tl.arange(0, R)
    c = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + r[:, None] * width + c[None, :], r[:, None] + c[None, :], mask=r[:, None] < rows)


def test_interleaved_columns_do_not_meet_and_shared_ones_do() -> None:
    out = np.zeros(64, np.int32)
    assert not races(columns, (4,), out, 4, 16, B=4, R=4)
    assert (
        "element 15 " in races(columns, (4,), out, 4, 15, B=4, R=4)[0]
    )  # 15 is column 0 of row 1 and column 15 of row 0


@sim.jit
def two_lines(out, table):
    pid = tl.program_id(0)
    if pid == 2:
        tl.store(out + 5, 7)
    i = tl.arange(0, 2)
    tl.store(out + tl.load(table + 2 * pid + i), i)


@pytest.mark.parametrize("time", [False, True])
def test_a_scatter_meets_a_plain_store_in_another_line(time: bool) -> None:
    apart, meeting = np.array([0, 1, 2, 3, 4, 6], np.int32), np.array([0, 5, 2, 3, 4, 6], np.int32)
    assert not races(two_lines, (3,), np.zeros(8, np.int32), apart, time=time)
    found = races(two_lines, (3,), np.zeros(8, np.int32), meeting, time=time)
    assert len(found) == 1
    assert "programs 0 and 2 both store to element 5 of 'out'" in found[0]
    first = two_lines.source.first_line
    assert f"(lines {first + 6} and {first + 4})" in found[0]


@sim.jit
def twice_the_same(out):
    tl.store(out + tl.program_id(0), 1)
    tl.store(out + tl.program_id(0), 2)


@sim.jit
def added(out):
    tl.atomic_add(out, 1)


@sim.jit
def guarded(lock, out):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + 1)
    tl.atomic_xchg(lock, 0)


def test_what_is_no_race() -> None:
    out, lock = np.zeros(4, np.int32), np.zeros(1, np.int32)
    assert not races(twice_the_same, (4,), out)
    assert not races(added, (4,), out)
    assert not races(guarded, (4,), lock, out)


def test_the_warning_is_kept_in_the_record(tmp_path: Any) -> None:
    with sim.device(time=False):
        run = stretch[(2,)](np.zeros(9, np.int32), 0, 4, B=2)
    run.save(tmp_path / "x.run")
    assert sim.load_run(tmp_path / "x.run").warnings == run.warnings != ()
