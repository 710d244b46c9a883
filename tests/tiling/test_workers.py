"""Processes and clusters: the same answers in the same order, and a worker that is killed in the middle is replaced."""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels.shared.sums import zero_fill
from ascendtile.simulator import triton_shim
from ascendtile.simulator.errors import RunError, UsageError
from ascendtile.tiling import explore
from ascendtile.tiling.evaluate import Evaluation, OperatorProblem
from ascendtile.tiling.kernel_problem import KernelProblem
from ascendtile.tiling.workers import open_workers

POINTS = [{"x": k} for k in range(23)]


@dataclass(frozen=True)
class MadeUp:
    """Evaluates to its own number; at the point `deadly` the process is killed, as often as `marks` has files to remove."""

    marks: Path
    deadly: int = -1

    def evaluate(self, point):
        left = sorted(self.marks.iterdir())
        if point["x"] == self.deadly and left:
            left[0].unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return Evaluation(time_us=float(point["x"]))


def times(problem, workers):
    with open_workers(problem, workers) as crew:
        return [e.time_us for e in crew.evaluate(POINTS)]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_the_order_of_the_points(tmp_path, workers):
    assert times(MadeUp(tmp_path), workers) == [float(k) for k in range(23)]


def test_a_worker_that_is_killed_is_replaced(tmp_path):
    (tmp_path / "once").touch()
    assert times(MadeUp(tmp_path, deadly=9), 2) == [float(k) for k in range(23)]
    assert not list(tmp_path.iterdir())


@pytest.mark.exhaustive
def test_a_point_that_kills_every_worker_is_named(tmp_path):
    for k in range(9):
        (tmp_path / f"again {k}").touch()
    with pytest.raises(
        RunError, match=r"a worker process died 3 times at the same points, the first is .*--workers 1"
    ):
        times(MadeUp(tmp_path, deadly=9), 2)


def test_wrong_numbers_of_workers(tmp_path):
    for workers in (0, -1, "two"):
        with (
            pytest.raises(UsageError, match=r"workers must be a number from 1"),
            open_workers(MadeUp(tmp_path), workers),
        ):
            pass


@pytest.mark.extra("distributed")
def test_a_cluster_that_does_not_answer(tmp_path, monkeypatch):
    monkeypatch.setattr("ascendtile.tiling.workers.CONNECT_SECONDS", 1)
    address = "tcp://127.0.0.1:9"
    with (
        pytest.raises(UsageError, match=f"no cluster answers at {address} within 1 s"),
        open_workers(MadeUp(tmp_path), address),
    ):
        pass
    with open_workers(MadeUp(tmp_path), address, fallback=True) as crew:
        assert [e.time_us for e in crew.evaluate(POINTS[:3])] == [0.0, 1.0, 2.0]
    found = explore(
        "matmul", case=SIZES, dtype="float16", space=FEW, budget=1, workers=address, fallback=True
    )
    assert found.notes == (f"no cluster answered at {address} within 1 s: everything ran in this process",)


@pytest.fixture(scope="module")
def cluster():
    import distributed

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as started:
        yield started


FEW = {"block_m": (16, 48), "block_n": (32, 64), "block_k": (64, 128), "group": 1, "split_k": 1}
SIZES = {"m": 96, "n": 64, "k": 128}


@pytest.mark.extra("distributed")
def test_a_cluster_gives_the_same_as_this_process(cluster):
    here = explore("matmul", case=SIZES, dtype="float16", space=FEW)
    there = explore("matmul", case=SIZES, dtype="float16", space=FEW, workers=cluster.scheduler_address)
    assert there.found == here.found
    assert there.proof == here.proof


