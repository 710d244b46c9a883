"""The spaces of the normalisations: their search finds what trying every tiling finds, and leaves no better one out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.kernels import get_operator, run_op
from ascendtile.kernels.bounds.vector import core_counts
from ascendtile.simulator.errors import BufferOverflowError
from ascendtile.simulator.products import load_product
from ascendtile.tiling import explore

SMALL = [
    (
        "rms_norm_grad",
        {"rows": 90, "cols": 640},
        {"rows": (1, 4), "cols": (256, 512), "combine": "atomic", "cores": 40},
    ),
    (
        "group_norm_backward",
        {"n": 2, "c": 64, "space": 900, "group": 8},
        {"rows": (4, 8), "cols": (512, 900), "buffers": 2, "cores": 40},
    ),
    (
        "batch_norm_reduce_backward",
        {"n": 8, "c": 48, "space": 900},
        {"rows": (1, 2), "cols": (512, 900), "buffers": 2, "cores": 40},
    ),
    ("batch_norm_statistics", {"n": 8, "c": 48, "space": 900}, {}),
    ("group_norm", {"n": 2, "c": 64, "space": 900}, {"cols": (512, 900)}),
]


def fastest(op, sizes, axes):
    """Least time over all combinations of the axes that fit, without rules and bounds."""
    times = []
    for values in itertools.product(*axes.values()):
        tiling = dict(zip(axes, values, strict=True))
        try:
            times.append(run_op(op, sizes, "float16", tiling=tiling, values=False).time_us)
        except BufferOverflowError:
            continue
    return min(times)


@pytest.mark.exhaustive
@pytest.mark.drawn(1)
@pytest.mark.parametrize(("op", "sizes", "few"), SMALL, ids=[x[0] for x in SMALL])
def test_the_proved_best_is_that_of_brute_force(op, sizes, few):
    found = explore(op, case=sizes, dtype="float16", space=few)
    assert found.optimal
    assert found.best.time_us == fastest(op, sizes, found.to_dict()["axes"])


@pytest.mark.parametrize(
    ("op", "case"),
    [
        ("rms_norm_grad", "deepseek-v3"),
        ("group_norm_backward", "vae-128"),
        ("batch_norm_reduce_backward", "yolov5s-stem"),
        ("batch_norm_statistics", "yolov5s-stem"),
        ("group_norm", "vae-128"),
    ],
)
def test_the_space_of_the_largest_case_is_small_enough_to_prove(op, case):
    """Everything is legal to evaluate in a minute: at most 150 points, all cores in each."""
    from ascendtile.tiling.space.axes import OperatorPoints

    operator, product = get_operator(op), load_product("ascend910b3")
    sizes = {name: x for name, x in ((c, operator.shapes(c, "float16")["x"].size) for c in operator.cases)}
    assert max(sizes, key=sizes.__getitem__) == case
    chosen = operator.case(case)
    points = OperatorPoints(operator, chosen, product, "float32", "KEEP_DTYPE", dict(chosen.options), {})
    assert points.space.axes["cores"] == (40,)
    assert 8 <= len(points.space.legal()[0]) <= 150


def test_fewer_cores_are_tried_where_waking_them_counts():
    product = load_product("ascend910b3")
    operator = get_operator("rms_norm_grad")
    assert core_counts(operator.shapes("tiny", "float16"), product) == (40, 20, 10)
    assert core_counts(operator.shapes("deepseek-v3", "float16"), product) == (40,)


def test_the_cube_and_its_modes_can_be_axes():
    """On small sums the mode changes the values only; points with more cores than there are Cubes are counted by rule."""
    space = {
        "strategy": ("hybrid", "cube"),
        "form": "uncentred",
        "cores": (40, 20),
        "cols": 900,
        "rows": (1, 2),
    }
    space |= {"buffers": 2, "combine": "two_phase", "cube_math_type": ("KEEP_DTYPE", "USE_HF32")}
    sizes = {"n": 4, "c": 32, "space": 900}
    found = explore("batch_norm_reduce_backward", case=sizes, dtype="float32", space=space)
    assert found.optimal
    assert found.refused["cube has the cores of the Cube"] > 0
    assert {x.point["strategy"] for x in found.found} == {"hybrid", "cube"}
    assert not found.failed


@pytest.mark.exhaustive
@given(st.data())
def test_the_least_rows_that_rms_norm_grad_refuses_by_their_bytes_have_no_room(data):
    """Refused before it is compiled is only what the placement refuses, too; the test's limit is the rule's own."""
    length = data.draw(st.sampled_from([64, 100, 640, 1000, 2048, 4104, 5000, 8192]))
    dtype = data.draw(st.sampled_from(["float16", "float32"]))
    cols, cores = max(data.draw(st.sampled_from([256, 512, 1024, 4096])), length // 8), 8
    strategy = data.draw(st.sampled_from(["full_row", "kept_row", "split_row"]))
    tile = {"strategy": strategy, "cols": cols, "cores": cores, "buffers": data.draw(st.integers(1, 3))}
    tile["combine"] = data.draw(st.sampled_from(["atomic", "two_phase", "cube"]))
    operator, product = get_operator("rms_norm_grad"), load_product("ascend910b3")
    tensors = operator.shapes(operator.case({"rows": 8000, "cols": length}), dtype)
    points = {n: np.full(1000, x) for n, x in tile.items()} | {"rows": np.arange(1, 1001)}
    kept = operator.fits(tensors, product, "KEEP_DTYPE", points, {"cols": (cols,)})
    rows = 1 + int(np.flatnonzero(~kept["what an iteration keeps fits in UB"])[0])
    with pytest.raises(BufferOverflowError, match="ub overflow"):
        run_op(
            "rms_norm_grad", {"rows": 8000, "cols": length}, dtype, tiling=tile | {"rows": rows}, values=False
        )
