"""Experiments: the units predict what a launch gives, steps show as they are meant to, and no two models look alike."""

import sys
from itertools import product

import numpy as np
import pytest

from ascendtile import simulator as sim
from ascendtile.kernels.probe import read_probe, write_probe
from ascendtile.kernels.probe.all_experiments import all_experiments
from ascendtile.kernels.probe.cube_experiments import FORMATS, MOST_STEP
from ascendtile.kernels.probe.predict import predict
from ascendtile.kernels.probe.questions import QUESTIONS, SUMS
from ascendtile.kernels.probe.results import read_results
from ascendtile.kernels.probe.space import NOT_PROBED, VALUES, canonical, distinct, draw, units_of
from ascendtile.kernels.probe.steps import MORE, Steps, names_of, read_steps
from ascendtile.simulator.precision.numeric_switches import SWITCHES
from ascendtile.simulator.precision.rounding import round_to
from ascendtile.simulator.triton_shim.scripts.script import Script, run_script

LACKED, WAYS = ("bf16", "hf32", "fp32"), ("forward", "backward")


def run_board(folder, product=None, **numerics):
    """The very script that runs on a board, here without torch."""
    with sim.device(product, numerics=numerics, time=False):
        status = run_script(Script(str(folder / "run_probe.py"), ("--numpy",)), lambda run: None).status
    for name in ("probe_kernels", "run_probe"):
        sys.modules.pop(name, None)
    found = read_results(folder)
    assert status == bool(found.errors)  # one that failed makes the status
    return found


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_a_launch_gives_the_bits_that_the_units_predict(tmp_path, seed):
    choices = draw(np.random.default_rng(seed))
    write_probe(tmp_path / "probe")
    found = run_board(tmp_path / "probe", **choices)
    assert not found.errors
    for name, experiment in all_experiments().items():
        assert np.array_equal(found.words[name], predict(experiment, units_of(choices))), name


@pytest.mark.exhaustive
def test_a_kernel_that_fails_is_noted_and_tried_again_and_one_that_ended_the_process_is_passed_over(tmp_path):
    """On a product whose Cube takes FP16 alone, and which can accumulate in it."""
    folder = tmp_path / "probe"
    write_probe(folder)
    choices = {"fp16_accumulator": "on", "cube_block_k": 6, "cube_block_sum": "tree"}
    found = run_board(folder, "ascend910a", **choices)
    assert {n for n in found.errors if n.startswith("steps_")} == {
        f"steps_{f}_{w}" for f in LACKED for w in WAYS
    }
    named = read_probe(folder).choices
    assert {n: named[n] for n in choices} == {**choices, "cube_block_k": "fp16=6"}
    assert named["overflow_mode"] == "saturate"

    done = (folder / "results" / "fused_fp32.npz").stat().st_mtime_ns
    (folder / "results" / "steps_bf16_forward.started").touch()
    found = run_board(folder, "ascend910a", **choices)
    assert "the process ended while this kernel ran" in found.errors["steps_bf16_forward"]
    assert (folder / "results" / "fused_fp32.npz").stat().st_mtime_ns == done


def test_there_are_at_most_200_and_inputs_are_small():
    found = all_experiments()
    assert len(found) <= 200
    assert sum(x.words.nbytes for e in found.values() for x in e.tensors.values()) < 10e6


def test_operands_in_hf32_are_on_the_narrowest_grid_where_they_are_not_asked_about():
    for name in ("steps_hf32_forward", "steps_hf32_backward", "sums_hf32"):
        for x in all_experiments()[name].inputs.values():
            assert np.array_equal(round_to(x.values, "tf32", "TRUNC"), x.values)


