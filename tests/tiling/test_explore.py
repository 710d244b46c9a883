"""`explore` end to end: operators and kernels against brute force, settings as axes, the store, interruptions."""

from __future__ import annotations

import itertools
import json

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels import run_op
from ascendtile.kernels.running import launching
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.triton_shim import tuning
from ascendtile.simulator.triton_shim.config import Config
from ascendtile.simulator.triton_shim.kernel import jit as triton_jit
from ascendtile.tiling import Interrupted, evaluate, explore, explore_shapes, what_if
from ascendtile.tiling.difference import difference
from ascendtile.tiling.kernel_problem import KernelProblem

SIZES = {"m": 96, "n": 64, "k": 128}
FEW = {"block_m": (16, 48), "block_n": (32, 64), "block_k": (64, 128), "group": 1, "split_k": 1}
FEW["keep"] = "none"


@sim.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr, TWICE: tl.constexpr = 1):
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=0.0)
        for _ in tl.static_range(TWICE):
            x = x * 2.0
        tl.store(y_ptr + at, x, mask=at < n)


ARGS = {"x_ptr": sim.shape((20_000,), "float32"), "y_ptr": sim.shape((20_000,), "float32"), "n": 20_000}
SPACE = {"BLOCK": (64, 256, 1024, 4096), "multibuffer": (1, 2)}


def brute_force(space, sizes=SIZES):
    """Times of all combinations, by `run_op`."""
    out = {}
    for values in itertools.product(*(v if isinstance(v, tuple) else (v,) for v in space.values())):
        tiling = dict(zip(space, values, strict=True))
        out[values] = run_op("matmul", case=sizes, dtype="float16", tiling=tiling, values=False).time_us
    return out


def test_times_of_a_what_if_are_noted_as_such():
    space = {**FEW, "block_m": 16, "block_n": 32}
    note = "what-if: the product lacks what all of these tilings use; `ascendtile run` says what"
    assert any(n.startswith(note) for n in explore("matmul", case=SIZES, dtype="e4m3", space=space).notes)
    assert not any("what-if" in n for n in explore("matmul", case=SIZES, dtype="float16", space=space).notes)


def test_the_answer_is_that_of_brute_force():
    space = {**FEW, "block_k": 128, "buffers": (1, 2), "schedule": ("persistent", "per_tile")}
    found = explore("matmul", case=SIZES, dtype="float16", space=space)
    times = brute_force(space)
    assert found.optimal
    assert found.size == len(times)
    assert found.best.time_us == min(times.values())
    assert found.evaluated <= found.legal < found.size
    for x in found.found:
        assert x.time_us == times[tuple(x.point[n] for n in space)]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("buffers", [2, (1, 2), (2, 3)])
def test_more_copies_than_l1_holds_run_as_fewer_and_may_win(buffers):
    """A launch gets as many copies as fit. Where the space has no other name for such a tiling, it is a point of it."""
    sizes = {"m": 256, "n": 256, "k": 2048}
    space = {"block_m": (128, 256), "block_n": 128, "block_k": (256, 512), "group": (4, 8), "split_k": 1}
    space |= {"buffers": buffers, "schedule": "per_tile", "keep": "none"}
    found = explore("matmul", case=sizes, dtype="float16", space=space)
    times = brute_force(space, sizes)
    assert found.optimal
    assert found.best.time_us == min(times.values())
    assert set(times.values()) == {
        times[tuple(x.point[n] for n in space)] for x in explored_whole(space, sizes)
    }
    assert found.refused["a group larger than the rows of tiles is the same as one of all"] > 0
    assert ("more copies than L1 holds are the same as fewer" in found.refused) == (buffers != 2)


def explored_whole(space, sizes):
    """All legal points, for which an objective without bounds asks."""
    return explore("matmul", case=sizes, dtype="float16", space=space, objective="ub").found


def test_json_is_as_documented():
    found = explore("matmul", case=SIZES, dtype="float16", space=FEW)
    data = found.documented(3)
    again = json.loads(json.dumps(data, allow_nan=False))
    documented = [
        "op",
        "product",
        "compiler",
        "case",
        "objective",
        "space",
        "bounded",
        "evaluated",
        "failed",
        "seconds",
        "optimal",
    ]
    documented += ["proof", "best", "top", "pareto"]
    assert list(again) == documented
    assert set(again["space"]) == {"size", "legal", "refused"}
    for one in (*again["top"], *again["pareto"]):
        assert list(one) == ["point", "tiling", "time_us", "bound", "errors", "ub_peak_bytes"]
        assert list(one["point"]) == list(found.axes)
    assert list(again["best"]) == ["tiling", "time_us", "bound", "errors", "ub_peak_bytes"]
    assert {n: again["top"][0][n] for n in again["best"]} == again["best"]
    for tiling in (again["best"]["tiling"], again["top"][0]["point"]):  # either can be passed back as it is
        once_more = run_op("matmul", case=SIZES, dtype="float16", tiling=tiling, values=False)
        assert once_more.time_us == again["best"]["time_us"]
    assert len(again["top"]) == 3
    whole = json.loads(json.dumps(found.to_dict(3), allow_nan=False))
    assert {n: x for n, x in whole.items() if n in again and n not in ("best", "top", "pareto")} == {
        n: x for n, x in again.items() if n not in ("best", "top", "pareto")
    }
    assert again["space"]["size"] == again["space"]["legal"] + sum(again["space"]["refused"].values())
    assert again["failed"] == 0


