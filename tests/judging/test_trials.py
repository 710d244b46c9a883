"""What is tried of a long launch, on parts of its programs: they say what the whole launch would."""

from dataclasses import replace

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.reports.judging.pricing import trying
from ascendtile.reports.judging.pricing.trying import TimedCalls, explained, part_share
from ascendtile.simulator.launch import timed
from ascendtile.simulator.observers import watch_calls
from ascendtile.simulator.trials.knobs import trials

X = sim.shape((1 << 25,), "float32")  # twice that is more than L2 has


@sim.jit
def scaled(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2.0, mask=at < n)


@sim.jit
def row_sums(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for k in range(0, n, BLOCK):
        at = k + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * n + at, mask=at < n, other=0.0)
    tl.store(y_ptr + row, tl.sum(total, 0))


def call_of(kernel, grid, *arguments, **constants):
    calls = []
    with sim.device("ascend910b3", values=False, compiler="triton-ascend"), watch_calls(calls.append):
        kernel[grid](*arguments, **constants)
    return replace(calls[0], device=replace(calls[0].device, explain=True))


def scaled_call(block):
    out = sim.shape(X.shape, "float32")
    return call_of(scaled, lambda meta: (X.size // meta["BLOCK"],), X, out, X.size, BLOCK=block)


@pytest.mark.parametrize("block", [4096, 8192])
def test_a_part_of_a_stream_says_how_long_all_of_it_takes(block):
    call = scaled_call(block)
    assert part_share(call) < 1
    assert TimedCalls(call).of(call).time_us == pytest.approx(timed(call)[0].time_us, rel=0.01)


def test_a_part_of_many_rows_says_how_long_all_of_them_take():
    rows = sim.shape((2048, 4096), "float32"), sim.shape((2048,), "float32"), 4096
    call = call_of(row_sums, (2048,), *rows, BLOCK=512)
    whole = timed(call)[0].time_us
    assert TimedCalls(call).of(call).time_us == pytest.approx(whole, rel=0.01)
    changed = explained(call, whole)
    assert changed["of_part"]
    bigger = call_of(row_sums, (2048,), *rows, BLOCK=1024)
    assert changed["changes_us"]["BLOCK 512 -> 1024"] == pytest.approx(timed(bigger)[0].time_us, rel=0.01)


def test_trials_end_when_as_many_instructions_were_timed_as_a_verdict_may(monkeypatch):
    call = scaled_call(1024)
    all_of_them = explained(call, 1000.0)
    first = TimedCalls(call)
    first.of(call)
    monkeypatch.setattr(trying, "MOST_TIMED", 3 * first.instructions // 2)
    some = explained(call, 1000.0)
    assert 0 < len(some["changes_us"]) < len(all_of_them["changes_us"])
    assert some["changes_us"].items() <= all_of_them["changes_us"].items()
    assert trying.SPENT in "".join(some["untried"].values())


def test_what_trials_may_look_at_bounds_them_and_is_said():
    call = scaled_call(4096)
    few = trials(call, timed(call)[0].time_us, lambda changed: timed(changed)[0], most_accesses=3)
    assert "as many accesses were looked at" in few.untried["BLOCK=8192"]
    assert not few.changes.keys() - {x for x in few.changes if x.startswith("multibuffer")}
