"""Kernels as Triton makes them: attributes, launch keywords, heuristics, candidates, benchmarks."""

from __future__ import annotations

import importlib
import os
import re
from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator import launch_keywords, triton_shim
from ascendtile.simulator.observers import watch
from ascendtile.simulator.triton_shim import config, kernel, runtime, testing, tuning


@kernel.jit(do_not_specialize=["n"])
def double(x, out, n, B: tl.constexpr, TWICE: tl.constexpr = 2):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) * TWICE, mask=i < n)


@kernel.jit
def add_until(x, out, B: tl.constexpr):
    """Its time depends on data: as many iterations as x[0] says."""
    i = tl.arange(0, B)
    for _ in range(tl.load(x)):
        tl.store(out + i, tl.load(out + i) + 1)


def grid(meta: dict[str, Any]) -> tuple[int]:
    return (-(-meta["n"] // meta["B"]),)


def tensors(n: int = 5000) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(n, dtype=np.float32)
    return x, np.zeros_like(x)


def candidates(*blocks: int) -> list[config.Config]:
    return [config.Config({"B": b}, num_warps=4) for b in blocks]


def test_attributes_that_scripts_read() -> None:
    assert double.__name__ == "double"
    assert double.arg_names == ["x", "out", "n", "B", "TWICE"]
    assert double.fn.__code__.co_argcount == 5
    assert double.src.startswith("def double(x, out, n, B: tl.constexpr")
    assert [p.name for p in double.params if p.is_constexpr] == ["B", "TWICE"]
    assert [p.name for p in double.params if p.do_not_specialize] == ["n"]
    assert [p.default for p in double.params if p.has_default] == [2]


def test_run_with_a_grid_by_name() -> None:
    x, out = tensors()
    run = double.run(x, out, len(x), grid=grid, warmup=False, B=512)
    assert (out == 2 * x).all()
    assert run.launches[0].grid == (10, 1, 1)


def test_warmup_writes_nothing() -> None:
    x, out = tensors()
    assert double.warmup(x, out, len(x), grid=(4,), B=512).cycles > 0
    assert not out.any()


@pytest.mark.parametrize("empty", [(0,), (4, 0), lambda meta: (0, 1, 1)])
def test_a_grid_of_no_programs_launches_nothing_as_in_triton(empty: Any) -> None:
    x, out = tensors()
    assert double[empty](x, out, len(x), B=512) is None
    assert not out.any()
    with pytest.raises(sim.UsageError, match="every axis of the grid must be at least 1"):
        sim.jit(double.fn)[(0,)](x, out, len(x), B=512)
    with pytest.raises(sim.UsageError, match="every axis of the grid must be at least 1"):
        double[(-1,)](x, out, len(x), B=512)


def test_launch_keywords_are_modelled_or_named_with_the_reason() -> None:
    x, out = tensors()
    launch = double[(3,)]
    plain = launch(x, out, len(x), B=512)
    run = launch(
        x, out, len(x), B=512, num_warps=8, unit_flag=True, enable_ubuf_saving=True, multibuffer=False
    )
    assert run.options["multibuffer"] == 1
    assert plain.options["multibuffer"] == 2
    said = "\n".join(run.warnings)
    assert "no effect in the model: launch keyword num_warps=8" in said
    assert "launch keyword enable_ubuf_saving=True, because a tile's UB" in said
    assert "unit_flag" not in said
    with pytest.raises(sim.UsageError, match="no parameter 'num_wraps'"):
        launch(x, out, len(x), B=512, num_wraps=8)
    with pytest.raises(sim.UsageError, match="'no-limit' or 'no-l0c', got 'some'"):
        launch(x, out, len(x), B=512, limit_auto_multi_buffer_of_local_buffer="some")


NO_SWITCH = ("yes", 3, 1, 0.0, "True")
WRONG = [
    *(
        (name, x)
        for name in ("unit_flag", "enable_auto_bind_sub_block", "disable_multi_buffer_on_ub")
        for x in NO_SWITCH
    ),
    *(("limit_auto_multi_buffer_only_for_local_buffer", x) for x in NO_SWITCH),
    *(("set_workspace_multibuffer", x) for x in (0, 17, True, "4", 2.0)),
    *((name, x) for name in ("tile_mix_vector_loop", "tile_mix_cube_loop") for x in (0, True, "2")),
    *((name, x) for name in ("limit_auto_multi_buffer_buffer", "compiler") for x in ("some", True, [])),
    *(("compiler_version", x) for x in ("7", 9.0, ["9.0"])),
    *(("multibuffer", x) for x in (0, 2.0, "on")),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_value_of_the_wrong_kind_is_refused_by_the_keyword_as_it_was_written(name: str, value: Any) -> None:
    device = sim.current_device()
    with pytest.raises(sim.UsageError, match=rf"^{name} must be .*, got {re.escape(repr(value))}$"):
        launch_keywords.apply(device, {name: value}, set())


@pytest.mark.parametrize("name", [*launch_keywords.MODELLED, *launch_keywords.OF_THE_COMPILER])
def test_a_keyword_that_is_none_is_as_if_it_were_not_there(name: str) -> None:
    device = sim.current_device()
    assert launch_keywords.apply(device, {name: None}, set()) == (device, {}, ())


def words(**keywords: Any) -> str:
    return "\n".join(launch_keywords.apply(sim.current_device(), keywords, set())[2])


def test_a_keyword_that_changes_little_or_nothing_says_so() -> None:
    author = "because an author of Ascend C makes the code"
    assert f"compiler_version=8.5, {author}" in words(compiler="ascendc", compiler_version="8.5")
    assert f"tile_mix_cube_loop=2, {author}" in words(tile_mix_cube_loop=2, compiler="ascendc")
    assert words(compiler_version="8.5") == words(compiler="ascendc", set_workspace_multibuffer=4) == ""
    assert "set_workspace_multibuffer=4: so many places in global memory" in words(
        set_workspace_multibuffer=4
    )
    one = {"limit_auto_multi_buffer_only_for_local_buffer": True}
    assert "leaves one place" in words(set_workspace_multibuffer=4, **one)


def test_heuristics_see_arguments_and_one_another() -> None:
    x, out = tensors()
    rules = {"B": lambda a: 256 if a["n"] > 10 else 16, "TWICE": lambda a: a["B"] // 64}
    run = tuning.heuristics(rules)(double)[grid](x, out, len(x))
    assert run.tiling == {"B": 256, "TWICE": 4}
    assert (out == 4 * x).all()


def test_autotune_takes_the_least_simulated_time_and_keeps_it() -> None:
    x, out = tensors(60_000)
    tuned = tuning.autotune(candidates(64, 1024, 4096, 200_000), key=["n"])(double)
    told: list[sim.Run] = []
    with watch(told.append):
        run = tuned[grid](x, out, len(x))
    times = {b: double.time(grid, x, out, len(x), B=b).time_us for b in (64, 1024, 4096)}
    best = min(times, key=lambda b: times[b])
    assert len(told) == 1  # trials are not launches
    assert run.tiling["B"] == tuned.best_config.kwargs["B"] == best
    assert [t.config.kwargs["B"] for t in tuned.ranking[:3]] == sorted(times, key=lambda b: times[b])
    assert (out == 2 * x).all()
    worst = tuned.ranking[3]
    assert worst.time_us is None
    assert "ub overflow" in worst.reason
    assert "1 cannot run" in tuned.ranking_text()
    tuned[grid](x[:100], out[:100], 100)
    assert len(tuned.cache) == 2


def test_a_tuner_chooses_anew_where_another_compiler_makes_the_code() -> None:
    x, out = tensors()
    tuned = tuning.autotune(candidates(64, 128), key=["n"])(double)
    asked: tuple[dict[str, str], ...] = ({}, {"compiler": "triton-ascend"}, {"compiler": "ascendc"})
    for options in (*asked, {"compiler_version": "8.5"}):
        with sim.device(**options):
            tuned[grid](x, out, len(x))
    assert len(tuned.cache) == 3  # the first two are one


def test_candidates_may_be_of_two_compilers() -> None:
    x, out = tensors()
    each = [config.Config({"B": 128}, compiler=c) for c in ("triton-ascend", "ascendc")]
    tuned = tuning.autotune(each, key=["n"])(double)
    run = tuned[grid](x, out, len(x))
    assert {t.config.more["compiler"] for t in tuned.ranking if t.time_us is not None} == {
        "triton-ascend",
        "ascendc",
    }
    assert run.launches[0].compiler.startswith(tuned.best_config.more["compiler"])


def test_trials_do_not_write() -> None:
    x, out = tensors(4096)
    x = np.array([3], np.int32)
    tuned = tuning.autotune(candidates(64, 128), key=[])(add_until)
    tuned[(1,)](x, out)
    assert set(out[: tuned.best_config.kwargs["B"]]) == {3}


def test_reset_to_zero_before_the_launch_that_follows_tuning() -> None:
    out = np.full(4096, 7, np.float32)
    tuned = tuning.autotune(candidates(64, 128), key=[], reset_to_zero=["out"])(add_until)
    tuned[(1,)](np.array([3], np.int32), out)
    assert out.max() == 3


def test_pruning() -> None:
    x, out = tensors()
    asked = []

    def early(configs: Any, named: Any, **_: Any) -> Any:
        asked.append(named["n"])
        return [c for c in configs if c.kwargs["B"] > 64]

    prune = {"early_config_prune": early, "perf_model": lambda B, **_: B, "top_k": 2}
    tuned = tuning.autotune(candidates(64, 128, 256, 512), key=["n"], prune_configs_by=prune)(double)
    tuned[grid](x, out, len(x))
    assert asked == [len(x)]
    assert {t.config.kwargs["B"] for t in tuned.ranking} == {128, 256}


def test_the_ranking_is_printed_on_request(monkeypatch: Any, capsys: Any) -> None:
    x, out = tensors()
    monkeypatch.setenv("TRITON_PRINT_AUTOTUNING", "1")
    tuning.autotune(candidates(64, 128), key=["n"])(double)[grid](x, out, len(x))
    assert "autotune of double: 2 candidates, 0 cannot run" in capsys.readouterr().err


def test_the_ranking_is_shown_as_a_table_and_candidates_as_they_come(monkeypatch: Any, capsys: Any) -> None:
    x, out = tensors()
    monkeypatch.setenv("TRITON_PRINT_AUTOTUNING", "1")
    tuned = tuning.autotune(candidates(64, 128, 200_000), key=["n"])(double)
    tuned[grid](x, out, len(x))
    first, second, third, *table = capsys.readouterr().err.splitlines()
    assert first.startswith("autotune of double: candidate 1 of 3, B: 64")
    assert first.endswith(f"{tuned.configs_timings[tuned.configs[0]][0] * 1000:.3f} us")
    assert second.startswith("autotune of double: candidate 2 of 3, B: 128")
    assert "candidate 3 of 3" in third
    assert "ub overflow" in third
    assert repr(tuned.ranking) == tuned.ranking_text() == "\n".join(table)
    assert table[0] == "autotune of double: 3 candidates, 1 cannot run"
    assert len(table) == 5, "a row for each, and the reason of the one that cannot run"


def test_no_candidates_are_one_without_values() -> None:
    x, out = tensors()
    tuned = tuning.autotune(configs=[], key=["n"])(double)
    tuned[grid](x, out, len(x), B=128)
    assert (out == 2 * x).all()
    assert tuned.best_config == config.Config({})
    assert len(tuned.configs) == 1


def test_there_is_no_code_of_a_device() -> None:
    x, out = tensors()
    run = double[grid](x, out, len(x), B=128)
    assert (len(run.asm), list(run.asm), "ptx" in run.asm, run.asm.get("ttir")) == (0, [], False, None)
    with pytest.raises(
        sim.UsageError, match=r"double.asm\['ptx'\]: no code of a device is made here.*run.lines"
    ):
        run.asm["ptx"]
    assert "no code of a device" in repr(run.asm)


@pytest.mark.parametrize(("given", "shown"), [(None, "None"), ("abc", "'abc'")])
def test_what_is_no_tensor_is_named(given: Any, shown: str) -> None:
    _, out = tensors()
    with pytest.raises(
        sim.UsageError, match=f"parameter 'x' of double was given {shown}, which is no memory"
    ):
        double[grid](given, out, len(out), B=128)


def test_a_kernel_with_any_arguments_is_refused_at_its_own_line() -> None:
    def wrong(x, *args): ...

    line = wrong.__code__.co_firstlineno
    with pytest.raises(sim.UsageError, match=rf"test_kernels.py:{line}:\d+: wrong cannot take \*args"):
        kernel.jit(wrong)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"configs": candidates(200_000, 300_000)}, "none of 2 candidates can run"),
        ({"configs": candidates(64, 128), "reset_to_zero": ["y"]}, "'y' is no parameter"),
        ({"configs": candidates(64, 128), "repeat": 3}, "no option 'repeat'"),
    ],
    ids=["none fits", "unknown tensor", "unknown option"],
)
def test_autotune_refuses(options: dict[str, Any], says: str) -> None:
    x, out = tensors()
    with pytest.raises(sim.UsageError, match=says):
        tuning.autotune(key=["n"], **options)(double)[grid](x, out, len(x))


