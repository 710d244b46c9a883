"""What a launch tells is made when it is read: whoever reads it, and whenever, reads the same."""

import gc
import linecache
import pickle
import weakref
from dataclasses import fields, replace

import numpy as np

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels import run_op
from ascendtile.simulator.record.later import Later, but, whole
from ascendtile.simulator.record.run import Launch
from ascendtile.simulator.timing import estimate

SIZES = {"n": 256, "k": 128}


def launch(m: int = 256) -> Launch:
    return run_op("matmul", case={**SIZES, "m": m}, values=False).launches[0]


def left(record: Launch) -> set[str]:
    """Fields that are still to be made."""
    return {n for n, x in vars(record).items() if isinstance(x, Later)}


def same(one: Launch, other: Launch) -> bool:
    return pickle.dumps(one) == pickle.dumps(other)


def test_in_any_order_and_after_other_launches_a_launch_reads_the_same():
    first, second = launch(), launch()
    names = [f.name for f in fields(Launch)]
    for n in names:
        getattr(first, n)
    run_op("rms_norm", values=False)
    for n in reversed(names):
        getattr(second, n)
    assert same(first, second)


def test_a_changed_copy_makes_nothing_and_reads_what_the_launch_reads():
    found = launch()
    before = left(found)
    copy = but(found, notes=("another",))
    assert before
    assert left(copy) == before == left(found)
    assert copy.timeline is found.timeline
    assert copy.lines is found.lines


def test_pickling_and_replacing_read_all_fields():
    found = launch()
    assert left(pickle.loads(pickle.dumps(found))) == left(replace(found)) == left(found) == set()


def test_a_source_that_changes_after_the_launch_changes_nothing(tmp_path):
    path = tmp_path / "kernels.py"
    text = "import ascendtile.simulator.language as tl\n\n\ndef double(x):\n    return x + x\n"
    path.write_text(text)
    scope: dict = {}
    exec(compile(text, str(path), "exec"), scope)
    helper = sim.jit(scope["double"])

    @sim.jit
    def kernel(x_ptr, N: tl.constexpr):
        at = tl.arange(0, N)
        tl.store(x_ptr + at, helper(tl.load(x_ptr + at)))

    run = kernel.time((1,), sim.shape(64, "float32"), N=64)
    path.write_text("\n" * 9)
    linecache.checkcache()
    found = {(x.line, x.source) for x in run.launches[0].lines if x.file == str(path)}
    assert found == {(5, "return x + x")}
    assert "return x + x" in run.launches[0].sources[1].text


def test_a_launch_of_large_traces_keeps_none_of_them(monkeypatch):
    monkeypatch.setattr(estimate, "MOST_KEPT", 0)
    assert left(launch(272)) == set()  # of a size that nobody remembers
    assert same(launch(272), whole(launch(272)))


def test_tensors_are_not_kept_by_what_is_still_to_be_read():
    class Array(np.ndarray):
        pass

    @sim.jit
    def fill(x_ptr, N: tl.constexpr):
        tl.store(x_ptr + tl.arange(0, N), tl.full((N,), 1.0, tl.float32))

    x = np.zeros(64, np.float32).view(Array)
    found, gone = weakref.ref(x), fill[(1,)](x, N=64)
    del x
    gc.collect()
    assert left(gone.launches[0])
    assert found() is None
