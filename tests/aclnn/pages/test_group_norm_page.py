"""The page of aclnnGroupNormBackward: checks, limits, one type for all, free shapes, masks, empty tensors, worked examples.

The modes of the vendor's tiling and the strategies are in tests/kernels/norm/test_group_norm_backward.py.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.kernels import aclnn, group_norm_backward

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
    PRODUCTS,
    TRAINING,
    Row,
    check_order,
    check_row,
    layouts,
    row_names,
    status_on,
    stretched,
    typed,
)

PHASE_ONE = aclnn.aclnnGroupNormBackwardGetWorkspaceSize
PHASES = (PHASE_ONE, aclnn.aclnnGroupNormBackward)
OUTPUTS = ("gradInput", "gradGammaOut", "gradBetaOut")
TENSORS = ("gradOut", "input", "mean", "rstd", "gamma", *OUTPUTS)
TYPES = {TRAINING: (F32, F16), **dict.fromkeys((*A2, A3), (F32, F16, BF16))}


def mask(*flags):
    return aclnn.aclCreateBoolArray(flags, len(flags))


def sized(n, c, hxw, group, dtype=F16):
    """A correct call of these sizes."""
    x, stats = (n, c, hxw), (n, group)
    shapes = {"gradOut": x, "input": x, "mean": stats, "rstd": stats, "gamma": (c,)}
    return {
        **{k: blank(s, dtype) for k, s in shapes.items()},
        **{"N": n, "C": c, "HxW": hxw, "group": group, "outputMask": mask(True, True, True)},
        **{k: blank(s, dtype) for k, s in zip(OUTPUTS, (x, (c,), (c,)), strict=True)},
    }


def good(**changes):
    return {**sized(2, 6, 5, 3), **changes}


NC1HWC0 = FORMATS["NC1HWC0"]
ROWS = (
    *(Row("1", {n: None}, 161001, f"{n} is null; it is required") for n in ("gradOut", "input", "mean", "rstd")),
    Row("2", {"outputMask": None}, 161001, "outputMask is null; it must have 3 entries (the documents say 161001, the"),
    Row("2", {"outputMask": mask(True)}, 161001, "outputMask has 1 entries; it must have 3"),
    Row("2", {"outputMask": mask(True, True, True, True)}, 161001, "4 entries; it must have 3 (the documents say 161001"),
    *(Row("2", {n: None}, 161001, f"{n} is null; outputMask[{k}] asks for it (the doc") for k, n in enumerate(OUTPUTS)),
    Row("3", {"gradOut": blank((2, 6, 5), F64)}, 161002, "gradOut is fp64; on ascend910b3 it must be float16, bfloat16"),
    *(Row("4", {n: blank(good()[n].shape, F32)}, 161002, f"{n} is float32, gradOut is float16; they must be of one type")
      for n in TENSORS[1:]),
    *(Row("4f", {n: blank(good()[n].shape, F16, NC1HWC0)}, 161002, f"{n} has format ACL_FORMAT_NC1HWC0, which is private")
      for n in TENSORS),
    Row("5", {"group": 0}, 161002, "C is 6, group is 0; group must be at least 1 and divide C"),
    Row("5", {"group": -3}, 161002, "C is 6, group is -3; group must be at least 1 and divide C"),
    Row("5", {"group": 4}, 161002, "C is 6, group is 4; group must be at least 1 and divide C"),
    Row("5", {"N": -2, "HxW": -5}, 161002, "N is -2; it must be at least 0"),
    Row("6", {"gradOut": blank((1, 1, 1, 1, 1, 1, 2, 6, 5))}, 161002, "gradOut has rank 9; it must be from 0 to 8"),
    *(Row("6", {n: blank((1,) * 7 + good()[n].shape[:1] + (1,))}, 161002, f"{n} has rank 9; it must be from 0 to 8")
      for n in ("input", "mean", "rstd", "gamma", *OUTPUTS)),
    Row("6", {"gradOut": blank((2, 6, 4))}, 161002, "gradOut has 48 elements in shape (2, 6, 4); it must have N * C * HxW"),
    Row("6", {"input": blank((59,))}, 161002, "input has 59 elements in shape (59,); it must have N * C * HxW = 60"),
    Row("6", {"mean": blank((2, 2))}, 161002, "mean has 4 elements in shape (2, 2); it must have N * group = 6"),
    Row("6", {"rstd": blank((5,))}, 161002, "rstd has 5 elements in shape (5,); it must have N * group = 6"),
    Row("6", {"gamma": blank((7,))}, 161002, "gamma has 7 elements in shape (7,); it must have C = 6"),
    Row("6", {"gradInput": blank((60,))}, 161002, "gradInput has shape (60,); it must be (2, 6, 5), the shape of input"),
    Row("6", {"gradGammaOut": blank((2, 3))}, 161002, "gradGammaOut has shape (2, 3); it must be (6,), the shape of gamma"),
    Row("6", {"gradBetaOut": blank((3, 2))}, 161002, "gradBetaOut has shape (3, 2); it must be (6,), the shape of gamma"),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=row_names(ROWS))
def test_row_of_checks(row):
    check_row(PHASE_ONE, good(), row)


def test_order_of_checks():
    check_order(PHASE_ONE, good(), ROWS)


@pytest.mark.parametrize(
    ("c", "group", "words"),
    [
        (8000, 1, ""), (8001, 1, "C / group is 8001; on ascend910b3 it must be at most 8000"), (240000, 30, ""),
        (240001, 240001, "C is 240001; on ascend910b3 it must be at most 240000"),
    ],
)  # fmt: skip
def test_limits_of_channels_are_those_of_a2_and_a3(c, group, words):
    given = sized(1, c, 1, group)
    for product in ("ascend910b3", A3):
        status, message = status_on(product, PHASE_ONE, given)
        assert status == (161002 if words else 0), message
        assert words.replace("ascend910b3", product) in message
    assert status_on(TRAINING, PHASE_ONE, given) == (0, "")


def test_an_inner_step_that_fails(timed):
    with aclnn.tiling(group_norm_backward={"strategy": "resident"}):
        check_row(PHASE_ONE, sized(1, 32, 20000, 1), Row("8", {}, 561103, "ub overflow"))


# -- support table -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("product", PRODUCTS)
def test_types_by_product(product, dtype):
    status, message = status_on(product, PHASE_ONE, typed(good(), dtype))
    if product not in TYPES:
        assert product in (INFERENCE, OTHER)
        assert (status, f"is not available on {product}" in message) == (161002, True)
    elif dtype in TYPES[product]:
        assert status == 0
    else:
        assert (status, f"gradOut is {dtype}; on {product} it must be float16 or float32" in message) == (
            161002,
            True,
        )


@pytest.mark.drawn(8)
@pytest.mark.parametrize("wide", FLOATS)
@pytest.mark.parametrize("other", [F32, F16, BF16, F64, I32])
@pytest.mark.parametrize("name", TENSORS[1:])
def test_everything_has_the_type_of_grad_out(name, wide, other):
    given = typed(good(), wide)
    given[name] = blank(given[name].shape, other)
    status, message = status_on("ascend910b3", PHASE_ONE, given)
    assert status == (0 if other == wide else 161002)
    assert other == wide or f"gradOut is {wide}; they must be of one type" in message


@pytest.mark.parametrize("fmt", PRIVATE)
def test_no_private_format_is_taken(fmt):
    given = {n: blank(t.shape, F16, FORMATS[fmt]) for n, t in good().items() if n in TENSORS}
    assert status_on("ascend910b3", PHASE_ONE, good(**given))[0] == 161002
    given = {n: blank(t.shape, F16, FORMATS["NCHW"]) for n, t in good().items() if n in TENSORS}
    assert status_on("ascend910b3", PHASE_ONE, good(**given)) == (0, "")


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def stream():
    return aclnn.aclrtCreateStream()[1]


def numbers(n, c, hxw, group, seed=3):
    g = np.random.default_rng(seed)
    dy, x = (g.standard_normal((n, c, hxw)).astype(np.float32) for _ in range(2))
    parts = x.reshape(n, group, -1).astype(np.float64)
    mean, rstd = parts.mean(2).astype(np.float32), (1 / np.sqrt(parts.var(2) + 1e-5)).astype(np.float32)
    return dy, x, mean, rstd, g.standard_normal(c).astype(np.float32)


def by_formula(dy, x, mean, rstd, gamma):
    n, c, _ = x.shape
    group = mean.shape[1]
    wide = lambda a: np.float64(a).reshape(n, group, c // group, -1)  # noqa: E731
    scale = np.ones(c) if gamma is None else np.array(gamma, np.float64)
    t = wide(dy) * scale.reshape(1, group, -1, 1)
    xh = (wide(x) - mean.reshape(n, group, 1, 1)) * rstd.reshape(n, group, 1, 1)
    c1, c2 = (a.mean((2, 3), keepdims=True) for a in (t, t * xh))
    dx = rstd.reshape(n, group, 1, 1) * (t - c1 - xh * c2)
    sums = [a.sum((0, 3)).reshape(c) for a in (wide(dy) * xh, wide(dy))]
    return dict(zip(OUTPUTS, (dx.reshape(x.shape), *sums), strict=True))


def call_with(make, values, sizes, wanted=(True, True, True), fill=0.0, shape=None, dtype=F32):
    n, c, hxw, _ = sizes
    shape = shape or (n, c, hxw)
    inputs = [None if v is None else make(v.reshape(shape) if k < 2 else v) for k, v in enumerate(values)]
    outputs = {k: make(np.full(s, fill), dtype) for k, s in zip(OUTPUTS, (shape, (c,), (c,)), strict=True)}
    return outputs, [*inputs, *sizes, mask(*wanted), *outputs.values()]


def near(found, expected):
    scale = max(1.0, np.abs(expected).max(initial=0))
    return (
        np.abs(np.array(found, np.float64).reshape(expected.shape) - expected).max(initial=0) <= 1e-5 * scale
    )


SIZES = (2, 8, 15, 4)


@layouts
def test_inputs_and_outputs_of_any_strides(stream, make):
    values = numbers(*SIZES)
    outputs, arguments = call_with(make, values, SIZES)
    run(*PHASES, stream, *arguments)
    for n, expected in by_formula(*values).items():
        assert near(outputs[n].array(), expected)


def test_broadcast_views_are_inputs_and_no_outputs(stream):
    values = (np.ones((2, 8, 15), np.float32), *numbers(*SIZES)[1:])
    outputs, arguments = call_with(tensor, values, SIZES)
    one = stretched((2, 8, 15), F32)
    one.array()[...] = 1
    run(*PHASES, stream, one, *arguments[1:])
    for n, expected in by_formula(*values).items():
        assert near(outputs[n].array(), expected)
    for n in OUTPUTS:
        shared = stretched(good()[n].shape)
        check_row(PHASE_ONE, good(), Row("-", {n: shared}, 161002, "a stride of 0 is for inputs only"))


FREE = [(240,), (2, 120), (30, 8), (2, 8, 15), (2, 8, 3, 5), (2, 2, 2, 2, 3, 5), (1, 2, 2, 2, 2, 3, 5, 1)]


@pytest.mark.drawn(3)
@pytest.mark.parametrize("shape", FREE, ids=str)
def test_shapes_are_free_and_only_sizes_count(stream, shape):
    """Data is read as (N, C, HxW) whatever the shape; statistics may be flat; gradInput has the shape of input."""
    dy, x, mean, rstd, gamma = numbers(*SIZES)
    outputs, arguments = call_with(
        tensor, (dy, x, mean.reshape(-1), rstd.reshape(-1, 1), gamma), SIZES, shape=shape
    )
    run(*PHASES, stream, *arguments)
    for n, expected in by_formula(dy, x, mean, rstd, gamma).items():
        assert near(outputs[n].array(), expected)


def test_rank_0(stream):
    one, results = tensor(np.float32(0.5)), [blank((), F32) for _ in OUTPUTS]
    run(
        *PHASES,
        stream,
        one,
        one,
        tensor(np.float32(0)),
        one,
        one,
        1,
        1,
        1,
        1,
        mask(True, True, True),
        *results,
    )
    assert [float(r.array()) for r in results[1:]] == [0.125, 0.5]


@pytest.mark.parametrize("shape", [(6,), (2, 3), (1, 6, 1)], ids=str)
def test_gradients_of_gamma_have_its_shape(shape):
    vectors = {n: blank(shape) for n in ("gamma", "gradGammaOut", "gradBetaOut")}
    assert status_on("ascend910b3", PHASE_ONE, good(**vectors)) == (0, "")
    without = good(**{**vectors, "gamma": None})
    status, message = status_on("ascend910b3", PHASE_ONE, without)
    assert status == (0 if shape == (6,) else 161002)
    assert shape == (6,) or f"gradGammaOut has shape {shape}; it must be (6,)" in message


# N, C, HxW, G with what is special about them.
EDGES = {
    "layer norm": (3, 8, 5, 1), "instance norm": (3, 8, 5, 8), "vectors": (3, 8, 1, 2), "map of 7": (2, 8, 7, 4),
    "map of 9": (2, 8, 9, 4), "map of 49": (2, 8, 49, 4), "one channel, odd map": (2, 3, 9, 3), "one sample": (1, 8, 6, 4),
    "two samples": (2, 8, 6, 4), "three samples": (3, 8, 6, 4), "one channel": (2, 1, 6, 1), "48 + 1 groups": (7, 14, 4, 7),
}  # fmt: skip


@pytest.mark.drawn(3)
@pytest.mark.parametrize(("strategy", "gamma"), [("auto", True), ("vendor", False)])
@pytest.mark.parametrize("name", EDGES)
def test_edges(stream, name, strategy, gamma):
    values = numbers(*EDGES[name])
    values = values if gamma else (*values[:4], None)
    outputs, arguments = call_with(tensor, values, EDGES[name])
    with aclnn.tiling(group_norm_backward={"strategy": strategy}):
        run(*PHASES, stream, *arguments)
    expected = by_formula(*values)
    for n, want in expected.items():
        assert near(outputs[n].array(), want)
    n, _, _, group = EDGES[name]
    parts = outputs["gradInput"].array().reshape(n, group, -1).astype(np.float64)
    assert np.abs(parts.sum(2)).max() <= 1e-4  # each group of gradInput sums to 0


@pytest.mark.drawn(3)
@pytest.mark.parametrize("flags", list(itertools.product((False, True), repeat=3)), ids=str)
def test_masks(stream, flags):
    """What the mask does not ask for may be null, is not checked and is left alone."""
    values = numbers(*SIZES)
    outputs, arguments = call_with(tensor, values, SIZES, flags, fill=9.0)
    executor = run(*PHASES, stream, *arguments)
    for (n, expected), wanted in zip(by_formula(*values).items(), flags, strict=True):
        assert near(outputs[n].array(), expected) if wanted else (outputs[n].array() == 9).all()
    assert bool(executor.kernels) == any(flags)
    left = [n for n, wanted in zip(OUTPUTS, flags, strict=True) if not wanted]
    for change in (dict.fromkeys(left), {n: blank((5,), I32, NC1HWC0) for n in left}):
        assert status_on("ascend910b3", PHASE_ONE, good(outputMask=mask(*flags), **change)) == (0, "")


@pytest.mark.parametrize(("n", "c", "hxw"), [(0, 6, 5), (2, 6, 0), (2, 0, 5)])
def test_empty_tensors_leave_the_outputs_and_say_so(stream, n, c, hxw):
    given = sized(n, c, hxw, 3)
    given |= {k: tensor(np.full(given[k].shape, 9), F16) for k in OUTPUTS}
    executor = run(*PHASES, stream, *given.values())
    assert (executor.kernels, executor.workspace_size) == ((), 0)
    assert all((given[k].array() == 9).all() for k in OUTPUTS)
    assert "the outputs keep what they hold" in executor.notes[0]


def test_sizes_that_do_not_agree_with_an_empty_tensor():
    given = sized(0, 6, 5, 3)
    check_row(
        PHASE_ONE,
        given,
        Row("6", {"N": 2}, 161002, "gradOut has 0 elements in shape (0, 6, 5); it must have"),
    )


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_sums_over_samples_do_not_depend_on_order(n, level):
    """At most two addends meet in one place, whatever the switch says."""
    aclnn.aclrtCtxSetSysParamOpt(aclnn.ACL_OPT_DETERMINISTIC, level)
    try:
        for strategy in ("auto", "vendor"):
            with aclnn.tiling(group_norm_backward={"strategy": strategy}):
                tiling = PHASE_ONE(*sized(n, 64, 64, 32).values())[2].tiling
            assert tiling["combine"] in ("two_phase", "pairwise") or n <= 2
    finally:
        aclnn.aclrtCtxSetSysParamOpt(aclnn.ACL_OPT_DETERMINISTIC, 0)


# -- worked examples, precision ----------------------------------------------------------------------------------------


def test_official_sample(stream):
    """gradInput is rounding noise: compared with an absolute tolerance, never a relative one."""
    x = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4)
    stats = np.float32([[6.5], [18.5]]), np.full((2, 1), 0.2896827, np.float32)
    outputs, arguments = call_with(tensor, (x, x, *stats, np.ones(3, np.float32)), (2, 3, 4, 1))
    run(*PHASES, stream, *arguments)
    assert np.abs(outputs["gradInput"].array()).max() < 1e-5
    np.testing.assert_allclose(outputs["gradGammaOut"].array(), [-75.896867, 2.896827, 155.849293], atol=3e-5)
    np.testing.assert_array_equal(outputs["gradBetaOut"].array(), [68, 100, 132])


def test_second_example(stream):
    i = np.arange(24)
    x, dy = (np.float32(v).reshape(2, 4, 3) for v in (7 * i % 11 - 5, (5 * i % 13 - 6) / 2))
    mean = np.float32([[-1 / 3, -0.5], [7 / 6, -5 / 6]])
    rstd = np.float32(1 / np.sqrt(x.reshape(2, 2, 6).astype(np.float64).var(2) + 1e-5))
    np.testing.assert_allclose(rstd, [[0.298511, 0.302660], [0.343559, 0.343559]], atol=1e-6)
    outputs, arguments = call_with(tensor, (dy, x, mean, rstd, np.float32([1, -2, 0.5, 3])), (2, 4, 3, 2))
    run(*PHASES, stream, *arguments)
    dx = [
        0.269694, -0.396044, 1.157099, 0.342106, -0.343583, -1.029272, -0.647291, 0.082211, -0.171931, -0.408167,
        2.212959, -1.067781, 0.602636, -1.053205, 0.298502, -1.185559, 1.281306, 0.056321, 0.256261, 0.331731, -0.573348,
        -2.645121, 0.694157, 1.936321,
    ]  # fmt: skip
    np.testing.assert_allclose(outputs["gradInput"].array().reshape(-1), dx, atol=2e-6)
    np.testing.assert_allclose(
        outputs["gradGammaOut"].array(), [5.727475, -2.138020, 5.435595, 4.241320], atol=2e-6
    )
    np.testing.assert_array_equal(outputs["gradBetaOut"].array(), [-4, 2, 1.5, 1])


# mean / sigma -> (dx, dgamma) of the kernel relative to the largest value, as the page emulates it.
LARGE_MEANS = {0: (1.1e-7, 1.0e-7), 10: (1.2e-7, 4.1e-7), 100: (1.3e-7, 3.9e-6)}


@pytest.mark.exhaustive
@pytest.mark.drawn(1)
@pytest.mark.parametrize("ratio", LARGE_MEANS)
def test_errors_where_the_mean_is_large(ratio):
    """N = 2, C = 320, HW = 4096; of the order of the page's figures, which are of other numbers."""
    g = np.random.default_rng(5)
    dy, x = g.standard_normal((2, 320, 4096)), g.standard_normal((2, 320, 4096)) + ratio
    dy, x = np.float32(dy), np.float32(x)
    parts = x.reshape(2, 32, -1).astype(np.float64)
    stats = np.float32(parts.mean(2)), np.float32(1 / np.sqrt(parts.var(2) + 1e-5))
    gamma = np.float32(g.standard_normal(320))
    found = group_norm_backward(dy, x, *stats, gamma, time=False, errors=False).outputs
    expected = by_formula(dy, x, *stats, gamma)
    for name, n, allowed in zip(("grad_input", "grad_gamma"), OUTPUTS, LARGE_MEANS[ratio], strict=False):
        assert np.abs(found[name] - expected[n]).max() <= 4 * allowed * np.abs(expected[n]).max()