@pytest.mark.drawn(1)
@pytest.mark.parametrize("workers", [2, 3])
def test_workers_do_not_change_results_or_their_order(workers):
    space = {**FEW, "buffers": (1, 2)}
    one = explore("matmul", case=SIZES, dtype="float16", space=space)
    several = explore("matmul", case=SIZES, dtype="float16", space=space, workers=workers)
    assert several.found == one.found
    assert several.proof == one.proof


@pytest.mark.exhaustive
def test_dtype_and_cube_math_type_are_axes():
    space = {
        **FEW,
        "buffers": 2,
        "dtype": ("float16", "float32"),
        "cube_math_type": ("KEEP_DTYPE", "USE_HF32"),
    }
    found = explore("matmul", case=SIZES, space=space, objective="error")
    assert found.optimal
    assert found.best.point["dtype"] == "float32"
    assert found.best.point["cube_math_type"] == "KEEP_DTYPE"
    kinds = {(x.point["dtype"], x.point["cube_math_type"]): x.evaluation.error for x in found.found}
    assert len(kinds) == 4
    assert kinds["float32", "KEEP_DTYPE"] < kinds["float32", "USE_HF32"] < 1e-2
    fronts = [(x.time_us, x.evaluation.error) for x in found.pareto]
    assert len(fronts) > 1
    assert sorted(fronts) == fronts
    assert [e for _, e in fronts] == sorted((e for _, e in fronts), reverse=True)


def test_a_mode_that_is_refused_is_counted_by_rule():
    space = {**FEW, "dtype": ("float16", "float32"), "cube_math_type": ("KEEP_DTYPE", "USE_FP16")}
    found = explore("matmul", case=SIZES, product="ascend910a", space=space)
    rule = next(n for n in found.refused if n.startswith("float32 with KEEP_DTYPE is refused"))
    assert found.refused[rule] == found.size // 4
    assert all(
        (x.point["dtype"], x.point["cube_math_type"]) != ("float32", "KEEP_DTYPE") for x in found.found
    )


