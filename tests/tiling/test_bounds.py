"""Closed-form bounds are never above the simulated time: on whole small spaces, and on drawn shapes, types and products."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.kernels import get_operator, run_op
from ascendtile.simulator.device import device
from ascendtile.simulator.errors import BufferOverflowError, UsageError
from ascendtile.simulator.products import load_product
from ascendtile.tiling import explore
from ascendtile.tiling.evaluate import OperatorProblem
from ascendtile.tiling.space.axes import OperatorPoints

SLACK = 1e-9


def points_of(op, sizes, product, dtype, mode="KEEP_DTYPE", given=None, options=None):
    """The points of a space, and the problem that evaluates them."""
    operator, machine, options = get_operator(op), load_product(product), options or {}
    points = OperatorPoints(operator, operator.case(sizes), machine, dtype, mode, options, given or {})
    fixed = {"dtype": points.dtype, "cube_math_type": mode}
    fixed = {n: x for n, x in fixed.items() if n not in points.space.axes}
    return points, OperatorProblem(op, sizes, product, {}, options, fixed)


def check(points, problem, numbers):
    """Ratios time / bound of those points that run; none is below 1."""
    bounds = points.bounds(points.space, numbers)
    assert np.isfinite(bounds).all()
    assert (bounds > 0).all()
    ratios = []
    for number, bound in zip(numbers, bounds, strict=True):
        point = points.space.point(int(number))
        found = problem.evaluate(point)
        assert found.failed is None, found.failed
        if found.time_us is not None:
            assert bound <= found.time_us * (1 + SLACK), (point, bound, found.time_us)
            ratios.append(found.time_us / bound)
    return ratios


MATMUL = [
    ({"m": 128, "n": 96, "k": 256}, "ascend910b3", "float16", "KEEP_DTYPE"),
    ({"m": 40, "n": 70, "k": 1100}, "ascend910b3", "float32", "KEEP_DTYPE"),
    ({"m": 64, "n": 64, "k": 600}, "ascend910b4", "float32", "USE_FP16"),
    ({"m": 130, "n": 64, "k": 100}, "ascend910a", "float16", "KEEP_DTYPE"),
]


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("sizes", "product", "dtype", "mode"), MATMUL, ids=["even", "ragged", "cast", "coupled"]
)
def test_matmul_whole_small_spaces(sizes, product, dtype, mode):
    few = {"block_m": (16, 48), "block_n": 64, "block_k": (32, 128), "group": 2}
    points, problem = points_of("matmul", sizes, product, dtype, mode, few)
    legal, _ = points.space.legal()
    ratios = check(points, problem, legal)
    assert len(ratios) == len(legal)


# Loads of which a part is new to L2: the least cycles of one are right on average over programs, not for each. And where
# the last row of tiles is low, the cores that read the same are not as many there as elsewhere.
RAGGED = [
    ({"m": 2048, "n": 256, "k": 1000}, "ascend910b3", (256, 64, 64, 4, 1, 2, "per_tile", "none")),
    ({"m": 128, "n": 512, "k": 800}, "ascend910b3", (32, 64, 32, 4, 1, 1, "per_tile", "none")),
    ({"m": 100, "n": 1024, "k": 1377}, "ascend910b4", (48, 16, 128, 2, 2, 2, "persistent", "none")),
    ({"m": 2048, "n": 256, "k": 1000}, "ascend910b3", (256, 64, 64, 1, 2, 1, "per_tile", "b")),
    ({"m": 100, "n": 1024, "k": 1377}, "ascend910b4", (48, 16, 128, 1, 2, 2, "persistent", "a")),
]


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("sizes", "product", "tiling"), RAGGED, ids=["rows", "lines", "low", "kept b", "kept a"]
)
def test_matmul_loads_in_part(sizes, product, tiling):
    names = ("block_m", "block_n", "block_k", "group", "split_k", "buffers", "schedule", "keep")
    one = dict(zip(names, tiling, strict=True))
    points, problem = points_of("matmul", sizes, product, "float16", given=one)
    assert len(check(points, problem, points.space.legal()[0])) == 1


def test_matmul_bound_knows_that_cores_read_the_same():
    """Four rows of tiles at a time: five cores read each tile of a, four each of b, which take turns in L2."""
    one = {
        "block_m": 128,
        "block_n": 256,
        "block_k": 256,
        "split_k": 1,
        "buffers": 2,
        "schedule": "persistent",
    }
    sizes = {"m": 2048, "n": 2560, "k": 2048}
    points, problem = points_of("matmul", sizes, "ascend910b3", "float16", given={**one, "group": (1, 4, 8)})
    # The last core starts 1 us after the first, which no bound of all cores together has in it.
    assert max(check(points, problem, points.space.legal()[0])) < 1.14


@pytest.mark.exhaustive
def test_matmul_bound_is_near_without_copies():
    """With one copy in L1 and long sums little overlaps that the closed form does not know."""
    few = {"block_m": 16, "block_n": (16, 32), "block_k": (32, 64), "group": 1, "split_k": 1, "buffers": 1}
    points, problem = points_of("matmul", {"m": 256, "n": 256, "k": 256}, "ascend910b3", "float16", given=few)
    ratios = check(points, problem, points.space.legal()[0])
    assert min(ratios) < 1.6  # a launch of 1.2 us hides less of the difference than one of 5 us did


# What is multiplied binds, of tiles that are cut along each axis.
CUT = [({"m": 140, "n": 250, "k": 390}, 128), ({"m": 260, "n": 130, "k": 300}, 256)]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("keep", ["none", "a", "b"])
@pytest.mark.parametrize(("sizes", "depth"), CUT)
def test_matmul_bound_counts_what_is_multiplied_of_cut_tiles(sizes, depth, keep):
    one = {
        "block_m": 128,
        "block_n": 64,
        "block_k": depth,
        "group": 1,
        "split_k": 1,
        "keep": keep,
        "cores": 1,
    }
    points, problem = points_of("matmul", sizes, "ascend910b3", "float32", given=one)
    assert check(points, problem, points.space.legal()[0])


@given(st.data())
def test_matmul_strips_drawn(data):
    """Strips in several rounds on few cores, lines and tiles cut: programs are timed as those of their kind on average."""
    edge = st.integers(200, 400)  # so that strips of several tiles are the best cut
    sizes = {"m": data.draw(edge), "n": data.draw(edge), "k": data.draw(st.integers(20, 400))}
    given = {"keep": data.draw(st.sampled_from("ab")), "cores": data.draw(st.integers(1, 6))}
    given |= {"block_m": (48, 96), "block_n": (48, 96)}
    product = data.draw(st.sampled_from(("ascend910b3", "ascend910a")))
    points, problem = points_of("matmul", sizes, product, "float16", given=given)
    legal, _ = points.space.legal()
    check(points, problem, legal[[data.draw(st.integers(0, len(legal) - 1)) for _ in range(2)]])


@pytest.mark.exhaustive
def test_no_bound_hides_the_best_of_kept_operands_and_split_sums():
    """Every point that the rules leave is timed: none is faster than what is proved, nor below its bound."""
    sizes = {"m": 150, "n": 208, "k": 1024}
    few = {"block_m": (32, 96), "block_n": 64, "block_k": 128, "group": 1, "cores": 4}
    points, problem = points_of("matmul", sizes, "ascend910b3", "float16", given=few)
    legal, _ = points.space.legal()
    check(points, problem, legal)
    every = [points.space.point(int(n)) for n in legal]
    assert {(p["keep"], p["split_k"]) for p in every} >= {(x, s) for x in ("none", "a", "b") for s in (1, 2)}
    found = explore("matmul", case=sizes, dtype="float16", space=few)
    assert found.optimal
    assert len(found.ranked) < len(every)
    assert found.best.evaluation.time_us == min(problem.evaluate(p).time_us for p in every)


def test_matmul_bound_knows_that_parts_of_a_sum_come_from_l2():
    """What memory does not give passes through L2 and ports all the same: the sum of two parts takes most of the time."""
    one = {"block_m": 128, "block_n": 256, "block_k": 128, "split_k": 2, "group": 1, "keep": "none"}
    points, problem = points_of(
        "matmul", {"m": 512, "n": 1024, "k": 1024}, "ascend910b3", "float16", given=one
    )
    assert max(check(points, problem, points.space.legal()[0])) < 1.35


@given(st.data())
def test_matmul_drawn(data):
    size = st.integers(1, 300)
    sizes = {"m": data.draw(size), "n": data.draw(size), "k": data.draw(st.integers(1, 1500))}
    product = data.draw(st.sampled_from(("ascend910b3", "ascend910b1", "ascend310p", "ascend910a")))
    dtype = data.draw(st.sampled_from(("float16", "float32", "bfloat16")))
    mode = data.draw(st.sampled_from(("KEEP_DTYPE", "ALLOW_FP32_DOWN_PRECISION", "USE_FP16", "USE_HF32")))
    try:
        points, problem = points_of("matmul", sizes, product, dtype, mode)
    except UsageError:
        return  # the product does not take it
    legal, _ = points.space.legal()
    some = [data.draw(st.integers(0, len(legal) - 1)) for _ in range(3)]
    check(points, problem, legal[some])


@given(st.data())
def test_rms_norm_grad_drawn(data):
    sizes = {"rows": data.draw(st.integers(1, 300)), "cols": data.draw(st.integers(1, 1500))}
    dtype = data.draw(st.sampled_from(("float16", "float32", "bfloat16")))
    points, problem = points_of("rms_norm_grad", sizes, "ascend910b3", dtype)
    legal, _ = points.space.legal()
    check(points, problem, legal[[data.draw(st.integers(0, len(legal) - 1)) for _ in range(3)]])


@given(st.sampled_from(("batch_norm_statistics", "group_norm")), st.data())
def test_statistics_drawn(op, data):
    groups = data.draw(st.sampled_from((1, 2, 4)))
    sizes = {"n": data.draw(st.integers(1, 20)), "c": groups * data.draw(st.integers(1, 25))}
    sizes["space"] = data.draw(st.one_of(st.just(1), st.integers(2, 3000)))
    dtype = data.draw(st.sampled_from(("float16", "float32", "bfloat16")))
    options = {"group": groups} if op == "group_norm" else None
    points, problem = points_of(op, sizes, "ascend910b3", dtype, options=options)
    legal, _ = points.space.legal()
    check(points, problem, legal[[data.draw(st.integers(0, len(legal) - 1)) for _ in range(3)]])


@given(st.sampled_from(("rms_norm", "layer_norm")), st.data())
def test_forward_norms_drawn(op, data):
    sizes = {"rows": data.draw(st.integers(1, 300)), "cols": data.draw(st.integers(1, 1500))}
    dtype = data.draw(st.sampled_from(("float16", "float32", "bfloat16")))
    product = data.draw(st.sampled_from(("ascend910b3", "ascend310p", "ascend910a")))
    try:
        points, problem = points_of(op, sizes, product, dtype)
    except UsageError:
        return  # the product does not take the type, or has not the operator
    legal, _ = points.space.legal()
    check(points, problem, legal[[data.draw(st.integers(0, len(legal) - 1)) for _ in range(3)]])


BCE = st.one_of(
    st.fixed_dictionaries({"shape": st.integers(1, 200_000)}),
    st.builds(lambda r, c: {"shape": (r, c), "weight": c}, st.integers(1, 200), st.integers(2, 700)),
    st.builds(lambda n, c, w: {"shape": (n, c, w), "pos_weight": (c, 1)}, *[st.integers(2, 40)] * 3),
    st.builds(lambda r, c: {"shape": (r, c), "grad_output": (r, c)}, st.integers(1, 90), st.integers(2, 700)),
)


@given(
    BCE,
    st.sampled_from(("ascend910b3", "ascend310p", "ascend910a")),
    st.sampled_from(("float16", "float32")),
    st.data(),
)
def test_bce_drawn(sizes, product, dtype, data):
    points, problem = points_of("bce_with_logits_backward", sizes, product, dtype)
    legal, _ = points.space.legal()
    check(points, problem, legal[[data.draw(st.integers(0, len(legal) - 1)) for _ in range(3)]])


BCE_LOSS = st.one_of(
    st.fixed_dictionaries({"shape": st.integers(1, 200_000)}),
    st.builds(lambda r, c: {"shape": (r, c), "weight": c}, st.integers(1, 200), st.integers(2, 700)),
    st.builds(lambda n, c, w: {"shape": (n, c, w), "pos_weight": (c, 1)}, *[st.integers(2, 40)] * 3),
    st.builds(lambda r, c: {"shape": (r, c), "weight": (r, c)}, st.integers(1, 90), st.integers(2, 700)),
)


@given(
    BCE_LOSS,
    st.sampled_from(("ascend910b3", "ascend310p", "ascend910a")),
    st.sampled_from(("float16", "float32")),
    st.sampled_from(("none", "mean", "sum")),
    st.data(),
)
def test_bce_loss_drawn(sizes, product, dtype, reduction, data):
    options = {"reduction": reduction}
    points, problem = points_of("bce_with_logits", sizes, product, dtype, options=options)
    legal, _ = points.space.legal()
    check(points, problem, legal[[data.draw(st.integers(0, len(legal) - 1)) for _ in range(3)]])


CONVOLUTIONS = st.fixed_dictionaries(
    {
        "batch": st.integers(1, 3),
        "channels": st.tuples(st.integers(1, 40), st.integers(1, 40)),
        "sizes": st.tuples(st.integers(3, 14), st.integers(3, 14)),
        "taps": st.tuples(st.integers(1, 3), st.integers(1, 3)),
        "stride": st.tuples(st.integers(1, 3), st.integers(1, 2)),
        "padding": st.tuples(st.integers(0, 1), st.integers(0, 1)),
        "groups": st.sampled_from((1, 1, 2)),
        "transposed": st.booleans(),
    }
)


def convolution_of(drawn):
    """(sizes, options) of gradients of a convolution with these figures."""
    groups, taps = drawn["groups"], drawn["taps"]
    narrow, wide = (c * groups for c in drawn["channels"])
    padding = tuple(min(p, k - 1) for p, k in zip(drawn["padding"], taps, strict=True))
    figures = zip(drawn["sizes"], padding, taps, drawn["stride"], strict=True)
    small = tuple((n + 2 * p - k) // s + 1 for n, p, k, s in figures)
    figures = zip(small, padding, taps, drawn["stride"], strict=True)
    large = tuple((n - 1) * s - 2 * p + k for n, p, k, s in figures)  # so that both directions agree
    images = (drawn["batch"], wide, *large), (drawn["batch"], narrow, *small)
    x, dy = images[::-1] if drawn["transposed"] else images
    sizes = {"input": x, "grad_output": dy, "weight": (narrow, wide // groups, *taps)}
    options = {"stride": drawn["stride"], "padding": padding, "groups": groups}
    return sizes, options | {"transposed": "true" if drawn["transposed"] else "false"}


@given(
    CONVOLUTIONS,
    st.sampled_from(("ascend910b3", "ascend310p", "ascend910a")),
    st.sampled_from(("float16", "float32")),
    st.sampled_from(("KEEP_DTYPE", "USE_FP16")),
    st.data(),
)
def test_convolution_backward_drawn(drawn, product, dtype, mode, data):
    sizes, options = convolution_of(drawn)
    more = {"combine": ("atomic", "two_phase"), "buffers": (1, 2), "weight_parts": (None, 1, 3)}
    given = {n: data.draw(st.sampled_from(x)) for n, x in more.items()}
    try:
        points, problem = points_of("convolution_backward", sizes, product, dtype, mode, given, options)
    except UsageError:
        return  # the product does not take the mode
    legal, _ = points.space.legal()
    check(points, problem, legal[[data.draw(st.integers(0, len(legal) - 1)) for _ in range(2)]])


def test_phases_of_a_convolution_have_copies_of_their_own():
    """Three phases of one iteration each, with one copy: no phase waits for the reads of another."""
    sizes = {"input": (1, 1, 3, 3), "grad_output": (1, 1, 1, 3), "weight": (1, 1, 3, 1)}
    points, problem = points_of(
        *("convolution_backward", sizes, "ascend310p", "float16", "KEEP_DTYPE"),
        {"combine": "atomic", "buffers": 1},
        {"stride": (3, 1), "padding": (0, 0), "transposed": "false"},
    )
    check(points, problem, points.space.legal()[0][:4])


@given(
    CONVOLUTIONS,
    st.sampled_from(("ascend910b3", "ascend910a")),
    st.sampled_from(("float16", "float32")),
    st.data(),
)
def test_convolution_drawn(drawn, product, dtype, data):
    """The forward of the same layers, with a bias or without."""
    sizes, options = convolution_of(drawn)
    given = {n: sizes[n] for n in ("input", "weight")}
    if data.draw(st.booleans(), "bias"):
        given["bias"] = (sizes["grad_output"][1],)
    options = {n: x for n, x in options.items() if n != "output_mask"}
    try:
        points, problem = points_of("convolution", given, product, dtype, "KEEP_DTYPE", {}, options)
    except UsageError:
        return  # the product does not take the mode
    legal, _ = points.space.legal()
    check(points, problem, legal[[data.draw(st.integers(0, len(legal) - 1)) for _ in range(3)]])


@pytest.mark.exhaustive
def test_convolution_backward_whole_small_space():
    """Every point against its bound, and every one that a rule refuses does not fit when it is tried.

    Of smaller images the first load of all taps' weights, which no bound knows, is a tenth of the time.
    """
    sizes = {"input": (1, 256, 10, 10), "weight": (256, 256, 3, 3), "grad_output": (1, 256, 10, 10)}
    given = {"taps": "window", "block_m": (64, 256), "block_p": 64, "block_k": (64, 256), "launches": "joint"}
    given |= {"weight_m": (64, 256), "weight_n": 64, "weight_p": 64}
    points, problem = points_of(
        *("convolution_backward", sizes, "ascend910b3", "float16", "KEEP_DTYPE"),
        given=given,
        options={"padding": (1, 1), "stride": (1, 1)},
    )
    legal, refused = points.space.legal()
    ratios = check(points, problem, legal)
    assert len(ratios) == len(legal) > 0
    # The launch is a small part of both times, and the bound leaves out the rows that the fixpipe turns.
    assert min(ratios) < 1.35
    assert refused
    for number in set(range(points.space.size)) - set(legal.tolist()):
        assert problem.evaluate(points.space.point(number)).refused is not None


FEW = [
    (
        "bce_with_logits",
        {"shape": (60, 700), "weight": 700},
        {"block": (1024, 2048, 4096)},
        {"reduction": "sum"},
    ),
    (
        "bce_with_logits_backward",
        {"shape": (60, 700), "pos_weight": 700},
        {"block": (1024, 2048, 4096), "buffers": 2},
        {},
    ),
    ("convolution_backward", "tiny", {}, {}),
    ("convolution", "tiny", {}, {}),
]


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("op", "case", "space", "options"), FEW, ids=[x[0] for x in FEW])
def test_the_proved_answer_is_that_of_brute_force(op, case, space, options):
    found = explore(op, case=case, dtype="float16", space=space, options=options)
    assert found.optimal
    axes = found.axes
    times = []
    for values in itertools.product(*axes.values()):
        tiling = dict(zip(axes, values, strict=True))
        try:
            times.append(
                run_op(op, case=case, dtype="float16", tiling=tiling, options=options, values=False).time_us
            )
        except BufferOverflowError:
            continue
    assert found.best.time_us == min(times)
    assert len(times) == found.legal


@given(
    st.tuples(st.integers(1, 5), st.integers(1, 6), st.integers(1, 5), st.integers(1, 3000)),
    st.sampled_from(("ascend910b3", "ascend910a")),
    st.sampled_from(("float16", "float32")),
    st.data(),
)
def test_group_norm_backward_drawn(lengths, product, dtype, data):
    n, group, depth, space = lengths
    sizes = {"n": n, "c": group * depth, "space": space, "group": group}
    points, problem = points_of("group_norm_backward", sizes, product, dtype)
    legal, _ = points.space.legal()
    check(points, problem, legal[[data.draw(st.integers(0, len(legal) - 1)) for _ in range(3)]])


@given(
    st.tuples(st.integers(1, 9), st.integers(1, 70), st.integers(1, 3000)),
    st.sampled_from(("ascend910b3", "ascend910a")),
    st.sampled_from(("float16", "float32")),
    st.data(),
)
def test_batch_norm_reduce_backward_drawn(lengths, product, dtype, data):
    n, c, space = lengths
    points, problem = points_of(
        "batch_norm_reduce_backward", {"n": n, "c": c, "space": space}, product, dtype
    )
    legal, _ = points.space.legal()
    check(points, problem, legal[[data.draw(st.integers(0, len(legal) - 1)) for _ in range(3)]])


def test_an_operator_without_a_bound_of_its_own_has_that_of_its_outputs():
    operator, machine = get_operator("rms_norm_grad"), load_product("ascend910b3")
    from dataclasses import replace

    plain = replace(operator, explored=None, fits=None, bound_us=None)
    points = OperatorPoints(
        plain, plain.case({"rows": 64, "cols": 512}), machine, "float16", "KEEP_DTYPE", {}, {}
    )
    problem = OperatorProblem(
        "rms_norm_grad", {"rows": 64, "cols": 512}, "ascend910b3", {}, {}, {"dtype": "float16"}
    )
    legal, _ = points.space.legal()
    bounds = points.bounds(points.space, legal[::1000])
    assert len(set(bounds)) == 1
    assert bounds[0] >= machine.number("launch.single_core_overhead_us")
    some = np.random.default_rng(0).choice(legal, 3, replace=False)
    check(points, problem, some)


@given(st.sampled_from(("flash_attention", "flash_attention_grad")), st.data())
def test_attention_drawn(op, data):
    few, length = st.integers(1, 2), st.integers(1, 200)
    sizes = {"b": data.draw(few), "n_kv": data.draw(few), "d": data.draw(st.sampled_from((16, 40, 128)))}
    sizes |= {"n": sizes["n_kv"] * data.draw(few), "s": data.draw(length), "s_kv": data.draw(length)}
    dtype = data.draw(st.sampled_from(("float16", "float32", "bfloat16")))
    product = data.draw(st.sampled_from(("ascend910b3", "ascend910b4")))
    options = {"causal": data.draw(st.integers(0, 1))}
    mode = data.draw(st.sampled_from(("KEEP_DTYPE", "USE_HF32", "USE_FP16")))
    points, problem = points_of(op, sizes, product, dtype, mode, options=options)
    legal, _ = points.space.legal()
    check(points, problem, legal[[data.draw(st.integers(0, len(legal) - 1))]])


SMALL_L2 = [
    (
        "matmul",
        {"m": 256, "n": 192, "k": 512},
        {"block_m": 64, "block_n": 64, "block_k": 64, "group": (1, 4)},
    ),
    ("rms_norm", {"rows": 300, "cols": 1024}, {"rows": (1, 4), "cols": 1024}),
    ("rms_norm_grad", {"rows": 200, "cols": 768}, {"rows": (1, 2), "cols": 768}),
]


@pytest.mark.drawn(2)
@pytest.mark.parametrize("words", ["loop", "cold", "warm"])
@pytest.mark.parametrize(("op", "sizes", "few"), SMALL_L2, ids=[op for op, *_ in SMALL_L2])
def test_whatever_l2_holds_at_the_start(op, sizes, few, words):
    """Tensors of which it holds all, a part or nearly nothing, when the launch before is over."""
    for size in (1 << 16, 1 << 18, 1 << 19, 1 << 22):
        machine = load_product("ascend910b3", overrides={"l2.size": size})
        with device(machine, l2=words):
            points, problem = points_of(op, sizes, machine, "float16", given=few)
            legal, _ = points.space.legal()
            check(points, problem, legal[:6])


SPLIT = [
    ({"m": 128, "n": 96, "k": 256}, "ascend910b3", "FP16X3"),
    ({"m": 40, "n": 70, "k": 1100}, "ascend910b3", "BF16X6"),
    ({"m": 130, "n": 64, "k": 100}, "ascend910a", "FP16X2"),
    ({"m": 140, "n": 250, "k": 390}, "ascend910a", "INT8X2"),
    ({"m": 64, "n": 64, "k": 600}, "ascend910b4", "INT8X3"),
]


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("sizes", "product", "mode"), SPLIT)
def test_matmul_of_slices(sizes, product, mode):
    """Every slice is loaded, every pair multiplied; what is launched around the products is timed as it is."""
    few = {"block_m": (16, 48), "block_n": 64, "block_k": (32, 128), "group": 2}
    points, problem = points_of("matmul", sizes, product, "float32", mode, few)
    legal, _ = points.space.legal()
    ratios = check(points, problem, legal)
    assert len(ratios) == len(legal)
    assert min(ratios) < 1.1
    assert not any(points.space.point(int(n))["keep"] != "none" for n in legal)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("product", "mode"), [("ascend910b3", "FP16X3"), ("ascend910b3", "INT8X3"), ("ascend910a", "FP16X3")]
)
def test_matmul_of_slices_in_usual_spaces(product, mode):
    points, problem = points_of("matmul", {"m": 1000, "n": 777, "k": 1024}, product, "float32", mode)
    legal, _ = points.space.legal()
    check(points, problem, np.random.default_rng(0).choice(legal, 60))


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("product", "mode"), [("ascend910b3", "FP16X3"), ("ascend910b3", "BF16X3"), ("ascend910a", "FP16X2")]
)
@pytest.mark.parametrize("op", ["convolution_backward", "convolution"])
def test_convolutions_of_slices(op, product, mode):
    sizes = {"input": (2, 24, 9, 10), "weight": (32, 24, 3, 3)}
    sizes |= {"grad_output": (2, 32, 9, 10)} if op == "convolution_backward" else {"bias": (32,)}
    points, problem = points_of(op, sizes, product, "float32", mode, options={"padding": (1, 1)})
    legal, _ = points.space.legal()
    assert max(check(points, problem, np.random.default_rng(0).choice(legal, 3))) < 2.0
