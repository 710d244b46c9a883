"""What measured times lie between: laws of the error model and of the launches that have it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels import run_op
from ascendtile.simulator.products import Product, load_product, product_names
from ascendtile.simulator.record.later import but
from ascendtile.simulator.timing.results.error_model import (
    ENOUGH_ROWS,
    features,
    stored,
    wider_with,
    with_interval,
)

FEATURES = ("any", "launch", "waits", "assumed", "vector", "mixed", "tiling")
shares = st.fixed_dictionaries({n: st.floats(0, 1) for n in FEATURES[1:]}).map(lambda x: {"any": 1.0, **x})


@sim.jit
def add(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x + x, mask=at < n)


def timed(product="ascend910b3", n=100_000, **options):
    x = sim.shape(n, "float16")
    with sim.device(product, **options):
        return add.time((7,), x, x, n, BLOCK=16384)


def log_width(run):
    low, high = run.interval_us
    return high / low


@given(shares, st.sampled_from(FEATURES[1:]), st.floats(0, 1), st.integers(0, 300))
def test_more_of_a_feature_never_makes_an_interval_narrower_and_it_holds_the_time(found, name, more, rows):
    model = stored()
    low, high = model.logarithms(found, rows)
    wider = model.logarithms({**found, name: max(found[name], more)}, rows)
    assert 0 < low <= wider[0]
    assert 0 < high <= wider[1]


@given(shares, st.floats(0.01, 1))
def test_more_assumed_figures_make_it_wider(found, more):
    fewer, model = {**found, "assumed": found["assumed"] * (1 - more)}, stored()
    if found["assumed"] - fewer["assumed"] > 1e-6:
        assert all(a < b for a, b in zip(model.logarithms(fewer, 0), model.logarithms(found, 0), strict=True))


@given(shares)
def test_a_product_is_known_the_better_the_more_kernels_were_measured(found):
    many, few, none = (stored().logarithms(found, n) for n in (ENOUGH_ROWS, 1, 0))
    assert all(a < b < c for a, b, c in zip(many, few, none, strict=True))
    assert wider_with(ENOUGH_ROWS) == 1


@pytest.mark.parametrize("name", product_names())
def test_products_without_measurements_get_wider_intervals_than_those_with(name):
    rows, measured = stored().rows_of(load_product(name)), timed("ascend910b3")
    run = timed(name)
    assert (run.measured_rows >= ENOUGH_ROWS) == name.startswith(("ascend910b", "ascend910c"))
    assert (rows, run.measured_rows == 0) == (run.measured_rows, name.startswith("ascend310"))
    if rows < ENOUGH_ROWS:
        assert log_width(run) > log_width(measured)


def test_a_product_made_from_another_one_is_known_as_well_as_that_one():
    base = load_product("ascend910b3")
    other = Product("mine", base.figures_by_key, base.sources)
    assert stored().rows_of(other) == stored().rows_of(base)


def test_the_interval_is_there_unless_details_are_left_out_and_takes_no_simulation():
    run = timed()
    low, high = run.interval_us
    assert low < run.time_us < high
    assert run.launches[0].lifted == {}
    assert timed(details=False).interval_us is None
    assert timed().interval_us == run.interval_us


def test_figures_that_nobody_published_make_the_interval_wider():
    base = load_product("ascend910b3")
    worse = {k: replace(f, grade="D") if k.startswith("path.") else f for k, f in base.figures_by_key.items()}
    known, guessed = timed(base), timed(Product(base.name, worse, base.sources))
    assert guessed.time_us == known.time_us
    assert log_width(guessed) > log_width(known)


def test_ends_of_launches_add_up():
    run = run_op("rms_norm_grad", case="tiny", values=False).run
    ends = [(x.low_us, x.high_us) for x in run.launches]
    assert len(ends) > 1
    assert run.interval_us == tuple(map(sum, zip(*ends, strict=True)))


def test_what_an_older_record_has_between_brackets_is_not_told_as_this():
    run = timed()
    old = replace(run, launches=(but(run.launches[0], low_us=1.0, high_us=2.0, measured_rows=None),))
    assert old.interval_us is None


def test_features_are_shares_and_depend_on_the_launch_alone():
    launch = timed().launches[0]
    found = features(launch)
    assert tuple(found) == FEATURES
    assert all(0 <= x <= 1 for x in found.values())
    longer = but(launch, time_us=10 * launch.time_us, overhead_us=10 * launch.overhead_us)
    assert features(longer)["launch"] == pytest.approx(found["launch"])
    again = with_interval(launch, load_product("ascend910b3"))
    assert (again.low_us, again.high_us) == (launch.low_us, launch.high_us)


def test_a_saved_run_keeps_its_interval(tmp_path):
    run = timed()
    run.save(tmp_path / "x.run")
    loaded = sim.load_run(tmp_path / "x.run")
    assert (loaded.interval_us, loaded.measured_rows) == (run.interval_us, run.measured_rows)