def test_what_every_candidate_fails_at_is_raised_as_it_is() -> None:
    @kernel.jit
    def wrong(x, B: tl.constexpr):
        tl.store(x + tl.arange(0, B), "text")

    with pytest.raises(sim.UsageError) as e:
        tuning.autotune(candidates(64, 128), key=[])(wrong)[(1,)](tensors()[0])
    assert str(e.value).splitlines()[-1].strip() == "^"


def test_tuners_and_libentry_go_around_one_another() -> None:
    x, out = tensors()
    inner = tuning.heuristics({"TWICE": lambda a: 3})(double)
    outer = runtime.libentry()(tuning.autotune(candidates(256), key=["n"])(inner))
    outer[grid](x, out, len(x))
    assert (out == 3 * x).all()
    assert outer.jit_function is double


def test_do_bench_is_simulated_time() -> None:
    x, out = tensors()

    def twice() -> None:
        for _ in range(2):
            double[grid](x, out, len(x), B=512)

    once = double[grid](x, out, len(x), B=512).time_us / 1000
    with sim.device(l2="cold"):
        first = double[grid](x, out, len(x), B=512).time_us / 1000
    both = first + once  # L2 is empty at the start; the second launch finds what the first one left
    assert testing.do_bench(twice) == pytest.approx(both)
    assert testing.do_bench(twice, quantiles=[0.5, 0.2, 0.8]) == [pytest.approx(both)] * 3
    assert testing.do_bench(twice, return_mode="all") == [pytest.approx(both)]


