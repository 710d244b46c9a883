"""Hidden configurations are recovered; noise, models outside of the space and missing results are no findings."""

import numpy as np
import pytest

from ascendtile.kernels.probe.all_experiments import all_experiments
from ascendtile.kernels.probe.deciding import decide
from ascendtile.kernels.probe.findings import MEASURED, NAMED, NONE, OPEN, SEVERAL
from ascendtile.kernels.probe.predict import predict
from ascendtile.kernels.probe.space import canonical, draw, units_of


def observe(choices, names=None):
    return {
        n: predict(e, units_of(choices)) for n, e in all_experiments().items() if names is None or n in names
    }


def hidden(choices):
    """What can be found out of a configuration."""
    sizes = {part.partition("=")[2] for part in choices["cube_block_k"].split(",")}
    return canonical(choices, one_by_one=sizes == {"1"})


def assert_recovered(seeds):
    for seed in seeds:
        choices = draw(np.random.default_rng(seed))
        found = decide(observe(choices))
        assert found.choices == hidden(choices), seed
        assert not found.open_questions, seed


@pytest.mark.exhaustive
def test_drawn_configurations_are_recovered():
    assert_recovered(range(1))


@pytest.mark.exhaustive
def test_dozens_of_drawn_configurations_are_recovered():
    assert_recovered(range(1, 31))


@pytest.mark.long
def test_a_thousand_drawn_configurations_are_recovered():
    """Four minutes of processor time."""
    assert_recovered(range(1000, 2000))


USUAL = {"cube_block_k": "fp16=16,bf16=16,hf32=8,fp32=4", "fp32_subnormals": "flush", "fp16_subnormals": "keep",
         "bf16_subnormals": "flush", "cube_subnormals": "flush", "overflow_mode": "inf_nan"}  # fmt: skip
NARROW = {**USUAL, "fp16_accumulator": "on", "cube_block_k": "fp16=5", "cube_block_round": "TRUNC"}


@pytest.fixture(scope="module")
def usual():
    return observe(USUAL)


def answer(found, question):
    return next(a for a in found.answers if a.question == question)


def test_usual_units_are_settled_and_so_are_assumed_vectors(usual):
    found = decide(usual)
    assert not found.open_questions
    assert {a.verdict for a in found.answers} == {NAMED, MEASURED}
    verdicts = {v.vector.number: v.verdict for v in found.vectors}
    assert len(verdicts) == 23
    assert verdicts[36] == verdicts[37] == verdicts[40] == verdicts[63] == verdicts[108] == "refuted"
    assert verdicts[35] == verdicts[61] == "not told"  # the same to nearest even; the same if flushed
    assert verdicts[110] == verdicts[170] == "confirmed"
    assert verdicts[48] == verdicts[171] == "open"


@pytest.mark.exhaustive
def test_other_readings_of_the_vectors_are_confirmed():
    found = decide(
        observe({**USUAL, "overflow_mode": "saturate", "hf32_round": "RNZ", "hf32_flush_subnormal_inputs": "off",
                 "cube_subnormals": "keep", "bf16_subnormals": "keep"})
    )  # fmt: skip
    verdicts = {v.vector.number: v.verdict for v in found.vectors}
    confirmed = [35, 36, 37, 38, 39, 48, 49, 50, 63, 65, 67, 108, 109]
    assert {verdicts[n] for n in confirmed} == {"confirmed"}
    assert verdicts[40] == verdicts[110] == "refuted"
    assert verdicts[170] == "open"  # it is about the other mode


@pytest.mark.parametrize("name", list(all_experiments()))
@pytest.mark.drawn(2)
def test_one_flipped_bit_is_never_named_nor_passed_over(usual, name):
    noisy = dict(usual)
    random = np.random.default_rng(len(name))
    word = noisy[name] = usual[name].copy()
    at = tuple(int(random.integers(n)) for n in word.shape)
    if name.startswith("steps_") and at[-2:] == (0, 0):
        at = (0, 3, 5)
    if np.isnan(word.view({2: np.float16, 4: np.float32}[word.itemsize])[at]):  # any NaN is a NaN
        word[at] = 0
    word[at] ^= 1 << int(random.integers(8))
    found = decide(noisy)
    about = [a for a in found.answers if name in a.experiments]
    assert about
    if about[0].verdict == MEASURED:
        assert "1 of" in about[0].detail
    else:
        assert {a.verdict for a in about} == {NONE}
        assert all(a.values == {} or a.detail for a in about)


def test_a_wrong_bit_is_shown_with_the_nearest_model(usual):
    noisy = {**usual, "fused_fp32": usual["fused_fp32"].copy()}
    noisy["fused_fp32"][7] ^= 1
    found = decide(noisy)
    told = answer(found, "multiply-add")
    assert told.verdict == NONE
    assert "nearest is fma_round=once: 1 of 128 elements differ; fused_fp32[7] is 0x" in told.detail
    assert "fma_round" not in found.choices


def test_a_sum_that_no_model_has_is_not_named(usual):
    """Lanes from the last to the first, which is in no tree of the space."""
    strange = dict(usual)
    for name in ("row_sums_512", "row_sums_1024"):
        x = all_experiments()[name].inputs["x"].values
        total = np.zeros(len(x), np.float32)
        for lane in range(x.shape[1] - 1, -1, -1):
            total = total + x[:, lane]
        strange[name] = total.view(np.uint32)
    assert answer(decide(strange), "order of a sum").verdict == NONE


