"""What a result depends on besides the point: the device in force and what is in the arrays. A store mixes none of it up."""

from __future__ import annotations

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels import run_op
from ascendtile.tiling import explore

N = 1 << 20
ARGS = {"x_ptr": sim.shape((N,), "float16"), "y_ptr": sim.shape((N,), "float16"), "n": N}
ROWS = {"rows": 1, "cols": 64, "cores": 8, "buffers": 2}


@sim.jit
def stride(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = first + tl.arange(0, BLOCK)
        tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2.0, mask=at < n)


@sim.jit
def as_long_as_told(n_ptr, y_ptr, BLOCK: tl.constexpr):
    for first in range(0, tl.load(n_ptr), BLOCK):
        tl.store(y_ptr + first + tl.arange(0, BLOCK), tl.zeros((BLOCK,), tl.float16))


def best_us(what, args, store, **more):
    found = explore(what, args, store=store, **more)
    return found.best.time_us, found.reused


@pytest.mark.parametrize(
    "state",
    [
        {"l2": "cold"},
        {"l2": {"x": "cold"}},
        {"multibuffer": 1},
        {"overrides": {"clock.aicore_mhz": 900}},
        {"product": "ascend910b4"},
    ],
    ids=str,
)
def test_a_kernel_is_explored_on_the_device_in_force(tmp_path, state):
    given = {"space": {"BLOCK": 8192}, "grid": (40,)}
    usual, _ = best_us(stride, ARGS, tmp_path / "s.sqlite", **given)
    with sim.device(**state):
        own = stride.time((40,), **ARGS, BLOCK=8192).time_us
        found = best_us(stride, ARGS, tmp_path / "s.sqlite", **given)
    assert own != usual
    assert found == (own, 0)
    assert best_us(stride, ARGS, tmp_path / "s.sqlite", **given) == (usual, 1)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("workers", [1, 2])
def test_an_operator_is_explored_on_the_device_in_force(tmp_path, workers):
    given = {"case": {"rows": 512, "cols": 64}, "space": ROWS, "dtype": "float16", "workers": workers}
    usual, _ = best_us("rms_norm", None, tmp_path / "s.sqlite", **given)
    with sim.device(l2="cold", overrides={"clock.aicore_mhz": 900}):
        own = run_op("rms_norm", case=given["case"], dtype="float16", tiling=ROWS, values=False).time_us
        found = best_us("rms_norm", None, tmp_path / "s.sqlite", **given)
    assert own != usual
    assert found == (own, 0)


def test_the_mode_of_the_device_holds_for_a_kernel():
    a, c = (sim.shape((64, 64), "float32") for _ in "ac")
    given = {"space": {"SIZE": 64}, "grid": (1,)}
    with sim.device(cube_math_type="USE_HF32"):
        own = square.time((1,), a, c, SIZE=64).time_us
        found = explore(square, {"a_ptr": a, "c_ptr": c}, **given).best.time_us
    assert found == own < explore(square, {"a_ptr": a, "c_ptr": c}, **given).best.time_us


@sim.jit
def square(a_ptr, c_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    a = tl.load(a_ptr + at)
    tl.store(c_ptr + at, tl.dot(a, a))


def test_closed_forms_prove_nothing_on_a_device_that_they_do_not_know():
    space = {**ROWS, "rows": (1, 4), "cols": 4096, "cores": 40}
    with sim.device(unit_flag=True):
        found = explore("rms_norm", case="llama3-8b", dtype="float16", space=space)
    assert found.bounded == 0
    assert any("unit_flag" in x for x in found.notes)
    assert found.evaluated + sum(found.failed.values()) == found.legal


def test_a_store_tells_arrays_apart_by_what_is_in_them(tmp_path):
    y, times = np.zeros(100_000, np.float16), []
    for n in (1000, 100_000, 1000):
        args = {"n_ptr": np.array([n], np.int32), "y_ptr": y}
        times.append(best_us(as_long_as_told, args, tmp_path / "s.sqlite", space={"BLOCK": 1000}, grid=(1,)))
    assert times[1][0] > 5 * times[0][0]
    assert [reused for _, reused in times] == [0, 0, 1]


@pytest.mark.parametrize("state", [{"compiler": "ascendc"}, {"compiler_version": "8.5"}], ids=str)
def test_a_store_keeps_what_two_compilers_made_apart(tmp_path, state):
    given = {"space": {"BLOCK": 8192}, "grid": (40,)}
    usual = explore(stride, ARGS, store=tmp_path / "s.sqlite", **given)
    with sim.device(**state):
        found = explore(stride, ARGS, store=tmp_path / "s.sqlite", **given)
        again = explore(stride, ARGS, store=tmp_path / "s.sqlite", **given)
    assert (usual.compiler, found.reused, again.reused) == ("triton-ascend 9.0", 0, 1)
    assert found.compiler == again.compiler == state.get("compiler", "triton-ascend 8.5")


def test_the_compiler_may_be_an_axis_of_a_kernels_space():
    space = {"BLOCK": (4096, 8192), "compiler": ("triton-ascend", "ascendc")}
    found = explore(stride, ARGS, space=space, grid=(40,))
    assert {x.point["compiler"] for x in found.ranked} == {"triton-ascend", "ascendc"}
    with sim.device(compiler=found.best.point["compiler"]):
        alone = explore(stride, ARGS, space={"BLOCK": found.best.point["BLOCK"]}, grid=(40,))
    assert alone.best.time_us == found.best.time_us


def test_an_operator_by_hand_has_its_bounds_and_a_compiled_one_says_that_it_has_none():
    given = {"case": "tiny", "space": {**ROWS, "rows": (1, 2)}}
    usual = explore("rms_norm_grad", **given)
    with sim.device(compiler="ascendc"):
        asked = explore("rms_norm_grad", **given)
    with sim.device(compiler="triton-ascend"):
        compiled = explore("rms_norm_grad", **given)
    assert usual.compiler == asked.compiler == "ascendc"
    assert usual.bounded == asked.bounded > 0
    assert [x.time_us for x in usual.ranked] == [x.time_us for x in asked.ranked]
    assert any("do not know the device's compiler" in n for n in compiled.notes)
