"""Records that satisfy every type and cannot be true are refused, by the field and both numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import run_op
from ascendtile.simulator.record.checks import check_figures
from ascendtile.simulator.record.loading import load_run
from ascendtile.simulator.record.run import Buffer, Run
from ascendtile.simulator.record.saving import save_run

from ..support.sample_runs import error_report, launch, run, timeline


def bad(**changes: Any) -> Run:
    """The sample run with these fields of its launch changed."""
    return run(launches=(launch(**changes),))


def with_pipe(**changes: Any) -> Run:
    pipes = launch().pipes
    return bad(pipes={**pipes, "AIV.V": replace(pipes["AIV.V"], **changes)})


def with_times(**changes: Any) -> Run:
    """changes: of the timeline, one number for its third instruction or a whole field."""
    t = timeline()
    found = {}
    for name, x in changes.items():
        array = getattr(t, name)
        found[name] = np.where(np.arange(len(array)) == 2, x, array).astype(array.dtype)
    return bad(timeline=replace(t, **found))


IMPOSSIBLE = {
    "launches.0.cycles is -5.0": bad(cycles=-5.0),
    "launches.0.cycles is nan": bad(cycles=math.nan),
    "launches.0.time_us is inf": bad(time_us=math.inf),
    "launches.0.overhead_us is 99.0; the whole launch takes 38.0 us": bad(overhead_us=99.0),
    "launches.0.low_us is 39.0; the whole launch takes 38.0 us": bad(
        low_us=39.0, high_us=50.0, measured_rows=5
    ),
    "launches.0.high_us is 37.0; the whole launch takes 38.0 us": bad(
        low_us=1.0, high_us=37.0, measured_rows=5
    ),
    "launches.0.bounds.HBM is -1.0": bad(bounds={"HBM": -1.0}),
    "launches.0.cores is 4000; the run's product has 40 at most": bad(cores=4000),
    "launches.0.cores_used is 41; there are 40 cores": bad(cores_used=41),
    "launches.0.cores_used is 40; there are 7 programs": bad(programs=7),
    "launches.0.instructions is 1000000000000000000": bad(instructions=10**18),
    "launches.0.lines and other_cycles together is 60001.0": bad(other_cycles=5001.0),
    "the length of launches.0.core_cycles is 3; there are 40 cores": bad(core_cycles=(1.0, 2.0, 3.0)),
    "launches.0.core_cycles at most is 70000.0; the launch takes 60000.0": bad(core_cycles=(7e4,) * 40),
    "launches.0.pipes.AIV.V.busy_cycles is 60001.0": with_pipe(busy_cycles=60001.0),
    "launches.0.pipes.AIV.V.share is 1.5": with_pipe(share=1.5),
    "the length of launches.0.pipes.AIV.V.core_busy is 2": with_pipe(core_busy=(1.0, 2.0)),
    "launches.0.pipes.AIV.V.stalls.data is -3.0": with_pipe(stalls={"data": -3.0}),
    "launches.0.buffers.UB.peak_bytes is 200000; the buffer has 196608 bytes": bad(
        buffers={"UB": Buffer(200000, 196608)}
    ),
    "launches.0.buffers.UB.held at most": bad(buffers={"UB": Buffer(5, 10, held=((70000.0, 5),))}),
    "launches.0.timeline.start is -1.0": with_times(start=-1.0),
    "launches.0.timeline.end is nan": with_times(end=math.nan),
    "launches.0.timeline.end is 1.0; that instruction starts at cycle 2.0": with_times(end=1.0),
    "launches.0.timeline.done is 0.5; that instruction starts at cycle 2.0": with_times(done=0.5),
    "launches.0.timeline.end at most is 90000.0; the launch takes 60000.0": with_times(end=90000.0),
    "launches.0.timeline.gap is -1.0": with_times(gap=-1.0),
    "launches.0.timeline.core is 40; it must be 0 to 39": with_times(core=40),
    "launches.0.timeline.program is -1": with_times(program=-1),
    "launches.0.timeline.line is 2; it must be -1 to 1": with_times(line=2),
    "launches.0.timeline.until is inf": bad(timeline=replace(timeline(), until=math.inf)),
    "errors.out.compared is 9; there are 4 elements": run(
        errors={"out": replace(error_report(), compared=9)}
    ),
    "errors.out.nan is -1": run(errors={"out": replace(error_report(), nan=-1)}),
    "the length of errors.out.ulp_histogram is 1": run(
        errors={"out": replace(error_report(), ulp_histogram=(4,))}
    ),
    "changes.rows is nan": run(changes={"rows": math.nan}),
    "time_seconds is -1.0": run(time_seconds=-1.0),
}


@pytest.mark.drawn(6)
@pytest.mark.parametrize("words", list(IMPOSSIBLE))
def test_what_no_run_gives_is_named(words, tmp_path):
    save_run(IMPOSSIBLE[words], tmp_path / "x.run")
    with pytest.raises(sim.UsageError) as error:
        load_run(tmp_path / "x.run")
    assert str(error.value).startswith(f"{tmp_path / 'x.run'}: is damaged: {words}"), error.value


def test_products_that_a_record_does_not_tell_bound_nothing():
    for product in ({}, {"figures": 3}, {"figures": {"cores.cube_cores": {"value": "many"}}}):
        check_figures(run(product=product))


@pytest.mark.parametrize(
    ("op", "product"),
    [
        ("matmul", "ascend910b3"),
        ("matmul", "ascend310p"),
        ("group_norm", "ascend910b3"),
        ("matmul", "ascend910a"),
    ],
)
def test_real_runs_are_believed(op, product):
    check_figures(run_op(op, product=product, values=False).run)
