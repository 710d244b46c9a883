"""Intervals of predictions: which launch they rest on, how the ends are fitted, and how many measured times they hold."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascendtile.kernels.validation import predict, read_tables
from ascendtile.kernels.validation.accuracy.fitting import fit, held_out, source_of
from ascendtile.kernels.validation.accuracy.intervals import basis_of
from ascendtile.kernels.validation.accuracy.regression import Bands, Sample, ends, left_out, widening
from ascendtile.simulator.observers import quietly, watch_times
from ascendtile.simulator.timing.results.error_model import features

ROWS = {r.id: r for r in read_tables()}


def sample(errors, sources=None, more=None, least=0.0):
    n = len(errors)
    terms = np.ones((n, 1)) if more is None else np.stack([np.ones(n), np.asarray(more, float)], axis=1)
    names = tuple(f"s{k % 8}" for k in range(n)) if sources is None else sources
    return Sample(terms, np.asarray(errors, float), names, np.full(terms.shape[1], least))


def test_a_prediction_rests_on_the_launch_that_it_took_of_those_that_were_tried():
    launches = []
    with quietly(), watch_times(launches.append):
        found = predict(ROWS["msi-alexnet-relu_grad-3"])
    (taken,) = {x.time_us: x for x in launches if x.time_us == found.value}.values()
    assert len({x.time_us for x in launches}) > 1
    assert found.interval == pytest.approx((taken.low_us, taken.high_us))
    assert found.basis.features == features(taken)


def test_a_prediction_with_the_tiling_that_was_measured_is_not_less_certain():
    row = ROWS["msi-alexnet-relu_grad-3"]
    guessed = predict(row)
    block = guessed.note.partition("blocks of ")[2].split(";")[0]
    known = predict(replace(row, tiling=f"{row.tiling} block={block}"))
    assert (known.basis.features["tiling"], guessed.basis.features["tiling"]) == (0, 1)
    assert guessed.interval[0] <= known.interval[0] < known.value < known.interval[1] <= guessed.interval[1]


def test_part_of_a_kernel_stands_for_the_whole_and_instructions_have_no_interval():
    whole = predict(ROWS["msi-qwen-cast-7"])
    launches = []
    with watch_times(launches.append):
        predict(ROWS["msi-qwen-cast-7"])
    basis = basis_of(10 * whole.value, launches, "no tiling" not in whole.note)
    assert basis.around(10 * whole.value) == pytest.approx([10 * x for x in whole.interval])
    assert basis_of(1.0, [], True) is None
    micro = next(r for r in ROWS.values() if r.table == "micro" and not r.excluded)
    assert predict(micro).interval is None


def test_a_product_without_measurements_gets_wider_predictions():
    row = replace(ROWS["msi-qwen-cast-7"], dtypes="fp32->fp16")
    known, unknown = (predict(replace(row, product=p)).interval for p in (row.product, "ascend310p"))
    assert unknown[1] / unknown[0] > known[1] / known[0]


@settings(max_examples=3)
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 0.5))
def test_the_ends_are_the_quantiles_that_they_stand_for(seed, size):
    errors = np.random.default_rng(seed).laplace(0, size, 400)
    low, high = ends(sample(errors), 0.0)
    inside = (-low <= errors) & (errors <= high)
    assert abs(inside.mean() - 0.9) < 0.05
    assert min(low[0], high[0]) > 0


@settings(max_examples=3)
@given(st.integers(0, 2**32 - 1))
def test_a_term_that_makes_errors_larger_is_found_and_none_is_negative(seed):
    random = np.random.default_rng(seed)
    term = random.uniform(0, 1, 400)
    wide = ends(sample(random.normal(0, 0.05 + 0.5 * term), more=term), 0.001)
    narrow = ends(sample(random.normal(0, 0.55 - 0.5 * term), more=term), 0.001)
    assert all(end[1] > 0.3 for end in wide)
    assert all((end >= 0).all() and end[1] == 0 for end in narrow)
    assert all(end[0] >= 0.1 for end in ends(sample(np.zeros(40), least=0.1), 0.0))


def test_the_ends_do_not_depend_on_the_order_of_rows_and_shrink_with_the_price_of_terms():
    random = np.random.default_rng(0)
    term = random.uniform(0, 1, 200)
    errors, back = random.normal(0, 0.05 + 0.5 * term), slice(None, None, -1)
    one = sample(errors, more=term)
    other = sample(errors[back], sources=one.sources[back], more=term[back])
    np.testing.assert_allclose(ends(one, 0.01), ends(other, 0.01), rtol=1e-6)
    assert ends(one, 1.0)[1][1] < ends(one, 0.01)[1][1]


@pytest.mark.exhaustive
def test_a_source_is_judged_by_the_others_alone():
    errors = np.random.default_rng(1).normal(0, 0.2, 80)
    one = sample(errors)
    moved = np.where(np.array(one.sources) == "s0", errors + 5, errors)
    mine = np.array(one.sources) == "s0"
    before, after = left_out(one, 0.01), left_out(sample(moved), 0.01)
    np.testing.assert_array_equal(before.high[mine], after.high[mine])
    assert not after.inside[mine].any()
    assert (after.high[~mine] >= before.high[~mine]).all()


def test_intervals_are_widened_as_far_as_rows_left_out_need_it():
    found = Bands(np.full(100, 0.1), np.full(100, 0.1), np.linspace(-0.3, 0.3, 100))
    factor = widening(found, 0.92)
    assert found.wider(factor).coverage >= 0.92 > found.wider(factor - 0.03).coverage


@pytest.fixture(scope="module")
def kernels():
    return held_out()


@pytest.mark.exhaustive
def test_the_stored_intervals_hold_nine_of_ten_measured_times_and_are_not_vacuous(kernels):
    assert len(kernels) > 200
    assert 0.85 <= np.mean([r.inside for r in kernels]) <= 0.95
    assert np.median([r.interval[1] / r.interval[0] for r in kernels]) < 5


@pytest.mark.exhaustive
def test_the_form_of_the_model_holds_nine_of_ten_of_sources_that_it_has_not_seen(kernels):
    fitted = fit(kernels)
    assert 0.85 <= fitted.left_out.coverage <= 0.95
    assert 0.8 < fitted.factor < 1.4
    assert len({source_of(r.row) for r in kernels}) >= 8
