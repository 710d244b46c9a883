"""Every named case of the gradients on the Vector cores: float64 references against torch, and the errors of the kernels.

Sizes are cut where sums and rows only get shorter: what the reference computes, and what the kernel rounds, stays the same.
The whole sizes are in tests/bench/test_bench_references.py, convolutions in test_convolution_cases.py.

Bounds of the kernels, as norms of the error over norms of the reference of the same (rounded) inputs: 1e-5 in FP32, which is
what sums in FP32 leave; in float16 and bfloat16 one rounding of the output more, 2**-11 and 2**-8. dgamma of rms_norm_grad
is FP32 for every type.
"""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from ascendtile.kernels import get_operator, run_op

RMS, BN, BCE, GN = (
    "rms_norm_grad",
    "batch_norm_reduce_backward",
    "bce_with_logits_backward",
    "group_norm_backward",
)
CASES = [(op, case) for op in (RMS, BN, BCE, GN) for case in get_operator(op).cases]
UNITS = {"float32": 0.0, "float16": 2.0**-11, "bfloat16": 2.0**-8}


def cut_axes(space, most):
    """Leading axes shortened until `most` elements are left; the last axis stays if it can."""
    space = list(space)
    for k in range(len(space)):
        rest = prod(space[:k]) * prod(space[k + 1 :])
        space[k] = max(1, min(space[k], most // max(1, rest)))
    return tuple(space)


def cut_down(op, sizes):
    """Sizes of a case with fewer rows, samples or pixels; normalised axes, channels of a group and broadcasts stay."""
    many = {n: (v,) if isinstance(v, int) else tuple(v) for n, v in sizes.items()}
    if op == RMS:
        return {"rows": cut_axes(many["rows"], 6), "cols": many["cols"]}
    if op == BCE:
        limits = cut_axes(many["shape"], 1 << 15)
        return {n: tuple(map(min, v, limits[len(limits) - len(v) :])) for n, v in many.items()}
    small = {"n": min(sizes["n"], 2), "c": sizes["c"]}
    most = max(1, (1 << 16) // sizes["c"])
    if op == BN:
        small = {"n": min(sizes["n"], 5), "c": min(sizes["c"], 64)}
        most = 1 << 9
    return {**sizes, **small, **({"space": cut_axes(many["space"], most)} if "space" in many else {})}


def relative(x, golden):
    norm = np.linalg.norm(golden)
    return (
        np.linalg.norm(np.float64(x).reshape(golden.shape) - golden) / norm
        if norm
        else np.abs(x).max(initial=0)
    )


# -- torch -------------------------------------------------------------------------------------------------------------


def rms_norm_by_torch(torch, x, options):
    """Autograd of rms_norm, with the rstd that belongs to its eps."""
    t = {n: torch.tensor(np.float64(v)) for n, v in x.items()}
    shape = t["gamma"].shape
    data, gamma = t["x"].requires_grad_(), t["gamma"].requires_grad_()
    y = torch.nn.functional.rms_norm(data, shape, gamma, 1e-6)
    found = torch.autograd.grad(y, (data, gamma), t["dy"].reshape(y.shape))
    rows = np.float64(x["x"]).reshape(-1, prod(shape))
    rstd = (1 / np.sqrt((rows**2).mean(1) + 1e-6)).reshape(x["rstd"].shape)
    return {"rstd": rstd}, dict(zip(("dx", "dgamma"), found, strict=True))


def batch_norm_by_torch(torch, x, options):
    """The CPU kernel of the whole gradient: its gradients of weight and bias are the sums."""
    t = {n: torch.tensor(np.float64(v)) for n, v in x.items()}
    found = torch.ops.aten.native_batch_norm_backward(
        t["grad_out"],
        t["x"],
        torch.ones_like(t["mean"]),
        None,
        None,
        t["mean"],
        t["invstd"],
        True,
        1e-5,
        [True] * 3,
    )
    _, weight, bias = found
    return {}, {"sum_dy": bias, "sum_dy_xmu": weight / t["invstd"], "grad_weight": weight, "grad_bias": bias}


def bce_by_torch(torch, x, options):
    """Autograd of the loss."""
    t = {n: torch.tensor(np.float64(v)) for n, v in x.items()}
    logits = t["x"].requires_grad_()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(
        logits, t["target"], t.get("weight"), reduction=options["reduction"], pos_weight=t.get("pos_weight")
    )
    grad = t["grad_output"].reshape(()) if loss.dim() == 0 else t["grad_output"].expand(loss.shape)
    return {}, {"out": torch.autograd.grad(loss, logits, grad)[0]}


def group_norm_by_torch(torch, x, options):
    """The CPU kernel, which takes the same statistics."""
    t = {n: torch.tensor(np.float64(v)) for n, v in x.items()}
    n, c = x["x"].shape[:2]
    group = x["mean"].shape[1]
    sizes = n, c, x["x"].size // (n * c), group
    found = torch.ops.aten.native_group_norm_backward(
        t["grad_out"], t["x"], t["mean"], t["rstd"], t.get("gamma"), *sizes, [True] * 3
    )
    return {}, dict(zip(("grad_input", "grad_gamma", "grad_beta"), found, strict=True))


BY_TORCH = {RMS: rms_norm_by_torch, BN: batch_norm_by_torch, BCE: bce_by_torch, GN: group_norm_by_torch}


def check_reference(op, inputs, options):
    """The operator's own reference is torch's to 1e-12."""
    import torch

    changed, expected = BY_TORCH[op](torch, inputs, options)
    found = get_operator(op).reference({**inputs, **changed}, **options)
    assert set(found) == set(expected)
    for n, x in found.items():
        assert relative(x, expected[n].detach().numpy()) <= 1e-12, n


@pytest.mark.extra("torch")
@pytest.mark.parametrize(("op", "case"), CASES)
def test_the_reference_of_every_case_is_that_of_torch(op, case):
    found = get_operator(op).cases[case]
    inputs = get_operator(op).inputs(cut_down(op, found.sizes), "float32")
    check_reference(op, inputs, dict(found.options))


# -- kernels -----------------------------------------------------------------------------------------------------------


def check_kernel(op, case, dtype):
    found = get_operator(op).cases[case]
    inputs = get_operator(op).inputs(cut_down(op, found.sizes), dtype)
    options = dict(found.options)
    golden = get_operator(op).reference(inputs, **options)
    outputs = run_op(op, inputs=inputs, options=options, time=False, errors=False).outputs
    for n, x in outputs.items():
        unit = 0.0 if x.dtype == np.float32 else UNITS[dtype]
        assert relative(x, golden[n]) <= 1e-5 + unit, n


@pytest.mark.drawn(5)
@pytest.mark.parametrize(("op", "case"), CASES)
def test_fp32_of_every_case_is_within_1e_5(op, case):
    check_kernel(op, case, "float32")


@pytest.mark.drawn(5)
@pytest.mark.parametrize(
    ("op", "case", "dtype"), [(*x, ("float16", "bfloat16")[k % 2]) for k, x in enumerate(CASES)]
)
def test_16_bit_outputs_of_every_case_are_rounded_once(op, case, dtype):
    """The two types take turns."""
    check_kernel(op, case, dtype)
