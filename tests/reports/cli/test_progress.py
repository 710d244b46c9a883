"""What is said of a long run while it runs: on standard error, now and then, and nothing on standard output."""

from __future__ import annotations

import io
import threading

import numpy as np
import pytest

from ascendtile.reports.cli import progress
from ascendtile.reports.cli.progress import (
    FIRST_LINE,
    FIRST_ON_TERMINAL,
    LONGEST,
    Reporter,
    of_launches,
    state_line,
)
from ascendtile.simulator import device, jit
from ascendtile.simulator import language as tl
from ascendtile.simulator import progress as at_work
from ascendtile.simulator.triton_shim import kernel, tuning
from ascendtile.simulator.triton_shim.config import Config


class Output(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


class Clock:
    """Seconds that pass when a test says so."""

    now = 0.0

    def __call__(self):
        return self.now


def reporter(terminal):
    clock = Clock()
    return Reporter(Output(terminal), clock), clock


def test_lines_come_ever_less_often_where_there_is_no_terminal():
    shown, clock = reporter(terminal=False)
    times = []
    with at_work.launching("slow", 4):
        for second in range(1000):
            clock.now = second
            before = shown.out.getvalue()
            shown.look()
            if shown.out.getvalue() != before:
                times.append(second)
    assert times[:4] == [FIRST_LINE, 2 * FIRST_LINE, 4 * FIRST_LINE, 8 * FIRST_LINE]
    gaps = np.diff(times)
    assert gaps.max() == LONGEST
    assert all("launch" in line and "slow" in line for line in shown.out.getvalue().splitlines())


def test_a_line_comes_and_goes_on_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    shown, clock = reporter(terminal=True)
    with at_work.launching("a_kernel_with_a_long_name", 4):
        shown.look()
        assert shown.out.getvalue() == ""
        clock.now = FIRST_ON_TERMINAL
        shown.look()
        text = shown.out.getvalue()
        assert text.startswith("\r\x1b[K2 s, launch")
        assert len(text) <= len("\r\x1b[K") + 29
        assert "\n" not in text
    shown.clear()
    assert shown.out.getvalue().endswith("\r\x1b[K")
    shown.look()
    assert shown.out.getvalue().endswith("\r\x1b[K"), "nothing is at work"


@jit
def slow(x, out, n, B: tl.constexpr):
    acc = tl.zeros([B], tl.float32)
    for i in range(n):
        acc += tl.load(x + tl.arange(0, B)) * i
        if tl.program_id(0) < 0:
            tl.device_print("never", acc)
    tl.store(out + tl.program_id(0) * B + tl.arange(0, B), acc)


def test_a_launch_says_what_it_is_at(monkeypatch):
    """Seen from inside of a launch: number, kernel, programs done, and afterwards nothing."""
    from ascendtile.simulator.execution.numpy_backend import NumpyBackend

    seen = []
    inner = NumpyBackend.load

    def load(self, *args):
        work, candidate = at_work.now()
        seen.append((state_line(work, candidate, 7.0), work.iterations))
        return inner(self, *args)

    monkeypatch.setattr(NumpyBackend, "load", load)
    with device(time=False):
        slow[(2,)](np.ones(8, np.float32), np.zeros(16, np.float32), 3, B=8)
    assert at_work.now() == (None, None)
    assert seen, "the launch was looked at"
    assert all(text.startswith("7 s, launch ") and " slow" in text for text, _ in seen)
    assert max(iterations for _, iterations in seen) <= 3


def test_a_tuners_candidates_are_counted(monkeypatch):
    seen = []
    inner = at_work.launching

    def launching(*args):
        seen.append(at_work.now()[1])
        return inner(*args)

    monkeypatch.setattr(at_work, "launching", launching)

    @kernel.jit
    def fill(out, B: tl.constexpr):
        tl.store(out + tl.arange(0, B), 1.0)

    tuned = tuning.autotune([Config({"B": b}) for b in (16, 32)], key=[])(fill)
    tuned[(1,)](np.zeros(32, np.float32))
    assert seen == [(1, 2), (2, 2), None]


def test_the_thread_ends_with_the_block_and_output_stays_clean(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
    with of_launches():
        with at_work.launching("busy", 1):
            name = "ascendtile progress"
            (thread,) = [t for t in threading.enumerate() if t.name == name]
            thread.join(0.2)
        assert thread.is_alive()
    assert not thread.is_alive()
    out, err = capsys.readouterr()
    assert out == ""
    assert "busy" in err
    assert not at_work.listeners


@pytest.mark.parametrize(
    ("done", "iterations", "candidate", "text"),
    [
        (0, 0, None, "12 s, launch 3 k"),
        (2, 0, (1, 4), "12 s, launch 3 k, config 1 of 4, 2 of 9 programs done"),
        (0, 1234, None, "12 s, launch 3 k, 1,234 loop iterations"),
    ],
)
def test_words(done, iterations, candidate, text):
    class Interpreting:
        step_limit, steps_left = 5000, 5000 - iterations

    work = at_work.Work("k", 9, 3, done=done, interpreter=Interpreting())
    assert state_line(work, candidate, 12.3) == text
