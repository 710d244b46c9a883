"""The parts of both cores, run side by side, give what the whole program gives: bit by bit, and nearly in its time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels.tutorials import attention, attention_backward, matmul
from ascendtile.kernels.tutorials.showing import drawn
from ascendtile.simulator import launch
from ascendtile.simulator.interpreter.two_cores.coscheduling import WHOLE, Interpreters
from ascendtile.simulator.interpreter.two_cores.flags import FlagOrder, Scheduling
from ascendtile.simulator.timing import estimate


@sim.jit
def branches_and_whiles(a, out, limit, M: tl.constexpr):
    """Products under a branch and in a `while` whose end the Vector core's scalars decide."""
    p = tl.program_id(0)
    i, j = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    at = p * M * M + i * M + j
    x = tl.load(a + at)
    total = tl.zeros((M, M), tl.float32)
    if p % 2 == 0:
        y = tl.dot(x, x)
        largest = tl.max(tl.abs(y))
    else:
        y = x + 1.0
        largest = tl.sum(x)
    iteration = 0
    while largest < limit:
        y = tl.dot(y.to(tl.float16), x.to(tl.float16)) + iteration
        total += tl.exp(-tl.abs(y))
        largest = largest + tl.max(tl.abs(y)) * 0.1 + 0.5
        iteration += 1
    tl.store(out + at, total + largest + iteration)


def attended(causal: bool) -> tuple[np.ndarray, ...]:
    q, k, v = (drawn(n, 2, 70, 32, dtype=np.float16) for n in (1, 2, 3))
    out, lse, _ = attention.attention(q, k, v, causal)
    return out, lse


def attended_backward() -> tuple[np.ndarray, ...]:
    q, k, v, dout = (drawn(n, 2, 40, 16, dtype=np.float32) for n in (1, 2, 3, 4))
    out, lse, _ = attention.attention(q, k, v, True)
    return tuple(x for x in attention_backward.attention_backward(q, k, v, out, lse, dout, True)[:3])


def multiplied() -> tuple[np.ndarray, ...]:
    a, b = drawn(1, 100, 70, dtype=np.float16), drawn(2, 70, 33, dtype=np.float16)
    return (matmul.matmul(a, b, "leaky_relu", block=(64, 32, 32))[0],)


def branched() -> tuple[np.ndarray, ...]:
    a, out = drawn(1, 6, 16, 16, dtype=np.float32), np.zeros((6, 16, 16), np.float32)
    branches_and_whiles[(6,)](a, out, 4.0, M=16)
    return (out,)


CASES: dict[str, Callable[[], tuple[np.ndarray, ...]]] = {
    "attention": lambda: attended(False),
    "causal attention": lambda: attended(True),
    "attention backward": attended_backward,
    "matmul": multiplied,
    "branches": branched,
}


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every launch runs its parts apart; the list grows with each run."""
    runs: list[int] = []
    real = Interpreters.run

    def run_parts(self: Interpreters, numbers: np.ndarray, *rest: Any) -> None:
        if WHOLE not in self.of:
            runs.append(len(numbers))
        real(self, numbers, *rest)

    monkeypatch.setattr(Interpreters, "run", run_parts)
    schedules = launch.scheduling
    monkeypatch.setattr(launch, "scheduling", lambda *given: Scheduling(True, schedules(*given).size))
    monkeypatch.setattr(estimate, "scheduling", lambda *given: Scheduling(True, schedules(*given).size))
    monkeypatch.setattr(estimate, "flag_order", lambda *given: FlagOrder(False, True, False))
    return runs


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", CASES)
def test_parts_give_the_values_of_the_whole(name: str, request: pytest.FixtureRequest) -> None:
    with sim.device("ascend910b3", time=False):
        whole = CASES[name]()
        runs = request.getfixturevalue("apart")
        parts = CASES[name]()
    assert runs
    assert all(np.array_equal(x, y) for x, y in zip(whole, parts, strict=True))


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", CASES)
def test_time_of_the_parts_is_that_of_the_whole(name: str, request: pytest.FixtureRequest) -> None:
    """Each core's scalar unit has its own index work here, so a few cycles may differ."""
    cycles: list[float] = []
    real = estimate._finish

    def finish(*given: Any) -> Any:
        out = real(*given)
        cycles.append(out.cycles)
        return out

    monkeypatch = request.getfixturevalue("monkeypatch")
    monkeypatch.setattr(estimate, "_finish", finish)
    with sim.device("ascend910b3"):
        CASES[name]()
        whole = cycles[:]
        cycles.clear()
        runs = request.getfixturevalue("apart")
        CASES[name]()
    assert runs
    assert cycles == pytest.approx(whole, rel=0.02)
