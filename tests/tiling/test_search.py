"""The exact search against brute force on made-up spaces: the answer, the proof, no point more than needed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ascendtile.tiling.evaluate import Evaluation
from ascendtile.tiling.search.bounding import FIRST_PART, Bounding
from ascendtile.tiling.search.budget import Budget
from ascendtile.tiling.search.exact import BATCH, search
from ascendtile.tiling.space.space import Space

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
                yield Evaluation(refused="does not fit in UB", need_bytes=2000 + p["x"], have_bytes=1999)
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
    assert out.failed == {"it broke": 2}
    least, most = 2000 + min(refused), 2000 + max(refused)
    assert out.refused == {f"does not fit in UB: needs {least:,} to {most:,} of 1,999 bytes": 3}
    assert out.proof.endswith("us or more), whether they fit or not") or "all 97 legal points" in out.proof


@given(st.integers(0, 10_000), st.integers(1, 100))
def test_with_exact_bounds_and_batches_of_one_no_point_is_looked_at_behind_the_first_that_is_left(
    seed, count
):
    """Points above a limit are looked at in their order, and the nearest of them is kept."""
    space, times, _ = made_up(seed, count, 1.0)
    figures = np.random.default_rng(seed).uniform(0.5, 2.0, count)
    seen = []

    def evaluate(points):
        for p in points:
            k = p["x"]
            seen.append(k)
            over = float(figures[k])
            yield (
                Evaluation(refused="do not keep it", over=over)
                if over > 1
                else Evaluation(time_us=float(times[k]))
            )

    out = search(space, np.arange(count), times, "time", evaluate, NONE, batch=1)
    order = np.argsort(times, kind="stable").tolist()
    right = next((k for k in order if figures[k] <= 1), None)
    needed = [k for k in order if right is None or times[k] <= times[right]]
    assert seen == needed[: len(seen)]
    assert set(order[: order.index(right) + 1] if right is not None else order) <= set(seen) <= set(needed)
    above = [k for k in seen if figures[k] > 1]
    if above:
        assert out.nearest["do not keep it"].point == {"x": min(above, key=lambda k: figures[k])}


def test_a_larger_point_is_tried_though_a_smaller_one_does_not_fit():
    """Fit is not monotone: what has no room says nothing about its neighbours."""
    space, times, bounds = made_up(3, 64, 0.5)
    for lacking in (range(32), range(32, 64), range(0, 64, 2), range(1, 64, 2)):
        seen = []
        out = search(space, np.arange(64), bounds, "time", evaluator(times, seen, (), lacking), NONE)
        fitting = [k for k in range(64) if k not in lacking]
        assert out.best("time") == times[fitting].min()
        assert sum(out.refused.values()) == len(set(seen) & set(lacking))


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
    monkeypatch.setattr("ascendtile.tiling.search.budget.clock.perf_counter", lambda: next(now))
    out = search(space, np.arange(200), bounds * 0, "time", evaluator(times, []), Budget(None, 5.0))
    assert 0 < out.looked < BATCH
    assert out.proof.startswith("not proved: the budget ended with")


class Clock:
    """Time that passes where the test says so."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        monkeypatch.setattr("ascendtile.tiling.search.budget.clock.perf_counter", lambda: self.now)

    def costs(self, seconds, function):
        """The function, each call of which takes that long."""

        def slow(*given):
            self.now += seconds(*given) if callable(seconds) else seconds
            return function(*given)

        return slow


def slowly(clock, times, bounds, seconds, each_bound, each_point):
    """A search of points whose bounds and evaluations take so many seconds each; gives outcome, bounding and budget."""
    budget = Budget(None, seconds, began=clock.now)
    clock.now += 0.1 * seconds  # imports, rules
    least = clock.costs(lambda some: each_bound * len(some), lambda some: bounds[some])
    bounding = Bounding(least, np.arange(len(times)), budget)
    first = bounding.first()
    space = Space({"x": range(len(times))})

    def evaluate(points):
        for one in evaluator(times, [])(points):
            clock.now += each_point
            yield one

    return search(space, *first, "time", evaluate, budget, bounding=bounding), bounding, budget


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(1, 20_000),
    st.floats(1.0, 60.0),
    st.floats(1e-6, 1e-2),
    st.floats(1e-3, 0.2),
    st.integers(0, 99),
)
def test_a_budget_of_time_holds_within_a_fifth_bounds_included(
    monkeypatch, count, seconds, each_bound, each_point, seed
):
    """Whatever a bound takes: beyond the time is at most one point, or the first part of the bounds."""
    clock = Clock(monkeypatch)
    _, times, bounds = made_up(seed, count, 0.5)
    out, bounding, budget = slowly(clock, times, bounds, seconds, each_bound, each_point)
    late = max(each_point, each_bound * FIRST_PART)
    assert budget.gone() <= 1.2 * seconds + late
    if out.optimal:
        assert (bounding.left, out.best("time")) == (0, times.min())
    else:
        assert out.proof.startswith("not proved: the budget ended")
        assert budget.late(ahead=max(bounding.ahead, each_point)) or bounding.left == 0


def test_bounds_that_were_not_computed_in_time_are_told(monkeypatch):
    clock = Clock(monkeypatch)
    _, times, bounds = made_up(3, 20_000, 0.5)
    out, bounding, _ = slowly(clock, times, bounds, 40.0, 0.01, 0.5)
    assert bounding.left > 0
    assert f"{bounding.left:,} of them without a bound, for which there was no time" in out.proof
    assert out.found


def test_time_that_is_left_goes_to_more_bounds(monkeypatch):
    """Bounds take half of the time at first; where no other point can be the best, the rest of it as well."""
    clock = Clock(monkeypatch)
    _, times, bounds = made_up(4, 20_000, 0.0)
    out, bounding, budget = slowly(clock, times, bounds, 40.0, 0.0015, 0.001)
    assert bounding.left == 0
    assert out.optimal
    assert 20 < budget.gone() < 40
