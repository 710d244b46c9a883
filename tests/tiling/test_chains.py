"""Laws of the search for the cheapest assignment of a chain: it is that of brute force, its times are those of runs, and
an interrupted search goes on from its store."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels.chains import assigned, get_chain
from ascendtile.kernels.chains.bench import ChainBench
from ascendtile.kernels.chains.running import run_on
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision.need import Need
from ascendtile.simulator.precision.splits import SPLITS
from ascendtile.tiling import Interrupted
from ascendtile.tiling.chains import cheapest_chain
from ascendtile.tiling.chains.choices import REFUSED, REPEATED, ChainChoices
from ascendtile.tiling.chains.problem import ChainProblem

SIZES = {"tokens": 16, "hidden": 32, "inner": 48}
PRODUCT = "ascend910b3"
SPACE = {
    "weights": ("bf16", "fp32"),
    "h": ("fp16", "fp32"),
    "make_y": ("KEEP_DTYPE", "USE_HF32", "USE_FP16"),
}


@pytest.fixture(scope="module")
def every():
    """(assignment by name, run) of every point of SPACE, fastest first."""
    points = [dict(zip(SPACE, values, strict=True)) for values in itertools.product(*SPACE.values())]
    with sim.device(PRODUCT):
        bench = ChainBench(get_chain("mlp"), SIZES)
        runs = [(p, run_on(bench, assigned(bench.chain, *split(p)), blame=False)) for p in points]
    return sorted(runs, key=lambda x: x[1].time_us)


def split(point):
    return {n: x for n, x in point.items() if n != "make_y"}, {"make_y": point["make_y"]}


def search(need, **more):
    return cheapest_chain("mlp", need, SIZES, SPACE, product=PRODUCT, **more)


def bits(run):
    return run.errors["y"].effective_bits


@pytest.mark.drawn(2)
@pytest.mark.parametrize("wanted", [7, 9.5, 12, 40])
def test_the_cheapest_is_that_of_brute_force(every, wanted):
    check(every, wanted)


@pytest.mark.exhaustive
@given(st.floats(6, 24))
def test_the_cheapest_is_that_of_brute_force_whatever_is_needed(every, wanted):
    check(every, wanted)


def check(every, wanted):
    found = search({"bits": wanted})
    right = next((run for _, run in every if bits(run) >= wanted), None)
    assert found.proved
    if right is None:
        assert found.best is None
        assert bits(found.run) == max(bits(run) for _, run in every)
    else:
        assert found.run.time_us == pytest.approx(right.time_us)
        assert found.run.passed
        assert all(bits(run) < wanted for _, run in every if run.time_us < found.run.time_us * (1 - 1e-12))


def test_times_of_points_are_those_of_runs(every):
    with sim.device(PRODUCT):
        choices = ChainChoices(ChainBench(get_chain("mlp"), SIZES), SPACE, {}, {})
        for point, run in every:
            assert choices.time_us(point) == pytest.approx(run.time_us)


def test_modes_that_compute_the_same_are_one_point():
    """With FP16 operands USE_FP32_ADD alone changes what is computed; with FP32 ones three of five differ, as K is short."""
    space = {"all": ("fp16", "fp32"), "products": (0, 1, 2, 3, 4)}
    with sim.device(PRODUCT):
        choices = ChainChoices(ChainBench(get_chain("mlp"), SIZES), space, {}, {})
        legal, refused = choices.space.legal()
    kept = [(p["all"], p["products"]) for p in map(choices.space.point, legal.tolist())]
    assert kept == [
        ("fp16", "KEEP_DTYPE"), ("fp16", "USE_FP32_ADD"),
        ("fp32", "KEEP_DTYPE"), ("fp32", "ALLOW_FP32_DOWN_PRECISION"), ("fp32", "USE_FP16"),
    ]  # fmt: skip
    assert refused == {REPEATED: 5}


def test_what_a_product_refuses_is_no_point():
    space = {"all": ("fp16", "fp32"), "products": ("KEEP_DTYPE", "USE_FP16")}
    found = cheapest_chain("mlp", {"bits": 5}, SIZES, space, product="ascend910a")
    assert found.exploration.refused[REFUSED] == 1  # FP32 as it is
    assert found.run.passed


@pytest.mark.parametrize(("product", "there"), [("ascend910a", True), (PRODUCT, False)])
def test_splits_are_among_the_usual_modes_where_the_cube_takes_no_fp32(product, there):
    with sim.device(product):
        axes = ChainChoices(ChainBench(get_chain("mlp"), SIZES), {}, {}, {}).axes
    assert (set(SPLITS) < set(axes["make_y"])) == there


@pytest.mark.exhaustive
def test_a_split_is_the_answer_where_nothing_else_is_exact_enough():
    space = {"all": ("fp32",), "products": ("USE_FP16", "FP16X3")}
    found = cheapest_chain("mlp", {"bits": 16}, SIZES, space, product="ascend910a")
    assert found.best.modes["make_gate"] == "FP16X3"
    assert found.cheaper == 1


def test_splits_is_a_word_for_all_of_them():
    with sim.device(PRODUCT):
        axes = ChainChoices(ChainBench(get_chain("mlp"), SIZES), {"products": ("splits", 0)}, {}, {}).axes
    assert axes["products"] == ("KEEP_DTYPE", *SPLITS)


def test_a_search_goes_on_from_its_store(tmp_path):
    store = tmp_path / "chains.sqlite"
    first = search({"bits": 16}, store=store, budget=1)
    assert not first.proved
    assert first.exploration.proof.startswith("not proved: the budget ended")
    whole, again = (search({"bits": 16}, store=store) for _ in range(2))
    assert whole.exploration.reused == 1
    assert again.exploration.reused == 1 + again.cheaper == 2
    assert whole.best == again.best == search({"bits": 16}).best


def test_an_interrupted_search_says_so_and_keeps_what_it_had(tmp_path):
    def stop(done, left, best):
        raise KeyboardInterrupt

    store = tmp_path / "chains.sqlite"
    with pytest.raises(Interrupted) as stopped:
        search({"bits": 16}, store=store, report=stop)
    assert stopped.value.exploration.proof.startswith("not proved: interrupted")
    assert search({"bits": 16}, store=store).exploration.reused == 1


def test_what_results_depend_on_is_in_the_key_of_the_store():
    def described(**changed):
        given = {"sizes": SIZES, "need": Need(bits=3), "chain": get_chain("mlp"), "product": PRODUCT}
        return ChainProblem(**{**given, "overrides": {}, **changed}).describe()

    plain = described()
    for other in (
        {"seed": 1},
        {"distribution": "heavy"},
        {"need": Need(bits=4)},
        {"sizes": {**SIZES, "tokens": 32}},
        {"product": "ascend910b1"},
        {"formats": {"x": "fp16"}},
        {"chain": get_chain("norm_loss"), "sizes": {}},
    ):
        assert described(**other) != plain


def test_what_is_fixed_stays_and_is_no_axis():
    found = cheapest_chain(
        "mlp", {"bits": 3}, SIZES, None, {"weights": "fp16"}, {"products": 0}, product=PRODUCT
    )
    assert set(found.exploration.axes) == {"activations", "y"}
    assert {found.best.formats[n] for n in ("w_gate", "w_up", "w_down")} == {"fp16"}


@pytest.mark.parametrize(
    ("space", "words"),
    [
        ({"q": ("fp16",)}, "no tensor or step 'q'"),
        ({"x": ("fp17",)}, "fp17"),
        ({"activate": (0, 1)}, "multiplies nothing"),
        ({"make_y": (7,)}, "cube_math_type is 7"),
        ({"x": ()}, "has no value"),
        ({n: ("fp16", "bf16", "fp32", "tf32", "hf32") for n in ("x", "w_gate", "w_up", "w_down", "gate", "up", "h", "y")}
         | {n: range(5) for n in ("make_gate", "make_up", "make_y")}, "48,828,125 assignments, at most 200,000"),
    ],
)  # fmt: skip
def test_a_space_that_cannot_be_is_refused(space, words):
    with pytest.raises(UsageError, match=words):
        cheapest_chain("mlp", {"bits": 3}, SIZES, space, product=PRODUCT)


def test_a_chain_of_which_no_assignment_runs_is_refused_with_the_reason():
    with pytest.raises(UsageError, match=r"no assignment of the chain mlp runs: .* is refused on ascend910a"):
        cheapest_chain("mlp", {"bits": 3}, SIZES, {"all": ("fp32",), "products": (0,)}, product="ascend910a")