def test_steps_that_have_no_size_are_not_named(usual):
    """Of 3 and 5 products in turn, as no switch has it."""
    strange = dict(usual)
    for name in ("steps_bf16_forward", "steps_bf16_backward"):
        strange[name] = usual[name].copy()
    strange["steps_bf16_forward"].reshape(-1)[40:60] = np.float32(2.0**23 + 1).view(np.uint32)
    found = decide(strange)
    told = answer(found, "steps of BF16 products")
    assert told.verdict == NONE
    assert "20 pairs of products fit no size" in told.detail
    assert found.choices["cube_block_k"] == "fp16=16,hf32=8,fp32=4"


@pytest.mark.exhaustive
def test_formats_whose_accumulators_round_in_two_ways_agree_with_no_configuration(usual):
    mixed = {
        **usual,
        "sums_fp32": predict(
            all_experiments()["sums_fp32"], units_of({**USUAL, "cube_block_round": "TRUNC"})
        ),
    }
    found = decide(mixed)
    assert answer(found, "sums of a step and their rounding").verdict == NONE
    assert not {"cube_block_round", "cube_block_sum"} & set(found.choices)
    assert answer(found, "operands in HF32").verdict == OPEN  # it needs them


@pytest.mark.exhaustive
def test_orders_that_differ_between_formats_are_named_for_none(usual):
    other = units_of({**USUAL, "cube_k_order": "descending"})
    mixed = {
        **usual,
        **{n: predict(all_experiments()[n], other) for n in ("steps_fp32_forward", "steps_fp32_backward")},
    }
    found = decide(mixed)
    assert answer(found, "order of steps of all formats").verdict == NONE
    assert "cube_k_order" not in found.choices


def test_answers_that_contradict_each_other_are_told(usual):
    other = units_of({**USUAL, "overflow_mode": "saturate"})
    mixed = {**usual, "add_ends_fp16": predict(all_experiments()["add_ends_fp16"], other)}
    found = decide(mixed)
    told = answer(found, "FP16 of the Vector unit at its ends")
    assert told.verdict == NONE
    assert "agree with no one configuration" in told.detail
    assert "overflow_mode" not in found.choices


def test_without_a_result_a_question_stays_open_with_the_reason(usual):
    rest = {n: x for n, x in usual.items() if n != "row_sums_512"}
    told = answer(decide(rest, {"row_sums_512": "CompilationError: no"}), "order of a sum")
    assert (told.verdict, told.detail) == (OPEN, "no result of row_sums_512 (CompilationError: no)")


def test_a_cube_that_takes_fp16_only_is_named_by_what_it_has():
    names = [
        n
        for n in all_experiments()
        if "fp32" not in n.partition("_")[2][:4] and "bf16" not in n and "hf32" not in n
    ]
    found = decide(observe(NARROW, names))
    assert found.choices["fp16_accumulator"] == "on"
    assert found.choices["cube_block_k"] == "fp16=5"
    assert (found.choices["cube_block_round"], found.choices["cube_block_sum"]) == ("TRUNC", "exact")
    assert answer(found, "steps of BF16 products").verdict == OPEN


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(20))
def test_accumulators_of_11_bits_are_recovered(seed):
    choices = draw(np.random.default_rng(seed)) | {
        "fp16_accumulator": "on",
        "cube_block_k": f"fp16={seed + 2}",
    }
    found = decide(observe(choices, [n for n in all_experiments() if "fp16" in n]))
    expected = {
        n: choices[n]
        for n in ("cube_block_k", "cube_k_order", "cube_block_round", "cube_block_sum", "overflow_mode")
    }
    assert {n: found.choices.get(n) for n in expected} == expected


def test_steps_longer_than_the_question_are_several(usual):
    found = decide(observe({**USUAL, "cube_block_k": "fp16=16,bf16=16,hf32=8,fp32=4000"}))
    told = answer(found, "steps of FP32 products")
    assert (told.verdict, told.values["cube_block_k"]) == (SEVERAL, ("fp32>511",))
    assert found.choices["cube_block_k"] == "fp16=16,bf16=16,hf32=8"
    assert found.choices["cube_block_round"] == "RNE"


@pytest.mark.exhaustive
def test_functions_that_are_off_are_measured(usual):
    off = {**usual, "exponential_fp32": usual["exponential_fp32"] + np.arange(2048, dtype=np.uint32) % 3}
    told = answer(decide(off), "error of exponential")
    assert told.verdict == MEASURED
    assert told.detail.startswith("1365 of 2048 results are off: 683 by 1, 682 by 2 of the last place")


def test_the_file_of_numerics_has_what_was_named(usual, tmp_path):
    from ascendtile.simulator.precision.numerics_file import read_numerics

    path = tmp_path / "n.toml"
    found = decide(usual, product="Ascend910B3")
    path.write_text(found.numerics_file("2026-11-28"))
    assert read_numerics(path) == found.choices
    assert 'product = "Ascend910B3"' in path.read_text()
