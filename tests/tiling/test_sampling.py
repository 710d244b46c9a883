"""Sampling: legal and new points only, learns from the store, and beats random search at equal budget on a large space."""

from __future__ import annotations

import math
from statistics import mean

import pytest

from ascendtile.simulator.errors import UsageError
from ascendtile.tiling import Space, explore, powers_of_two
from ascendtile.tiling.evaluate import Evaluation
from ascendtile.tiling.search import proposals
from ascendtile.tiling.search.budget import Budget
from ascendtile.tiling.search.sampling import sample

LARGE = Space(
    {
        **{f"b{k}": powers_of_two(1, 1 << 15) for k in range(5)},
        "way": ("a", "b", "c", "d"),
        "copies": (1, 2, 3, 4),
    },
    [lambda b0, b1, **_: b0 * b1 <= 1 << 24],
)
BEST = {"b0": 256, "b1": 1024, "b2": 32, "b3": 4096, "b4": 4, "way": "c", "copies": 2}


def valley(point) -> float:
    """A time with one valley, steps and a wrong way, as tilings have: least at `BEST`."""
    far = sum(abs(math.log2(point[n] / BEST[n])) for n in BEST if n.startswith("b"))
    return (
        10.0 + far**1.5 + 15.0 * (point["way"] != BEST["way"]) + 4.0 * abs(point["copies"] - BEST["copies"])
    )


class Counted:
    """Evaluations, and how many there were."""

    def __init__(self) -> None:
        self.points: list[dict] = []

    def __call__(self, points):
        for p in points:
            self.points.append(p)
            yield Evaluation(time_us=valley(p), ub_peak_bytes=p["b0"], errors={"out": 1.0 / p["b1"]})


def run(sampler, seed, budget=100, **more):
    counted = Counted()
    out = sample(LARGE, more.pop("least", None), "time", counted, Budget(budget), sampler, seed, **more)
    return out, counted


def test_the_space_is_beyond_listing_and_has_an_answer():
    assert LARGE.size == 16**5 * 16
    assert valley(BEST) == 10.0


def test_random_points_are_legal_new_and_no_more_than_the_budget():
    out, counted = run("random", 0)
    assert len(counted.points) == out.looked == 100
    assert len({tuple(p.values()) for p in counted.points}) == 100
    assert all(p["b0"] * p["b1"] <= 1 << 24 for p in counted.points)
    assert not out.optimal
    assert out.proof.startswith("not proved: 100 of 16,777,216 points sampled (random, seed 0); best")
    assert run("random", 0)[1].points == counted.points
    assert run("random", 1)[1].points != counted.points


def test_what_has_a_bound_above_the_best_is_not_evaluated():
    out, counted = run(
        "random", 0, budget=60, least=lambda numbers: [0.95 * valley(LARGE.point(int(k))) for k in numbers]
    )
    best = float("inf")
    for p in counted.points[:16]:
        best = min(best, valley(p))
    assert all(0.95 * valley(p) <= best for p in counted.points[16:])
    assert out.best("time") <= best


def test_unknown_sampler():
    with pytest.raises(UsageError, match="sampler must be one of exact, random, tpe, nsga2, got 'luck'"):
        run("luck", 0)


@pytest.mark.extra("optuna")
def test_tpe_beats_random_at_equal_budget_over_seeds():
    seeds = range(4)
    tpe = [run("tpe", s)[0].best("time") for s in seeds]
    luck = [run("random", s)[0].best("time") for s in seeds]
    assert mean(tpe) < mean(luck)
    assert sum(a < b for a, b in zip(tpe, luck, strict=True)) >= 3


@pytest.mark.extra("optuna")
def test_tpe_begins_without_optuna_and_asks_it_for_one_point_in_32(monkeypatch):
    """Optuna takes longer than many evaluations: this is what keeps the sampler a small part of a sweep."""
    asked: list[int] = []

    class Counting(proposals.OptunaStudy):
        def ask(self, count):
            asked.append(count)
            return super().ask(count)

    monkeypatch.setattr(proposals, "OptunaStudy", Counting)
    monkeypatch.setattr(proposals, "_optuna", lambda: pytest.fail("Optuna is not needed yet"))
    run("tpe", 0, budget=proposals.STARTUP)
    monkeypatch.undo()
    assert sum(asked) == 0
    monkeypatch.setattr(proposals, "OptunaStudy", Counting)
    _, counted = run("tpe", 0, budget=120)
    assert len(counted.points) == 120
    assert 1 <= sum(asked) <= 120 // proposals.SHARES["tpe"]


