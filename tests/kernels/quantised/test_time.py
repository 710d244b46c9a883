"""Laws of the time of quantised products: bounds below it, what a launch moves, and what quantisation is worth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.kernels import get_operator, run_op
from ascendtile.simulator.device import device
from ascendtile.simulator.products import load_product
from ascendtile.tiling import explore
from ascendtile.tiling.evaluate import OperatorProblem
from ascendtile.tiling.space.axes import OperatorPoints

PRODUCT = "ascend910b3"
SLACK = 1e-9
SPACES = [
    ("quant_matmul", {"m": 40, "n": 320, "k": 1100}, {}),
    ("quant_matmul", {"m": 33, "n": 200, "k": 1024, "group": 128, "tokens": 1}, {}),
    ("quant_matmul", {"m": 130, "n": 258, "k": 640, "x_bits": 16, "w_bits": 4, "group": 64}, {}),
    ("quant_matmul", {"m": 16, "n": 512, "k": 2048, "x_bits": 16, "transposed": 1}, {}),
    ("grouped_matmul", {"m": 150, "n": 300, "k": 500, "experts": 4}, {"group_list": (0, 9, 100, 150)}),
    (
        "grouped_matmul",
        {"m": 64, "n": 256, "k": 256, "experts": 3, "x_bits": 8, "w_bits": 8, "tokens": 1},
        {"group_list": (60, 61, 64)},
    ),
]


def us(op, sizes, dtype="float16", options=None, **more):
    return run_op(op, sizes, dtype, product=PRODUCT, values=False, options=options, **more).time_us


def points_of(op, sizes, options, product):
    """The legal points of a space, and what evaluates them."""
    machine = load_product(product)
    operator = get_operator(op)
    kept = operator.read_options(options)
    found = OperatorPoints(operator, operator.case(sizes), machine, "float16", "KEEP_DTYPE", kept, {})
    fixed = {"dtype": "float16", "cube_math_type": "KEEP_DTYPE"}
    fixed = {n: x for n, x in fixed.items() if n not in found.space.axes}
    return found, OperatorProblem(op, sizes, product, {}, kept, fixed)


@given(
    st.sampled_from(SPACES), st.sampled_from([PRODUCT, "ascend910b1", "ascend310p"]), st.integers(0, 2**20)
)
def test_a_legal_tiling_runs_and_takes_no_less_than_its_bound(space, product, pick):
    op, sizes, options = space
    if product == "ascend310p" and (op == "grouped_matmul" or sizes.get("w_bits") == 4):
        return
    points, problem = points_of(op, sizes, options, product)
    legal, _ = points.space.legal()
    number = legal[pick % len(legal)]
    bound = points.bounds(points.space, np.array([number]))[0]
    found = problem.evaluate(points.space.point(int(number)))
    assert found.failed is None, found.failed
    if found.time_us is not None:
        assert 0 < bound <= found.time_us * (1 + SLACK)


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", ["tiny", "qwen-7b-qkv-w8a8", "decode-w8a8", "decode-w4a16", "decode-w8a16"])
def test_the_chosen_tiling_of_a_named_case_is_within_a_tenth_of_the_best(case):
    best = explore("quant_matmul", case=case, dtype="float16", product=PRODUCT).best.time_us
    assert us("quant_matmul", case) <= 1.1 * best


def test_int8_takes_about_half_of_float16_where_the_cube_is_busy():
    sizes = {"m": 2048, "n": 14336, "k": 4096}
    half = us("matmul", sizes)
    assert 1.8 < half / us("quant_matmul", {**sizes, "tokens": 1, "transposed": 1}) < 2.1


def test_one_token_with_weights_from_memory_gains_what_the_passage_through_memory_leaves():
    """A quarter of the bytes comes from memory, but what the Vector cores make of it passes L2 twice: arXiv 2601.16536
    measures at most 1.48 times the speed of FLOAT16."""
    sizes = {"m": 1, "n": 4096, "k": 14336}
    with device(PRODUCT, l2="cold"):
        half, packed = (
            run_op(op, {**sizes, **more}, "float16", values=False)
            for op, more in (("matmul", {}), ("quant_matmul", {"x_bits": 16, "w_bits": 4, "group": 128}))
        )
    assert 1.2 < half.time_us / packed.time_us < 2.0
    stored = sizes["n"] * sizes["k"] / 2
    rate = load_product(PRODUCT).hbm_bytes_per_cycle * load_product(PRODUCT).aicore_mhz
    assert packed.time_us > stored / rate


def test_experts_without_rows_cost_nothing_and_uneven_ones_share_the_cores():
    sizes = {"m": 512, "n": 1024, "k": 512, "experts": 8}
    even, uneven = (
        us("grouped_matmul", sizes, options={"group_list": x, "group_list_type": "count"})
        for x in ([64] * 8, [256, 256, 0, 0, 0, 0, 0, 0])
    )
    alone = us("grouped_matmul", {**sizes, "experts": 2}, options={"group_list": [256, 512]})
    assert uneven == pytest.approx(alone, rel=0.02)
    assert uneven < even


def test_a_token_scale_sends_sums_to_the_vector_cores_and_scales_of_columns_alone_do_not():
    sizes = {"m": 64, "n": 256, "k": 256}
    plain = run_op("quant_matmul", sizes, product=PRODUCT, values=False).run
    token = run_op("quant_matmul", {**sizes, "tokens": 1}, product=PRODUCT, values=False).run
    assert {p.partition(".")[0] for p in plain.pipes} == {"AIC"}
    assert "AIV" in {p.partition(".")[0] for p in token.pipes}