def test_do_bench_of_host_code_has_no_simulated_time(capsys: Any) -> None:
    testing._say_once.cache_clear()
    assert all(np.isnan(testing.do_bench(lambda: None)) for _ in range(3))
    assert capsys.readouterr().err.count("nothing was launched") == 1


def test_perf_report_prints_and_saves(tmp_path: Any, capsys: Any) -> None:
    b = testing.Benchmark(["n"], [256, 512], "who", ["a", "b"], ["A", "B"], "plot", ylabel="GB/s")
    mark = testing.perf_report(b)(lambda n, who: n * (2.0 if who == "a" else 3.0))
    mark.run(print_data=True, save_path=tmp_path)
    assert [line.split() for line in capsys.readouterr().out.splitlines()[2:]] == [
        ["256", "512", "768"],
        ["512", "1024", "1536"],
    ]
    assert (tmp_path / "plot.csv").read_text().splitlines()[0] == "n,A (GB/s),B (GB/s)"
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_assert_close() -> None:
    x = np.ones(4, np.float16)
    testing.assert_close(x, x + 0.005)
    with pytest.raises(AssertionError):
        testing.assert_close(x, x + 0.005, atol=1e-3)
    with pytest.raises(AssertionError):
        testing.assert_close(x, x * np.nan)


def test_a_pointer_made_from_a_loaded_number_has_no_time_without_data() -> None:
    @kernel.jit
    def gather(x, index, out, B: tl.constexpr):
        i = tl.arange(0, B)
        tl.store(out + i, tl.load(x + tl.load(index) * B + i))

    x, out = tensors(64)
    run = gather[(1,)](x, np.array([3], np.int32), out[:16], B=16)
    assert run.cycles > 0
    assert (out[:16] == x[48:]).all()


@pytest.mark.parametrize("product", ["ascend910b3", "ascend310p"])
def test_libraries_find_the_size_of_ub_of_the_product_in_force(
    product: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "ASCEND_UB_CAPACITY_BITS"
    monkeypatch.delenv(name, raising=False)
    with sim.device(product) as device, triton_shim.installed():
        get_soc_spec = importlib.import_module("tbe.common.platform").get_soc_spec
        assert int(os.environ[name]) == 8 * get_soc_spec("UB_SIZE") == 8 * device.product.ub_bytes
    assert name not in os.environ
    monkeypatch.setenv(name, "1000")
    with triton_shim.installed():
        assert os.environ[name] == "1000"
    assert os.environ[name] == "1000"
