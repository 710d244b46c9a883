"""RmsNormGrad against worked examples, a derivative that is not taken by hand, and its own laws."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels import get_operator, rms_norm_grad, run_op

OP = get_operator("rms_norm_grad")
ALL_TILINGS = [
    {"strategy": s, "combine": c}
    for s in ("full_row", "kept_row", "split_row")
    for c in ("atomic", "two_phase")
]
TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}
# Half an ulp of one, the rounding of dx at the end.
ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 0.0}

EXAMPLE_1 = {
    "dx": [
        *(-1155, -2308, -3459, -4608, -5755, -6900, -8043, -9184),
        *(-10323, -11460, -12595, -13728, -14859, -15988, -17115, -18240),
        *(-860030, -910584, -961134, -1011680, -1062222, -1112760, -1163294, -1213824),
        *(-1264350, -1314872, -1365390, -1415904, -1466414, -1516920, -1567422, -1617920),
    ],
    "dgamma": [579, 652, 731, 816, 907, 1004, 1107, 1216, 1331, 1452, 1579, 1712, 1851, 1996, 2147, 2304],
}
EXAMPLE_2 = {
    "x": [[1, -2, 3, 0.5], [0, 4, -1, 2]],
    "dy": [[0.5, 1, -1, 2], [1, -0.5, 0.25, 3]],
    "gamma": [1, 0.5, -2, 1.5],
    "dx": [
        [0.00464755, 0.78542419, 0.27884910, 1.45930917],
        [0.43643574, -0.81571904, -0.04156534, 1.61065577],
    ],
    "dgamma": [0.26490643, -1.93249721, -1.69854754, 3.14842730],
}


def complex_step(x, dy, gamma, eps):
    """dL/dx and dL/dgamma of L = sum(dy * rms_norm(x) * gamma), by the complex step: exact to rounding, no formula."""

    def loss(x, gamma):
        return (dy * x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * gamma).sum()

    def derivative(a, f):
        out = np.empty(a.shape)
        for at in np.ndindex(a.shape):
            b = a.astype(complex)
            b[at] += 1e-30j
            out[at] = f(b).imag / 1e-30
        return out

    return derivative(x, lambda b: loss(b, gamma)), derivative(gamma, lambda b: loss(x, b))


def limits(inputs, golden, dtype):
    """Largest errors allowed: of dx a few ulp of the row's terms and the final rounding, of dgamma of the summed sizes."""
    gamma = np.array(inputs["gamma"], np.float64).reshape(-1)
    x, dy = (np.array(inputs[n], np.float64).reshape(-1, gamma.size) for n in ("x", "dy"))
    rstd = np.array(inputs["rstd"], np.float64).reshape(-1, 1)
    t, xh = np.abs(dy * gamma), np.abs(x * rstd)
    terms = (t + xh * (t * xh).mean(1, keepdims=True)) * rstd
    fp32 = (4 + np.log2(gamma.size + 1)) * 2.0**-23 * terms.max(1, keepdims=True)
    dx = np.abs(golden["dx"].reshape(x.shape))
    smallest = 2.0**-25 if dtype == "float16" else 0.0
    return {
        "dx": (fp32 + ROUNDING[dtype] * dx + smallest).reshape(inputs["x"].shape),
        "dgamma": (2.0**-22 * max(1, np.sqrt(len(x)) / 4) * (np.abs(dy) * xh).sum(0) + 1e-45).reshape(
            inputs["gamma"].shape
        ),
    }


def assert_close(result, inputs, dtype):
    golden = OP.reference(inputs)
    allowed = limits(inputs, golden, dtype)
    for name in ("dx", "dgamma"):
        error = np.abs(np.array(result.outputs[name], np.float64) - golden[name])
        assert (error <= allowed[name]).all(), (name, np.max(error / allowed[name]))


# -- worked examples -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tiling", ALL_TILINGS)
def test_official_sample_is_exact(tiling):
    x = np.arange(1, 33, dtype=np.float32).reshape(2, 1, 16)
    gamma = np.arange(1, 17, dtype=np.float32)
    rstd = np.array([1, 2], np.float32)
    out = rms_norm_grad(x, x, rstd, gamma, tiling=tiling, time=False).outputs
    np.testing.assert_array_equal(out["dx"].reshape(-1), EXAMPLE_1["dx"])
    np.testing.assert_array_equal(out["dgamma"], EXAMPLE_1["dgamma"])


