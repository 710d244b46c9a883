"""What a verdict says next: the change that saves most, tried where it can be; where values are wrong; what fits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.reports.judging.answer_log import LaunchLog
from ascendtile.reports.judging.answering.launches import launch_logs
from ascendtile.reports.judging.cheats.catalogue import CATALOGUE
from ascendtile.reports.judging.pricing.candidates import candidates
from ascendtile.reports.judging.pricing.confidence import HIGH, MEDIUM, by_figures, confidence
from ascendtile.reports.judging.pricing.suggestion import suggestion
from ascendtile.reports.judging.pricing.trying import DearestLaunch, explained
from ascendtile.reports.judging.pricing.wrong import pattern
from ascendtile.reports.judging.verdict import CaseVerdict, Cheat, HostCost, NearestBound, Verdict
from ascendtile.simulator.errors import BufferOverflowError
from ascendtile.simulator.observers import watch, watch_calls
from ascendtile.simulator.timing.cures import RESCALED
from ascendtile.simulator.trials.knobs import OF_WINDOW
from ascendtile.simulator.triton_shim.scripts.collecting import Collector

X = sim.shape((256, 1024), "float32")


@sim.jit
def scaled(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2.0, mask=at < n)


@sim.jit
def largest_of_rows(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    found = tl.full((BLOCK,), float("-inf"), tl.float32)
    for first in range(0, n, BLOCK):
        at = first + tl.arange(0, BLOCK)
        found = tl.maximum(found, tl.load(x_ptr + row * n + at, mask=at < n, other=float("-inf")))
    tl.store(y_ptr + row, tl.max(found, axis=0))


def logs_of(kernel, grid, *arguments, count=1, tried=True, **constants):
    """Launches of one kernel as the judge gets them, with what was tried."""
    collected, dearest = Collector(), DearestLaunch()
    options = {"product": "ascend910b3", "values": False, "compiler": "triton-ascend"}
    with sim.device(**options), watch(collected.tell), watch_calls(dearest.tell):
        for _ in range(count):
            kernel[grid](*arguments, **constants)
    logs = launch_logs(collected)
    call = dearest.calls[logs[0].kernel, logs[0].grid]
    more = explained(call) if tried else {}
    return [LaunchLog(**{**vars(logs[0]), "run": {**logs[0].run, **more}}), *logs[1:]]


def timed(logs, **more):
    time_us = sum(x.time_us for x in logs) + sum(x.time_us for x in more.get("host_ops", ()))
    bound = NearestBound(name="AIV.V", time_us=time_us / 2, share=0.5)
    return Verdict(
        **{"verdict": "timed", "message": "", "compiled": True, "product": "ascend910b3", "time_us": time_us,
           "bound": bound, **more}
    )  # fmt: skip


@pytest.fixture(scope="module")
def small_blocks():
    return logs_of(scaled, lambda meta: (X.size // meta["BLOCK"],), X, X, X.size, BLOCK=64)


def test_a_change_that_was_tried_comes_true(small_blocks):
    best = candidates(small_blocks, (), small_blocks[0].time_us, None)[0]
    assert best.tried
    block = int(best.text.split("BLOCK = ")[1].split()[0])
    after = logs_of(scaled, (X.size // block,), X, X, X.size, tried=False, BLOCK=block)
    assert after[0].time_us == pytest.approx(small_blocks[0].time_us - best.saved_us)


def test_a_suggestion_is_one_sentence_with_its_figure(small_blocks):
    said = suggestion(timed(small_blocks), small_blocks)
    assert said.startswith("Set BLOCK = ")
    assert " us a launch in place of " in said
    assert said.endswith("timed.")
    assert "\n" not in said


def test_sizes_that_are_reduced_are_tried_too():
    logs = logs_of(largest_of_rows, (256,), X, sim.shape((256,), "float32"), 1024, BLOCK=64)
    assert suggestion(timed(logs), logs).startswith("Set BLOCK = ")


@sim.jit
def largest_of_windows(x_ptr, y_ptr, n, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)[None, :]
    for first in range(tl.program_id(0) * WIDTH, n, tl.num_programs(0) * WIDTH):
        rows = first + tl.arange(0, WIDTH)[:, None]
        found = tl.full((WIDTH, BLOCK), float("-inf"), tl.float32)
        for k in range(WIDTH):
            at = rows * BLOCK + columns + k
            found = tl.maximum(found, tl.load(x_ptr + at, mask=(rows < n) & (columns + k < BLOCK), other=0.0))
        tl.store(y_ptr + rows * BLOCK + columns, found, mask=rows < n)


def test_the_width_of_a_window_is_no_tile_of_which_another_is_tried():
    logs = logs_of(largest_of_windows, (40,), X, X, 256, WIDTH=4, BLOCK=1024)
    assert logs[0].run["untried"]["WIDTH"] == OF_WINDOW
    assert not any("WIDTH" in change for change in logs[0].run["changes_us"])


def test_copies_are_told_in_words_of_the_compiler(small_blocks):
    run = {**small_blocks[0].run, "changes_us": {"multibuffer 2 -> 16": 0.1, "multibuffer 2 -> 1": 0.2}}
    log = LaunchLog(**{**vars(small_blocks[0]), "run": run})
    said = [c.text for c in candidates([log], (), log.time_us, None)]
    assert not any("16" in text for text in said)
    assert said[0].startswith("Launch with multibuffer=False: ")


def test_more_programs_than_cores_and_fewer(small_blocks):
    many = " ".join(c.text for c in candidates(small_blocks, (), 1.0, None))
    assert "Start 40 programs, one for each core" in many
    few = logs_of(scaled, (8,), X, X, 8 * 8192, tried=False, BLOCK=8192)
    assert "programs leave 32 of them idle" in " ".join(c.text for c in candidates(few, (), 1.0, None))


@pytest.mark.parametrize(("programs", "uneven"), [(40, False), (50, True), (80, False)])
def test_cores_that_wait_for_the_last_round_of_programs_are_told(programs, uneven):
    logs = logs_of(scaled, (programs,), X, X, X.size, tried=False, BLOCK=4096)
    texts = [c.text for c in candidates(logs, (), 0.0, None)]
    assert any(f"of {programs} some cores have 2 and others one less" in x for x in texts) == uneven


def test_several_launches_and_copies_beside_them_are_told():
    logs = logs_of(scaled, (40,), X, X, 40 * 4096, count=3, tried=False, BLOCK=4096)
    copy = HostCost(op="aten.clone.default", count=2, time_us=1e6, kind="move", line=12)
    every = [c.text for c in candidates(logs, [copy], 1.0, None)]
    assert every[0].startswith("Line 12 calls aten.clone.default 2 times beside the kernels")
    assert any(text.startswith("Make one kernel of the 3 launches (scaled)") for text in every)
    assert suggestion(timed(logs, host_ops=(copy,)), logs) == every[0]


def test_launches_of_several_cases_are_not_to_be_one_kernel():
    logs = logs_of(scaled, (40,), X, X, 40 * 4096, count=4, tried=False, BLOCK=4096)

    def told(cases):
        said = (c.text for c in candidates(logs, (), 1.0, None, cases))
        return next(
            (text.partition(" (scaled)")[0] for text in said if text.startswith("Make one kernel")), ""
        )

    assert told(4) == told(5) == ""
    assert told(2) == "Make one kernel of the launches of each call, 4 for 2 cases"
    case = CaseVerdict(index=0, inputs="", verdict="timed")
    assert "Make one kernel" not in suggestion(timed(logs, cases=(case,) * 4), logs)


@sim.jit
def less_largest(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * n + tl.arange(0, BLOCK)
    m = tl.max(tl.load(x_ptr + at), axis=0)
    for first in range(0, n, BLOCK):
        x = tl.load(x_ptr + first + at)
        tl.store(y_ptr + first + at, x - m)


def test_bytes_that_are_read_again_are_told(small_blocks):
    logs = logs_of(less_largest, (256,), X, X, 1024, tried=False, BLOCK=1024)
    moved = int(logs[0].run["launches"][0]["resources_bytes"]["L2"])

    def told(logs, needed):
        return any(c.text.startswith("Load each input once") for c in candidates(logs, (), 1.0, needed))

    assert told(logs, moved * 2 // 3)
    assert not told(logs, moved)
    assert not told(small_blocks, 1)  # it loads at one place only


@sim.jit
def shifted(x_ptr, y_ptr, n, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        total = tl.zeros((BLOCK,), tl.float32)
        for k in range(WIDTH):
            total += tl.load(x_ptr + at + k, mask=at + k < n, other=0.0)
        tl.store(y_ptr + at, total, mask=at < n)


@sim.jit
def scaled_rows(x_ptr, w_ptr, y_ptr, rows, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        for first in range(0, 1024, BLOCK):
            x = tl.load(x_ptr + row * 1024 + first + columns)
            tl.store(y_ptr + row * 1024 + first + columns, x * tl.load(w_ptr + first + columns))


@pytest.mark.parametrize("width", [1, 4])
def test_windows_that_overlap_load_each_element_several_times_at_one_line(width):
    logs = logs_of(shifted, (40,), X, X, X.size, WIDTH=width, BLOCK=2048)
    loaded, there = logs[0].run["loaded_bytes"]["x_ptr"]
    assert loaded / there == pytest.approx(width, rel=0.01)
    told = [c.text for c in candidates(logs, (), 1.0, None) if c.text.startswith("Load less of x_ptr")]
    assert [f"each element is loaded {width} times" in text for text in told] == [True] * (width > 1)


def test_a_row_that_each_tile_loads_again_is_to_stay_in_ub():
    logs = logs_of(scaled_rows, (40,), X, sim.shape(1024, "float32"), X, 256, BLOCK=512)
    said = next(c.text for c in candidates(logs, (), 1.0, None) if c.text.startswith("Load less"))
    assert said.startswith("Load less of w_ptr: each element is loaded 256 times; load it before the loop")


@pytest.mark.parametrize(("full", "told"), [(0.3, True), (0.7, False)])
def test_larger_tiles_for_a_scaled_sum_are_told_where_ub_has_room(small_blocks, full, told):
    run = small_blocks[0].run
    line = {"line": 7, "line_time_us": 1.0, "what": "a product", "cure": RESCALED}
    ub = {**run["buffers"]["UB"], "peak_bytes": full * run["buffers"]["UB"]["capacity_bytes"]}
    changed = {**run, "slowing": [line], "buffers": {**run["buffers"], "UB": ub}}
    logs = [LaunchLog(**{**vars(small_blocks[0]), "run": changed})]
    assert any(c.text.startswith("Line 7 takes") for c in candidates(logs, (), 1.0, None)) == told


def test_of_several_kernels_the_one_to_change_is_named(small_blocks):
    other = LaunchLog(**{**vars(small_blocks[0]), "kernel": "other", "time_us": 0.1})
    assert "BLOCK = " in (alone := candidates(small_blocks, (), 1.0, None)[0].text)
    both = candidates([*small_blocks, other], (), 1.0, None)[0].text
    assert both == f"For scaled, s{alone[1:]}"


def test_where_only_values_are_not_known_the_time_has_its_suggestion(small_blocks):
    how = {"verdict": "deferred", "message": "values are not known: no memory", "confidence": "low"}
    said = suggestion(timed(small_blocks, **how), small_blocks)
    assert said.startswith(
        "There is nothing to compare with, look at the task: values are not known: no memory; "
    )
    assert "; to save time: set BLOCK = " in said
    unknown = suggestion(timed(small_blocks, **{**how, "confidence": "defer"}), small_blocks)
    assert "to save time" not in unknown


@sim.jit
def spread(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    first, total, squares = tl.program_id(0) * n, 0.0, 0.0
    for start in range(0, n, BLOCK):
        total += tl.sum(tl.load(x_ptr + first + start + tl.arange(0, BLOCK)))
    for start in range(0, n, BLOCK):
        d = tl.load(x_ptr + first + start + tl.arange(0, BLOCK)) - total / n
        squares += tl.sum(d * d)
    for start in range(0, n, BLOCK):
        at = first + start + tl.arange(0, BLOCK)
        tl.store(y_ptr + at, (tl.load(x_ptr + at) - total / n) / tl.sqrt(squares / n))


def test_what_is_more_than_ub_is_not_to_be_kept_there():
    n, programs = 1 << 16, 4
    x = sim.shape((programs, n), "float32")
    logs = logs_of(spread, (programs,), x, x, n, tried=False, BLOCK=4096)
    first, second, *_ = candidates(logs, (), 1.0, 2 * programs * n * 4)
    assert first.text.startswith("Give all 40 cores work")
    # It takes nine tenths away from each core, and so from the bounds of its units, which overlap cannot.
    assert first.saved_us > logs[0].time_us - max(logs[0].run["launches"][0]["bounds"].values()) > 0
    assert second.text.startswith("Load each input twice, not at 3 places")
    assert "share of 0.500 MiB does not fit into UB" in second.text


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.floats(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(
    st.sampled_from(
        ["changes_us", "slowing", "launches", "pipes", "buffers", "lifted_us", "grades_us", "measured_rows"]
    ),
    junk,
)
def test_records_of_another_form_do_no_harm(small_blocks, key, value):
    log = LaunchLog(**{**vars(small_blocks[0]), "run": {**small_blocks[0].run, key: value}})
    assert suggestion(timed([log]), [log], 1).endswith(".")
    assert confidence([log])[0] in ("high", "medium", "low", "defer")


def test_what_fits_is_told_of_what_does_not():
    with pytest.raises(BufferOverflowError) as error, sim.device("ascend910b3", values=False):
        scaled[lambda meta: (X.size // meta["BLOCK"],)](X, X, X.size, BLOCK=131072)
    text = str(error.value)
    verdict = Verdict(
        verdict="does_not_fit",
        message="",
        compiled=False,
        product="ascend910b3",
        metadata={"compilation_error": text},
    )
    said = suggestion(verdict)
    assert said.startswith("Take smaller tiles: tried, and fits: BLOCK = ")
    block = int(said.split("BLOCK = ")[1].split()[0])
    with sim.device("ascend910b3", values=False):
        scaled[(X.size // block,)](X, X, X.size, BLOCK=block)


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_of_a_cheat_the_honest_way_is_told(name):
    cheat = Cheat(name=name, message="torch.mm is called.", line=3)
    verdict = Verdict(verdict="cheat", message="", compiled=True, product="ascend910b3", cheats=(cheat,))
    said = suggestion(verdict)
    assert said.startswith("Line 3: torch.mm is called; ")
    assert CATALOGUE[name].instead[1:] in said


def test_where_nothing_was_tried_the_bound_alone_is_told(small_blocks):
    log = LaunchLog(**{**vars(small_blocks[0]), "run": {}})
    said = suggestion(timed([log], bound=NearestBound(name="HBM", time_us=9.0, share=0.95)), [log])
    assert "tried" not in said
    assert said.startswith("HBM")
    assert suggestion(timed([log], bound=None), [log]) == "There is nothing to say of a faster way."


def test_other_verdicts_have_a_sentence_each():
    for name in ("not_compiled", "failed", "wrong", "deferred", "timed"):
        verdict = Verdict(verdict=name, message="why\nand more", compiled=True, product="ascend910b3")
        said = suggestion(verdict)
        assert said.endswith(".")
        assert "\n" not in said


def test_values_that_only_a_sample_does_not_give_are_had_otherwise():
    message = "values are not known: all of it takes about 3 s; --full computes everything"
    verdict = Verdict(
        verdict="deferred",
        message=message,
        compiled=True,
        product="ascend910b3",
        time_us=3.0,
        confidence_reason="well",
    )
    assert suggestion(verdict) == f"Judge all values (--full, of the tool full: true): {message}."


def test_values_that_the_task_does_not_give_are_no_matter_of_the_model():
    verdict = Verdict(
        verdict="deferred", message="values are not known: no reference", compiled=True, product="ascend910b3",
        time_us=3.0, confidence="low", confidence_reason="well",
    )  # fmt: skip
    assert suggestion(verdict).endswith("look at the task: values are not known: no reference.")
    unknown = replace(verdict, time_us=None, message="its time depends on data")
    assert suggestion(unknown).endswith(f"the model does not know: {unknown.message}.")


def test_what_is_wrong_on_the_device_is_mended_before_anything_is_made_faster(small_blocks):
    said = suggestion(
        timed(small_blocks, faults=("a.py:7: two programs store to one element",)), small_blocks
    )
    assert said == "Mend first what is wrong on the device: a.py:7: two programs store to one element."


# ---- where values are wrong ----

WANT = np.random.default_rng(0).standard_normal((48, 48)) + 3


def changed(change):
    got = WANT.copy()
    out = change(got)
    return got if out is None else out


def set_to(index, value):
    def change(got):
        got[index] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_to(np.s_[:, 40:], 99.0), "elements from 40 on along axis 1 (of 48) are wrong"),
        (set_to(np.s_[32:], np.arange(48.0) + 50), "elements from 32 on along axis 0 (of 48) are wrong"),
        (set_to(np.s_[:16], np.arange(48.0) + 50), "elements before 16 along axis 0 (of 48) are wrong"),
        (set_to(np.s_[:, ::4], np.nan), "NaN or infinite"),
        (set_to(np.s_[10:20, 10:20], 0.0), "are 0: no program writes them"),
        (set_to(np.s_[10:20, 10:20], 7.0), "wrong elements are all 7"),
        (lambda got: got.T.copy(), "swapped"),
        (lambda got: got * 0.5, "0.5 times what they should be"),
        (lambda got: got + 2.0, "off by 2"),
        (lambda got: got + 0.01, "off by 0.01"),
        (lambda got: got * (1 + 1e-3), "add up in float32"),
    ],
)
def test_a_pattern_of_wrong_elements_is_named(change, words):
    got = changed(change)
    bad = ~(np.abs(got - WANT) <= 1e-4 * np.abs(WANT))
    assert words in pattern(got, WANT, bad)


@pytest.mark.parametrize(("got", "words"), [(0.01, "wrong elements are all 0.01"), (None, "")])
def test_what_should_be_zero_is_not_said_to_lack_precision(got, words):
    want = np.maximum(WANT - 3, 0)
    other = np.random.default_rng(1).uniform(0.005, 0.02, want.shape) if got is None else got
    assert pattern(np.where(want == 0, other, want), want, want == 0) == words


def test_every_nth_element_is_named():
    got = WANT.copy()
    got.reshape(-1)[5::7] = 1e3 * np.arange(len(got.reshape(-1)[5::7]))
    assert pattern(got, WANT, got != WANT).startswith("every 7th element from 5 on is wrong")


@given(st.integers(0, 2**32 - 1))
def test_elements_without_a_pattern_have_none(seed):
    numbers = np.random.default_rng(seed)
    got, bad = WANT.copy(), numbers.random(WANT.shape) < 0.3
    bad[0], bad[-1], bad[:, 0], bad[:, -1] = (numbers.random(48) < 0.5 for _ in range(4))
    got[bad] += numbers.standard_normal(int(bad.sum())) * 10 + 5
    assert pattern(got, WANT, bad) == ""
    assert pattern(WANT, WANT, np.zeros(WANT.shape, bool)) == ""


# ---- confidence ----


def test_wider_intervals_and_fewer_measured_kernels_are_trusted_less():
    levels = [by_figures(width, 300)[0] for width in (1.0, HIGH, HIGH + 0.01, MEDIUM, MEDIUM + 0.01, 9.0)]
    assert levels == ["high", "high", "medium", "medium", "low", "low"]
    assert by_figures(1.0, 1)[0] == "low"
    assert by_figures(1.0, 300, [("assumed", 0.5)])[0] == "low"


def test_a_machine_that_was_changed_is_deferred():
    logs = logs_of(scaled, (40,), X, X, 40 * 4096, tried=False, BLOCK=4096)
    assert confidence(logs)[0] != "defer"
    assert confidence([])[0] == "defer"
    assert confidence([LaunchLog(**{**vars(logs[0]), "low_us": None})])[0] == "defer"


@pytest.mark.exhaustive
def test_errors_against_boards_are_ordered_by_confidence():
    """Of all kernels that nothing was fitted on."""
    from ascendtile.kernels.validation import predict, read_tables

    rows = [r for r in read_tables() if r.table == "kernels" and r.unit == "us" and r.measured]
    errors = {"high": [], "medium": [], "low": []}
    for row in [r for r in rows if not (r.fitted or r.excluded)]:
        found = predict(row)
        if found.interval is not None:
            level = by_figures(found.interval[1] / found.interval[0], 300)[0]
            errors[level].append(abs(np.log(row.measured / found.value)))
    high, medium, low = (np.quantile(errors[level], [0.5, 0.9]) for level in ("high", "medium", "low"))
    assert all(high <= medium), errors
    assert all(medium <= low), errors
