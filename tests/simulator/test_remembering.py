"""The time of a launch that was made before is remembered, and only then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator import launch_cache as remembering
from ascendtile.simulator.products import load_product
from ascendtile.simulator.timing import estimate as timing
from ascendtile.simulator.timing import lowered
from ascendtile.simulator.timing.costs.provenance import channel_grades


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


def test_a_shape_has_no_address_that_could_differ(simulated: list[Any]) -> None:
    first, again = (scaled.time((4,), *[sim.shape(5000, "float32")] * 2, 5000, B=512) for _ in range(2))
    assert len(simulated) == 1
    assert again.launches == first.launches


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


@sim.jit
def both_cores(x, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    at = i[:, None] * B + tl.arange(0, B)[None, :]
    for _ in range(3):
        tile = tl.load(x + at)
        tl.store(out + at, tl.exp(tl.dot(tile, tile)).to(tl.float16))


def times(product: Any) -> list[float]:
    half = sim.shape((6 * 64, 64), "float16")
    with sim.device(product, l2="cold"):
        mixed = both_cores.time((6,), half, half, B=64)
        vector = scaled.time(
            (60,), sim.shape(1 << 18, "float32"), sim.shape(1 << 18, "float32"), 1 << 18, B=512
        )
    return [mixed.time_us, vector.time_us, *mixed.launches[0].bounds.values()]


PRODUCT = load_product("ascend910b3")
OF_ENGINE = [f.key for f in PRODUCT.figures() if f.key.startswith(lowered.ENGINE) and f.unit]


@pytest.mark.drawn(5)
@pytest.mark.parametrize("key", OF_ENGINE)
def test_a_launch_with_another_engine_is_not_lowered_again_and_takes_the_time_of_a_first_one(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = load_product(PRODUCT, {key: 1.5 * PRODUCT.number(key)})
    for cache in (remembering._launches, lowered.recent):
        cache.clear()
    alone = times(other)
    for cache in (remembering._launches, lowered.recent):
        cache.clear()
    times(PRODUCT)
    again: list[Any] = []
    real = timing.lowered_programs
    monkeypatch.setattr(timing, "lowered_programs", lambda *given: again.append(given) or real(*given))
    assert times(other) == alone
    grades = channel_grades(PRODUCT) == channel_grades(other)
    assert len(again) == (0 if grades else 2)  # a record has the grade of its channel


def test_a_launch_with_other_costs_is_lowered_again() -> None:
    first = times(PRODUCT)
    slower = {"path.gm_to_ub.bytes_per_cycle": PRODUCT.number("path.gm_to_ub.bytes_per_cycle") / 2}
    assert times(load_product(PRODUCT, slower))[1] > first[1]
    assert times(PRODUCT) == first