def test_second_example():
    x, dy, gamma = (np.array(EXAMPLE_2[n], np.float32) for n in ("x", "dy", "gamma"))
    rstd = (1 / np.sqrt((np.float64(x) ** 2).mean(1) + 1e-6)).astype(np.float32)
    np.testing.assert_allclose(rstd, [0.52981287, 0.43643574], rtol=1e-7)
    result = rms_norm_grad(dy, x, rstd, gamma, time=False)
    for name in ("dx", "dgamma"):
        np.testing.assert_allclose(result.outputs[name], EXAMPLE_2[name], atol=2e-7)


# -- the reference ---------------------------------------------------------------------------------------------------


def test_reference_is_the_derivative_of_the_forward():
    rng = np.random.default_rng(5)
    x, dy = rng.normal(size=(2, 3, 7))
    gamma = rng.normal(size=7)
    eps = 1e-3
    rstd = 1 / np.sqrt((x * x).mean(1) + eps)
    golden = OP.reference({"x": x, "dy": dy, "gamma": gamma, "rstd": rstd})
    dx, dgamma = complex_step(x, dy, gamma, eps)
    np.testing.assert_allclose(golden["dx"], dx, atol=1e-14)
    np.testing.assert_allclose(golden["dgamma"], dgamma, atol=1e-14)


def test_reference_does_not_depend_on_its_chunks():
    """70000 elements are more than one chunk of the host."""
    inputs = OP.inputs({"rows": 700, "cols": 100}, "float32")
    golden = OP.reference(inputs)
    xh = np.float64(inputs["x"]) * np.float64(inputs["rstd"])[:, None]
    np.testing.assert_allclose(golden["dgamma"], (inputs["dy"] * xh).sum(0), rtol=1e-10, atol=1e-12)


@pytest.mark.extra("torch")
def test_reference_against_torch():
    import torch

    inputs = OP.inputs({"rows": 9, "cols": 33}, "float32")
    x, gamma = (torch.tensor(np.float64(inputs[n]), requires_grad=True) for n in ("x", "gamma"))
    y = torch.nn.functional.rms_norm(x, (33,), gamma, 1e-6)
    y.backward(torch.tensor(np.float64(inputs["dy"])))
    rstd = 1 / np.sqrt((np.float64(inputs["x"]) ** 2).mean(1) + 1e-6)
    golden = OP.reference({**inputs, "rstd": rstd})
    np.testing.assert_allclose(golden["dx"], x.grad, atol=1e-13)
    np.testing.assert_allclose(golden["dgamma"], gamma.grad, atol=1e-12)


def test_dx_is_orthogonal_to_x():
    """With eps = 0 a step along x does not change the output: the sum of x * dx over a row is zero."""
    x = np.random.default_rng(1).normal(size=(12, 96)).astype(np.float32)
    dy = np.random.default_rng(2).normal(size=(12, 96)).astype(np.float32)
    rstd = (1 / np.sqrt((np.float64(x) ** 2).mean(1))).astype(np.float32)
    dx = rms_norm_grad(dy, x, rstd, np.ones(96, np.float32), time=False).outputs["dx"]
    products = np.float64(x) * dx
    assert (np.abs(products.sum(1)) <= 1e-6 * np.abs(products).sum(1)).all()


# -- every strategy, combine and type --------------------------------------------------------------------------------


@pytest.mark.drawn(6)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("tiling", ALL_TILINGS)
@pytest.mark.parametrize(("rows", "cols"), [(7, 40), (83, 192), (45, 129)])
def test_strategies(values, tiling, dtype, rows, cols):
    inputs = OP.inputs({"rows": rows, "cols": cols}, dtype, seed=rows)
    result = values(OP, inputs=inputs, tiling={**tiling, "rows": 2, "cols": 64})
    assert result.outputs["dx"].dtype == TYPES[dtype]
    assert result.outputs["dgamma"].dtype == np.float32
    assert_close(result, inputs, dtype)


@given(
    rows=st.integers(1, 70),
    cols=st.integers(1, 300),
    tile=st.integers(1, 9),
    chunk=st.integers(1, 300),
    cores=st.integers(1, 40),
    tiling=st.sampled_from(ALL_TILINGS),
    dtype=st.sampled_from(list(TYPES)),
)
def test_any_shape_and_tiling(rows, cols, tile, chunk, cores, tiling, dtype):
    inputs = OP.inputs({"rows": rows, "cols": cols}, dtype)
    knobs = {**tiling, "rows": tile, "cols": chunk, "cores": cores}
    result = run_op(OP, inputs=inputs, tiling=knobs, time=False, errors=False)
    assert_close(result, inputs, dtype)
    assert result.tiling["cores"] <= min(cores, rows)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gamma_may_be_float32(values, dtype):
    inputs = OP.inputs({"rows": 6, "cols": 50}, dtype)
    inputs["gamma"] = np.random.default_rng(0).normal(size=50).astype(np.float32)
    assert_close(values(OP, inputs=inputs), inputs, dtype)