@pytest.mark.parametrize("dtype", [F16, BF16])
def test_16_bit_outputs_are_rounded_once(stream, dtype):
    kind = STORAGE.get(dtype, dtype)
    values = [v.astype(kind) for v in numbers(*SIZES)]
    outputs, arguments = call_with(tensor, values, SIZES, dtype=dtype)
    run(*PHASES, stream, *arguments)
    for n, expected in by_formula(*values).items():
        unit = 2.0**-11 if dtype == F16 else 2.0**-8
        got = outputs[n].array().astype(np.float64).reshape(expected.shape)
        assert (np.abs(got - expected) <= unit * np.abs(expected) + 1e-5 * np.abs(expected).max()).all()


# -- workspace, 910A -----------------------------------------------------------------------------------------------------


@pytest.mark.drawn(5)
@pytest.mark.parametrize("dtype", [F32, F16, BF16])
@pytest.mark.parametrize(("n", "c"), [(1, 64), (2, 64), (3, 64), (8, 1920), (9, 1920)])
def test_workspace_of_the_vendors_kernel(n, c, dtype):
    """N <= 2: none in float32, 2 C 4 in 16 bits; else 2 ceil(N / 2) C 4; 16 MiB of the system beside it."""
    executor = PHASE_ONE(*sized(n, c, 4, 32, dtype).values())[2]
    pairs = (0 if dtype == F32 else 1) if n <= 2 else -(-n // 2)
    assert executor.vendor_workspace_size == 2 * pairs * c * 4 + 16 * 2**20


def test_the_page_has_no_workspace_for_the_chain_of_910a():
    with sim.device(TRAINING):
        executor = PHASE_ONE(*sized(2, 64, 4, 32).values())[2]
    assert executor.vendor_workspace_size is None


def test_the_chain_of_910a_by_its_own_interface(stream):
    """dy gamma, the variance from rstd, batch norm's two kernels, then Expand, Sub, Mul and the sums in the inputs' type."""
    values = numbers(*SIZES)
    outputs, arguments = call_with(tensor, values, SIZES)
    with sim.device(TRAINING), aclnn.tiling(group_norm_backward={"strategy": "vendor"}):
        executor = run(*PHASES, stream, *arguments)
    for n, expected in by_formula(*values).items():
        assert near(outputs[n].array(), expected)
    names = [k.name for k in executor.kernels]
    assert names[0] == "times_channel"
    assert names.index("recovered_variance") < names.index("bn_training_update_grad") < names.index("stretch")
    assert names.count("reduce_last") == names.count("reduce_first") == 2


def test_every_group_of_gradinput_is_orthogonal_to_xh():
    """Up to eps * rstd ** 2: the page's self-test; the sums of groups being 0 is in `test_edges`."""
    dy, x, mean, rstd, gamma = numbers(3, 8, 200, 4)
    found = group_norm_backward(dy, x, mean, rstd, gamma, time=False).outputs["grad_input"]
    xh = (x.reshape(3, 4, -1).astype(np.float64) - mean[:, :, None]) * rstd[:, :, None]
    parts = found.reshape(3, 4, -1)
    size = np.abs(parts * xh).sum(2)
    dots = np.abs((parts * xh).sum(2))
    assert (dots <= 1e-5 * size + 1e-5 * rstd**2 * np.abs(parts).sum(2) * 4).all()