@pytest.mark.extra("distributed")
def test_a_kernel_travels_to_a_cluster_by_its_name(cluster):
    args = {"out_ptr": sim.shape((9000,), "float32"), "n": 9000}
    space = {"COLS": (64, 512, 2048)}
    here = explore(zero_fill, args, grid=lambda a: (-(-a["n"] // a["COLS"]),), space=space)
    there = explore(
        zero_fill,
        args,
        grid=lambda a: (-(-a["n"] // a["COLS"]),),
        space=space,
        workers=cluster.scheduler_address,
    )
    assert there.found == here.found


TRITON_KERNEL = """
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": b}, num_warps=4) for b in (256, 1024, 4096)], key=["n"])
@triton.heuristics({"EVEN": lambda a: a["n"] % a["BLOCK"] == 0})
@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = None if EVEN else at < n
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=mask) * 2.0, mask=mask)
"""


@pytest.mark.extra("distributed")
def test_a_triton_kernel_travels_with_its_tuners(cluster, tmp_path, monkeypatch):
    """Workers have no triton: what stands in for it is installed there before the kernel's module is imported."""
    (tmp_path / "kernel_of_a_test.py").write_text(TRITON_KERNEL)
    monkeypatch.syspath_prepend(tmp_path)
    triton_shim.install()
    try:
        double = importlib.import_module("kernel_of_a_test").double
        data = sim.shape((100_000,), "float16")
        args = {"x_ptr": data, "y_ptr": data, "n": 100_000}
        call, where = {"grid": lambda a: (-(-a["n"] // a["BLOCK"]),)}, str(tmp_path)
        here = explore(double, args, **call)
        with distributed_client(cluster) as client:
            with pytest.raises(
                UsageError, match=r"the cluster cannot import kernel_of_a_test .*No module named"
            ):
                explore(double, args, workers=cluster.scheduler_address, **call)
            client.run(lambda: sys.path.insert(0, where))
            there = explore(double, args, workers=cluster.scheduler_address, **call)
            client.run(lambda: sys.path.remove(where))
    finally:
        triton_shim.uninstall()
        sys.modules.pop("kernel_of_a_test", None)
    assert here.legal == here.evaluated == 3
    assert there.found == here.found
    assert there.proof == here.proof


def distributed_client(cluster):
    import distributed

    return distributed.Client(cluster.scheduler_address, set_as_default=False)


def test_a_kernel_without_a_name_cannot_travel():
    @sim.jit
    def inner(out_ptr, COLS: tl.constexpr):
        tl.store(out_ptr + tl.arange(0, COLS), tl.zeros((COLS,), tl.float32))

    problem = KernelProblem(inner, (1,), {}, "ascend910b3", {}, {})
    with pytest.raises(
        UsageError, match=r"a cluster imports the kernel by its name, and .*inner of .* cannot be"
    ):
        pickle.dumps(problem)


@pytest.mark.extra("distributed")
def test_a_cluster_worker_that_is_killed_in_the_middle_is_replaced(cluster):
    fixed = {"dtype": "float16", "cube_math_type": "KEEP_DTYPE"}
    problem = OperatorProblem("rms_norm_grad", {"rows": 64, "cols": 64}, "ascend910b3", {}, {}, fixed)
    points = [{"strategy": "full_row", "rows": r, "cores": c} for r in (1, 2) for c in (4, 8, 16, 40)] * 3
    expected = [problem.evaluate(p) for p in points]
    with open_workers(problem, cluster.scheduler_address) as crew:
        found = crew.evaluate(points)
        got = [next(found)]
        pids = list(crew.client.run(os.getpid).values())
        os.kill(pids[0], signal.SIGKILL)
        got += list(found)
    assert got == expected


ORPHANS = """
import time
from ascendtile.tiling.evaluate import OperatorProblem
from ascendtile.tiling.workers import Processes

if __name__ == "__main__":
    pool = Processes(OperatorProblem("matmul", "tiny", "ascend910b3", {}, {}, {"dtype": "float16"}), 2)
    print(len(list(pool.evaluate([{"block_m": 16}, {"block_m": 32}]))), flush=True)
    time.sleep(600)
"""


@pytest.mark.exhaustive
def test_processes_end_with_the_one_that_started_them():
    """They hold its end of the pipe: nothing more comes out of it only when all of them are gone."""
    begun = subprocess.Popen([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE)
    assert begun.stdout.readline() == b"2\n"
    begun.kill()
    assert begun.communicate(timeout=60) == (b"", None)


def test_addresses_that_no_cluster_has(tmp_path):
    with pytest.raises(UsageError, match=r"or an address such as tcp://host:8786, got 'http://host'"):
        times(MadeUp(tmp_path), "http://host")