def test_two_phase_does_not_depend_on_the_order_of_cores(values):
    """dgamma of three cores, summed by halving: (first + third) + second."""
    inputs = OP.inputs({"rows": 3, "cols": 16}, "float32", distribution="heavy")
    out = values(OP, inputs=inputs, tiling={"combine": "two_phase", "cores": 3}).outputs["dgamma"]
    parts = inputs["dy"] * inputs["rstd"][:, None] * inputs["x"]
    np.testing.assert_array_equal(out, (parts[0] + parts[2]) + parts[1])


def test_zero_rows_and_overflow(values):
    """A row of zeros has rstd = 1 / sqrt(eps); what is too large for float16 becomes infinite, as on the device."""
    inputs = OP.inputs({"rows": 2, "cols": 16}, "float16")
    inputs["x"][0] = 0
    inputs["rstd"] = np.array([1000, inputs["rstd"][1]], np.float32)
    inputs["dy"][0] = np.linspace(1, 200, 16)
    out = values(OP, inputs=inputs).outputs["dx"]
    assert np.isposinf(out[0]).any()
    assert np.isfinite(out[1]).all()


# -- shapes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "gamma", "rstd"),
    [
        ((2, 4, 8, 16), (8, 16), (2, 4)),
        ((2, 4, 8, 16), (8, 16), (2, 4, 1)),
        ((2, 4, 8, 16), (16,), (2, 4, 8, 1)),
        ((2, 1, 16), (16,), (2,)),
        ((1, 1, 1, 2, 1, 3, 1, 5), (5,), (1, 1, 1, 2, 1, 3, 1)),
        ((5, 1), (1,), (5,)),
        ((16,), (16,), ()),
        ((16,), (16,), (1,)),
    ],
)
def test_ranks(values, x, gamma, rstd):
    rng = np.random.default_rng(3)
    inputs = {"dy": rng.normal(size=x), "x": rng.normal(size=x), "rstd": rng.uniform(1, 2, size=rstd)}
    inputs = {n: np.float32(a) for n, a in {**inputs, "gamma": rng.normal(size=gamma)}.items()}
    result = values(OP, inputs=inputs)
    assert result.outputs["dx"].shape == x
    assert result.outputs["dgamma"].shape == gamma
    assert_close(result, inputs, "float32")
    assert bool(result.warnings) == (len(x) == 1)


F32, F16 = "float32", "float16"


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (
            {"dy": ((4, 8), F32)},
            r"dy has shape \(4, 8\), x has \(8, 8\); they must be equal",
        ),
        (
            {"gamma": ((4,), F32)},
            r"gamma has shape \(4,\); it must be the last axes of x, \(8,\) of \(8, 8\)",
        ),
        ({"gamma": ((1, 8, 8), F32)}, "gamma has rank 3, x has 2; gamma cannot have more axes than x"),
        ({"gamma": ((), F32)}, "gamma has rank 0; it must be from 1 to 8"),
        ({"rstd": ((4,), F32)}, r"rstd has shape \(4,\); it must have the row axes of x, \(8,\), optionally"),
        ({"rstd": ((8, 8), F32)}, r"rstd has shape \(8, 8\); it must have the row axes"),
        ({"rstd": ((8,), F16)}, "rstd is float16; it must be float32"),
        ({"dy": ((8, 8), F16)}, "dy is float16, x is float32; they must be of one type"),
        (
            {"gamma": ((8,), F16)},
            "x float32 with gamma float16 is not supported on ascend910b3; allowed are x float16",
        ),
        (
            {"dy": ((0, 8), F32), "x": ((0, 8), F32), "rstd": ((0,), F32)},
            r"x has shape \(0, 8\) and no elements; the operator refuses empty tensors",
        ),
    ],
)
def test_wrong_shapes_and_types_are_named(shapes, text):
    whole = {"dy": ((8, 8), F32), "x": ((8, 8), F32), "rstd": ((8,), F32), "gamma": ((8,), F32), **shapes}
    with pytest.raises(sim.UsageError, match=text):
        rms_norm_grad(**{n: sim.shape(*s) for n, s in whole.items()}, values=False)


def test_rank_nine_is_refused():
    x = sim.shape((1,) * 8 + (4,), F32)
    with pytest.raises(sim.UsageError, match="x has rank 9; it must be from 1 to 8"):
        rms_norm_grad(x, x, sim.shape((1,), F32), sim.shape((4,), F32), values=False)


