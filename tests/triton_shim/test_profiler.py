"""`torch_npu.profiler`: which launches are recorded, and the table that is written of them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.triton_shim import testing
from ascendtile.simulator.triton_shim.profiler import profiler
from ascendtile.simulator.triton_shim.profiler.choices import Schedule


@sim.jit
def double(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i) * 2)


@sim.jit
def product(a, b, out, B: tl.constexpr):
    i = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(out + i, tl.dot(tl.load(a + i), tl.load(b + i)))


def launch(n: int = 64) -> sim.Run:
    x = np.ones(n, np.float32)
    return double[(1,)](x, np.zeros_like(x), B=n)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    *(st.integers(0, 4) for _ in range(2)),
    st.integers(1, 4),
    *(st.integers(0, 3) for _ in range(2)),
    st.booleans(),
)
def test_the_schedule_is_its_steps_written_out(
    wait: int, warmup: int, active: int, repeat: int, skip: int, at_once: bool
) -> None:
    cycle = ["NONE"] * wait + ["WARMUP"] * warmup + ["RECORD"] * (active - 1) + ["RECORD_AND_SAVE"]
    steps = (cycle * 20)[wait if at_once else 0 : 20 * len(cycle)]
    if repeat:
        steps = steps[: repeat * len(cycle) - (wait if at_once else 0)] + ["NONE"] * 40
    expected = ["NONE"] * skip + steps
    schedule = Schedule(wait, active, warmup, repeat, skip, int(at_once))
    count = min(40, len(expected))
    assert [schedule(i).name for i in range(count)] == expected[:count]


def test_a_schedule_of_no_steps_is_refused() -> None:
    with pytest.raises(sim.UsageError, match="active is an integer from 1, got 0"):
        Schedule(wait=1, active=0)


def read(folder: Path) -> list[dict[str, str]]:
    (path,) = folder.glob("*_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv")
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_steps_of_the_schedule_are_in_the_table(tmp_path: Path, capsys: Any) -> None:
    handler = profiler.tensorboard_trace_handler(str(tmp_path))
    schedule = Schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=1)
    with profiler.profile(schedule=schedule, on_trace_ready=handler, record_shapes=True) as prof:
        for n in (8, 16, 32, 64, 128, 256):
            run = launch(n)
            if n == 64:
                timed = run
            prof.step()
    rows = read(tmp_path)
    assert [(r["Step Id"], r["Input Shapes"], r["Output Shapes"], r["Output Data Types"]) for r in rows] == [
        ("3", '"64"', '"64"', "FLOAT"),
        ("4", '"128"', '"128"', "FLOAT"),
    ]
    row = rows[0]
    assert (row["Name"], row["Accelerator Core"], row["Block Num"]) == ("double", "AI_VECTOR_CORE", "1")
    assert float(row["Duration(us)"]) == pytest.approx(timed.time_us, rel=1e-5)
    assert float(row["aiv_total_cycles"]) == pytest.approx(timed.cycles, rel=1e-5)
    assert float(row["aiv_vec_ratio"]) == pytest.approx(timed.pipes["AIV.V"].share, rel=1e-5)
    assert float(row["aic_mac_time(us)"]) == 0
    assert "2 launches with simulated times in " in capsys.readouterr().err


def test_a_product_is_on_the_cube_and_each_cycle_has_a_table(tmp_path: Path) -> None:
    x = np.ones((32, 32), np.float16)
    found: list[Any] = []
    with profiler.profile(
        schedule=Schedule(wait=0, active=1), on_trace_ready=lambda p: found.append(p.rows)
    ) as prof:
        for _ in range(2):
            product[(1,)](x, x, np.zeros((32, 32), np.float32), B=32)
            prof.step()
    assert [[r.kernel for r in rows] for rows in found] == [["product"], ["product"]]
    assert found[0][0].core in ("AI_CORE", "MIX_AIC")
    assert found[0][0].pipes["aic_mac_ratio"] > 0


def test_without_a_schedule_all_is_recorded_and_can_be_a_trace(tmp_path: Path) -> None:
    with profiler.profile(activities=[profiler.ProfilerActivity.NPU]) as prof:
        times = [launch(n).time_us for n in (64, 128)]
        prof.export_chrome_trace(str(tmp_path / "trace.json"))
        path = prof.write_kernels(tmp_path)
    launch()
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [e["dur"] for e in events] == times
    assert "Step Id" not in path.read_text().splitlines()[0]
    assert len(path.read_text().splitlines()) == 3


def test_do_bench_npu_leaves_the_table_where_it_is_asked_to(tmp_path: Path) -> None:
    times = testing.do_bench_npu([launch, lambda: launch(128)], prof_dir=str(tmp_path), keep_res=True)
    rows = read(tmp_path)
    assert [float(r["Duration(us)"]) / 1000 for r in rows] == pytest.approx(times, rel=1e-5)
    assert float(rows[1]["Start Time(us)"]) >= float(rows[0]["Start Time(us)"]) + times[0] * 1000 - 1e-3
    before = list(tmp_path.iterdir())
    assert testing.do_bench_npu(launch, warmup=1, active=2) == testing.do_bench_npu([launch]) == times[0]
    assert list(tmp_path.iterdir()) == before


def test_what_cannot_be_recorded_is_said() -> None:
    with pytest.raises(sim.UsageError, match="no option 'shapes'"):
        profiler.profile(shapes=True)
    with (
        sim.device(time=False),
        profiler.profile(),
        pytest.raises(sim.UsageError, match="needs simulated time"),
    ):
        launch()
    with profiler.profile() as prof, pytest.raises(sim.UsageError, match="the host's side is not simulated"):
        prof.export_stacks("x")


@pytest.mark.extra("torch")
@pytest.mark.usefixtures("shim")
def test_the_names_that_scripts_use(tmp_path: Path) -> None:
    import torch_npu
    from torch_npu.profiler import profile, schedule

    assert (profile, schedule) == (profiler.profile, Schedule)
    config = torch_npu.profiler._ExperimentalConfig(
        aic_metrics=torch_npu.profiler.AiCMetrics.PipeUtilization,
        profiler_level=torch_npu.profiler.ProfilerLevel.Level1,
        l2_cache=False,
    )
    activities = [torch_npu.profiler.ProfilerActivity.CPU, torch_npu.profiler.ProfilerActivity.NPU]
    handler = torch_npu.profiler.tensorboard_trace_handler(str(tmp_path))
    with profile(activities=activities, experimental_config=config, on_trace_ready=handler):
        first, second = launch(), launch(128)
    rows = read(tmp_path)
    begin = [float(r["Start Time(us)"]) for r in rows]
    assert begin[1] - begin[0] == pytest.approx(first.time_us, abs=1e-2), "the clock of torch.npu"
    assert float(rows[1]["Duration(us)"]) == pytest.approx(second.time_us, rel=1e-5)
