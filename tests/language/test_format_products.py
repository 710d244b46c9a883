"""tl.dot of number formats that no Cube here reads: values, accumulators, rates, and what a launch says of them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.reports.facts.json_view import run_json
from ascendtile.reports.terminal.console import as_text
from ascendtile.reports.terminal.record_view import run_report
from ascendtile.simulator.errors import CompileError, UsageError
from ascendtile.simulator.precision.rounding import encode, round_to


@sim.jit
def product(
    out, a, b, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, STEP: tl.constexpr, ACC: tl.constexpr,
    OUT: tl.constexpr,
):  # fmt: skip
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, STEP)
    acc = tl.zeros((M, N), OUT)
    for i in range(0, K, STEP):
        x = tl.load(a + m[:, None] * K + (i + k)[None, :])
        y = tl.load(b + (i + k)[:, None] * N + n[None, :])
        acc = tl.dot(x, y, acc, acc_format=ACC)
    tl.store(out + m[:, None] * N + n[None, :], acc)


def multiplied(a: Any, b: Any, acc: Any = None, step: int = 0, **device: Any) -> tuple[Any, Any]:
    """The product that a kernel makes, and its Run."""
    (m, k), n = a.shape, b.shape[1]
    whole = b.dtype in (np.int8, ml_dtypes.int4)
    out = np.zeros((m, n), np.int32 if whole else np.float32)
    kind = tl.int32 if whole else tl.float32
    with sim.device(**device):
        run = product[(1,)](out, a, b, M=m, N=n, K=k, STEP=step or k, ACC=acc, OUT=kind)
    return out, run


def drawn(name: str, shape: tuple[int, int], seed: int) -> tuple[Any, Any]:
    """Values of a format near one, as memory has them and in float64."""
    fmt = sim.element_type(name).format
    x = round_to(np.random.default_rng(seed).standard_normal(shape).astype(np.float32), fmt)
    return encode(x, fmt), x.astype(np.float64)


@given(
    st.sampled_from(["e4m3", "e5m2", "hif8", "e2m1", "e3m2", "e6m9"]),
    st.sampled_from(["e4m3", "e5m2", "hif8", "e2m1", "fp16", "bf16"]),
    st.integers(1, 20), st.integers(1, 20), st.integers(1, 40), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_products_of_two_formats_are_exact_but_for_the_accumulator(
    left: str, right: str, m: int, n: int, k: int, seed: int
) -> None:
    (a, x), (b, y) = drawn(left, (m, k), seed), drawn(right, (k, n), seed + 1)
    out, _ = multiplied(a, b, time=False)
    bound = k * 2.0**-24 * (np.abs(x) @ np.abs(y))
    assert (np.abs(out - x @ y) <= bound).all()


def stepwise(x: Any, y: Any, fmt: str, step: int) -> Any:
    """Rational sums of the products of a step and the accumulator, each rounded once to the format."""
    out = np.zeros((len(x), y.shape[1]), np.float32)
    for i, j in np.ndindex(out.shape):
        acc = Fraction(0)
        for k in range(0, x.shape[1], step):
            acc += sum(
                Fraction(p) * Fraction(q) for p, q in zip(x[i, k : k + step], y[k : k + step, j], strict=True)
            )
            acc = Fraction(float(round_to(np.float64(acc), fmt)))
        out[i, j] = float(acc)
    return out


@given(
    st.sampled_from([("e4m3", 32), ("e2m1", 64), ("fp16", 16), ("e6m9", 16)]),
    st.sampled_from(["fp16", "bf16", "e5m7", "tf32"]), st.integers(1, 100), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_the_accumulator_is_rounded_to_its_format_after_each_step_of_32_bytes_of_k(
    operand: tuple[str, int], acc: str, k: int, seed: int
) -> None:
    name, step = operand
    (a, x), (b, y) = drawn(name, (3, k), seed), drawn(name, (k, 2), seed + 1)
    out, _ = multiplied(a, b, sim.element_type(acc), time=False)
    np.testing.assert_array_equal(out, stepwise(x, y, acc, step))


def test_a_loop_carries_an_accumulator_in_its_format() -> None:
    (a, _), (b, _) = drawn("e4m3", (4, 128), 0), drawn("e4m3", (128, 4), 1)
    whole, _ = multiplied(a, b, tl.bfloat16, time=False)
    parts, _ = multiplied(a, b, tl.bfloat16, step=32, time=False)
    np.testing.assert_array_equal(whole, parts)
    assert not np.array_equal(whole, multiplied(a, b, time=False)[0])


def test_int4_is_exact_and_no_what_if_where_the_cube_takes_it() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 8, shape).astype(ml_dtypes.int4) for shape in ((16, 100), (100, 16)))
    out, run = multiplied(a, b)
    np.testing.assert_array_equal(out, a.astype(np.int32) @ b.astype(np.int32))
    assert run.faults == ()
    assert (
        run.pipes["AIC.M"].busy_cycles
        < multiplied(a.astype(np.int8), b.astype(np.int8))[1].pipes["AIC.M"].busy_cycles
    )


@pytest.mark.parametrize(("name", "like"), [("e4m3", np.int8), ("hif8", np.int8), ("e6m9", np.float16)])
def test_a_what_if_takes_the_time_of_a_type_of_as_many_bytes(name: str, like: Any) -> None:
    (a, _), (b, _) = drawn(name, (64, 256), 0), drawn(name, (256, 64), 1)
    _, run = multiplied(a, b, values=False)
    _, same = multiplied(np.zeros((64, 256), like), np.zeros((256, 64), like), values=False)
    assert run.cycles == same.cycles
    for pipe in ("AIC.M", "AIC.MTE1", "AIC.MTE2"):
        assert run.pipes[pipe].busy_cycles == same.pipes[pipe].busy_cycles


def test_the_rate_is_an_assumed_figure_that_a_user_can_set() -> None:
    (a, _), (b, _) = drawn("e4m3", (64, 256), 0), drawn("e4m3", (256, 64), 1)
    _, run = multiplied(a, b)
    _, slow = multiplied(a, b, overrides={"cube.what_if_k_bytes_per_cycle": 16})
    assert slow.pipes["AIC.M"].busy_cycles > 1.8 * run.pipes["AIC.M"].busy_cycles
    assert sum("cube.what_if_k_bytes_per_cycle" in note for note in run.notes) == 1
    assert "; 32 of k a cycle, as many bytes as of formats that it has (" in run.faults[1]
    assert "; 16 of k a cycle (cube.what_if_k_bytes_per_cycle = 16, chosen); it takes" in slow.faults[1]
    (a, _), (b, _) = drawn("e6m9", (16, 32), 0), drawn("e6m9", (32, 16), 1)
    assert multiplied(a, b, overrides={"cube.what_if_k_bytes_per_cycle": 1})[1].cycles > 0
    assert run.launches[0].roofs["Cube fp8e4nv"].per_us == 2 * slow.launches[0].roofs["Cube fp8e4nv"].per_us


def test_time_at_the_assumed_rate_counts_as_assumed_and_not_as_measured() -> None:
    (a, _), (b, _) = drawn("e4m3", (64, 256), 0), drawn("e4m3", (256, 64), 1)
    _, run = multiplied(a, b, values=False, overrides={"cube.what_if_k_bytes_per_cycle": 1})
    _, have = multiplied(a.view(np.int8), b.view(np.int8), values=False)
    cube = run.bounds["AIC.M"]
    assert cube > 0.5 * run.time_us
    assert run.grades["D"] > 0.8 * cube
    assert sum(run.grades.values()) == pytest.approx(run.time_us)
    assert have.grades.get("D", 0.0) < 0.1 * have.time_us


@pytest.mark.parametrize(
    ("other", "numerics", "step"), [("e4m3", {}, 32), ("fp32", {}, 4), ("e4m3", {"cube_block_k": 1}, 1)]
)
def test_a_what_if_says_after_how_many_products_the_accumulator_is_rounded(
    other: str, numerics: dict[str, Any], step: int
) -> None:
    (a, x), (b, y) = drawn("e4m3", (4, 64), 0), drawn(other, (64, 4), 1)
    out, run = multiplied(a, b, numerics=numerics)
    assert f"the accumulator is rounded after every {step} of them; " in run.faults[1]
    exact = np.zeros((4, 4))
    for k in range(0, 64, step):  # float64 holds these sums
        exact = round_to(exact + x[:, k : k + step] @ y[k : k + step], "fp32").astype(np.float64)
    np.testing.assert_array_equal(out, exact)


def test_no_board_has_measured_times_of_a_what_if() -> None:
    (a, _), (b, _) = drawn("e4m3", (16, 32), 0), drawn("e4m3", (32, 16), 1)
    _, run = multiplied(a, b, values=False)
    assert run.interval_us is None
    assert run_json(run)["interval_us"] is None
    assert "board no board computes this: a what-if, see what-ifs" in " ".join(
        as_text(run_report(run)).split()
    )
    _, have = multiplied(np.zeros((16, 32), np.float16), np.zeros((32, 16), np.float16), values=False)
    assert have.interval_us is not None


def test_a_product_of_the_users_own_may_have_the_format_and_then_nothing_is_a_what_if() -> None:
    (a, _), (b, _) = drawn("e4m3", (64, 256), 0), drawn("e4m3", (256, 64), 1)
    rate = {"cube.k_per_cycle.fp8e4nv": 64, "cube.k0.fp8e4nv": 32}
    _, run = multiplied(a, b)
    _, fast = multiplied(a, b, overrides=rate)
    assert fast.pipes["AIC.M"].busy_cycles < 0.6 * run.pipes["AIC.M"].busy_cycles
    assert "64 of k a cycle (cube.k_per_cycle.fp8e4nv); it takes" in fast.faults[1]
    lists = {"dtypes.storage": "fp16,bf16,fp32,fp8e4nv,int32,int8", "dtypes.cube_inputs": "fp16,fp8e4nv"}
    rest = {"dtypes.vector_arithmetic": "fp16,fp32,int32", "dtypes.vector_cast_only": "bf16,int8"}
    _, own = multiplied(a, b, overrides={**rate, **lists, **rest})
    assert own.faults == ()
    assert own.cycles == fast.cycles


def test_a_run_says_what_the_product_does_not_multiply() -> None:
    (a, _), (b, _) = drawn("e4m3", (16, 32), 0), drawn("fp16", (32, 16), 1)
    _, run = multiplied(a, b, tl.bfloat16, product="ascend910a")
    kinds = [str(f).split(", which")[0].split(" (at")[0] for f in run.faults]
    assert kinds == [
        "what-if: ascend910a has no fp8e4nv (e4m3)",
        "what-if: the Cube of ascend910a does not multiply fp8e4nv (e4m3) with fp16",
        "what-if: the Cube of ascend910a does not accumulate in bf16",
    ]
    assert "it takes fp16, int8" in run.faults[1]
    assert {f.kind for f in run.faults} == {"fault"}


def test_the_fp16_accumulator_of_the_old_cubes_is_no_what_if() -> None:
    (a, _), (b, _) = drawn("fp16", (16, 32), 0), drawn("fp16", (32, 16), 1)
    assert multiplied(a, b, tl.float16, product="ascend910a")[1].faults == ()
    assert len(multiplied(a, b, tl.float16, product="ascend910b3")[1].faults) == 1


def test_types_of_the_vendor_that_a_product_lacks_stay_refused() -> None:
    (a, _), (b, _) = drawn("bf16", (16, 32), 0), drawn("bf16", (32, 16), 1)
    with pytest.raises(UsageError, match="bf16, which ascend910a does not have"):
        multiplied(a, b, product="ascend910a")
    (a, _) = drawn("e4m3", (16, 32), 0)
    with pytest.raises(UsageError, match="bf16, which ascend910a does not have"):
        multiplied(a, b, product="ascend910a")


@pytest.mark.parametrize(
    ("a", "b", "acc", "text"),
    [
        (
            "e4m3",
            "int8",
            None,
            "both operands must have one of the types int8, fp16, bf16, fp32, or one or both a narrower",
        ),
        ("fp16", "bf16", None, "both operands must have one of the types"),
        ("int4", "int8", None, "both operands must have one of the types"),
        (
            "int8",
            "int8",
            "fp16",
            "acc_format is fp16; products of int8 add up in int32, those of floats in any floating",
        ),
        (
            "e4m3",
            "e4m3",
            "int32",
            "acc_format is int32; products of fp8e4nv add up in int32, those of floats",
        ),
        ("e4m3", "e4m3", "fp64", "acc_format is fp64; .* in any floating format up to 32 bits"),
    ],
)
def test_operands_that_do_not_meet_are_refused(a: str, b: str, acc: str | None, text: str) -> None:
    x, y = (np.zeros((16, 16), sim.element_type(name).storage) for name in (a, b))
    with pytest.raises(CompileError, match=text):
        multiplied(x, y, None if acc is None else sim.element_type(acc))


@pytest.mark.parametrize("acc", ["e6m9", sim.get_format("e6m9")], ids=["name", "format"])
def test_a_format_in_place_of_an_element_type_is_told_how_to_become_one(acc: Any) -> None:
    x = np.zeros((16, 16), np.float16)
    with pytest.raises(CompileError, match=r'got e6m9; a number format is one by sim.element_type\("e6m9"\)'):
        multiplied(x, x, acc)


def test_nan_and_infinity_of_a_format_pass_through_a_product() -> None:
    a = np.array([[np.inf, 1.0], [1.0, 1.0], [np.nan, 1.0]], ml_dtypes.float8_e5m2)
    out, _ = multiplied(a, np.ones((2, 1), ml_dtypes.float8_e5m2))
    assert out[0, 0] == np.inf
    assert out[1, 0] == 2
    assert np.isnan(out[2, 0])


@sim.jit
def hf32_product(a_ptr, b_ptr, out_ptr):
    i = tl.arange(0, 16)
    at = i[:, None] * 16 + i[None, :]
    tl.store(out_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), input_precision="hf32"))


def test_hf32_on_a_cube_without_it_is_refused_as_fp32_is():
    """It is a format of the vendor's: no what-if."""
    a = np.ones((16, 16), np.float32)
    with sim.device("ascend910a", time=False), pytest.raises(sim.UsageError, match="takes no hf32 operands"):
        hf32_product[(1,)](a, a, np.zeros((16, 16), np.float32))
