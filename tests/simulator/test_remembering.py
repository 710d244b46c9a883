"""The time of a launch that was made before is remembered, and only then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator import launch_cache as remembering
from ascendtile.simulator.timing import estimate as timing


@sim.jit
def scaled(x, out, n, B: tl.constexpr):
    for i in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
        at = i + tl.arange(0, B)
        tl.store(out + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@sim.jit
def iterations(x, out, B: tl.constexpr):
    for _ in range(tl.load(x)):
        tl.store(out + tl.arange(0, B), 1)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """One entry for every launch whose time is simulated."""
    calls: list[Any] = []
    real = timing.estimate
    monkeypatch.setattr(timing, "estimate", lambda call, *more: calls.append(call) or real(call, *more))
    remembering._launches.clear()
    return calls


def test_the_same_launch_again(simulated: list[Any]) -> None:
    x = np.ones(5000, np.float32)
    out = np.zeros_like(x)
    first = scaled[(4,)](x, out, 5000, B=512)
    out[:] = 0
    again = scaled[(4,)](x, out, 5000, B=512)
    assert len(simulated) == 1
    assert again.launches == first.launches
    assert (out == 2).all()  # values are computed every time


@pytest.mark.parametrize(
    ("grid", "n", "options"),
    [
        (5, 5000, {}),
        (4, 4000, {}),
        (4, 5000.0, {}),
        (4, 5000, {"multibuffer": 1}),
        (4, 5000, {"num_warps": 2}),
    ],
    ids=["grid", "number", "type", "device", "keyword"],
)
def test_any_difference_is_another_launch(
    simulated: list[Any], grid: int, n: Any, options: dict[str, Any]
) -> None:
    x = np.ones(5000, np.float32)
    out = np.zeros_like(x)
    scaled[(4,)](x, out, 5000, B=512)
    try:
        scaled[(grid,)](x, out, n, B=512, **options)
    except sim.UsageError:
        assert isinstance(n, float)  # a loop to a float is refused, not remembered
    assert len(simulated) == 2 - isinstance(n, float)


def test_other_memory_another_product_and_another_shape_are_other_launches(simulated: list[Any]) -> None:
    x = np.ones(6000, np.float32)
    out = np.zeros_like(x)
    scaled[(4,)](x[:5000], out, 5000, B=512)
    scaled[(4,)](x[1:5001], out, 5000, B=512)
    scaled[(4,)](x[:5001], out, 5000, B=512)
    with sim.device("ascend310p"):
        scaled[(4,)](x[:5000], out, 5000, B=512)
    assert len(simulated) == 4


def test_times_that_depend_on_data_are_not_remembered() -> None:
    x, out = np.array([3], np.int32), np.zeros(64, np.int32)
    few = iterations[(1,)](x, out, B=64).cycles
    x[0] = 30
    assert iterations[(1,)](x, out, B=64).cycles > few


def test_what_is_kept_is_bounded(simulated: list[Any]) -> None:
    x = np.ones(5000, np.float32)
    for n in range(remembering.MOST + 10):
        scaled[(4,)](x, x, 1000 + n, B=512)
    assert len(remembering._launches) == remembering.MOST
