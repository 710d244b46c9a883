"""What a fresh user ran into: answers that were no answers, and mistakes that looked like results."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.triton_shim import tuning
from ascendtile.simulator.triton_shim.config import Config
from ascendtile.simulator.triton_shim.kernel import jit as triton_jit
from ascendtile.tiling import explore, explore_shapes, integers, what_if
from ascendtile.tiling.evaluate import Evaluation
from ascendtile.tiling.results.exploration import Exploration, Found
from ascendtile.tiling.results.store import Store
from ascendtile.tiling.search.exact import Outcome
from ascendtile.tiling.workers import NoClusterError, open_workers

N = 10_000
SHAPES = {"x_ptr": sim.shape((N,), "float32"), "y_ptr": sim.shape((N,), "float32"), "n": N}
BLOCKS = {"BLOCK": (256, 512, 1024)}


def blocks_of(a):
    return (-(-a["n"] // a["BLOCK"]),)


@sim.jit
def twice(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2.0, mask=at < n)


@sim.jit
def sometimes_nothing(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if BLOCK < 1024:
        tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2.0, mask=at < n)


@sim.jit
def no_mask(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at))


def arrays():
    return {"x_ptr": np.ones(N, np.float32), "y_ptr": np.zeros(N, np.float32), "n": N}


def asked(kernel=twice, args=None, **more):
    return explore(kernel, args or SHAPES, **{"space": BLOCKS, "grid": blocks_of, **more})


def test_a_tiling_that_computes_something_else_is_named():
    args = arrays()
    found = asked(sometimes_nothing, args)
    assert found.best.point == {"BLOCK": 1024}
    differ = [x for x in found.notes if x.startswith("values differ")]
    assert differ
    assert "BLOCK=1024" in differ[0]
    assert "y_ptr by up to 2" in differ[0]
    assert not args["y_ptr"].any()  # nothing of the caller's is written


def test_tilings_that_agree_need_no_words_and_shapes_cannot_be_compared():
    assert not asked(twice, arrays()).notes
    assert any("values were not compared" in x for x in asked().notes)


def sweep(times, **axes):
    found = tuple(Found(dict(zip(axes, p, strict=True)), Evaluation(time_us=t)) for p, t in times.items())
    return Exploration("x", "x", None, "time", 9, 9, {}, 0, found, {}, 0, 0.0, False, "", axes)


def test_a_knob_is_judged_by_tilings_that_differ_in_it_alone():
    """(block, copies): of copies two tilings differ in nothing else; of what block alone does nothing is known."""
    found = sweep({(64, 1): 40.0, (128, 1): 11.0, (128, 2): 10.0}, block=(64, 128), copies=(1, 2))
    assert found.sensitivity() == pytest.approx({"block": 40.0 / 11.0 - 1.0, "copies": 0.1})
    apart = sweep({(64, 1): 40.0, (128, 2): 10.0}, block=(64, 128), copies=(1, 2))
    assert apart.sensitivity() == {}
    assert "no two tilings that differ in block, copies alone" in str(apart)


def test_base_tiles_that_belong_together_are_asked_for_together():
    found = explore(
        "matmul", case="tiny", dtype="float16", space={"base_m": 16, "buffers": 2, "schedule": "persistent"}
    )
    assert found.best is None
    assert any("give base_m, base_n and base_k together" in why for why in found.failed)


def test_a_machine_without_a_legal_tiling_is_a_row_of_its_own():
    small = {"block_m": 16, "block_n": 32, "block_k": 64, "buffers": 2}
    found = what_if("matmul", {"buffers.l1": ("1KiB", "64KiB")}, case="tiny", dtype="float16", space=small)
    assert list(found.explorations) == [(), ("64KiB",)]
    assert "the space is empty" in found.refused["1KiB",]


def test_axes_have_an_end():
    with pytest.raises(UsageError, match="an axis has at most 1,000,000"):
        integers(16, 10**12)
    with pytest.raises(UsageError, match="the largest is 9223372036854775807"):
        asked(space={"BLOCK": (10**30,)})


@pytest.mark.parametrize("row", ["{oops", '{"foo": 1}', "[]", '{"time_us": "long"}'])
@pytest.mark.parametrize("sampler", ["exact", "random"])
def test_damaged_rows_of_a_store_are_computed_again(tmp_path, row, sampler):
    path = tmp_path / "s.sqlite"
    asked(store=path)
    with sqlite3.connect(path) as db:
        count = db.execute("UPDATE points SET result = ?", (row,)).rowcount
    db.close()
    found = asked(store=path, sampler=sampler, budget=3)
    assert found.reused == 0
    assert found.found == asked(sampler=sampler, budget=3).found
    assert found.notes[0].startswith(
        f"{count} results of {path} did not fit the key, the checksum or the form of a result"
    )


NO_RESULTS: tuple[dict[str, Any], ...] = (
    {"time_us": "long"},
    {"time_us": float("nan")},
    {"time_us": -1.0},
    {"colour": 1},
    {"time_us": 1.0, "bound": 3},
    {},
)


@pytest.mark.parametrize("result", NO_RESULTS)
@pytest.mark.parametrize("kind", ["store", "cache"])
@pytest.mark.parametrize("sampler", ["exact", "random"])
def test_rows_with_a_right_checksum_that_are_no_results_are_computed_again(tmp_path, sampler, kind, result):
    path = tmp_path / "s.sqlite"
    asked(store=path)
    with Store(path) as store:
        rows = store.db.execute("SELECT key, sweep, point FROM points").fetchall()
        for key, sweep, point in rows:
            store.add(key, sweep, json.loads(point), result)
    found = asked(**{kind: path}, sampler=sampler, budget=3)
    assert found.reused == 0
    assert found.found == asked(sampler=sampler, budget=3).found
    assert "did not fit the key, the checksum or the form of a result: dropped" in found.notes[0]


def test_rules_have_the_names_and_counts_of_their_own():
    # fmt: off
    found = asked(constraint=[lambda BLOCK: BLOCK != 256, lambda BLOCK: BLOCK != 512])
    # fmt: on
    assert found.refused == {"lambda BLOCK: BLOCK != 256": 1, "lambda BLOCK: BLOCK != 512": 1}
    rules = [is_not(256), is_not(512)]
    assert list(asked(constraint=rules).refused.values()) == [1, 1]


def is_not(x):
    return lambda BLOCK: x != BLOCK


def test_rules_may_ask_for_the_arguments_of_the_kernel():
    found = asked(constraint=lambda BLOCK, n: n > BLOCK * 20)
    assert [x.point["BLOCK"] for x in found.found] == [256]


def test_values_may_come_from_a_generator():
    assert asked(space={"BLOCK": (x for x in (256, 512))}).evaluated == 2
    found = explore("bce_with_logits", case="tiny", dtype="float16", space={"block": (x for x in (64, 128))})
    assert found.axes["block"] == (64, 128)


def test_failures_that_differ_in_numbers_are_one():
    out = Outcome()
    for k in range(3):
        out.add({"x": k}, Evaluation(failed=f"element {k} is out of bounds"))
    assert out.failed == {"element 0 is out of bounds": 3}


def test_candidates_that_are_one_tiling_here_are_told():
    configs = [Config({"BLOCK": b}, num_warps=w) for b in (256, 512) for w in (2, 4)]
    found = explore(tuning.autotune(configs, key=["n"])(triton_jit(twice.fn)), SHAPES, grid=blocks_of)
    assert any("the 4 candidates are 2 tilings here" in x for x in found.notes)


def test_other_work_is_no_other_tiling():
    found = explore(
        twice, {n: SHAPES[n] for n in ("x_ptr", "y_ptr")}, grid=blocks_of, space={"BLOCK": 256, "n": (10, N)}
    )
    assert any("n is no compile-time parameter of twice" in x for x in found.notes)


def test_the_single_tiling_says_from_how_many_it_was_chosen():
    space = {"block": (64, 128, 256), "cores": 8, "buffers": 2}
    cases = ["tiny", "click-rate"]
    found = explore_shapes("bce_with_logits", cases, dtype="float16", space=space)
    assert found.tried == 3
    assert "best for all of 3 tilings tried" in " ".join(str(found).split())


MISTAKES = {
    "missing argument": (lambda: asked(args={"x_ptr": SHAPES["x_ptr"], "n": N}), "runs at none of .*missing y_ptr"),
    "out of bounds": (lambda: asked(no_mask), "runs at none of the 3 points .* out of bounds"),
    "key of the grid": (lambda: asked(grid=lambda a: (a["Q"],)), "runs at none of .*KeyError: 'Q'"),
    "unknown axis": (lambda: asked(constraint=lambda FOO: True), "asks for 'FOO'; points have BLOCK, x_ptr, y_ptr, n"),
    "no function": (lambda: asked(constraint="BLOCK < 5"), "a constraint is a function .*got 'BLOCK < 5'"),
    "budget": (lambda: asked(budget=2.5), "budget is a number of evaluations, got 2.5"),
    "seconds": (lambda: asked(seconds="5"), "seconds is a number, got '5'"),
    "workers": (lambda: asked(workers=None), "workers must be a number from 1"),
}  # fmt: skip


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_are_errors_in_words(what):
    call, words = MISTAKES[what]
    with pytest.raises(UsageError, match=words):
        call()


@pytest.mark.extra("distributed")
@pytest.mark.parametrize("address", ["tcp://127.0.0.1", "tcp://127.0.0.1:port", "inproc://1", "tcp://:8786"])
def test_addresses_that_are_none(address):
    with (
        pytest.raises(UsageError, match="an address such as tcp://host:8786"),
        open_workers(None, address, True),
    ):
        pass


@pytest.mark.extra("distributed")
@pytest.mark.parametrize("scheme", ["tcp", "tls", "ws"])
def test_nobody_answers(scheme):
    with (
        pytest.raises(NoClusterError, match="no cluster answers"),
        open_workers(None, f"{scheme}://127.0.0.1:3"),
    ):
        pass
    with open_workers(None, f"{scheme}://127.0.0.1:3", fallback=True) as crew:
        assert type(crew).__name__ == "Here"