# -- products --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("product", ["ascend910a", "ascend310b"])
def test_products_without_the_operator(product):
    with pytest.raises(
        sim.UsageError, match=f"rms_norm_grad is not available on {product} .* it is on ascend310p, "
    ):
        run_op(OP, "tiny", product=product)


def test_inference_series_has_rules_of_its_own(values):
    with pytest.raises(
        sim.UsageError, match=r"does not take bfloat16 on ascend310p .* there it takes float16 and float32"
    ):
        values(OP, "tiny", "bfloat16", product="ascend310p")
    with pytest.raises(sim.UsageError, match="the last axis of x has 30 bytes; it must have at least 32"):
        values(OP, {"rows": 4, "cols": 15}, "float16", product="ascend310p")
    inputs = OP.inputs({"rows": 4, "cols": 16}, "float16")
    inputs["dy"][1, 1] = np.nan
    warned = values(OP, inputs=inputs, product="ascend310p").warnings
    assert warned == (
        "rms_norm_grad on ascend310p: dy with infinities or NaN, which is not supported there: NaN counts as 0, "
        "infinity as the largest number",
    )
    assert values(OP, inputs=inputs).warnings == ()
    inputs["gamma"] = inputs["gamma"].astype(np.float32)
    with pytest.raises(sim.UsageError, match="x float16 with gamma float32 is not supported on ascend310p"):
        values(OP, inputs=inputs, product="ascend310p")


# -- tiling ----------------------------------------------------------------------------------------------------------


def test_auto_reads_rows_once_while_they_fit():
    """float16: dy and x of 9216 columns, x and t in FP32, gamma and dgamma in FP32 are 24 bytes per column."""
    for cols, strategy in ((8192, "kept_row"), (16384, "split_row")):
        run = run_op(OP, {"rows": 80, "cols": cols}, "float16", values=False)
        assert run.tiling["strategy"] == strategy
        assert run.run.buffers["UB"].peak_bytes <= 196608
    small = run_op(
        OP, {"rows": 80, "cols": 8192}, "float16", values=False, overrides={"buffers.ub": "128KiB"}
    )
    assert small.tiling["strategy"] == "split_row"


FITS = [(case, "ascend910b3", dtype) for case in OP.cases for dtype in ("float16", "float32")]
FITS += [(case, "ascend310p", "float32") for case in ("decode", "deepseek-v3-kv", "tiny")]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("case", "product", "dtype"), FITS)
def test_default_tilings_of_the_cases_fit(case, product, dtype):
    result = run_op(OP, case, dtype, product, values=False)
    assert result.run.buffers["UB"].peak_bytes <= result.run.buffers["UB"].capacity_bytes
    assert not result.run.warnings


LARGE = [
    *((case, "float16") for case in ("llama3-8b", "llama2-13b", "llama3-70b", "llama3-405b", "qwen2-7b")),
    *((case, "float16") for case in ("deepseek-v3", "query-norm", "llama3-1b", "deepseek-v3-query")),
    *((case, "float32") for case in ("llama3-8b", "llama2-13b", "qwen2-7b", "deepseek-v3", "query-norm")),
    *((case, "float32") for case in ("llama3-1b", "deepseek-v3-query")),
]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("case", "dtype"), LARGE)
def test_large_aligned_cases_come_near_their_bound(case, dtype):
    """80 % of what memory allows, or a pipe of the main launch is busy so much of the time; rows so long that there is room
    for one copy of them are loaded and computed on in turn."""
    result = run_op(OP, case, dtype, values=False)
    busiest = max(pipe.share for pipe in result.launches[1].pipes.values())
    least = 0.6 if result.tiling["buffers"] == 1 else 0.72
    assert result.run.bounds["HBM"] / result.time_us >= 0.8 or busiest >= least


@pytest.mark.drawn(4)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("copies", [1, 2, 3])
@pytest.mark.parametrize("strategy", ["full_row", "kept_row", "split_row"])
@pytest.mark.parametrize(
    ("rows", "cols", "chunk"),
    [(64, 1, 64), (13, 100, 64), (48, 128, 64), (5, 1000, 192), (2, 2048, 512), (1, 4096, 1024)],
)
def test_ub_need_is_never_less_than_what_is_placed(strategy, copies, dtype, rows, cols, chunk):
    """Packed: what `banks` adds is taken only where it fits."""
    from ascendtile.kernels.norm.rms.choice import Candidate, needs

    knobs = {"strategy": strategy, "rows": rows, "buffers": copies, "cores": 1, "banks": "packed"}
    knobs["cols"] = chunk if strategy == "kept_row" else cols
    big = {"buffers.ub": "16MiB"}
    result = run_op(OP, {"rows": rows, "cols": cols}, dtype, values=False, tiling=knobs, overrides=big)
    placed = max(x.buffers["UB"].peak_bytes for x in result.launches if x.kernel in ("kept_row", "split_row"))
    tile = Candidate(strategy, rows, result.tiling["cols"], copies)
    assert placed <= needs(tile, cols, 2 if dtype == "float16" else 4)


