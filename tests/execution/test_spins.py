"""A `while` that waits for what nobody changes is a hang at once; one that ends is never taken for one."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
import ascendtile.simulator.language.extra.cann.extension as al
from ascendtile.simulator.interpreter.control_flow import Flow
from ascendtile.simulator.interpreter.two_cores import spin
from ascendtile.simulator.interpreter.two_cores.turns import Turns

from .runs import launch

FEW = 200  # iterations: far more than a hang needs, far fewer than a spin would make


def zeros(n: int = 1) -> np.ndarray:
    return np.zeros(n, np.int32)


def hang(kernel: Any, grid: Any, *args: Any, **kw: Any) -> str:
    """The message of a launch that must hang."""
    with sim.device(step_limit=FEW), pytest.raises(sim.RunError) as caught:
        launch(kernel, grid, *args, **kw)
    return str(caught.value)


@sim.jit
def counts_while_it_waits(flag, out):
    turns = 0
    while tl.load(flag + 2) == 0:
        turns += 1
    tl.store(out, turns)


@sim.jit
def waits_for_a_tile(flag, out, B: tl.constexpr):
    seen = tl.load(flag + tl.arange(0, B))
    while tl.sum(seen) < 3:
        seen = tl.load(flag + tl.arange(0, B))
    tl.store(out, 1)


@sim.jit
def stores_too_late(flag, out):
    while tl.load(flag) == 0:
        tl.store(out, 1)
    tl.store(flag, 1)


@sim.jit
def waits_for_the_next(flag, out):
    p = tl.program_id(0)
    while tl.load(flag + p + 1) == 0:
        pass
    tl.store(flag + p, 1)


@sim.jit
def locked_twice(lock, out):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.atomic_xchg(lock, 0)


@sim.jit
def goes_nowhere(flag, out, n):
    i = 0
    while i < n:
        i += n - n
    tl.store(out, i)


@sim.jit
def waits_for_the_one_after(flag, out):
    p = tl.program_id(0)
    if p + 1 < tl.num_programs(0):
        while tl.load(flag + p + 1) == 0:
            pass
    tl.store(flag + p, 1)


def test_a_launch_that_is_over_has_no_thread_left(monkeypatch):
    def slow(turns, part, work, real=Turns._thread):
        real(turns, part, work)
        time.sleep(0.05)  # as on a machine that is busy

    monkeypatch.setattr(Turns, "_thread", slow)
    before, flag = set(threading.enumerate()), zeros(4)
    launch(waits_for_the_one_after, (4,), flag, zeros())
    assert flag.all()
    assert set(threading.enumerate()) == before


NOBODY = "and no program of the launch stores to it"


@pytest.mark.parametrize(
    ("kernel", "grid", "more", "words"),
    [
        (counts_while_it_waits, (3,), (), ("element 2 of 'flag', which is 0", NOBODY, "program 0 and 2 others")),
        (waits_for_a_tile, (1,), (4,), ("elements 0 to 3 of 'flag'", NOBODY, "reads it")),
        (stores_too_late, (1,), (), ("element 0 of 'flag', which is 0", "no program is left", "stores to it")),
        (waits_for_the_next, (3,), (), ("element 1 of 'flag'", "wait, too", "stores to it", "program 1 and 1 other wait")),
        (locked_twice, (2,), (), ("element 0 of 'lock', which is 1", "wait, too", "program 1 waits here")),
        (goes_nowhere, (1,), (3,), ("Let the loop change it",)),
    ],
)  # fmt: skip
def test_a_wait_for_what_cannot_change_names_line_element_and_reason(kernel, grid, more, words):
    message = hang(kernel, grid, zeros(8), zeros(8), *more)
    head, shown, caret = message.split("\n")[:3]
    assert "test_spins.py:" in head
    assert "hang in program 0" in head
    assert shown.split("|")[1].strip().startswith("while")
    assert caret.strip() == "^"
    for text in words:
        assert text in message


def test_a_hang_is_found_with_time_too_and_where_control_flow_needs_values():
    with sim.device(step_limit=FEW), pytest.raises(sim.RunError, match="element 2 of 'flag'"):
        counts_while_it_waits[(2,)](zeros(8), zeros(8))
    with sim.device(step_limit=FEW), pytest.raises(sim.RunError, match="Let the loop change it"):
        goes_nowhere.time((1,), zeros(8), zeros(8), 3)


@sim.jit
def goes_round(x, n, m, STORES: tl.constexpr):
    k = 1
    if STORES:
        while tl.load(x) != n:
            tl.store(x, (tl.load(x) * 5 + 1) % m)
    else:
        while k != n:
            k = (k * 5 + 1) % m


@pytest.mark.drawn(3)
@pytest.mark.parametrize("stores", [False, True])
@pytest.mark.parametrize("m", [2, 7, 64, 1000])
def test_a_loop_that_comes_round_never_ends_and_one_that_arrives_does(stores: bool, m: int) -> None:
    starts, k = [], 0 if stores else 1
    while k not in starts:
        starts.append(k)
        k = (k * 5 + 1) % m
    round_of = len(starts) - starts.index(k)
    with sim.device(time=False):
        goes_round[(1,)](zeros(1), starts[-1], m, STORES=stores)
        with pytest.raises(sim.RunError, match=f"same again every {round_of} iter|changes any more") as hang:
            goes_round[(1,)](zeros(1), -1, m, STORES=stores)
    assert ("any more" in str(hang.value)) == (round_of == 1)


@sim.jit
def one_core_waits_for_the_other(flag, out, STORES: tl.constexpr, FLAG: tl.constexpr):
    with al.scope(core_mode="vector"):
        while tl.load(flag) == 0:
            pass
        if FLAG:
            al.sync_block_wait("cube", "vector", 1)
    with al.scope(core_mode="cube"):
        a = tl.full((16, 16), 1, tl.float16)
        i = tl.arange(0, 16)
        if STORES:
            tl.store(flag + i[:, None] * 16 + i[None, :], tl.dot(a, a))
        else:
            tl.store(out + i[:, None] * 16 + i[None, :], tl.dot(a, a))
        if FLAG:
            al.sync_block_set("cube", "vector", 1)


def test_cores_that_run_side_by_side_give_way_while_they_wait_for_memory():
    flag, out = np.zeros(256, np.float32), np.zeros(256, np.float32)
    with sim.device(step_limit=FEW):
        launch(one_core_waits_for_the_other, (2,), flag, out, STORES=True, FLAG=True)
    assert (flag == 16).all()
    assert "no program of the launch stores to it" in hang(
        one_core_waits_for_the_other, (1,), np.zeros(256, np.float32), out, STORES=False, FLAG=True
    )
    assert "the other core stores to it" in hang(
        one_core_waits_for_the_other, (1,), np.zeros(256, np.float32), out, STORES=True, FLAG=False
    )


@sim.jit
def ends_after(flag, out, stays, by):
    turns = 0
    while tl.load(flag) < 3:
        turns += 1
        tl.atomic_add(flag, tl.where(turns > stays, by, 0))
    tl.store(out, turns)


@given(st.integers(0, 70), st.integers(1, 3))
def test_a_loop_that_stands_still_for_a_while_and_ends_is_no_hang(stays, by):
    flag, out = zeros(), zeros()
    launch(ends_after, (1,), flag, out, stays, by)
    assert out[0] == stays + -(-3 // by)


@sim.jit
def halves(out, start, stays):
    x, turns = start, 0
    while x > 0:
        if turns >= stays:
            x = x // 2
        turns += 1
    tl.store(out + tl.program_id(0), turns)


@given(st.integers(1, 1 << 20), st.integers(0, 70), st.integers(1, 4))
def test_what_a_branch_hides_from_the_condition_counts(start, stays, programs):
    out = zeros(4)
    launch(halves, (programs,), out, start, stays)
    assert set(out[:programs].tolist()) == {stays + start.bit_length()}


@sim.jit
def turns_of_each(out, B: tl.constexpr):
    p, i = tl.program_id(0), 0
    while i < p * 9:
        i += 1
    tl.store(out + p, i)


def test_programs_that_leave_one_after_another_are_no_hang():
    out = zeros(8)
    launch(turns_of_each, (8,), out, 1)
    assert out.tolist() == [9 * p for p in range(8)]


@sim.jit
def loops(out, n, m):
    for _ in range(n):
        i = 0
        while i < m:
            i += 1
    tl.store(out, 1)


@given(st.integers(1, 12), st.integers(1, 12))
def test_the_step_limit_counts_iterations_of_both_kinds_of_loop_alike(n, m):
    """`while` looks once more at its condition than its body runs, and that counts as an iteration begun."""
    need = n * (1 + m + 1)
    with sim.device(step_limit=need):
        launch(loops, (2,), zeros(), n, m)
    with (
        sim.device(step_limit=need - 1),
        pytest.raises(sim.RunError, match=f"more than {need - 1} loop iterations"),
    ):
        launch(loops, (2,), zeros(), n, m)


@sim.jit
def endless_with_flags(x, out, n):
    for k in range(n):
        with al.scope(core_mode="cube"):
            al.sync_block_set("cube", "vector", 0)
        with al.scope(core_mode="vector"):
            al.sync_block_wait("cube", "vector", 0)
            tl.store(out, k)


@sim.jit
def endless_in_place(x, out, n):
    """The programs change one tensor, so what they touch is looked at before they run."""
    for _ in range(n):
        tl.store(out + tl.program_id(0), tl.load(out + tl.program_id(0)) + 1)


@pytest.mark.parametrize("kernel", [endless_with_flags, endless_in_place])
@pytest.mark.parametrize("values", [True, False])
def test_the_step_limit_holds_for_what_is_found_out_before_the_programs_run(kernel, values):
    with (
        sim.device(step_limit=FEW, values=values),
        pytest.raises(sim.RunError, match=f"more than {FEW} loop iterations"),
    ):
        kernel[(4,)](zeros(4), zeros(4), 1 << 62)


@sim.jit
def passes_a_barrier_if_asked(asked, x, out, n, MISSING: tl.constexpr, FLAG: tl.constexpr):
    """Loaded data decides whether the programs meet."""
    p = tl.program_id(0)
    if tl.load(asked) > 0:
        tl.store(x + p, p + 1)
        if p != MISSING:
            al.sync_block_all("all_vector", 0)
        if FLAG:
            with al.scope(core_mode="vector"):
                al.sync_block_set("vector", "cube", 1)
            with al.scope(core_mode="cube"):
                al.sync_block_wait("vector", "cube", 1)
        tl.store(out + p, tl.load(x + (p + 1) % n))


@pytest.mark.parametrize("time", [True, False])
def test_a_barrier_that_loaded_data_decides_on_is_passed_by_all_programs_or_is_a_hang_at_its_line(time):
    asked, out = np.ones(1, np.int32), zeros(8)
    with sim.device(time=time):
        run = passes_a_barrier_if_asked[(3,)](asked, zeros(8), out, 3, MISSING=3, FLAG=False)
        assert out[:3].tolist() == [2, 3, 1]
        assert not run.faults
        with pytest.raises(sim.RunError, match=r"test_spins.py:.*hang: 2 of 3 programs reach sync_block_all"):
            passes_a_barrier_if_asked[(3,)](asked, zeros(8), out, 3, MISSING=1, FLAG=False)
        with pytest.raises(sim.RunError, match=r"test_spins.py:.*sync_block_all in a kernel with flags"):
            passes_a_barrier_if_asked[(3,)](asked, zeros(8), out, 3, MISSING=3, FLAG=True)


@sim.jit
def until(out, start, end, by, KIND: tl.constexpr):
    """Loops that a look ahead can follow, with turns beside them."""
    p = tl.program_id(0)
    turns = 0
    if KIND == "less":
        i = start + p
        while i < end:
            i += by
            turns += 1
    elif KIND == "both":
        i, j = start, end
        while (i < j) & (j > 0):
            i, j = i + by, j - 1
            turns += 1
    elif KIND == "small":
        k = start.to(tl.int8)
        while k >= 0:
            k = (k + by).to(tl.int8)
            turns += 1
    elif KIND == "hash":
        h = start.to(tl.uint32)
        while (h & 255) != 3:
            h = h * 1103515245 + 12345
            turns += 1
    tl.store(out + p, turns)


@given(
    st.sampled_from(["less", "both", "small", "hash"]),
    st.integers(0, 100),
    st.integers(30, 300),
    st.integers(1, 7),
    st.integers(1, 3),
)
def test_looking_ahead_refuses_no_loop_that_ends_within_the_limit(kind, start, end, by, programs):
    """And gives up those that do not where they have begun."""
    out, again = zeros(4), zeros(4)
    launch(until, (programs,), out, start, end, by, KIND=kind)
    need = max(1, int(out.max()) + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spin, "MANY", 2)
        with sim.device(step_limit=need):
            launch(until, (programs,), again, start, end, by, KIND=kind)
        assert again.tolist() == out.tolist()
        with sim.device(step_limit=need - 1 or 1):
            if need > 1:
                with pytest.raises(sim.RunError, match=f"more than {need - 1} loop iterations"):
                    launch(until, (programs,), again, start, end, by, KIND=kind)


@sim.jit
def steps_over(x, out, BY: tl.constexpr):
    i = tl.load(x)
    turns = tl.zeros((8,), tl.float32)
    while i != 10:
        i += BY
        turns += 1.0
    tl.store(out, i)


def test_a_loop_that_steps_over_its_end_is_carried_out_no_further_than_it_takes_to_see_that(monkeypatch):
    steps: list[int] = []
    real = Flow.step
    monkeypatch.setattr(Flow, "step", lambda self, op: (steps.append(1), real(self, op)))
    monkeypatch.setattr(spin, "MANY", 64)
    with sim.device(step_limit=5000), pytest.raises(sim.RunError, match="more than 5000 loop iterations"):
        launch(steps_over, (2,), np.ones(1, np.int32), zeros(), BY=2)
    assert len(steps) < 100
    out = zeros()
    launch(steps_over, (2,), np.ones(1, np.int32), out, BY=1)
    assert out[0] == 10
