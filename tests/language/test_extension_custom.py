"""Operations of the user: values by a callback, time by what the class says, faults as reports."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError, RunError, UsageError
from ascendtile.simulator.language.extra.cann import extension as al


@al.register_custom_op
class weighted:
    """A class whose cycles follow from the shapes."""

    core, pipe, mode = al.CORE.VECTOR, "PIPE_V", al.MODE.SIMD
    extra_buffers = (tl.float32, 256)

    def __init__(self, x: Any, weights: Any, factor: Any, out: Any = None) -> None:
        if len(weights) != 2:
            raise ValueError("two weights are needed")

    def cycles(self, *shapes: tuple[int, ...]) -> int:
        return 1000 * len([s for s in shapes if s])

    @staticmethod
    def callback(x: Any, weights: Any, factor: Any, out: Any = None) -> Any:
        return x * weights[0] + out * weights[1] * factor


@al.register_custom_op
class both_ends:
    """Two results, written into `out`; its cost is not stated."""

    core, pipe, mode = al.CORE.CUBE_OR_VECTOR, "PIPE_V", al.MODE.SIMT

    @staticmethod
    def callback(x: np.ndarray, out: Any) -> None:
        low, high = out
        low[...], high[...] = np.sort(x)[: len(low)], np.sort(x)[-len(high) :]


@sim.jit
def use_weighted(out, x, y, factor, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    z = al.custom("weighted", tl.load(x + i), (2, tl.program_id(0)), factor, out=tl.load(y + i))
    tl.store(out + i, z)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int32])
def test_each_program_has_its_own_call(dtype: Any) -> None:
    x, y = np.arange(96).astype(dtype), np.arange(96)[::-1].astype(dtype)
    out = np.zeros(96, dtype)
    run = use_weighted[(3,)](out, x, y, 3, N=32)
    expected = x.astype(int) * 2 + y.astype(int) * np.repeat(np.arange(3), 32) * 3
    np.testing.assert_array_equal(out, expected.astype(dtype))
    line = next(c for c in run.lines if "weighted" in c.source)
    assert line.busy["AIV.V"] == pytest.approx(2000)
    assert run.buffers["UB"].peak_bytes >= 1024 + 2 * x[:32].nbytes
    assert not any("custom" in n for n in run.notes)


@sim.jit
def use_both_ends(out, x, N: tl.constexpr, M: tl.constexpr):
    j = tl.arange(0, M)
    low, high = al.custom("both_ends", tl.load(x + tl.arange(0, N)), out=(tl.zeros((M,), tl.float32),) * 2)
    tl.store(out + j, low)
    tl.store(out + M + j, high)


def test_two_results_and_a_cost_that_is_assumed() -> None:
    x = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    out = np.zeros(16, np.float32)
    run = use_both_ends[(1,)](out, x, N=100, M=8)
    np.testing.assert_array_equal(out, np.concatenate([np.sort(x)[:8], np.sort(x)[-8:]]))
    assert next(c for c in run.lines if "both_ends" in c.source).busy["AIV.V"] > 0
    assert any("custom op both_ends: its class states no `cycles`" in n and "assumed" in n for n in run.notes)


@al.register_custom_op
class broken:
    core, pipe, mode, cycles = al.CORE.VECTOR, "PIPE_S", al.MODE.SIMD, 5

    @staticmethod
    def callback(x: np.ndarray, how: str, out: Any) -> Any:
        return {"shape": lambda: x[:3], "count": lambda: (x, x), "raise": lambda: x / how}[how]()


@al.register_custom_op
class only_device_code:
    core, pipe, mode, symbol = al.CORE.VECTOR, "PIPE_V", al.MODE.SIMD, "f"


@al.register_custom_op
class on_the_cube:
    core, pipe, mode, callback = al.CORE.CUBE, "PIPE_M", al.MODE.SIMD, staticmethod(lambda x, out: x)


@sim.jit
def use(x, NAME: tl.constexpr, ARGUMENT: tl.constexpr):
    i = tl.arange(0, 8)
    v = tl.load(x + i)
    tl.store(x + i, al.custom(NAME, v, ARGUMENT, out=v))


@pytest.mark.parametrize(
    ("name", "argument", "error", "words"),
    [
        (
            "broken",
            "shape",
            RunError,
            r"test_extension_custom.py:\d+:\d+: .*gave shape \[3\] in program 0, but `out` has \[8\]",
        ),
        ("broken", "count", RunError, "gave 2 results, but `out` has 1"),
        ("broken", "raise", RunError, "custom op 'broken' in program 0: .*Error"),
        ("only_device_code", 0, CompileError, "give its class a static method `callback`"),
        (
            "on_the_cube",
            0,
            CompileError,
            "pipe is PIPE_M; the model has PIPE_V|core is CUBE; the model has VECTOR",
        ),
        ("nothing", 0, CompileError, "no custom op 'nothing' is registered"),
        ("weighted", (1,), CompileError, "custom op 'weighted': "),
    ],
)
def test_faults_of_an_operation_are_reports(name: str, argument: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        use[(1,)](np.zeros(8, np.float32), NAME=name, ARGUMENT=argument)


def test_a_class_must_say_where_it_runs_and_keep_its_name_to_itself() -> None:
    with pytest.raises(UsageError, match="the field 'core' is missing"):
        al.register_custom_op(type("nowhere", (), {}))
    with pytest.raises(UsageError, match="'weighted' is already registered"):
        al.register_custom_op(type("other", (), {"name": "weighted", "core": 0, "pipe": 0, "mode": 0}))


def test_a_class_that_is_defined_again_takes_the_old_ones_place() -> None:
    def define(step: int) -> None:
        @al.register_custom_op
        class stepped:
            core, pipe, mode, cycles = al.CORE.VECTOR, "PIPE_V", al.MODE.SIMD, 10 * step
            callback = staticmethod(lambda x, argument, out: x + step)

    x = np.zeros(8, np.float32)
    for step in (1, 2):
        define(step)
        run = use[(1,)](x, NAME="stepped", ARGUMENT=0)
        assert next(c for c in run.lines if "custom" in c.source).busy["AIV.V"] == pytest.approx(10 * step)
    np.testing.assert_array_equal(x, 3)