def test_every_choice_that_a_kernel_shows_is_asked_about():
    asked = {n for q in QUESTIONS for n in q.choices} | {"cube_block_k", "cube_k_order", "fp16_accumulator"}
    assert asked == set(SWITCHES) - {"bf16_mode2"}
    assert set(NOT_PROBED) == {"cube_block_k", "bf16_mode2"}


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("order", ["ascending", "descending"])
@pytest.mark.parametrize("how", [("RNE", "exact"), ("ODD", "aligned=0"), ("CEIL", "tree")])
@pytest.mark.drawn(2)
def test_steps_are_read_off_whatever_the_rounding(fmt, order, how):
    for size in (1, 3, 16, MOST_STEP):
        choices = {"cube_block_k": size, "cube_k_order": order, **dict(zip(SUMS, how, strict=True))}
        seen = {n: predict(all_experiments()[n], units_of(choices)) for n in names_of(fmt)}
        found = read_steps(fmt, seen)
        assert (found.size, found.order, found.mixed) == (size, order, 0)


@pytest.mark.exhaustive
@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_every_size_of_a_step_is_read_off(order):
    for size in range(1, MOST_STEP + 1):
        units = units_of({"cube_block_k": size, "cube_k_order": order})
        seen = {n: predict(all_experiments()[n], units) for n in names_of("bf16")}
        assert read_steps("bf16", seen).size == size


def test_longer_steps_are_not_told_from_each_other():
    seen = {n: predict(all_experiments()[n], units_of({"cube_block_k": 4095})) for n in names_of("bf16")}
    assert read_steps("bf16", seen) == Steps(MORE, None, "fp32", 0, 32768)


def test_an_accumulator_of_11_bits_is_told_from_one_of_24():
    seen = {
        n: predict(all_experiments()[n], units_of({"cube_block_k": 20, "fp16_accumulator": "on"}))
        for n in names_of("fp16")
    }
    found = read_steps("fp16", seen)
    assert (found.size, found.order, found.accumulator) == (20, "ascending", "fp16")


def answers(experiments, base, choices):
    units = units_of({**base, **choices})
    return b"".join(predict(all_experiments()[n], units).tobytes() for n in experiments)


@pytest.mark.parametrize("name", [q.name for q in QUESTIONS if q.choices != SUMS])
def test_no_two_models_of_a_question_look_alike(name):
    """Beside choices that another question of the list settles."""
    question = next(q for q in QUESTIONS if q.name == name)
    tried = distinct(question.candidates(), {})
    seen = {}
    for choices in tried:
        seen.setdefault(answers(question.experiments, {}, choices), []).append(choices)
    for alike in (group for group in seen.values() if len(group) > 1):
        apart = {n for n in question.choices if len({c[n] for c in alike}) > 1}
        elsewhere = {n for q in QUESTIONS if q.name != name for n in q.choices}
        assert apart <= elsewhere, alike


@pytest.mark.exhaustive
@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("size", [2, 3, 4, 16, 100])
def test_no_two_sums_of_steps_look_alike(fmt, size):
    tried = [dict(zip(SUMS, values, strict=True)) for values in product(*(VALUES[n] for n in SUMS))]
    assert len({answers([f"sums_{fmt}"], {"cube_block_k": size}, c) for c in tried}) == len(tried)


@pytest.mark.exhaustive
def test_sums_of_single_products_look_alike_only_where_they_are():
    tried = [dict(zip(SUMS, values, strict=True)) for values in product(*(VALUES[n] for n in SUMS))]
    seen = {}
    for choices in tried:
        seen.setdefault(answers(["sums_fp32"], {"cube_block_k": 1}, choices), []).append(choices)
    assert all(len(distinct(alike, {"fp32": 1})) == 1 for alike in seen.values())


@pytest.mark.parametrize("seed", range(4))
def test_a_configuration_and_what_stands_for_it_give_the_same_bits(seed):
    random = np.random.default_rng(seed)
    choices = {**draw(random), "cube_block_k": 1, "sum_tree": ["adjacent", "sequential"][seed % 2]}
    choices |= {
        "sum_order": "tree_tree",
        "cube_block_sum": ["tree", "aligned=0"][seed // 2],
        "cube_block_round": "RNZ",
    }
    same = canonical(choices, one_by_one=True)
    assert same != choices
    for name in ("sums_fp32", "sums_bf16", "row_sums_512", "row_sums_1024", "cast_toward_zero_fp16"):
        assert answers([name], {}, choices) == answers([name], {}, same)
