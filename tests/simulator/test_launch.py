"""What a launch takes: arrays of every kind, grids, and wrong arguments with an error that says what is wrong."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.call import what_ifs
from ascendtile.simulator.errors import DeviceAssertionError, OutOfBoundsError, UsageError
from ascendtile.simulator.interpreter.tensors import tensor_argument
from ascendtile.simulator.ir.program import Program
from ascendtile.simulator.launch import prepare


@pytest.fixture(autouse=True)
def values_only() -> Any:
    with sim.device(time=False):
        yield


@sim.jit
def double(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, v + v, mask=i < n)


@sim.jit
def strided(x, out, n, step, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i * step, tl.load(x + i * step, mask=i < n) + 1, mask=i < n)


KINDS = [np.float16, np.float32, np.int8, np.int16, np.int32, np.int64]
KINDS += [np.uint8, np.uint16, np.uint32, np.uint64, ml_dtypes.bfloat16]


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: np.dtype(k).name)
def test_numpy_arrays_of_every_type_are_read_and_written_in_place(kind: Any) -> None:
    x = np.arange(7).astype(kind)
    out = np.zeros(8, kind)
    double[(2,)](x, out, 7, B=4)
    assert out.astype(float).tolist() == [0, 2, 4, 6, 8, 10, 12, 0]


def test_bool_arrays_are_loaded_as_bytes() -> None:
    out = np.zeros(3, bool)
    double[(1,)](np.array([True, False, True]), out, 3, B=4)
    assert out.tolist() == [True, False, True]  # 1 + 1 is 2, which is stored as True


def test_views_reversed_strided_transposed_and_shifted() -> None:
    base = np.arange(12, dtype=np.float32)
    back, every_other, part = base.copy()[::-1], base.copy()[::2], base.copy()[3:9]
    strided[(1,)](back, back, 12, -1, B=16)
    assert back.tolist() == [12 - k for k in range(12)]
    strided[(1,)](every_other, every_other, 6, 2, B=8)
    assert every_other.tolist() == [1, 3, 5, 7, 9, 11]
    strided[(1,)](part, part, 6, 1, B=8)
    assert part.tolist() == [4, 5, 6, 7, 8, 9]
    matrix = base.reshape(3, 4).copy().T
    strided[(1,)](matrix, matrix, 4, 1, B=4)
    assert matrix[:, 0].tolist() == [1, 2, 3, 4]


def test_arrays_without_axes_and_empty_arrays() -> None:
    x, out = np.array(3.0, np.float32), np.array(0.0, np.float32)
    double[(1,)](x, out, 1, B=4)
    assert out == 6
    double[(1,)](np.zeros((0, 3), np.float32), np.zeros(0, np.float32), 0, B=4)
    with pytest.raises(OutOfBoundsError, match="legal elements are none"):
        double[(1,)](np.zeros(0, np.float32), out, 1, B=4)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(3, ">f4"),
        np.zeros(3, complex),
        np.zeros(3, object),
        np.zeros(3, "U2"),
        np.zeros(3, "M8[s]"),
        np.zeros(3, [("a", "f4")]),
        np.zeros(3, np.float64),
        np.zeros(3, np.longdouble),
    ],
    ids=lambda a: a.dtype.str.strip("|<"),
)
def test_types_that_no_product_has_are_refused(array: Any) -> None:
    with pytest.raises(
        UsageError, match=r"'?x'?: arrays of .* cannot be|'x' is fp64, which ascend910b3 does not"
    ):
        double[(1,)](array, np.zeros(3, np.float32), 3, B=4)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_tensors_of_fp8_run_as_a_what_if(name: str) -> None:
    """Those of ml_dtypes and of torch alike, whatever numpy makes of them: the run has a fault that says so."""
    array = np.arange(4).astype(getattr(ml_dtypes, name))
    torch = pytest.importorskip("torch")
    tensor = torch.arange(4).to(getattr(torch, name))
    for given in (array, tensor):
        out = np.zeros(4, np.float32)
        run = double[(1,)](given, out, 4, B=4)
        assert out.tolist() == [0, 2, 4, 6]
        assert [w.kind for w in run.faults] == ["fault"]
        assert re.match(
            r"what-if: ascend910b3 has no fp8e\w+ \(e\wm\w+\), which double makes at ", run.faults[0]
        )
    for given in (array, array[::-1], tensor):
        found = tensor_argument("x", given)
        assert found is not None
        assert found.window.astype(np.float32).tolist() == [0, 1, 2, 3]


def test_a_field_of_a_record_has_strides_that_fit_no_element() -> None:
    field = np.zeros(4, [("a", "f4"), ("b", "i2")])["a"]
    with pytest.raises(UsageError, match="no multiples of the element size 4"):
        double[(1,)](field, np.zeros(4, np.float32), 4, B=4)


def test_read_only_outputs_are_refused_and_inputs_are_fine() -> None:
    x, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    x.flags.writeable = False
    double[(1,)](x, out, 4, B=4)
    assert out.tolist() == [2] * 4
    with pytest.raises(
        sim.RunError, match=r"test_launch\.py:\d+:\d+: store to 'out', which is a read-only array"
    ):
        double[(1,)](out, x, 4, B=4)
    double[(1,)](np.broadcast_to(np.float32(3), 4), out, 1, B=4)
    assert out[0] == 6


BF16 = np.zeros(4, ml_dtypes.bfloat16)


@sim.jit
def into_bf16(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i).to(tl.bfloat16).to(tl.float32))


def test_a_type_that_the_product_lacks_is_refused_as_argument_and_inside() -> None:
    x = np.zeros(4, np.float32)
    with sim.device("ascend910a"):
        with pytest.raises(UsageError, match="'x' is bf16, which ascend910a does not have; it stores"):
            double[(1,)](BF16, BF16, 4, B=4)
        with pytest.raises(UsageError, match=r"test_launch\.py:\d+: .* bf16, which ascend910a does not have"):
            into_bf16[(1,)](x, x, B=4)
    into_bf16[(1,)](x, x, B=4)


GRIDS: list[tuple[Any, str]] = [
    (0, "at least 1, got"),
    ((2, 0), "at least 1, got"),
    (-1, "at least 1, got"),
    ((), "one to three integers"),
    ((1, 1, 1, 1), "one to three integers"),
    (1.5, "one to three integers"),
    ("12", "one to three integers"),
    (None, "one to three integers"),
    (True, "one to three integers"),
    ((1, 2.0), "one to three integers"),
    ((65536, 65536, 2), "the limit is"),
]


@pytest.mark.parametrize(("grid", "says"), GRIDS, ids=str)
def test_wrong_grids(grid: Any, says: str) -> None:
    x = np.zeros(4, np.float32)
    with pytest.raises(UsageError, match=says):
        double[grid](x, x, 4, B=4)


@pytest.mark.parametrize(
    "grid", [2, (2,), [2], (2, 1), np.int64(2), lambda meta: (sim.cdiv(meta["n"], meta["B"]),)], ids=range(6)
)
def test_grids_of_every_form(grid: Any) -> None:
    out = np.zeros(8, np.float32)
    double[grid](np.ones(8, np.float32), out, 8, B=4)
    assert out.tolist() == [2] * 8


X = np.zeros(4, np.float32)
CALLS: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((X, X), {"B": 4}, "missing n; it takes x, out, n, B"),
    ((X, X, 4), {}, "missing B"),
    ((X, X, 4, 4, 5), {}, r"takes 4 arguments \(x, out, n, B\), got 5"),
    ((X, X, 4), {"B": 4, "C": 1}, "no parameter 'C'"),
    ((X, X, 4), {"x": X, "B": 4}, "'x' is given twice"),
    (([1.0], X, 4), {"B": 4}, "'x' is a list; a kernel takes numpy arrays"),
    ((X, X, 1j), {"B": 4}, "'n' is a complex"),
    ((X, X, 2**70), {"B": 4}, "does not fit into 64 bits"),
    ((X, X, 4), {"B": X}, "must be hashable"),
    ((X, X, None), {"B": 4}, "needs tiles or numbers, got NoneType"),
    ((3, X, 4), {"B": 4}, "must be a pointer"),
    ((sim.shape(4, "float32"), X, 4), {"B": 4}, "'x' is a shape without data"),
]


@pytest.mark.parametrize(("args", "kw", "says"), CALLS, ids=range(len(CALLS)))
def test_wrong_arguments(args: Any, kw: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        double[(1,)](*args, **kw)


@sim.jit
def access(x, out, at, n, B: tl.constexpr, WHAT: tl.constexpr):
    i = at + tl.arange(0, B) * (tl.program_id(0) + 1)
    m = tl.arange(0, B) < n
    if WHAT == "load":
        tl.load(x + i, mask=m)
    if WHAT == "store":
        tl.store(x + i, 1.0, mask=m)
    if WHAT == "atomic_add":
        tl.atomic_add(x + i, 1.0, mask=m)
    j = tl.load(out + tl.arange(0, B)) + i
    if WHAT == "discrete load":
        tl.load(x + j, mask=m)
    if WHAT == "discrete store":
        tl.store(x + j, 1.0, mask=m)
    if WHAT == "discrete atomic_add":
        tl.atomic_add(x + j, 1.0, mask=m)
    if WHAT == "scalar load":
        tl.load(x + at + n)
    if WHAT == "scalar store":
        tl.store(x + at + n, 1.0)


WAYS = ["load", "store", "atomic_add", "discrete load", "discrete store", "discrete atomic_add"]


@pytest.mark.parametrize("what", WAYS)
def test_out_of_bounds_names_tensor_index_program_and_line(what: str) -> None:
    x, zeros = np.zeros(10, np.float32), np.zeros(4, np.int32)
    access[(3,)](x, zeros, 0, 4, B=4, WHAT=what)  # program 2 ends at 9, the last element
    says = (
        rf"test_launch\.py:\d+:\d+: {what.split()[-1]} of element 10 of 'x' in program 2 is out of bounds: "
    )
    with pytest.raises(
        OutOfBoundsError, match=says + r"the tensor has shape \[10\], legal elements are 0 to 9"
    ):
        access[(3,)](x, zeros, 1, 4, B=4, WHAT=what)
    with pytest.raises(OutOfBoundsError, match="of element -1 of 'x' in program 0"):
        access[(3,)](x, zeros, -1, 4, B=4, WHAT=what)
    access[(3,)](x, zeros, 1, 3, B=4, WHAT=what)  # the lane outside is masked
    for far in (2**31 - 100, -(2**31), 10**6):
        access[(3,)](x, zeros, far, 0, B=4, WHAT=what)


@pytest.mark.parametrize("what", ["scalar load", "scalar store"])
def test_out_of_bounds_of_a_scalar(what: str) -> None:
    x, zeros = np.zeros(10, np.float32), np.zeros(4, np.int32)
    access[(3,)](x, zeros, 5, 4, B=4, WHAT=what)
    with pytest.raises(OutOfBoundsError, match=f"{what.split()[-1]} of element 10 of 'x' in program 0"):
        access[(3,)](x, zeros, 6, 4, B=4, WHAT=what)


def test_a_view_may_be_left_only_within_its_own_memory() -> None:
    base, zeros = np.zeros(20, np.float32), np.zeros(4, np.int32)
    access[(1,)](base[5:15][::-1], zeros, -3, 4, B=4, WHAT="load")
    with pytest.raises(OutOfBoundsError, match=r"element 1 of 'x' in program 0.*legal elements are -9 to 0"):
        access[(1,)](base[5:15][::-1], zeros, -2, 4, B=4, WHAT="load")
    with pytest.raises(OutOfBoundsError, match="legal elements are 0 to 9"):
        access[(1,)](base[5:15], zeros, 10, 1, B=4, WHAT="store")


@sim.jit
def divides(x, out, n, B: tl.constexpr):
    pid = tl.program_id(0)
    if n == 0:
        tl.store(out, 5 // (pid - 1))
    i = tl.arange(0, B)
    tl.store(out + i, 7 // tl.load(x + pid * B + i))


def test_integer_division_by_zero_names_the_program() -> None:
    out = np.zeros(4, np.int32)
    x = np.array([-1, -2, 3, 4, 5, -6, 0, 8], np.int32)
    with pytest.raises(sim.RunError, match=r"test_launch\.py:\d+:\d+: integer division by zero in program 1"):
        divides[(2,)](x, out, 0, B=4)
    with pytest.raises(
        sim.RunError, match=r"in program 1, element \[2\] \(1 of 4 are 0\), and the result is used; mask"
    ):
        divides[(2,)](x, out, 1, B=4)


@sim.jit
def asserts(x, n, B: tl.constexpr):
    v = tl.load(x + tl.program_id(0) * B + tl.arange(0, B))
    assert v >= 0.0, "negative"
    assert n > 2


def test_failed_assertions_name_program_and_element() -> None:
    x = np.array([1, 2, 3, 4, 5, -6], np.float32)
    with pytest.raises(DeviceAssertionError, match=r"failed in program 1, element \[2\]: negative"):
        asserts[(2,)](x, 3, B=3)
    with pytest.raises(DeviceAssertionError, match="failed in program 0: n > 2"):
        asserts[(2,)](np.abs(x), 2, B=3)


def test_launch_keywords_of_triton_are_taken() -> None:
    out = np.zeros(4, np.float32)
    double[(1,)](np.ones(4, np.float32), out, 4, B=4, num_warps=4, num_stages=2, multibuffer=True)
    assert out.tolist() == [2] * 4


@sim.jit
def scalar_types(out, a, b, c, d, e):
    tl.static_assert(a.dtype == tl.int1)
    tl.static_assert(b.dtype == tl.int32)
    tl.static_assert(c.dtype == tl.int64)
    tl.static_assert(d.dtype == tl.uint64)
    tl.static_assert(e.dtype == tl.float32)
    tl.static_assert(out.dtype.element_ty == tl.float32)
    tl.store(out, (d >> 60).to(tl.float32) + e)


def test_scalars_have_the_types_of_triton() -> None:
    out = np.zeros(1, np.float32)
    scalar_types[(1,)](out, True, np.int8(3), 2**31, 2**64 - 1, np.float16(0.5))
    assert out.tolist() == [15.5]


@sim.jit
def counted(total, step):
    tl.atomic_add(total, step)


@pytest.mark.parametrize(
    ("product", "dtype", "allowed"),
    [
        ("ascend910b3", "int32", True),
        ("ascend910b3", "uint32", True),
        ("ascend910b3", "int8", True),
        ("ascend910b3", "int64", True),
        ("ascend910b3", "uint64", True),
        ("ascend310b", "int64", False),
        ("ascend910a", "int32", False),
        ("ascend910a", "float32", True),
        ("ascend310p", "int32", False),
        ("ascend310b", "int32", True),
    ],
)
def test_atomic_additions_are_those_of_the_product(product: str, dtype: str, allowed: bool) -> None:
    total = np.zeros(1, dtype)
    with sim.device(product):
        if allowed:
            counted[(3,)](total, 2)
            assert total[0] == 6
            return
        with pytest.raises(sim.UsageError, match=f"adds to {dtype} in memory, which {product} cannot do"):
            counted[(3,)](total, 2)


def test_what_a_program_may_lack_is_looked_for_once_however_often_it_is_launched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, out = np.ones(4, np.float16), np.zeros(4, np.float16)
    call = prepare(double, (1,), (x, out, 4), {"B": 4})
    asked: list[str] = []
    monkeypatch.setattr(Program, "of_kind", lambda program, kind: asked.append(kind) or [])
    monkeypatch.setattr(Program, "walk", lambda program: asked.append("all") or iter(()))
    assert what_ifs(call) == ()
    assert asked == []
