"""The exact search against brute force on made-up spaces: the answer, the proof, no point more than needed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.tiling.evaluate import Evaluation
from ascendtile.tiling.search import BATCH, Budget, search
from ascendtile.tiling.space import Space

NONE = Budget()


def made_up(seed: int, count: int, tight: float):
    """A space with times, and bounds that are at most the times."""
    draw = np.random.default_rng(seed)
    times = draw.uniform(1.0, 10.0, count).round(1)
    bounds = times * draw.uniform(tight, 1.0, count)
    return Space({"x": range(count)}), times, bounds


def evaluator(times, seen, broken=(), refused=()):
    def evaluate(points):
        for p in points:
            seen.append(p["x"])
            if p["x"] in broken:
                yield Evaluation(failed="it broke")
            elif p["x"] in refused:
                yield Evaluation(refused="does not fit in UB")
            else:
                yield Evaluation(time_us=float(times[p["x"]]), ub_peak_bytes=1000 - p["x"])

    return evaluate


@given(st.integers(0, 10_000), st.integers(1, 300), st.floats(0.0, 1.0))
def test_answer_is_that_of_brute_force_and_proved(seed, count, tight):
    space, times, bounds = made_up(seed, count, tight)
    seen = []
    out = search(space, np.arange(count), bounds, "time", evaluator(times, seen), NONE)
    assert out.optimal
    assert out.best("time") == times.min()
    assert len(seen) == len(set(seen))
    needed = int((bounds <= times.min()).sum())
    assert needed <= len(seen) <= needed + BATCH
    left = count - len(seen)
    words = f"all {left:,} remaining points have a bound above it" if left else f"all {count:,} legal points"
    assert words in out.proof


@given(st.integers(0, 10_000), st.integers(1, 100))
def test_without_bounds_every_point_is_looked_at(seed, count):
    space, times, _ = made_up(seed, count, 0.5)
    seen = []
    out = search(space, np.arange(count), None, "ub", evaluator(times, seen), NONE)
    assert out.optimal
    assert seen == list(range(count))
    assert out.best("ub") == 1000 - (count - 1)


def test_failures_and_refusals_are_counted_and_do_not_win():
    space, times, bounds = made_up(3, 100, 0.0)
    order = np.argsort(times)
    broken, refused = set(order[:2].tolist()), set(order[2:5].tolist())
    out = search(space, np.arange(100), bounds, "time", evaluator(times, [], broken, refused), NONE)
    assert out.best("time") == times[order[5]]
    assert out.optimal
    assert out.failed == {"it broke": 2, "does not fit in UB": 3}
    assert out.refused == {}  # by rules, which do not know yet
    assert "which of them fit in the buffers was not looked at" in out.proof


def test_points_ahead_are_evaluated_first_even_if_the_time_is_up():
    space, times, bounds = made_up(3, 100, 0.0)
    seen, ahead = [], [{"x": int(np.argmax(times))}]
    rest = np.delete(np.arange(100), ahead[0]["x"])
    out = search(space, rest, bounds[rest], "time", evaluator(times, seen), NONE, ahead=ahead)
    assert seen[0] == ahead[0]["x"]
    assert out.optimal
    assert out.best("time") == times.min()
    late = search(space, rest, bounds[rest], "time", evaluator(times, []), Budget(None, 1e-9), ahead=ahead)
    assert [x.point for x in late.found] == ahead
    assert "with 99 of 100 legal points not looked at" in late.proof


def test_nothing_runs():
    space, times, bounds = made_up(3, 10, 0.5)
    out = search(space, np.arange(10), bounds, "time", evaluator(times, [], range(10)), NONE)
    assert not out.optimal
    assert out.proof == "none of the 10 points that the rules allow could be run"
    assert out.failed == {"it broke": 10}


def test_a_budget_ends_the_search_without_a_proof():
    space, times, bounds = made_up(5, 200, 0.0)
    seen = []
    out = search(space, np.arange(200), bounds * 0, "time", evaluator(times, seen), Budget(50))
    assert len(seen) == 50
    assert not out.optimal
    assert out.proof.startswith(
        "not proved: the budget ended with 150 of 200 legal points not looked at, 150 of them"
    )
    none = search(space, np.arange(200), bounds * 0, "time", evaluator(times, seen), Budget(None, 1e-9))
    assert none.looked == 0
    assert not none.optimal


def test_an_interruption_keeps_what_is_done():
    space, times, bounds = made_up(5, 200, 0.0)

    def evaluate(points):
        for k, e in enumerate(evaluator(times, [])(points)):
            if k == 7:
                raise KeyboardInterrupt
            yield e

    out = search(space, np.arange(200), bounds * 0, "time", evaluate, NONE)
    assert out.interrupted
    assert not out.optimal
    assert len(out.found) == 7
    assert "interrupted with 193 of 200" in out.proof


def test_any_other_error_is_not_swallowed():
    space, _, bounds = made_up(5, 10, 0.0)

    def evaluate(points):
        raise ZeroDivisionError
        yield

    with pytest.raises(ZeroDivisionError):
        search(space, np.arange(10), bounds, "time", evaluate, NONE)


def test_progress_is_told_after_every_point():
    space, times, bounds = made_up(5, 60, 0.9)
    told = []
    search(space, np.arange(60), bounds, "time", evaluator(times, []), NONE, lambda *x: told.append(x))
    assert [d for d, _, _ in told] == list(range(1, len(told) + 1))
    assert told[-1][2] == times.min()
    assert all(left >= 0 for _, left, _ in told)


def test_a_budget_of_time_ends_within_a_batch(monkeypatch):
    space, times, bounds = made_up(5, 200, 0.0)
    now = iter(range(1000))
    monkeypatch.setattr("ascendtile.tiling.search.clock.perf_counter", lambda: next(now))
    out = search(space, np.arange(200), bounds * 0, "time", evaluator(times, []), Budget(None, 5.0))
    assert 0 < out.looked < BATCH
    assert out.proof.startswith("not proved: the budget ended with")