def test_overflow_names_the_numbers_and_the_way_out():
    with pytest.raises(
        sim.RunError, match=r"ub overflow, requires \d+ bits while 1572864 bits(.|\n)*rows=2 \(now 9\)"
    ) as e:
        run_op(OP, "llama3-8b", "float16", values=False, tiling={"strategy": "full_row", "rows": 9})
    assert "ROWS" not in str(e.value), "a size of a kernel inside is no knob of the operator"


def test_the_tiling_in_the_record_is_what_was_used():
    result = run_op(
        OP, "llama3-8b", "float16", values=False, tiling={"strategy": "split_row", "cols": 100, "rows": 3}
    )
    assert result.tiling == {
        "strategy": "split_row",
        "rows": 3,
        "cols": 128,
        "cores": 40,
        "combine": "atomic",
        "buffers": 2,
        "banks": "apart",
    }  # and none of the knobs of other strategies
    assert [launch.kernel for launch in result.launches] == ["zero_fill", "split_row"]
    assert result.launches[1].constants["COLS"] == 128


def test_more_cores_than_there_are_is_refused():
    with pytest.raises(sim.UsageError, match="'cores' is 41, ascend910b3 has 40 vector cores"):
        run_op(OP, "tiny", tiling={"cores": 41})


# -- the vendor's tiling ---------------------------------------------------------------------------------------------


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("rows", "cols", "dtype", "tile", "cores"),
    [
        (2048, 4096, "float16", (1, 4096), 48),
        (2048, 8192, "float16", (32, 4096), 48),
        (1024, 16384, "float32", (32, 4096), 47),
        (8192, 128, "float16", (58, 128), 48),
        (65536, 64, "float16", (108, 64), 48),
        (512, 576, "float32", (11, 576), 47),
        (40, 640, "float16", (1, 640), 40),
    ],
)
def test_the_vendors_tiles_are_those_of_the_page(rows, cols, dtype, tile, cores):
    """Rows of a block, columns and cores of 48; 11 rows are the share of a core."""
    from ascendtile.kernels.norm.rms.choice import vendor_tile

    share = -(-rows // 48)
    assert vendor_tile(cols, share, 2 if dtype == "float16" else 4) == tile
    used = run_op(
        OP, {"rows": rows, "cols": cols}, dtype, "ascend910b2", tiling={"strategy": "vendor"}, values=False
    )
    assert used.tiling["cores"] == cores


def test_the_vendors_tiling_reads_twice_above_6080_columns():
    moved = {}
    for cols in (6080, 6096):
        run = run_op(OP, {"rows": 480, "cols": cols}, "float32", tiling={"strategy": "vendor"}, values=False)
        moved[cols] = run.launches[-1].resources["L2"] / (480 * cols * 4)
    assert moved[6080] == pytest.approx(3, rel=0.1)
    assert moved[6096] == pytest.approx(5, rel=0.1)


@pytest.mark.parametrize(("rows", "cols"), [(7, 40), (83, 192), (5, 700), (3, 6096)])
@pytest.mark.parametrize("combine", ["atomic", "two_phase"])
def test_values_of_the_vendors_tiling(values, combine, rows, cols):
    inputs = OP.inputs({"rows": rows, "cols": cols}, "float16", seed=rows)
    assert_close(
        values(OP, inputs=inputs, tiling={"strategy": "vendor", "combine": combine}), inputs, "float16"
    )


@pytest.mark.parametrize(
    ("shapes", "status"),
    [
        ({"rstd": ((8,), F16)}, 161002),
        ({"gamma": ((8,), F16)}, 161002),
        ({"dy": ((4, 8), F32)}, 561002),
        ({"gamma": ((4,), F32)}, 561002),
    ],
)
def test_refusals_have_the_status_of_the_page(shapes, status):
    whole = {"dy": ((8, 8), F32), "x": ((8, 8), F32), "rstd": ((8,), F32), "gamma": ((8,), F32), **shapes}
    with pytest.raises(sim.RefusedError) as error:
        rms_norm_grad(**{n: sim.shape(*s) for n, s in whole.items()}, values=False)
    assert error.value.status == status
