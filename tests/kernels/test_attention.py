"""Attention and its gradients: against float64 and torch, and laws of heads, masks and tilings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.kernels import flash_attention, flash_attention_grad, get_operator, precision_study, run_op
from ascendtile.kernels.operator.plan import PlanContext
from ascendtile.kernels.running.fitting import plan_that_fits
from ascendtile.kernels.running.launching import call_of
from ascendtile.simulator.launch import place

FORWARD, GRADIENT = "flash_attention", "flash_attention_grad"
# Norm of the error over that of the result: roundings of the inputs' type inside and at the end, or sums in FP32.
CLOSE = {"float32": 2e-6, "float16": 1e-3, "bfloat16": 8e-3}


def drawn(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    numbers = np.random.default_rng(5)
    return [numbers.standard_normal(s, np.float32) for s in shapes]


def outputs(q: Any, k: Any, v: Any, **how: Any) -> dict[str, np.ndarray]:
    return flash_attention(q, k, v, product="ascend910b2", time=False, errors=False, **how).outputs


@pytest.mark.parametrize("op", [FORWARD, GRADIENT])
@given(st.data())
def test_every_shape_type_and_mask_is_near_float64(op: str, data: Any) -> None:
    few = st.integers(1, 3)
    sizes = {"b": data.draw(few), "n_kv": data.draw(few), "d": data.draw(st.integers(1, 70))}
    sizes["n"] = sizes["n_kv"] * data.draw(few)
    # With one key dq and dk are 0, and nothing but roundings is left of them.
    least = {"s": 1, "s_kv": 1 if op == FORWARD else 2}
    sizes |= {n: data.draw(st.integers(first, 70)) for n, first in least.items()}
    dtype = data.draw(st.sampled_from(tuple(CLOSE)))
    options = {"causal": data.draw(st.integers(0, 1)), "scale": data.draw(st.sampled_from((None, 0.3)))}
    edges = st.sampled_from((16, 32, 48))
    tiling = {"block_m": data.draw(edges), "block_n": data.draw(edges), "cores": data.draw(st.integers(1, 5))}
    declared = get_operator(op)
    inputs = declared.inputs(sizes, dtype)
    how = {"options": options, "tiling": tiling, "product": "ascend910b2", "time": False}
    found = run_op(op, inputs=inputs, **how, errors=False).outputs
    for name, golden in declared.reference(inputs, **options).items():
        scale = np.linalg.norm(golden)
        floor = 0.02 * np.sqrt(golden.size)  # values of both signs, and parts of a gradient, may cancel
        assert (
            np.linalg.norm(found[name].astype(np.float64) - golden)
            <= CLOSE[dtype] * (4 * scale + floor) + 1e-6
        )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lengths", [(33, 45), (45, 33)])
def test_torch_has_the_same_values_and_gradients(causal: bool, lengths: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch")
    s, s_kv = lengths
    q, k, v, dout = (
        torch.from_numpy(x) for x in drawn((1, 4, s, 24), *2 * [(1, 2, s_kv, 24)], (1, 4, s, 24))
    )
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    wanted = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal, enable_gqa=True)
    gradients = torch.autograd.grad(wanted, leaves, dout)
    found = outputs(q, k, v, causal=causal)
    np.testing.assert_allclose(found["out"], wanted.detach(), atol=2e-6)
    back = flash_attention_grad(
        q,
        k,
        v,
        found["out"],
        found["lse"],
        dout,
        causal=causal,
        product="ascend910b2",
        time=False,
        errors=False,
    ).outputs
    for name, x in zip(("dq", "dk", "dv"), gradients, strict=True):
        np.testing.assert_allclose(back[name], x, atol=5e-6)


def test_lse_is_the_logarithm_of_the_sum_of_exponentials() -> None:
    q, k, v = drawn((1, 1, 5, 16), *2 * [(1, 1, 70, 16)])
    s = np.float64(q[0, 0]) @ np.float64(k[0, 0]).T * 0.5
    np.testing.assert_allclose(outputs(q, k, v, scale=0.5)["lse"][0, 0], np.log(np.exp(s).sum(1)), rtol=1e-6)


def test_the_first_query_of_a_causal_head_sees_the_first_key_only() -> None:
    q, k, v = drawn((2, 1, 40, 16), *2 * [(2, 1, 50, 16)])
    np.testing.assert_allclose(outputs(q, k, v, causal=True)["out"][:, :, 0], v[:, :, 0], rtol=1e-6)


def test_heads_that_share_keys_are_heads_with_the_same_keys() -> None:
    q, k, v = drawn((1, 6, 20, 16), *2 * [(1, 2, 30, 16)])
    shared, each = outputs(q, k, v), outputs(q, *(np.repeat(x, 3, axis=1) for x in (k, v)))
    assert np.array_equal(shared["out"], each["out"])


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (((2, 3, 4), (1, 1, 4, 8), (1, 1, 4, 8)), r"q has shape \(2, 3, 4\); it must be \(B, N, S, D\)"),
        (((1, 3, 4, 8), (1, 2, 4, 8), (1, 2, 4, 8)), "q has 3 heads, k has 2; the first must be a multiple"),
        (((1, 2, 4, 8), (1, 2, 4, 16), (1, 2, 4, 16)), "B and D must be equal"),
        (((1, 2, 4, 8), (1, 2, 4, 8), (1, 2, 5, 8)), "v has shape .* they must be equal"),
        (((1, 2, 4, 8), (1, 2, 0, 8), (1, 2, 0, 8)), "no elements; give every size from 1"),
    ],
)
def test_shapes_that_do_not_fit_each_other_are_refused(shapes: Any, words: str) -> None:
    with pytest.raises(sim.errors.RefusedError, match=words):
        flash_attention(*(sim.shape(s, "float16") for s in shapes), product="ascend910b2", values=False)


@pytest.mark.parametrize("given", ["much", float("nan"), True])
def test_a_scale_that_is_no_number_is_refused(given: Any) -> None:
    q, k, v = drawn(*3 * [(1, 1, 16, 16)])
    with pytest.raises(sim.UsageError, match="'scale' must be a finite number, got"):
        outputs(q, k, v, scale=given)


def test_a_causal_launch_leaves_out_blocks_that_no_query_sees() -> None:
    sizes = {"b": 1, "n": 20, "s": 2048, "d": 128}
    whole, half = (
        run_op(FORWARD, sizes, "float16", "ascend910b3", values=False, options={"causal": c}).time_us
        for c in (0, 1)
    )
    assert 136 / 256 < half / whole < 0.72  # of 16 x 16 blocks; each block of queries begins anew


def test_programs_that_begin_with_keys_of_their_own_do_not_wait_for_each_other() -> None:
    sizes = {"b": 1, "n": 1, "s": 2560, "d": 128}
    apart, together = (
        run_op(FORWARD, sizes, "float16", "ascend910b3", values=False, tiling={"starts": x}).time_us
        for x in ("apart", "together")
    )
    assert apart < 0.8 * together


@pytest.mark.drawn(2)
@pytest.mark.parametrize("op", [FORWARD, GRADIENT])
@pytest.mark.parametrize(
    "code", [{}, *({"compiler": "triton-ascend", "compiler_version": v} for v in ("9.0", "8.5"))]
)
def test_the_own_choice_of_every_case_fits_with_every_compiler(op: str, code: dict[str, str]) -> None:
    declared = get_operator(op)
    with sim.device("ascend910b3", values=False, **code) as machine:
        for case in declared.cases.values():
            options, knobs = declared.read_options(case.options), declared.read_tiling({})
            context = PlanContext(machine.product, False)
            plan = plan_that_fits(declared, declared.shapes(case, "float16"), options, knobs, context)
            for step in plan.steps:
                place(call_of(step))  # raises BufferOverflowError


def test_what_no_choice_fits_is_said_as_what_was_tried() -> None:
    sizes = {"b": 1, "n": 1, "s": 64, "d": 128}
    small = {"buffers.l0c": 4096}
    with pytest.raises(sim.errors.BufferOverflowError, match="its knobs alone at other values; none fits"):
        run_op(GRADIENT, sizes, "float16", "ascend910b3", values=False, overrides=small)


@pytest.mark.parametrize("op", [FORWARD, GRADIENT])
def test_float32_with_use_fp16_is_the_run_of_float16_with_results_in_float32(op: str) -> None:
    small = {
        n: x if n == "lse" else np.float16(x) for n, x in get_operator(op).inputs("tiny", "float32").items()
    }
    how = {"product": "ascend910b2", "errors": False, "options": {"causal": 1}}
    whole = run_op(op, inputs=small, time=False, **how).outputs
    wide = {n: np.float32(x) for n, x in small.items()}
    found = run_op(op, inputs=wide, cube_math_type="USE_FP16", **how)
    casts = sum(x.kernel == "cast_flat" for x in found.launches)
    assert casts == len(set(small) & {"q", "k", "v", "dout"})
    for n, x in found.outputs.items():
        assert x.dtype == np.float32
        assert np.array_equal(x.astype(whole[n].dtype), whole[n])


@pytest.mark.drawn(1)
@pytest.mark.parametrize("op", [FORWARD, GRADIENT])
def test_a_study_names_what_the_cube_multiplies(op: str) -> None:
    found = precision_study(op, "tiny", modes="KEEP_DTYPE,USE_HF32,USE_FP16", time=False)
    of_type = {"float16": ["fp16"] * 3, "bfloat16": ["bf16"] * 3, "float32": ["fp32", "hf32", "fp16"]}
    for dtype, wanted in of_type.items():
        assert [row.compute_dtype for row in found.rows if row.dtype == dtype] == wanted


def test_mixtures_of_data_types_are_no_choice() -> None:
    with pytest.raises(sim.UsageError, match="it takes one type"):
        get_operator(FORWARD).mixture("float16+float32+float16")
    assert get_operator(GRADIENT).mixtures() == ()


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("n", "s", "causal"), [(1, 512, 1), (1, 512, 0), (2, 256, 0), (4, 300, 1)])
def test_the_chosen_blocks_of_a_short_gradient_are_near_the_best_square(n: int, s: int, causal: int) -> None:
    def time_us(**tiling: int) -> float:
        how = {"options": {"causal": causal}, "tiling": tiling, "values": False}
        return run_op(GRADIENT, {"b": 1, "n": n, "s": s, "d": 64}, "float16", "ascend910b3", **how).time_us

    with sim.device(explain=False):
        assert time_us() <= 1.1 * min(time_us(block_m=e, block_n=e) for e in (32, 64, 128))


@pytest.mark.parametrize(("s_kv", "whole"), [(77, 128), (200, 256), (1000, 1024)])
def test_keys_that_no_block_divides_cost_little_more_than_a_whole_number_of_blocks(
    s_kv: int, whole: int
) -> None:
    ragged, even = (
        run_op(
            FORWARD, {"b": 1, "n": 8, "s": 1024, "s_kv": n, "d": 64}, "float16", "ascend910b3", values=False
        )
        for n in (s_kv, whole)
    )
    assert ragged.time_us <= 1.15 * even.time_us


def test_a_causal_launch_of_short_heads_takes_hardly_longer_than_one_that_sees_all() -> None:
    half, whole = (
        run_op(FORWARD, "bert-base", "float16", "ascend910b3", values=False, options={"causal": c}).time_us
        for c in (1, 0)
    )
    assert half <= 1.05 * whole


@pytest.mark.drawn(3)
@pytest.mark.parametrize("op", [FORWARD, GRADIENT])
@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("starts", ["apart", "together"])
def test_long_loops_and_short_ones_are_near_float64(op: str, causal: int, starts: str) -> None:
    """Blocks of 16: up to 8 steps are masked all, more in a loop of their own."""
    declared = get_operator(op)
    for s_kv in (100, 200):
        inputs = declared.inputs({"b": 1, "n": 1, "s": 150, "s_kv": s_kv, "d": 16}, "float32")
        how = {"tiling": {"block_m": 32, "block_n": 16, "starts": starts}, "options": {"causal": causal}}
        found = run_op(op, inputs=inputs, product="ascend910b2", time=False, errors=False, **how).outputs
        for name, golden in declared.reference(inputs, causal=causal).items():
            np.testing.assert_allclose(found[name], golden, atol=4e-6 * np.abs(golden).max())


@pytest.mark.parametrize("causal", [0, 1])
def test_a_program_may_begin_with_keys_that_no_query_of_its_own_sees(causal: int) -> None:
    q, k, v = drawn((1, 2, 1, 4), (1, 1, 17, 4), (1, 1, 17, 4))
    how = {"block_m": 32, "block_n": 16, "cores": 2}
    inputs, options = {"q": q, "k": k, "v": v}, {"causal": causal}
    run = run_op(FORWARD, inputs=inputs, options=options, tiling=how, product="ascend910b2", time=False)
    wanted = get_operator(FORWARD).reference(inputs, **options)
    assert all(np.allclose(run.outputs[n], x, atol=1e-6) for n, x in wanted.items())
