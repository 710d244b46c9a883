"""`out_of_bounds="warn"`: an access outside of its tensor is told and left out, and the launch goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import OutOfBoundsError

B = 8


@sim.jit
def box(x, idx, out, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + o, tl.load(x + o) + 1)


@sim.jit
def masked(x, idx, out, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + o, tl.load(x + o, mask=o < 2 * n, other=7.0) + 1, mask=o < 2 * n)


@sim.jit
def discrete(x, idx, out, n, B: tl.constexpr):
    o = tl.load(idx + tl.program_id(0) * B + tl.arange(0, B))
    tl.store(out + o, tl.load(x + o, mask=o >= 0, other=7.0) + 1)


@sim.jit
def scalar(x, idx, out, n, B: tl.constexpr):
    for k in range(B):
        o = tl.program_id(0) * B + k
        tl.store(out + o, tl.load(x + o) + 1)


@sim.jit
def atomics(x, idx, out, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(out + o, tl.load(x + o) + 1)


@sim.jit
def atomics_used(x, idx, out, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    old = tl.atomic_add(out + o, 1.0)
    tl.atomic_add(out + o, tl.load(x + o) + old)


KERNELS = [box, masked, discrete, scalar, atomics, atomics_used]
TOLD = {atomics: ["atomic_add", "load"], atomics_used: ["atomic_add", "atomic_add", "load"]}


def launch(kernel: Any, n: int, **device: Any) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Two programs of eight elements on tensors of n, in the middle of larger arrays that stay as they are."""
    memory = np.full((2, 48), 100, np.float32)
    x, out = memory[0, 16 : 16 + n], memory[1, 16 : 16 + n]
    x[:], out[:] = np.arange(n), 0
    with sim.device(**device):
        run = kernel[(2,)](x, np.arange(2 * B, dtype=np.int32), out, n, B=B)
    assert (memory[:, :16] == 100).all()
    assert (memory[:, 16 + n :] == 100).all()
    return out, [w for w in run.warnings if w.kind == "fault"]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_without_it_such_an_access_is_an_error(kernel: Any) -> None:
    with pytest.raises(OutOfBoundsError):
        launch(kernel, 13)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
@pytest.mark.parametrize("time", [True, False])
def test_with_it_what_lies_inside_is_done_and_each_operation_is_told_once(kernel: Any, time: bool) -> None:
    out, faults = launch(kernel, 13, out_of_bounds="warn", time=time)
    assert out.tolist() == list(range(1, 14))
    assert sorted(f.what.partition(" of element")[0] for f in faults) == TOLD.get(kernel, ["load", "store"])
    assert all(f.programs == (1,) for f in faults)
    for f in faults:
        end = "a load gives 0 there" if "load" in f.what.partition(" ")[0] else "does nothing"
        assert "3 such elements in the launch; " in f
        assert f.endswith(end)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_inside_of_the_tensors_both_are_the_same_and_nothing_is_told(kernel: Any) -> None:
    out, faults = launch(kernel, 16, out_of_bounds="warn")
    strict, _ = launch(kernel, 16)
    assert (out == strict).all()
    assert faults == []


@sim.jit
def read(x, out, B: tl.constexpr, MASK: tl.constexpr):
    i = tl.arange(0, B)
    if MASK:
        tl.store(out + i, tl.load(x + i, mask=i < 6, other=7.0))
    else:
        tl.store(out + i, tl.load(x + i))


@pytest.mark.parametrize(
    ("mask", "expected"), [(False, [1.0] * 4 + [0.0] * 4), (True, [1.0] * 4 + [0.0] * 2 + [7.0] * 2)]
)
def test_a_load_gives_0_outside_and_other_where_the_mask_hides_it(mask: bool, expected: list[float]) -> None:
    out = np.full(8, -1, np.float32)
    with sim.device(out_of_bounds="warn"):
        read[(1,)](np.ones(4, np.float32), out, B=8, MASK=mask)
    assert out.tolist() == expected


def test_time_alone_tells_it_too() -> None:
    x = sim.shape(13, "float32")
    with sim.device(out_of_bounds="warn"):
        run = box.time((2,), x, sim.shape(16, "int32"), x, 13, B=B)
    told = [w for w in run.warnings if w.kind == "fault"]
    assert [w.what.partition(" ")[0] for w in told] == ["load", "store"]
    with pytest.raises(OutOfBoundsError):
        box.time((2,), x, sim.shape(16, "int32"), x, 13, B=B)


@sim.jit
def moved(x, out, at, n, B: tl.constexpr, DISCRETE: tl.constexpr):
    i = at + tl.arange(0, B)
    i = tl.flip(tl.flip(i)) if DISCRETE else i
    tl.store(out + tl.arange(0, B), tl.load(x + i, mask=tl.arange(0, B) < n, other=-1.0))
    tl.store(x + i, 50.0, mask=tl.arange(0, B) < n)


@given(size=st.integers(1, 12), at=st.integers(-12, 14), n=st.integers(0, B), discrete=st.booleans())
def test_any_place_of_a_tile_reads_and_writes_what_lies_inside(
    size: int, at: int, n: int, discrete: bool
) -> None:
    memory, out = np.full(60, 7, np.float32), np.zeros(B, np.float32)
    x, places = memory[20 : 20 + size], at + np.arange(B)
    x[:] = 1 + np.arange(size)
    inside = (places >= 0) & (places < size) & (np.arange(B) < n)
    expected = np.where(np.arange(B) < n, np.where(inside, 1 + places, 0), -1)
    after = memory.copy()
    after[20 + places[inside]] = 50
    with sim.device(out_of_bounds="warn", time=False):
        run = moved[(1,)](x, out, at, n, B=B, DISCRETE=discrete)
    assert out.tolist() == expected.tolist()
    assert (memory == after).all()
    assert any(w.kind == "fault" for w in run.warnings) == (n > inside.sum())


@sim.jit
def either(x, y, out, flags, n, B: tl.constexpr):
    i = tl.arange(0, B)
    got = tl.load(tl.where(i % 2 == 0, x + i, y + i), mask=i < n, other=7.0)
    tl.store(tl.where(i < B, out + i, flags + i), got)
    tl.atomic_add(tl.where(i % 2 == 0, flags + i, x + i), got)


def test_addresses_in_no_tensor_are_left_out_too() -> None:
    x, y = np.arange(13, dtype=np.float32), 100 + np.arange(13, dtype=np.float32)
    out, flags = np.full(13, -1, np.float32), np.zeros(13, np.float32)
    with pytest.raises(
        OutOfBoundsError, match=r"load at address 0x[0-9a-f]+ in program 0 leaves every tensor"
    ):
        either[(1,)](x, y, out, flags, 14, B=16)
    with sim.device(out_of_bounds="warn"):
        run = either[(1,)](x, y, out, flags, 14, B=16)
    expected = np.where(np.arange(13) % 2 == 0, np.arange(13), 100 + np.arange(13))
    assert out.tolist() == expected.tolist()
    assert flags[::2].tolist() == expected[::2].tolist()
    faults = [w for w in run.warnings if w.kind == "fault"]
    assert [w.what.partition(" at address")[0] for w in faults] == ["load", "store", "atomic_add"]
    assert ["such elements" in w for w in faults] == [False, True, True]  # one load, three of the others
