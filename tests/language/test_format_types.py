"""Number formats as element types of kernels: loads, stores, casts, arithmetic, and what a launch says of them."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError, UsageError
from ascendtile.simulator.precision import dtypes as ty
from ascendtile.simulator.precision.formats import FORMATS, Format, get_format
from ascendtile.simulator.precision.rounding import encode, round_to

FOREIGN = [f.name for f in FORMATS.values() if f.is_float and f.bits <= 16 and f.name not in ("fp16", "bf16")]
OF_ML_DTYPES = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e3m4": ml_dtypes.float8_e3m4,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
}


@sim.jit
def converted(out, x, n, B: tl.constexpr, DT: tl.constexpr, MODE: tl.constexpr, OVERFLOW: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.cast(v, DT, fp_downcast_rounding=MODE, overflow_mode=OVERFLOW), mask=i < n)


def cast(x: Any, to: Any, mode: str | None = None, overflow: str | None = None, **device: Any) -> Any:
    """What a kernel makes of an array, in the dtype of memory."""
    t = sim.element_type(to)
    out = np.zeros(len(x), t.storage)
    with sim.device(time=False, **device):
        converted[(2,)](out, x, len(x), B=-(-len(x) // 2), DT=t, MODE=mode, OVERFLOW=overflow)
    return out


def bits(x: Any) -> Any:
    return x.view(f"u{x.dtype.itemsize}")


def same(a: Any, b: Any) -> None:
    """Equal bits, but for the payload of NaN."""
    np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
    np.testing.assert_array_equal(np.signbit(a[~np.isnan(a)]), np.signbit(b[~np.isnan(b)]))
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", FOREIGN)
def test_a_load_decodes_every_code_and_a_store_gives_it_back(name: str) -> None:
    t = sim.element_type(name)
    codes = np.arange(1 << t.format.bits).astype(f"u{t.itemsize}")
    stored = codes.view(t.storage)
    found = cast(stored, "fp32")
    same(found, t.format.values.astype(np.float32))
    back = cast(stored, name)
    same(cast(back, "fp32"), found)
    finite = np.isfinite(found) & (found != 0)
    if name != "hif8":  # every value has one code, but for zeros and what is no number
        np.testing.assert_array_equal(bits(back)[finite], codes[finite])


@pytest.mark.parametrize("name", OF_ML_DTYPES)
def test_a_cast_of_every_half_is_that_of_ml_dtypes(name: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    x = x[np.isfinite(x.astype(np.float32))] if name in ("e2m1", "e2m3") else x
    with np.errstate(all="ignore"):
        right = x.astype(OF_ML_DTYPES[name])
    got = cast(x, name)
    assert got.dtype == right.dtype
    same(got.astype(np.float32), right.astype(np.float32))


MODES = {
    "rtne": "RINT",
    "rtz": "TRUNC",
    "round": "ROUND",
    "floor": "FLOOR",
    "ceil": "CEIL",
    "odd": "ODD",
    "rnz": "RNZ",
}


@given(
    st.sampled_from(FOREIGN), st.sampled_from(sorted(MODES)), st.sampled_from([None, "saturate", "inf_nan"]),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_a_cast_rounds_by_its_mode_and_overflows_by_its_rule(
    name: str, mode: str, overflow: str | None, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(64) * 2.0 ** rng.integers(-20, 20, 64)).astype(np.float32)
    x[:4] = np.inf, -np.inf, np.nan, -0.0
    same(cast(cast(x, name, mode, overflow), "fp32"), round_to(x, name, MODES[mode], overflow))


def test_without_a_mode_the_format_decides() -> None:
    """HiF8 rounds ties away from zero (arXiv 2409.16626), others to even."""
    x = np.array([1.0625, 1.1875], np.float32)
    assert cast(cast(x, "hif8"), "fp32").tolist() == [1.125, 1.25]
    assert cast(cast(x, "hif8", "rtne"), "fp32").tolist() == [1.0, 1.25]
    assert cast(cast(x, "e4m3"), "fp32").tolist() == [1.0, 1.25]


def test_a_saturating_product_saturates() -> None:
    x = np.array([1e6, -1e6, np.inf], np.float32)
    assert np.isnan(cast(cast(x, "e4m3"), "fp32")).all()
    assert cast(cast(x, "e5m2"), "fp32").tolist() == [np.inf, -np.inf, np.inf]
    assert cast(cast(x, "e5m2", product="ascend910a"), "fp32").tolist() == [57344, -57344, 57344]
    assert cast(cast(x, "e5m2", None, "saturate"), "fp32").tolist() == [57344, -57344, 57344]


def test_overflow_can_be_said_of_the_units_own_types_too() -> None:
    for x in (np.array([1e6, -1e6], np.float32), np.array([10**6, -(10**6)], np.int32)):
        assert cast(x, "fp16").tolist() == [np.inf, -np.inf]
        assert cast(x, "fp16", None, "saturate").tolist() == [65504, -65504]
        assert cast(x, "fp16", None, "saturate", product="ascend910a").tolist() == [65504, -65504]
        assert cast(x, "fp16", None, "inf_nan", product="ascend910a").tolist() == [np.inf, -np.inf]
    assert cast(np.array([1.0009765625 + 2**-11], np.float16), "bf16", "ceil").tolist() == [1.0078125]


@sim.jit
def by_chance(out, x, seed, n, B: tl.constexpr, DT: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    w = tl.cast(v, DT, fp_downcast_rounding="stochastic", random=tl.randint(seed, i))
    tl.store(out + i, w, mask=i < n)


def chance(x: Any, to: str, seed: int, block: int) -> Any:
    out = np.zeros(len(x), sim.element_type(to).storage)
    with sim.device(time=False):
        by_chance[(-(-len(x) // block),)](out, x, seed, len(x), B=block, DT=sim.element_type(to))
    return out


@given(st.sampled_from(["e4m3", "hif8", "fp16", "bf16"]), st.integers(0, 2**31 - 1))
def test_stochastic_casts_depend_on_seed_and_place_and_not_on_the_grid(name: str, seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal(100).astype(np.float32)
    one, two = chance(x, name, seed, 128), chance(x, name, seed, 16)
    np.testing.assert_array_equal(bits(one), bits(two))
    same(cast(one, "fp32"), round_to(x, name, "STOCHASTIC", seed=seed))


def test_stochastic_casts_are_right_on_average() -> None:
    """1.03 lies 0.24 of the way from 1 to 1.125; of 8192 that share goes up, to 5 standard deviations."""
    x = np.full(8192, 1.03, np.float32)
    up = cast(chance(x, "e4m3", 3, 2048), "fp32") > 1
    share = float(x[0] - 1) / 0.125
    assert abs(up.mean() - share) < 5 * (share * (1 - share) / len(x)) ** 0.5


@sim.jit
def moved(out, copy, x, index, R, C, B: tl.constexpr):
    i, j = tl.arange(0, B), tl.arange(0, B)
    there = (i[:, None] < R) & (j[None, :] < C)
    v = tl.load(x + i[:, None] * C + j[None, :], mask=there, other=1.0)
    tl.store(out + i[:, None] + j[None, :] * B, v)
    at = tl.load(index + i, mask=i < R, other=0)
    w = tl.load(x + at, mask=i < R, other=0.5)
    tl.store(copy + tl.load(index + i, mask=i < R, other=0), w, mask=i < R)


@pytest.mark.parametrize("name", ["e4m3", "hif8", "e2m1", "e6m9"])
def test_strided_masked_and_discrete_accesses(name: str) -> None:
    t, rng = sim.element_type(name), np.random.default_rng(0)
    x = encode(rng.standard_normal((6, 5)).astype(np.float32), t.format)
    values = cast(x.reshape(-1), "fp32").reshape(6, 5)
    out, scattered = np.zeros((8, 8), t.storage), np.zeros(30, t.storage)
    index = rng.permutation(30)[:6].astype(np.int32)
    moved[(1,)](out, scattered, x, index, 6, 5, B=8)
    right = np.ones((8, 8), np.float32)
    right[:6, :5] = values
    np.testing.assert_array_equal(cast(out.T.reshape(-1), "fp32").reshape(8, 8), right)
    kept = np.zeros(30, bool)
    kept[index] = True
    np.testing.assert_array_equal(cast(scattered, "fp32"), np.where(kept, values.reshape(-1), 0))


@sim.jit
def by_blocks(out, x, R, C, B: tl.constexpr):
    p = tl.make_block_ptr(x, (R, C), (C, 1), (0, 0), (B, B), (1, 0))
    q = tl.make_block_ptr(out, (R, C), (C, 1), (0, 0), (B, B), (1, 0))
    v = tl.load(p, boundary_check=(0, 1), padding_option="zero")
    tl.store(q, tl.flip(tl.flip(v, 1), 1), boundary_check=(0, 1))


def test_block_pointers() -> None:
    x = np.random.default_rng(0).standard_normal((6, 16)).astype(ml_dtypes.float8_e4m3fn)
    out = np.zeros((6, 16), x.dtype)
    by_blocks[(1,)](out, x, 6, 16, B=16)
    np.testing.assert_array_equal(bits(out), bits(x))


@sim.jit
def arithmetic(out, x, y, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.static_assert((a + b).dtype == a.dtype and (a * 2.5).dtype == a.dtype and (a / b).dtype == a.dtype)
    tl.static_assert((a + b.to(tl.float16)).dtype == tl.float16 and (a < b).dtype == tl.int1)
    tl.static_assert((a + a.to(tl.float8e5)).dtype == tl.float16 and tl.exp(a).dtype == a.dtype)
    tl.store(out + i, a + b)
    tl.store(out + B + i, a * 2.5)
    tl.store(out + 2 * B + i, tl.where(a < b, a, -b))
    tl.store(out + 3 * B + i, tl.fma(a, b, a))
    tl.store(out + 4 * B + i, tl.sqrt(tl.abs(a)))
    tl.store(out + 5 * B + i, tl.cumsum(a.to(tl.float32), 0))
    tl.store(out + 6 * B, tl.sum(a, 0))
    tl.store(out + 6 * B + 1, tl.max(a, 0))
    tl.store(out + 6 * B + 2, tl.argmax(a, 0))
    tl.store(out + 7 * B + i, tl.sort(a))


def test_arithmetic_is_that_of_fp32_rounded_once_to_the_format() -> None:
    n, rng = 32, np.random.default_rng(1)
    x, y = (rng.standard_normal(n).astype(ml_dtypes.float8_e4m3fn) for _ in range(2))
    out = np.zeros(8 * n, np.float32)
    arithmetic[(1,)](out, x, y, B=n)
    a, b = x.astype(np.float32), y.astype(np.float32)

    def e4m3(v: Any) -> Any:
        return round_to(np.asarray(v, np.float32), "e4m3")

    rows = out.reshape(8, n)
    for row, right in enumerate((a + b, a * 2.5, np.where(a < b, a, -b), a * b + a, np.sqrt(np.abs(a)))):
        np.testing.assert_array_equal(rows[row], e4m3(right), err_msg=str(row))
    assert rows[6, 1] == a.max()
    assert rows[6, 2] == a.argmax()
    assert abs(rows[6, 0] - a.sum()) <= get_format("e4m3").ulp(a.sum()) / 2 + 1e-5
    np.testing.assert_array_equal(rows[7], np.sort(a))


@sim.jit
def as_bits(out, x, B: tl.constexpr, T: tl.constexpr, DT: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(out + i, v.to(T, bitcast=True).to(DT, bitcast=True).to(tl.float32))


def test_bits_of_a_format_are_integers_of_its_width() -> None:
    codes = np.arange(256).astype(np.uint8)
    for name in ("e4m3", "hif8"):
        out = np.zeros(256, np.float32)
        as_bits[(1,)](out, codes, B=256, T=tl.int8, DT=sim.element_type(name))
        same(out, get_format(name).values.astype(np.float32))


@sim.jit
def constants(out, B: tl.constexpr, DT: tl.constexpr, X: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.full((B,), X, DT) + tl.zeros((B,), DT))


@given(st.sampled_from(FOREIGN), st.floats(-500, 500, width=32))
def test_constants_are_rounded_as_casts_are(name: str, x: float) -> None:
    t, out = sim.element_type(name), np.zeros(4, np.float32)
    with sim.device(time=False):
        constants[(1,)](out, B=4, DT=t, X=x)
    right = round_to(
        round_to(np.full(4, x, np.float32), name) + round_to(np.zeros(4, np.float32), name), name
    )
    np.testing.assert_array_equal(out, right)


# ---- integers of four bits ----


def test_int4_wraps_and_saturates() -> None:
    x = np.array([-9, -8, -1, 7, 8, 200], np.int32)
    assert cast(x, "int4").astype(np.int32).tolist() == [7, -8, -1, 7, -8, -8]
    assert cast(x, "int4", None, "saturate").astype(np.int32).tolist() == [-8, -8, -1, 7, 7, 7]
    assert cast(x.astype(np.float32), "int4").astype(np.int32).tolist() == [-8, -8, -1, 7, 7, 7]
    assert cast(np.array([17, 12], np.int32), "uint4").astype(np.int32).tolist() == [1, 12]


# ---- what a user gives ----


@sim.jit
def doubled(out, x, B: tl.constexpr, DT: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, (tl.load(x + i).to(DT) * 2).to(tl.float32))


def test_a_format_of_the_users_own_in_one_line_in_python_and_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('name = "of_a_file"\nexponent = 3\nmantissa = 2\n')
    x, out = np.linspace(-2, 2, 16).astype(np.float32), np.zeros(16, np.float32)
    for which in ("e3m2:bias=4,infinities=no,nan=none", Format(3, 2, bias=2, name="of_python"), str(file)):
        t = sim.element_type(which)
        run = doubled[(1,)](out, x, B=16, DT=t)
        np.testing.assert_array_equal(out, round_to(2 * round_to(x, t.format), t.format))
        assert run.faults[0].startswith(f"what-if: ascend910b3 has no {t.name}, which doubled makes at ")
        stored = encode(x, t.format)
        np.testing.assert_array_equal(cast(stored, "fp32"), round_to(x, t.format))


def test_a_type_is_one_object_whatever_names_it() -> None:
    mine = sim.element_type("e3m3:bias=4")
    assert sim.element_type(mine.format) is mine
    assert pickle.loads(pickle.dumps(mine)) is mine
    assert copy.deepcopy(sim.element_type("hif8")) is sim.element_type("hif8")
    assert sim.element_type("e4m3") is tl.float8e4nv is sim.element_type(ml_dtypes.float8_e4m3fn)
    assert sim.element_type("float16") is tl.float16
    assert ty.from_numpy(np.dtype([("hif8", "u1")])) is sim.element_type("hif8")
    assert ty.from_numpy(np.dtype([("a", "u1"), ("b", "u1")])) is None


def test_two_formats_of_one_name_cannot_both_be_types() -> None:
    sim.element_type(Format(3, 1, name="taken"))
    with pytest.raises(UsageError, match="two formats of the name 'taken'"):
        sim.element_type(Format(2, 1, name="taken"))


@sim.jit
def refused(out, x, WHAT: tl.constexpr, DT: tl.constexpr):
    i = tl.arange(0, 8)
    v = tl.load(x + i).to(DT)
    if WHAT == "atomic":
        tl.atomic_add(out + i, v)
    elif WHAT == "integer":
        v + i
    elif WHAT == "int4":
        v + v
    else:
        v & v


@pytest.mark.parametrize(
    ("what", "to", "text"),
    [
        (
            "atomic",
            "e4m3",
            "atomic_add on fp8e4nv: memory has no atomic operation on codes of a format; combine in tl.float32",
        ),
        ("integer", "e4m3", "fp8e4nv and int32 have no common type; cast the int32 operand"),
        ("int4", "int4", "'add' of int4: the units cast and multiply it only; cast it with"),
        ("bits", "hif8", "'and' needs integers or booleans, got a hif8 tile"),
    ],
)
def test_what_is_refused(what: str, to: str, text: str) -> None:
    t = sim.element_type(to)
    with pytest.raises(CompileError, match=text):
        refused[(1,)](np.zeros(8, t.storage), np.zeros(8, np.float32), WHAT=what, DT=t)


def test_an_unknown_type_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="unknown number format 'float7'"):
        sim.element_type("float7")


# ---- time, records and checks ----


def test_casts_take_the_time_of_those_between_fp16_and_a_type_of_as_many_bytes() -> None:
    x, out = np.zeros(4096, np.float16), np.zeros(4096, np.int8)
    whole = converted[(1,)](out, x, 4096, B=4096, DT=tl.int8, MODE=None, OVERFLOW=None)
    for name in ("e4m3", "hif8"):
        t = sim.element_type(name)
        run = converted[(1,)](np.zeros(4096, t.storage), x, 4096, B=4096, DT=t, MODE=None, OVERFLOW=None)
        assert run.pipes["AIV.V"].busy_cycles == whole.pipes["AIV.V"].busy_cycles
        assert run.cycles == whole.cycles
    chosen = by_chance[(1,)](np.zeros(4096, t.storage), x, 1, 4096, B=4096, DT=t)
    assert chosen.pipes["AIV.V"].busy_cycles > run.pipes["AIV.V"].busy_cycles
    assert any("stochastic rounding costs an addition" in w for w in chosen.notes)
    half = by_chance[(1,)](
        np.zeros(4096, np.float16), np.zeros(4096, np.float32), 1, 4096, B=4096, DT=tl.float16
    )
    assert half.faults[0].endswith(
        "with the modes that it has, and of an addition of the random bits (assumed)"
    )


def test_a_rounding_that_a_product_lacks_is_a_what_if_of_a_type_that_it_has() -> None:
    x, out = np.ones(8, np.float32), np.zeros(8, np.float16)

    def faults(mode: str, product: str) -> list[str]:
        with sim.device(product):
            run = converted[(1,)](out, x, 8, B=8, DT=tl.float16, MODE=mode, OVERFLOW=None)
        return [str(f) for f in run.faults]

    assert faults("floor", "ascend910b3") == []
    (said,) = faults("floor", "ascend910a")
    assert said.startswith("what-if: ascend910a does not cast fp32 to fp16 with FLOOR (at ")
    with sim.device("ascend910a"):  # a cast that widens rounds nothing
        run = converted[(1,)](
            np.zeros(8, np.float32), np.ones(8, np.float16), 8, B=8, DT=tl.float32, MODE="rtz", OVERFLOW=None
        )
    assert run.faults == ()


def test_errors_checks_and_saved_runs_know_the_types(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    t = sim.element_type("e3m4")
    with sim.device(errors=True):
        run = converted[(1,)](np.zeros(64, t.storage), x, 64, B=64, DT=t, MODE=None, OVERFLOW=None)
    assert 0.25 < run.errors["out"].max_ulp <= 0.5
    assert run.errors["out"].fmt == "e3m4"
    with sim.device(check=True):
        checked = converted[(1,)](np.zeros(60, t.storage), x, 60, B=64, DT=t, MODE=None, OVERFLOW=None)
    assert [str(f)[:8] for f in checked.faults] == ["what-if:"]
    run.save(tmp_path / "x.run")
    again = sim.load_run(tmp_path / "x.run")
    assert again.faults == run.faults
    assert again.inputs["out"] == "e3m4[64]"
