"""A launch without one of its limits: never slower than with all of them, and as fast as the others allow."""

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels import run_op

pytestmark = pytest.mark.usefixtures("cold_l2")


@sim.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    for k in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        at = k * BLOCK + tl.arange(0, BLOCK)
        tl.store(y_ptr + at, tl.load(x_ptr + at))


def copied(**options):
    n, shape = 1 << 24, sim.shape(1 << 24, "float16")
    with sim.device("ascend910b3", explain=True, **options):
        return copy.time((40,), shape, shape, n, BLOCK=16384)


def test_a_copy_of_all_cores_is_held_up_by_hbm():
    run = copied()
    assert next(iter(run.lifted)) == "HBM"
    assert run.lifted["HBM"] < 0.7 * run.time_us
    assert run.lifted["AIV.S"] > 0.98 * run.time_us


def test_without_launch_overhead_the_cycles_are_left():
    run = copied()
    assert run.lifted["launch"] == pytest.approx(run.time_us - run.launches[0].overhead_us, rel=1e-12)


def test_with_one_buffer_the_buffer_holds_up_what_two_would_hide():
    """Loads from L2 and stores of one core alone, where bandwidth is not what binds."""
    n, shape = 1 << 20, sim.shape(1 << 20, "float16")
    times = {}
    for copies in (1, 2, 5):
        with sim.device("ascend910b3", explain=True, multibuffer=copies, l2="warm"):
            times[copies] = copy.time((1,), shape, shape, n, BLOCK=16384)
    saved = {c: 1 - r.lifted["buffers"] / r.time_us for c, r in times.items()}
    assert saved[1] > 0.5 > saved[2] > 0.2, saved  # the latency of a load is as long as its streaming
    assert saved[5] < 0.02, saved


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("op", "case"), [("rms_norm_grad", "tiny"), ("matmul", "tiny")])
def test_no_limit_makes_an_operator_slower_when_it_goes(op, case):
    run = run_op(op, case=case, values=False, explain=True).run
    assert set(run.launches[0].lifted) >= {"HBM", "L2", "buffers", "flags", "launch"}
    assert max(run.lifted.values()) <= run.time_us * 1.02


def test_nothing_is_tried_unless_asked_for():
    run = run_op("matmul", case="tiny", values=False).run
    assert (run.lifted, run.changes) == ({}, {})


def test_knobs_are_changed_one_at_a_time_and_the_record_keeps_what_came_out(tmp_path):
    run = run_op("matmul", case="1024", dtype="float16", values=False, explain=True).run
    assert run.changes["buffers 2 -> 1"] > 1.2 * run.time_us
    again = run_op("matmul", case="1024", dtype="float16", values=False, tiling={**run.tiling, "buffers": 1})
    assert run.changes["buffers 2 -> 1"] == again.time_us
    run.save(tmp_path / "x.run")
    loaded = sim.load_run(tmp_path / "x.run")
    assert (loaded.changes, loaded.lifted, loaded.interval_us) == (run.changes, run.lifted, run.interval_us)