@pytest.mark.extra("optuna")
def test_tpe_looks_at_a_bounded_number_of_results():
    study = proposals.OptunaStudy(LARGE, "tpe", 1, 0)
    costs = {number: valley(LARGE.point(number)) for number in range(0, LARGE.size, LARGE.size // 900)}
    for number, c in costs.items():
        study.tell(None, number, (c,))
    ((trial, number),) = study.ask(1)
    study.tell(trial, number, (valley(LARGE.point(number)),))
    values = [t.value for t in study.made.trials]
    assert len(values) == proposals.MOST_TRIALS + 1
    assert set(sorted(costs.values())[: proposals.BEST_TRIALS]) <= set(values)


def test_a_sweep_ends_when_nothing_is_left_to_try():
    few = Space(
        {"b0": (1, 2), "b1": (1, 2, 4), **{f"b{k}": (4,) for k in (2, 3, 4)}, "way": ("a",), "copies": (1,)}
    )
    counted = Counted()
    out = sample(few, None, "time", counted, Budget(100), "random", 0)
    assert len(counted.points) == out.looked == 6
    assert out.optimal  # nothing is left: that is a proof
    assert (
        out.proof == f"best {out.best('time'):,.6g} us; all 6 legal points that may be better were evaluated"
    )


def test_all_but_points_with_a_bound_above_the_best_is_a_proof():
    few = Space({"b0": powers_of_two(1, 1 << 15), "b1": powers_of_two(1, 1 << 15), **{n: (BEST[n],) for n in BEST if
                 n not in ("b0", "b1")}})  # fmt: skip
    out = sample(
        few,
        lambda ks: [0.9 * valley(few.point(int(k))) for k in ks],
        "time",
        Counted(),
        Budget(256),
        "random",
        0,
    )
    assert out.looked < few.size
    assert out.optimal
    assert out.best("time") == 10.0
    assert "more have a bound above it" in out.proof
    cut = sample(few, None, "time", Counted(), Budget(255), "random", 0)
    assert not cut.optimal


@pytest.mark.parametrize("sampler", ["random", pytest.param("tpe", marks=pytest.mark.extra("optuna"))])
def test_a_space_without_a_legal_point_is_refused(sampler):
    with pytest.raises(UsageError, match=r"no legal point was found: .*'never' refused .*drop a rule"):
        sample(Space(LARGE.axes, [never]), None, "time", Counted(), Budget(9), sampler, 0)


def never(**point) -> bool:
    return False


@pytest.mark.parametrize(
    "sampler", ["random", *(pytest.param(s, marks=pytest.mark.extra("optuna")) for s in ("tpe", "nsga2"))]
)
def test_what_is_known_counts_and_the_budget_goes_on_from_there(sampler):
    first, counted = run(sampler, 0, budget=20)
    known = [(x.point, x.evaluation) for x in first.found] + [
        ({**BEST, "b0": 1 << 15, "b1": 1 << 15}, Evaluation(1.0))
    ]
    again, none = run(sampler, 0, budget=3, known=known)
    assert none.points == []
    assert again.found == first.found  # without the point that a rule refuses
    more, new = run(sampler, 0, budget=30, known=known)
    assert len(new.points) == 10
    assert not any(p in counted.points for p in new.points)
    assert more.best("time") <= first.best("time")
    assert "20 of them from the store" in more.proof


def test_points_ahead_come_first_and_need_not_be_of_the_space():
    ahead = {**BEST, "b0": 3}
    out, counted = run("random", 0, budget=5, ahead=[ahead])
    assert counted.points[0] == ahead
    assert out.looked == 5
    assert out.best("time") == valley(ahead)


def test_points_left_out_for_their_bound_are_counted():
    out, _ = run(
        "random", 0, budget=60, least=lambda numbers: [0.95 * valley(LARGE.point(int(k))) for k in numbers]
    )
    assert out.skipped > 0
    assert f"{out.skipped:,} more had a bound above the best" in out.proof


@pytest.mark.extra("optuna")
def test_tpe_learns_from_earlier_sweeps():
    _, first = run("tpe", 0, budget=100)
    known = [(p, next(Counted()([p]))) for p in first.points]
    fresh = mean(valley(p) for p in run("tpe", 7, budget=32)[1].points)
    taught = mean(valley(p) for p in run("tpe", 7, budget=132, known=known)[1].points)
    assert taught < fresh


@pytest.mark.extra("optuna")
def test_nsga2_spreads_along_time_error_and_ub():
    out, counted = run("nsga2", 0, budget=300)
    assert out.looked == len(counted.points) == 300
    half = [x.point for x in out.found][150:]
    early = [x.point for x in out.found][:24]
    assert mean(map(valley, half)) < mean(map(valley, early))


def test_explore_samples_a_space_of_an_operator(tmp_path):
    sizes = {"m": 96, "n": 64, "k": 128}
    store = tmp_path / "s.sqlite"
    found = explore("matmul", case=sizes, dtype="float16", sampler="random", budget=6, seed=4, store=store)
    assert found.evaluated == 6
    assert found.sampler == "random"
    assert not found.optimal
    again = explore("matmul", case=sizes, dtype="float16", sampler="random", budget=6, seed=4, store=store)
    assert again.reused == 6
    assert again.found == found.found


def test_without_optuna_the_way_out_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UsageError, match=r"pip install 'ascendtile\[search\]'"):
        run("tpe", 0)
