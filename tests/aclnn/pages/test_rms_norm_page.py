"""The page of aclnnRmsNormGrad: checks, tuples of types by product, ranks, views, the rules of 310P, the worked examples.

The vendor's tiling (limits of 640 and 6080 columns, derived tables) is in tests/kernels/norm/test_rms_norm_grad.py.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import aclnn, rms_norm_grad

from ..calls import STORAGE, blank, run, tensor
from .rows import (
    A2,
    A3,
    BF16,
    F16,
    F32,
    F64,
    FLOATS,
    FORMATS,
    I32,
    INFERENCE,
    OTHER,
    PRIVATE,
    TRAINING,
    Row,
    check_order,
    check_row,
    layouts,
    row_names,
    status_on,
    stretched,
)

PHASE_ONE = aclnn.aclnnRmsNormGradGetWorkspaceSize
PHASES = (PHASE_ONE, aclnn.aclnnRmsNormGrad)
NAMES = ("dy", "x", "rstd", "gamma", "dxOut", "dgammaOut")
# dy, x, rstd, gamma, dx, dgamma -> whether 310P has the tuple too; all are of A2 and A3.
TUPLES = {
    (F16, F16, F32, F32, F16, F32): False,
    (BF16, BF16, F32, F32, BF16, F32): False,
    (F16, F16, F32, F16, F16, F32): True,
    (F32, F32, F32, F32, F32, F32): True,
    (BF16, BF16, F32, BF16, BF16, F32): False,
}


def good(**changes):
    x, c = (4, 5, 32), (32,)
    shapes = (x, x, (4, 5), c, x, c)
    kinds = (F16, F16, F32, F16, F16, F32)
    return {n: blank(s, k) for n, s, k in zip(NAMES, shapes, kinds, strict=True)} | changes


def rows_of(shape, dtype=F16):
    return {n: blank(shape, dtype) for n in ("dy", "x", "dxOut")}


NINE, NC1HWC0 = (1,) * 9, FORMATS["NC1HWC0"]
ROWS = (
    *(Row("1", {n: None}, 161001, f"{n} is null; it is required") for n in NAMES),
    Row("2", {"rstd": blank((4, 5), F16)}, 161002, "rstd is float16; it must be float32"),
    Row("2", {"dy": blank((4, 5, 32), F32)}, 161002, "dy is float32, x is float16; they must be of one type"),
    Row("2", {"gamma": blank((32,), BF16)}, 161002, "x float16 with gamma bfloat16 is not supported on ascend910b3"),
    Row("2", {"dxOut": blank((4, 5, 32), F32)}, 161002, "dxOut is float32; it must be float16"),
    Row("2", {"dgammaOut": blank((32,), F16)}, 161002, "dgammaOut is float16; it must be float32"),
    Row("3a", rows_of(NINE), 561002, "x has rank 9; it must be from 1 to 8"),
    Row("3a", rows_of(()), 561002, "x has rank 0; it must be from 1 to 8"),
    Row("3b", {"gamma": blank(NINE, F16)}, 561002, "gamma has rank 9; it must be from 1 to 8"),
    Row("3b", {"gamma": blank((), F16)}, 561002, "gamma has rank 0; it must be from 1 to 8"),
    Row("3c", {"gamma": blank((1, 1, 1, 32))}, 561002, "gamma has rank 4, x has 3; gamma cannot have more axes than x"),
    Row("3d", {"dy": blank((20, 32))}, 561002, "dy has rank 2, x has 3; they must be equal"),
    Row("3e", {"dxOut": blank((20, 32))}, 561002, "dxOut has rank 2, dy has 3; they must be equal"),
    Row("3f", {"dgammaOut": blank((1, 32), F32)}, 561002, "dgammaOut has rank 2, gamma has 1; they must be equal"),
    Row("3g", {"dy": blank((5, 4, 32))}, 561002, "dy has shape (5, 4, 32), x has (4, 5, 32); they must be equal"),
    Row("3g", {"dxOut": blank((5, 4, 32))}, 561002, "dxOut has shape (5, 4, 32), x has (4, 5, 32); they must be equal"),
    Row("3h", rows_of((4, 5, 0)), 561002, "x has shape (4, 5, 0) and no elements"),
    Row("3i", {"rstd": blank((4,), F32)}, 561002, "rstd has shape (4,); it must have the row axes of x, (4, 5)"),
    Row("3i", {"rstd": blank((4, 5, 32), F32)}, 561002, "optionally followed by axes of length 1"),
    Row("3i", {"rstd": blank((5, 4), F32)}, 561002, "rstd has shape (5, 4)"),
    Row("3j", {"gamma": blank((16,))}, 561002, "gamma has shape (16,); it must be the last axes of x, (32,)"),
    Row("3j", {"dgammaOut": blank((16,), F32)}, 561002, "dgammaOut has shape (16,); it must be the last axes of x, (32,)"),
    Row("3k", {**rows_of((0, 5, 32)), "rstd": blank((0, 5), F32)}, 561002, "x has shape (0, 5, 32) and no elements"),
    *(Row("4", {n: blank(t.shape, F32 if n in ("rstd", "dgammaOut") else F16, NC1HWC0)}, 561003,
          f"{n} has format ACL_FORMAT_NC1HWC0, which is private") for n, t in good().items()),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=row_names(ROWS))
def test_row_of_checks(row):
    check_row(PHASE_ONE, good(), row)


def test_order_of_checks():
    """Rows that change the shape of x change what the later ones of shapes mean: they are told before all of those."""
    check_order(PHASE_ONE, good(), ROWS)


def test_an_inner_step_that_fails(timed):
    wide = {**rows_of((4, 8192)), "rstd": blank((4,), F32), "gamma": blank((8192,))}
    wide["dgammaOut"] = blank((8192,), F32)
    with aclnn.tiling(rms_norm_grad={"strategy": "full_row"}):
        check_row(PHASE_ONE, good(**wide), Row("-", {}, 561103, "ub overflow"))
    assert status_on("ascend910b3", PHASE_ONE, good(**wide)) == (0, "")


# -- support table -----------------------------------------------------------------------------------------------------


OF_TYPE = {(n, k): blank(t.shape, k) for n, t in good().items() for k in (*FLOATS, F64, I32)}


def with_types(kinds):
    return {n: OF_TYPE[n, k] for n, k in zip(NAMES, kinds, strict=True)}


@pytest.mark.parametrize("product", [*A2, A3, INFERENCE])
def test_no_tuple_of_types_but_those_of_the_table(product):
    """All 729 of three types for six tensors, and none with float64 or an integer."""
    allowed = {kinds for kinds, inference in TUPLES.items() if inference or product != INFERENCE}
    taken = set()
    for kinds in itertools.product(FLOATS, repeat=6) if product in ("ascend910b3", INFERENCE) else TUPLES:
        status, _ = status_on(product, PHASE_ONE, with_types(kinds))
        assert status in (0, 161002)
        taken |= {kinds} if status == 0 else set()
    assert taken == allowed
    for k, odd in itertools.product(range(6), (F64, I32)):
        kinds = [F32] * 6
        kinds[k] = odd
        assert status_on(product, PHASE_ONE, with_types(kinds))[0] == 161002


@pytest.mark.parametrize("kinds", TUPLES, ids=" ".join)
@pytest.mark.parametrize("product", [TRAINING, OTHER])
def test_products_without_it(product, kinds):
    status, message = status_on(product, PHASE_ONE, with_types(kinds))
    assert (status, f"is not available on {product}" in message) == (161002, True)


@pytest.mark.parametrize("fmt", ["ND", "NCL", "NCHW"])
def test_public_formats_are_taken_as_nd(fmt):
    given = {n: blank(t.shape, F32, FORMATS[fmt]) for n, t in good().items()}
    assert status_on("ascend910b3", PHASE_ONE, given) == (0, "")


@pytest.mark.parametrize("fmt", PRIVATE)
def test_there_is_no_kernel_for_a_private_format(fmt):
    given = {n: blank(t.shape, F32, FORMATS[fmt]) for n, t in good().items()}
    assert status_on("ascend910b3", PHASE_ONE, given)[0] == 561003


# -- shapes ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def stream():
    return aclnn.aclrtCreateStream()[1]


def numbers(x_shape, normalised, seed=3):
    """Small integers, and powers of two for rstd: dgamma is exact in FP32."""
    g = np.random.default_rng(seed)
    x, dy = (g.integers(-4, 5, x_shape).astype(np.float32) for _ in range(2))
    rows = x_shape[: len(x_shape) - normalised]
    rstd = np.asarray(2.0 ** g.integers(-2, 3, rows)).astype(np.float32)
    return dy, x, rstd, g.integers(-3, 4, x_shape[len(rows) :]).astype(np.float32)


def by_formula(dy, x, rstd, gamma):
    d = gamma.size
    wide, grad = np.float64(x).reshape(-1, d), np.float64(dy).reshape(-1, d)
    xh = wide * rstd.reshape(-1, 1)
    t = grad * gamma.reshape(1, d)
    dx = (t - xh * (t * xh).mean(1, keepdims=True)) * rstd.reshape(-1, 1)
    return dx.reshape(x.shape), (grad * xh).sum(0).reshape(gamma.shape)


def check_values(stream, make, values, rstd_shape=None):
    dy, x, rstd, gamma = values
    outputs = [make(np.zeros(s), F32) for s in (x.shape, gamma.shape)]
    shown = rstd if rstd_shape is None else rstd.reshape(rstd_shape)
    executor = run(*PHASES, stream, *(make(v) for v in (dy, x, shown, gamma)), *outputs)
    dx, dgamma = by_formula(*values)
    np.testing.assert_array_equal(outputs[1].array(), dgamma)
    assert np.abs(outputs[0].array() - dx).max() <= 1e-5 * max(1.0, np.abs(dx).max())
    return executor


RANKS = [((2, 1, 2, 1, 3, 1, 2, 5)[8 - r :], n) for r in range(1, 9) for n in sorted({1, (r + 1) // 2, r})]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("shape", "normalised"), RANKS, ids=str)
def test_ranks_1_to_8(stream, shape, normalised):
    """Any number of trailing axes is normalised; n = 0 means one row."""
    executor = check_values(stream, tensor, numbers(shape, normalised))
    assert bool(executor.notes) == (len(shape) == 1)


@pytest.mark.parametrize("rstd", [(3, 4), (3, 4, 1), (3, 4, 1, 1)], ids=str)
def test_rstd_with_and_without_trailing_ones(stream, rstd):
    check_values(stream, tensor, numbers((3, 4, 2, 16), 2), rstd)


@pytest.mark.parametrize("rstd", [(3,), (3, 1), (3, 1, 1)], ids=str)
def test_axes_of_one_may_be_missing(stream, rstd):
    check_values(stream, tensor, numbers((3, 1, 16), 1), rstd)


@pytest.mark.parametrize("shape", [(), (1,)], ids=str)
def test_one_row_has_an_rstd_of_no_axes_or_of_one(stream, shape):
    check_values(stream, tensor, numbers((16,), 1), shape)


@layouts
def test_inputs_and_outputs_of_any_strides(stream, make):
    check_values(stream, make, numbers((3, 5, 2, 16), 2))


def test_broadcast_views_are_inputs_and_no_outputs(stream):
    values = (np.ones((3, 16), np.float32), *numbers((3, 16), 1)[1:])
    one = stretched((3, 16), F32)
    one.array()[...] = 1
    outputs = [tensor(np.zeros(s), F32) for s in ((3, 16), (16,))]
    run(*PHASES, stream, one, *(tensor(v) for v in values[1:]), *outputs)
    np.testing.assert_array_equal(outputs[1].array(), by_formula(*values)[1])
    for n, s, k in (("dxOut", (4, 5, 32), F16), ("dgammaOut", (32,), F32)):
        check_row(
            PHASE_ONE, good(), Row("-", {n: stretched(s, k)}, 161002, "a stride of 0 is for inputs only")
        )


# R x D with what is special about them.
EDGES = [
    (7, 1),
    (2, 6080),
    (2, 6081),
    (2, 6096),
    (3, 640),
    (3, 641),
    (2, 4097),
    (39, 32),
    (40, 32),
    (41, 32),
    (1, 4096),
    (5, 17),
]


@pytest.mark.drawn(3)
@pytest.mark.parametrize(("rows", "cols"), EDGES)
@pytest.mark.parametrize("strategy", ["auto", "vendor"])
def test_edges_of_the_tilings(stream, rows, cols, strategy):
    with aclnn.tiling(rms_norm_grad={"strategy": strategy}):
        check_values(stream, tensor, numbers((rows, cols), 1))


def test_a_row_of_zeros_and_an_overflow(stream):
    """x all zero has rstd 1 / sqrt(eps) = 1000, and c is 0; float16 overflows where rstd * dy * gamma leaves its range."""
    dy, x = np.full((2, 32), 3, F16), np.zeros((2, 32), F16)
    out, dgamma = blank((2, 32)), blank((32,), F32)
    scale = tensor(np.array([1000, 1], np.float32))
    run(*PHASES, stream, tensor(dy), tensor(x), scale, tensor(np.full(32, 30), F16), out, dgamma)
    np.testing.assert_array_equal(out.array()[0], np.inf)
    np.testing.assert_array_equal(out.array()[1], 90)
    assert not dgamma.array().any()


# -- rules of 310P -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "cols", "taken"), [(F16, 15, False), (F16, 16, True), (F32, 7, False), (F32, 8, True)]
)
def test_the_last_axis_on_310p_has_32_bytes(dtype, cols, taken):
    given = {**rows_of((4, 5, cols), dtype), "gamma": blank((cols,), dtype), "dgammaOut": blank((cols,), F32)}
    status, message = status_on(INFERENCE, PHASE_ONE, good(**given))
    assert status == (0 if taken else 561002)
    assert (
        taken
        or f"the last axis of x has {cols * (2 if dtype == F16 else 4)} bytes; it must have at least 32"
        in message
    )
    assert status_on("ascend910b3", PHASE_ONE, good(**given))[0] == 0


@pytest.mark.parametrize("odd", [np.inf, np.nan])
def test_infinities_and_nan_on_310p_are_warned_of(odd):
    dy, x, rstd, gamma = numbers((3, 16), 1)
    dy[1, 1] = odd
    with sim.device(INFERENCE):
        found = rms_norm_grad(dy, x, rstd, gamma, time=False, errors=False)
    assert "dy with infinities or NaN" in found.warnings[0]
    assert rms_norm_grad(dy, x, rstd, gamma, time=False, errors=False).warnings == ()


# -- sums over cores, worked examples ----------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_dgamma_is_added_atomically_unless_the_switch_is_on(stream, level):
    aclnn.aclrtCtxSetSysParamOpt(aclnn.ACL_OPT_DETERMINISTIC, level)
    try:
        executor = check_values(stream, tensor, numbers((100, 32), 1))
    finally:
        aclnn.aclrtCtxSetSysParamOpt(aclnn.ACL_OPT_DETERMINISTIC, 0)
    assert executor.tiling["combine"] == ("two_phase" if level else "atomic")


DX = (
    [-1155, -2308, -3459, -4608, -5755, -6900, -8043, -9184, -10323, -11460, -12595, -13728, -14859, -15988, -17115, -18240],
    [-860030, -910584, -961134, -1011680, -1062222, -1112760, -1163294, -1213824, -1264350, -1314872, -1365390, -1415904,
     -1466414, -1516920, -1567422, -1617920],
)  # fmt: skip
DGAMMA = [579, 652, 731, 816, 907, 1004, 1107, 1216, 1331, 1452, 1579, 1712, 1851, 1996, 2147, 2304]


def test_official_sample(stream):
    """All values are exact integers."""
    x = np.arange(1, 33, dtype=np.float32).reshape(2, 1, 16)
    dx, dgamma = blank((2, 1, 16), F32), blank((16,), F32)
    rstd, gamma = tensor(np.float32([[1], [2]])), tensor(np.arange(1, 17, dtype=np.float32))
    run(*PHASES, stream, tensor(x), tensor(x), rstd, gamma, dx, dgamma)
    np.testing.assert_array_equal(dx.array().reshape(2, 16), DX)
    np.testing.assert_array_equal(dgamma.array(), DGAMMA)


def test_second_example(stream):
    x, dy = np.float32([[1, -2, 3, 0.5], [0, 4, -1, 2]]), np.float32([[0.5, 1, -1, 2], [1, -0.5, 0.25, 3]])
    rstd, gamma = np.float32([0.52981287, 0.43643574]), np.float32([1, 0.5, -2, 1.5])
    dx, dgamma = blank((2, 4), F32), blank((4,), F32)
    run(*PHASES, stream, *(tensor(v) for v in (dy, x, rstd, gamma)), dx, dgamma)
    expected = [
        [0.00464755, 0.78542419, 0.27884910, 1.45930917],
        [0.43643574, -0.81571904, -0.04156534, 1.61065577],
    ]
    np.testing.assert_allclose(dx.array(), expected, atol=3e-7)
    np.testing.assert_allclose(dgamma.array(), [0.26490643, -1.93249721, -1.69854754, 3.14842730], atol=3e-7)


@pytest.mark.parametrize("kinds", TUPLES, ids=" ".join)
def test_dgamma_is_float32_and_dx_is_rounded_once(stream, kinds):
    values = numbers((6, 64), 1)
    inputs = [tensor(v, k) for v, k in zip(values, kinds, strict=False)]
    dx, dgamma = blank((6, 64), kinds[4]), blank((64,), kinds[5])
    run(*PHASES, stream, *inputs, dx, dgamma)
    golden = by_formula(*values)
    np.testing.assert_array_equal(dgamma.array(), golden[1])
    unit = {F16: 2.0**-11, BF16: 2.0**-8, F32: 2.0**-24}[kinds[4]]
    allowed = unit * np.abs(golden[0]) + 2.0**-20 * np.abs(golden[0]).max()
    assert (np.abs(dx.array().astype(np.float64) - golden[0]) <= allowed).all()
    assert dx.array().dtype == np.dtype(STORAGE.get(kinds[4], kinds[4]))


# -- workspace -----------------------------------------------------------------------------------------------------------

SYSTEM = 16 * 2**20


# Rows, columns, type, and block_dim of 48 cores (the page's derived tilings), with the columns rounded up to 32 bytes.
VENDOR_SHAPES = [
    (2048, 4096, F16, 48, 4096), (1024, 16384, F32, 47, 16384), (512, 576, F32, 47, 576), (1, 4096, F16, 1, 4096),
    (40, 641, F16, 40, 656), (40, 641, F32, 40, 648),
]  # fmt: skip


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("rows", "cols", "dtype", "block_dim", "wide"), VENDOR_SHAPES)
def test_workspace_of_the_vendors_kernel(rows, cols, dtype, block_dim, wide):
    """Flags of the cores, or with the switch a row for each, plus 16 MiB of the system."""
    given = {**rows_of((rows, cols), dtype), "rstd": blank((rows,), F32), "gamma": blank((cols,), dtype)}
    given["dgammaOut"] = blank((cols,), F32)
    arguments = good(**given).values()
    try:
        with sim.device("ascend910b2"):
            for level, each in ((0, 8), (1, wide + 8)):
                aclnn.aclrtCtxSetSysParamOpt(aclnn.ACL_OPT_DETERMINISTIC, level)
                assert PHASE_ONE(*arguments)[2].vendor_workspace_size == each * block_dim * 4 + SYSTEM
    finally:
        aclnn.aclrtCtxSetSysParamOpt(aclnn.ACL_OPT_DETERMINISTIC, 0)


def test_workspace_of_large_inputs_stays_below_a_twentieth():
    """Deterministic, long rows, from 500 MB on: columns in chunks that are multiples of 4096."""
    from ascendtile.kernels.aclnn.vendor_workspace import rms_norm_grad_bytes

    rows, cols = 200, 700_000  # 560 MB of float16
    found = rms_norm_grad_bytes(rows, cols, 2, 48, True)
    assert found <= 0.05 * 2 * rows * cols * 2 < (cols + 8) * 40 * 4
    assert (found // (40 * 4) - 8) % 4096 == 0
    smaller = rms_norm_grad_bytes(rows, 600_000, 2, 48, True)  # 480 MB
    assert smaller == (600_000 + 8) * 40 * 4
    assert rms_norm_grad_bytes(4000, cols, 2, 48, True) == (cols + 8) * 48 * 4  # many rows: already below


# -- statements of sections 2 and 3 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["auto", "vendor", "split_row"])
def test_dx_is_orthogonal_to_x(strategy):
    """With rstd of x and eps 0: the self-test of the page."""
    g = np.random.default_rng(1)
    x, dy = (g.standard_normal((6, 700)).astype(np.float32) for _ in range(2))
    rstd = (1 / np.sqrt((x.astype(np.float64) ** 2).mean(1))).astype(np.float32)
    found = rms_norm_grad(
        dy, x, rstd, g.standard_normal(700).astype(np.float32), tiling={"strategy": strategy}, time=False
    ).outputs["dx"]
    size = np.abs(x * found).sum(1)
    assert (np.abs((x.astype(np.float64) * found).sum(1)) <= 1e-5 * size).all()


def test_errors_of_16_bit_inputs_are_those_of_fp32_inside():
    """D = 4096, relative to the largest value: dx 3.8e-4 (the rounding of the output), dgamma 2.5e-7; legacy kernels that
    multiply in float16 have 7.5e-4 and 4.0e-4."""
    g = np.random.default_rng(2)
    x, dy = (g.standard_normal((64, 4096)).astype(np.float16) for _ in range(2))
    gamma = (1 + 0.1 * g.standard_normal(4096)).astype(np.float16)
    rstd = (1 / np.sqrt((x.astype(np.float64) ** 2).mean(1))).astype(np.float32)
    golden = by_formula(dy, x, rstd, gamma)
    for strategy in ("auto", "vendor"):
        found = rms_norm_grad(dy, x, rstd, gamma, tiling={"strategy": strategy}, time=False).outputs
        errors = [
            np.abs(found[n] - a).max() / np.abs(a).max()
            for n, a in zip(("dx", "dgamma"), golden, strict=True)
        ]
        assert errors[0] <= 4.9e-4  # half an ulp of the largest value
        assert errors[1] <= 5e-7


@pytest.mark.parametrize(("cols", "strategy"), [(4096, "full_row"), (8192, "split_row")])
def test_split_rows_read_twice(cols, strategy):
    """Bytes that pass: 3 R D b for whole rows, 5 R D b for split ones; gamma for every core and dgamma beside them."""
    shapes = [
        sim.shape(s, k) for s, k in (((1024, cols), F16), ((1024, cols), F16), ((1024,), F32), ((cols,), F16))
    ]
    with sim.device("ascend910b3"):
        found = rms_norm_grad(*shapes, tiling={"strategy": "vendor", "combine": "two_phase"}, values=False)
    moved = sum(x.resources["L2"] for x in found.launches) / (1024 * cols * 2)
    passes = 3 if strategy == "full_row" else 5
    assert passes <= moved <= 1.25 * passes