@pytest.mark.parametrize("objective", ["time", "ub"])
def test_a_kernel_of_the_users(objective):
    found = explore(
        double, ARGS, grid=lambda a: (min(20, -(-a["n"] // a["BLOCK"])),), space=SPACE, objective=objective
    )
    runs = {}
    for block, copies in itertools.product(*SPACE.values()):
        with sim.device(values=False):
            run = double.time((min(20, -(-20_000 // block)),), **ARGS, BLOCK=block, multibuffer=copies)
        runs[block, copies] = {"time": run.time_us, "ub": run.launches[0].buffers["UB"].peak_bytes}[objective]
    assert found.optimal
    assert found.evaluated == len(runs)
    cost = found.best.time_us if objective == "time" else found.best.evaluation.ub_peak_bytes
    assert cost == min(runs.values())


def test_every_launch_of_a_tiling_is_placed_before_one_is_timed(monkeypatch):
    """And placed once: its timing takes the same compiled kernel."""
    told = []

    def tell(name):
        done = getattr(launching, name)
        monkeypatch.setattr(
            launching, name, lambda call, *more: told.append((name, call.program)) or done(call, *more)
        )

    tell("place")
    tell("estimated")
    case = {"rows": 70, "cols": 608}
    explore("rms_norm_grad", case=case, dtype="float16", space={"combine": "two_phase"}, budget=1)
    launches = len(told) // 2
    assert launches > 1
    assert [name for name, _ in told] == ["place"] * launches + ["estimated"] * launches
    assert all(a is b for (_, a), (_, b) in zip(told[:launches], told[launches:], strict=True))


def test_constraints_and_failures_of_a_kernel_are_counted():
    space = {"BLOCK": (64, 256, 262_144), "TWICE": (1, 1.5)}
    found = explore(double, ARGS, grid=(20,), space=space, constraint=lambda BLOCK, TWICE: BLOCK > 64)
    assert (found.size, found.legal) == (6, 3)
    assert sum(found.refused.values()) == 3
    assert sum(found.failed.values()) == 2
    (misfit,) = [why for why in found.refused if why.startswith("does not fit in UB: needs ")]
    assert misfit.endswith(" of 196,608 bytes")
    assert found.refused[misfit] == 1
    assert any("static_range" in message for message in found.failed)
    assert [x.point for x in found.found] == [{"BLOCK": 256, "TWICE": 1}]


def test_candidates_of_autotune_are_a_space():
    configs = [Config({"BLOCK": b}, num_warps=w) for b, w in ((128, 4), (1024, 8), (4096, 4))]
    configs.append(Config({"BLOCK": 1024, "multibuffer": False}))
    tuner = tuning.autotune(configs, key=["n"])(triton_jit(double.fn))
    found = explore(tuner, ARGS, grid=(20,))
    assert found.legal == 4
    assert found.evaluated == 4
    with sim.device(values=False):
        times = {c.kwargs["BLOCK"]: tuner.fn.time((20,), **ARGS, **c.kwargs).time_us for c in configs[:3]}
    assert found.best.time_us == min(times.values())
    assert found.best.point["BLOCK"] == min(times, key=times.get)


def test_repeated_points_are_free(tmp_path, monkeypatch):
    first = explore("matmul", case=SIZES, dtype="float16", space=FEW, store=tmp_path / "s.sqlite")
    assert first.reused == 0

    def never(self, point):
        raise AssertionError("a point was paid for twice")

    monkeypatch.setattr(evaluate.OperatorProblem, "evaluate", never)
    again = explore("matmul", case=SIZES, dtype="float16", space=FEW, store=tmp_path / "s.sqlite")
    assert again.reused == again.evaluated == first.evaluated
    assert again.found == first.found
    with pytest.raises(AssertionError, match="paid for twice"):
        explore("matmul", case=SIZES, dtype="float32", space=FEW, store=tmp_path / "s.sqlite")
    change = {"memory.bandwidth_tb_per_s": 1.5}
    with pytest.raises(AssertionError, match="paid for twice"):
        explore(
            "matmul", case=SIZES, dtype="float16", space=FEW, store=tmp_path / "s.sqlite", overrides=change
        )


@pytest.mark.drawn(1)
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interrupted_sweep_goes_on_where_it_was(tmp_path, monkeypatch, error):
    path, space, done = tmp_path / "s.sqlite", {**FEW, "buffers": (1, 2)}, []
    whole = explore("matmul", case=SIZES, dtype="float16", space=space)
    really = evaluate.OperatorProblem.evaluate

    def until_five(self, point):
        if len(done) == 5:
            raise error
        done.append(point)
        return really(self, point)

    monkeypatch.setattr(evaluate.OperatorProblem, "evaluate", until_five)
    with pytest.raises(error) as stopped:
        explore("matmul", case=SIZES, dtype="float16", space=space, store=path)
    if error is KeyboardInterrupt:
        assert isinstance(stopped.value, Interrupted)
        assert stopped.value.exploration.evaluated == 5
        assert not stopped.value.exploration.optimal
    monkeypatch.setattr(evaluate.OperatorProblem, "evaluate", really)
    resumed = explore("matmul", case=SIZES, dtype="float16", space=space, store=path)
    assert resumed.reused == 5
    assert resumed.found == whole.found
    assert resumed.proof == whole.proof


def test_what_changes_a_kernel_changes_its_name(monkeypatch):
    def name(kernel, **more):
        return evaluate.sweep_name(KernelProblem(kernel, (20,), {**ARGS, **more}, "ascend910b3", {}, {}))

    names = {name(double), name(double, n=19_999), name(sim.jit(other_double))}
    assert len(names) == 3
    assert name(double) in names


def other_double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2.0, mask=at < n)


def test_many_shapes_and_the_best_single_tiling():
    space = {
        "strategy": "full_row",
        "cols": 256,
        "rows": (1, 2),
        "cores": (8, 40),
        "combine": "atomic",
        "buffers": (1, 2),
    }
    found = explore_shapes("rms_norm_grad", ["tiny", "decode"], dtype="float32", space=space)
    assert list(found.explorations) == ["tiny", "decode"]
    assert found.single is not None
    for case, e in found.explorations.items():
        time_us = run_op(
            "rms_norm_grad", case=case, dtype="float32", tiling=found.single, values=False
        ).time_us
        assert found.losses[case] == pytest.approx(time_us / e.best.time_us - 1.0)
        assert found.losses[case] >= 0
    scope: dict = {}
    exec(found.to_python(), scope)  # it is to be pasted
    assert scope["TILINGS"][8, 64] == found.explorations["tiny"].best.point
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.exhaustive
def test_what_if_the_machine_were_another():
    changes = {"memory.bandwidth_tb_per_s": (0.1, 3.0)}
    with sim.device(l2="cold"):  # in a loop nothing of it comes from memory
        found = what_if("matmul", changes, case=SIZES, dtype="float16", space=FEW)
        own = run_op("matmul", case=SIZES, dtype="float16", values=False, overrides={"memory.bandwidth_tb_per_s": 0.1},
                     tiling=found.explorations[(0.1,)].best.point)  # fmt: skip
    slow, fast = (found.explorations[(x,)].best.time_us for x in (0.1, 3.0))
    assert slow > found.usual.best.time_us >= fast
    assert own.time_us == slow
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.exhaustive
def test_machines_that_cannot_be_are_listed():
    changes = {"cores.cube_cores": (10, 20), "cores.vector_cores": (20, 40)}
    found = what_if("matmul", changes, case=SIZES, dtype="float16", space=FEW)
    assert list(found.explorations) == [(), (10, 20), (20, 40)]
    assert list(found.refused) == [(10, 40), (20, 20)]
    assert all("change both together" in why for why in found.refused.values())
    assert len(found.to_dict()["refused"]) == 2
    assert "without" in str(found)
    with pytest.raises(UsageError, match="change both together"):
        what_if("matmul", {"cores.cube_cores": (10, 11)}, case=SIZES, dtype="float16", space=FEW)


def test_two_tilings_pipe_by_pipe():
    tilings = {"block_m": 16, "block_n": 32}, {"block_m": 48, "block_n": 64}
    found = difference("matmul", *tilings, case=SIZES, dtype="float16")
    for side, tiling in zip((found.first, found.second), tilings, strict=True):
        run = run_op("matmul", case=SIZES, dtype="float16", tiling=tiling, values=False).run
        launch = run.launches[0]
        per_us = launch.cycles / (launch.time_us - launch.overhead_us)
        assert side.time_us == run.time_us
        for n, p in launch.pipes.items():
            assert side.pipes[n][0] == pytest.approx(p.busy_cycles / per_us)
    json.dumps(found.to_dict(), allow_nan=False)


WRONG = {
    "no space for a kernel": (lambda: explore(double, ARGS, grid=(1,)), "give space="),
    "no grid": (lambda: explore(double, ARGS, space=SPACE), "give grid="),
    "unknown parameter": (
        lambda: explore(double, ARGS, grid=(1,), space={"SIZE": (1,)}),
        "double has no parameter 'SIZE'",
    ),
    "given twice": (
        lambda: explore(double, {**ARGS, "BLOCK": 64}, grid=(1,), space=SPACE),
        "in args and in the space",
    ),
    "no kernel": (
        lambda: explore(print, ARGS, grid=(1,), space=SPACE),
        "the name of an operator or a @sim.jit kernel",
    ),
    "error of a kernel": (
        lambda: explore(double, ARGS, grid=(1,), space=SPACE, objective="error"),
        "errors need data, and 'x_ptr' is a shape; give arrays",
    ),
    "unknown knob": (
        lambda: explore("matmul", space={"blok": 1}),
        "matmul has no knob 'blok' to explore; it has block_m",
    ),
    "unknown mode": (
        lambda: explore("matmul", space={"cube_math_type": "FAST"}),
        "unknown cube_math_type 'FAST'",
    ),
    "unknown objective": (
        lambda: explore("matmul", objective="joy"),
        "objective must be one of time, error, ub",
    ),
    "unknown sampler": (lambda: explore("matmul", sampler="luck"), "sampler must be one of auto, exact"),
    "budget": (lambda: explore("matmul", budget=0), "budget must be at least one"),
    "seconds": (lambda: explore("matmul", seconds=-1), "must be above 0 seconds"),
    "workers": (
        lambda: explore("matmul", space=FEW, workers="many"),
        "workers must be a number from 1, or an address",
    ),
    "args of an operator": (lambda: explore("matmul", ARGS), "an operator takes case="),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_input_is_refused_in_words(what):
    call, words = WRONG[what]
    with pytest.raises(UsageError) as refused:
        call()
    assert words in str(refused.value)


def test_print_is_a_page_of_80_columns():
    for record in (
        explore("matmul", case=SIZES, dtype="float16", space=FEW),
        what_if(
            "matmul",
            {"cores.cube_cores": (10,), "cores.vector_cores": (20,)},
            case=SIZES,
            dtype="float16",
            space=FEW,
        ),
        difference("matmul", {}, {"block_m": 16}, case=SIZES, dtype="float16"),
    ):
        page = str(record)
        assert page.startswith("matmul")
        assert max(map(len, page.splitlines())) <= 80
