"""Laws of errors of any kernel: its own program evaluated in float64, followed from launch to launch, shared among lines."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.device import current_device
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision.metrics import compare

from ..random_kernels.kernels import kernels
from ..random_kernels.trees import FLOATS, NUMPY

few = settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@sim.jit
def normed(x_ptr, out_ptr, rows, C: tl.constexpr):
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        at = row * C + tl.arange(0, C)
        x = tl.load(x_ptr + at)
        s = tl.rsqrt(tl.sum(x.to(tl.float32) * x.to(tl.float32), axis=0) / C + 1e-6)
        half = s.to(tl.float16)
        tl.store(out_ptr + at, x * half)


@sim.jit
def product(a_ptr, b_ptr, c_ptr, K, T: tl.constexpr):
    r = tl.arange(0, T)
    acc = tl.zeros((T, T), tl.float32)
    for k in range(0, K, T):
        a = tl.load(a_ptr + r[:, None] * K + k + r[None, :])
        acc += tl.dot(a, tl.load(b_ptr + (k + r)[:, None] * T + r[None, :]))
    tl.store(c_ptr + r[:, None] * T + r[None, :], acc.to(c_ptr.dtype.element_ty))


@sim.jit
def counted(x_ptr, out_ptr, C: tl.constexpr):
    at = tl.arange(0, C)
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), axis=0) * 3 + 1)


@sim.jit
def added(x_ptr, out_ptr, C: tl.constexpr):
    at = tl.arange(0, C)
    tl.atomic_add(out_ptr + at, tl.load(x_ptr + tl.program_id(0) * C + at) * 0.3)


@sim.jit
def halved(x_ptr, bits_ptr, out_ptr, C: tl.constexpr):
    at = tl.arange(0, C)
    x = tl.load(x_ptr + at) * 0.1
    tl.store(bits_ptr + at, x.to(tl.int32, bitcast=True))
    tl.store(out_ptr + at, x.to(tl.int32, bitcast=True).to(tl.float32, bitcast=True))


def right_norm(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6)


def data(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


@few
@given(kernels())
def test_float64_values_of_a_random_kernel_are_those_of_numpy_in_float64_and_its_values_stay(kernel):
    note(kernel.source)
    assume("bitcast" not in kernel.source)  # float64 has other bits
    floats = {n: x.dtype.name in FLOATS for n, x in kernel.tensors.items()}
    wide = {n: x.astype(np.float64) if floats[n] else x for n, x in kernel.tensors.items()}
    with mock.patch.dict(NUMPY, dict.fromkeys(FLOATS, np.float64)):
        right = replace(kernel, tensors=wide).expected()
    function, arguments = kernel.compiled(), kernel.arguments()
    plain = kernel.arguments()
    with sim.device(kernel.product, timeline=0):
        function[kernel.grid](**plain)
    with sim.device(kernel.product, timeline=0, errors=True):
        run = function[kernel.grid](**arguments)
    for name, x in plain.items():
        if isinstance(x, np.ndarray):
            assert x.tobytes() == arguments[name].tobytes(), name
    for name, found in run.errors.items():
        direct = compare(arguments[name], right[name], found.fmt)
        assert found.max_abs == pytest.approx(direct.max_abs, rel=1e-6, abs=1e-12), name
    assert set(run.errors) == {n for n in run.errors if floats[n]} != set()


@few
@given(st.integers(0, 99), st.sampled_from([np.float16, np.float32]))
def test_errors_without_a_reference_are_those_against_a_direct_evaluation(seed, dtype):
    x, a, b = data(seed, 16, 64), data(seed + 1, 32, 96), data(seed + 2, 96, 32)
    y, c = np.empty_like(x), np.empty((32, 32), dtype)
    with sim.device(errors=True, timeline=0):
        for run, name, right in (
            (normed[(4,)](x, y, 16, C=64), "out_ptr", right_norm(x)),
            (product[(1,)](a, b, c, 96, T=32), "c_ptr", a.astype(float) @ b.astype(float)),
        ):
            own = run.errors[name]
            given = run.compare_with(**{name: right}).errors[name]
            assert own.max_abs == pytest.approx(given.max_abs, rel=1e-6)
            assert own.rmse == pytest.approx(given.rmse, rel=1e-6)


@few
@given(st.integers(0, 99))
def test_shares_of_lines_add_up_to_one(seed):
    x, y = data(seed, 16, 64), np.empty((16, 64), np.float16)
    with sim.device(errors="lines", timeline=0):
        run = normed[(4,)](x, y, 16, C=64)
        total = np.zeros(64, np.float16)
        sums = added[(16,)](y, total, C=64)
    for shares in (*run.error_lines.values(), *sums.error_lines.values()):
        assert sum(shares.values()) == pytest.approx(1)
    lines = {int(place.rpartition(":")[2]) for place in run.error_lines["out_ptr"]}
    first = normed.fn.__code__.co_firstlineno
    assert {first + 6, first + 7} <= lines  # the cast to half and the product of halves
    assert "earlier launches" in sums.error_lines["out_ptr"]


@few
@given(st.integers(0, 99))
def test_integers_have_no_error(seed):
    x = np.random.default_rng(seed).integers(-99, 99, 64).astype(np.int32)
    with sim.device(errors=True, timeline=0):
        run = counted[(1,)](x, np.empty_like(x), C=64)
    assert run.errors["out_ptr"].max_abs == 0
    assert run.errors["out_ptr"].exact == 64


@few
@given(st.integers(0, 99))
def test_an_error_is_followed_into_the_next_launch_until_the_host_writes(seed):
    x, y, z = data(seed, 16, 64), np.empty((16, 64), np.float16), np.empty((16, 64), np.float16)
    with sim.device(errors=True, timeline=0):
        normed[(4,)](x, y, 16, C=64)
        both = normed[(4,)](y, z, 16, C=64).errors["out_ptr"]
        y[0, 0] += np.float16(1)
        alone = normed[(4,)](y, z, 16, C=64).errors["out_ptr"]
    direct = compare(z, right_norm(y), "fp16")
    assert alone.max_abs == pytest.approx(direct.max_abs, rel=1e-6)
    assert both.max_abs != alone.max_abs


def test_sums_of_atomics_and_of_earlier_contents_are_those_of_float64():
    x, start = data(3, 8, 64), data(4, 64)
    out = start.copy()
    with sim.device(errors=True, timeline=0):
        run = added[(8,)](x, out, C=64)
    factor = float(np.float16(0.3))  # a constant of the program is what its type makes of it
    right = start.astype(float) + (x.astype(float) * factor).sum(axis=0)
    own = run.errors["out_ptr"].max_abs
    assert own == pytest.approx(run.compare_with(out_ptr=right).errors["out_ptr"].max_abs)


def test_bits_start_again_from_the_run_and_it_says_so():
    x = data(5, 64).astype(np.float32)
    bits, out = np.empty(64, np.int32), np.empty_like(x)
    with sim.device(errors=True, timeline=0):
        run = halved[(1,)](x, bits, out, C=64)
    assert run.errors["out_ptr"].max_abs == 0
    assert any("start again" in text and "bitcast" in text for text in run.warnings)
    assert any("no error of bits_ptr" in text for text in run.warnings)


def test_a_reference_is_called_with_the_arguments_before_the_launch():
    a, b, c = data(1, 32, 96), data(2, 96, 32), np.empty((32, 32), np.float16)
    with sim.device(reference=lambda a_ptr, b_ptr: a_ptr @ b_ptr, timeline=0):
        called = product[(1,)](a, b, c, 96, T=32)
    with sim.device(reference={"c_ptr": a.astype(float) @ b.astype(float)}, timeline=0):
        held = product[(1,)](a, b, c, 96, T=32)
    assert called.errors["c_ptr"].max_abs == held.errors["c_ptr"].max_abs > 0


def test_a_wrong_reference_is_refused_with_what_the_kernel_writes():
    x, y = data(1, 16, 64), np.empty((16, 64), np.float16)
    run = normed[(4,)](x, y, 16, C=64)
    with pytest.raises(UsageError, match="writes no tensor 'y'; it writes out_ptr"):
        run.compare_with(y=x)
    with pytest.raises(UsageError, match=r"shape \(16, 64\), its reference \(64,\)"):
        run.compare_with(out_ptr=x[0])
    with pytest.raises(
        UsageError, match="reference of out_ptr is an array of truth values, out_ptr holds fp16"
    ):
        run.compare_with(out_ptr=x > 0)


def test_without_it_nothing_is_evaluated():
    assert current_device().float64 is None
    x, y = data(1, 16, 64), np.empty((16, 64), np.float16)
    assert normed[(4,)](x, y, 16, C=64).errors == {}


def test_the_repr_of_an_error_report_is_one_short_line():
    e = compare(np.ones(4), np.full(4, 1.25), "fp32", where=True)
    assert len(repr(e)) < 160
    assert "max abs 0.25" in repr(e)
