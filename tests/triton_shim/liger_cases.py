"""What Liger's functions are compared with: the same mathematics by torch in float64, and the tensors to try it on.

A case is a function of Liger's module `ops` and a random generator that gives: tensors by name (those of floats are rounded
to the type under test and get gradients), a call of Liger's function with them, and the reference with them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="torch is an optional extra")
F = torch.nn.functional


@dataclass(frozen=True)
class Case:
    """tensors: inputs in float64. liger, reference: called with the tensors by name, give one tensor or several."""

    tensors: dict[str, Any]
    liger: Callable[..., Any]
    reference: Callable[..., Any]


CASES: dict[str, Callable[[Any, Any], Case]] = {}


def case(make: Callable[[Any, Any], Case]) -> Callable[[Any, Any], Case]:
    CASES[make.__name__] = make
    return make


def randn(g: Any, *shape: int) -> Any:
    return torch.randn(shape, generator=g, dtype=torch.float64)


def norm(x: Any, eps: float) -> Any:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


@case
def rms_norm(ops: Any, g: Any) -> Case:
    return Case(
        {"x": randn(g, 37, 200), "w": randn(g, 200)},
        lambda x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", False),
        lambda x, w: norm(x, 1e-6) * w,
    )


@case
def rms_norm_gemma(ops: Any, g: Any) -> Case:
    return Case(
        {"x": randn(g, 5, 7, 128), "w": randn(g, 128)},
        lambda x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6, 1.0, "gemma", False),
        lambda x, w: norm(x, 1e-6) * (1 + w),
    )


@case
def fused_add_rms_norm(ops: Any, g: Any) -> Case:
    return Case(
        {"x": randn(g, 11, 96), "r": randn(g, 11, 96), "w": randn(g, 96)},
        lambda x, r, w: ops.LigerFusedAddRMSNormFunction.apply(x, r, w, 1e-6, 0.0, "llama", False),
        lambda x, r, w: (norm(x + r, 1e-6) * w, x + r),
    )


@case
def layer_norm(ops: Any, g: Any) -> Case:
    return Case(
        {"x": randn(g, 37, 200), "w": randn(g, 200), "b": randn(g, 200)},
        lambda x, w, b: ops.LigerLayerNormFunction.apply(x, w, b, 1e-6),
        lambda x, w, b: F.layer_norm(x, (200,), w, b, 1e-6),
    )


@case
def group_norm(ops: Any, g: Any) -> Case:
    return Case(
        {"x": randn(g, 3, 12, 40), "w": randn(g, 12), "b": randn(g, 12)},
        lambda x, w, b: ops.LigerGroupNormFunction.apply(x, w, b, 12, 4, 1e-6),
        lambda x, w, b: F.group_norm(x, 4, w, b, 1e-6),
    )


@case
def poly_norm(ops: Any, g: Any) -> Case:
    return Case(
        {"x": randn(g, 9, 64), "w": randn(g, 3), "b": randn(g)},
        lambda x, w, b: ops.LigerPolyNormFunction.apply(x, w, b, 1e-6, False),
        lambda x, w, b: w[0] * norm(x**3, 1e-6) + w[1] * norm(x**2, 1e-6) + w[2] * norm(x, 1e-6) + b,
    )


@case
def softmax(ops: Any, g: Any) -> Case:
    return Case(
        {"x": randn(g, 19, 130)},
        lambda x: ops.LigerSoftmaxFunction.apply(x),
        lambda x: torch.softmax(x, -1),
    )


@case
def sparsemax(ops: Any, g: Any) -> Case:
    def reference(x: Any) -> Any:
        z, _ = x.sort(-1, descending=True)
        k = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
        support = (1 + k * z > z.cumsum(-1)).sum(-1, keepdim=True)
        tau = (z.cumsum(-1).gather(-1, support - 1) - 1) / support
        return torch.relu(x - tau)

    return Case({"x": randn(g, 6, 50)}, lambda x: ops.LigerSparsemaxFunction.apply(x, -1), reference)


@case
def silu_mul(ops: Any, g: Any) -> Case:
    return Case(
        {"a": randn(g, 13, 150), "b": randn(g, 13, 150)},
        lambda a, b: ops.LigerSiLUMulFunction.apply(a, b),
        lambda a, b: F.silu(a) * b,
    )


@case
def gelu_mul(ops: Any, g: Any) -> Case:
    return Case(
        {"a": randn(g, 13, 150), "b": randn(g, 13, 150)},
        lambda a, b: ops.LigerGELUMulFunction.apply(a, b),
        lambda a, b: F.gelu(a, approximate="tanh") * b,
    )


@case
def relu_squared(ops: Any, g: Any) -> Case:
    return Case(
        {"x": randn(g, 13, 150)},
        lambda x: ops.LigerReLUSquaredFunction.apply(x),
        lambda x: torch.relu(x).square(),
    )


@case
def dyt(ops: Any, g: Any) -> Case:
    return Case(
        {"x": randn(g, 10, 96), "alpha": randn(g, 1), "gamma": randn(g, 96), "beta": randn(g, 96)},
        lambda x, alpha, gamma, beta: ops.LigerDyTFunction.apply(x, alpha, gamma, beta),
        lambda x, alpha, gamma, beta: gamma * torch.tanh(alpha * x) + beta,
    )


@case
def rope(ops: Any, g: Any) -> Case:
    angles = torch.outer(torch.arange(9, dtype=torch.float64), 10000.0 ** (-torch.arange(16) / 16.0))
    table = torch.cat((angles, angles), -1)[None]

    def turned(x: Any, cos: Any, sin: Any) -> Any:
        half = torch.cat((-x[..., 16:], x[..., :16]), -1)
        return x * cos[:, None] + half * sin[:, None]

    return Case(
        {"q": randn(g, 2, 4, 9, 32), "k": randn(g, 2, 2, 9, 32)},
        lambda q, k: ops.LigerRopeFunction.apply(q, k, table.cos().to(q.dtype), table.sin().to(q.dtype)),
        lambda q, k: tuple(turned(x, table.cos(), table.sin()) for x in (q, k)),
    )


@case
def cross_entropy(ops: Any, g: Any) -> Case:
    target = torch.randint(0, 300, (23,), generator=g)
    target[::5] = -100
    return Case(
        {"x": randn(g, 23, 300)},
        lambda x: ops.LigerCrossEntropyFunction.apply(x, target, None, -100, 0.0, 0.1)[0],
        lambda x: F.cross_entropy(x, target, ignore_index=-100, label_smoothing=0.1),
    )


@case
def fused_linear_cross_entropy(ops: Any, g: Any) -> Case:
    target = torch.randint(0, 90, (23,), generator=g)
    return Case(
        {"x": randn(g, 23, 48), "w": randn(g, 90, 48) / 7},
        lambda x, w: ops.LigerFusedLinearCrossEntropyFunction.apply(x, w, target)[0],
        lambda x, w: F.cross_entropy(x @ w.T, target),
    )


@case
def kl_div(ops: Any, g: Any) -> Case:
    truth = torch.softmax(randn(g, 12, 70), -1)
    return Case(
        {"x": torch.log_softmax(randn(g, 12, 70), -1)},
        lambda x: ops.LigerKLDivLossFunction.apply(x, truth.to(x.dtype), "batchmean"),
        lambda x: F.kl_div(x, truth, reduction="batchmean"),
    )


@case
def jsd(ops: Any, g: Any) -> Case:
    truth = torch.log_softmax(randn(g, 12, 70), -1)

    def reference(x: Any) -> Any:
        middle = torch.log((x.exp() + truth.exp()) / 2)
        one, other = (F.kl_div(middle, y, reduction="batchmean", log_target=True) for y in (x, truth))
        return (one + other) / 2

    return Case(
        {"x": torch.log_softmax(randn(g, 12, 70), -1)},
        lambda x: ops.LigerJSDFunction.apply(x, truth.to(x.dtype)),
        reference,
    )


@case
def tvd(ops: Any, g: Any) -> Case:
    truth = torch.softmax(randn(g, 12, 70), -1)
    return Case(
        {"x": torch.softmax(randn(g, 12, 70), -1)},
        lambda x: ops.LigerTVDLossFunction.apply(x, truth.to(x.dtype)),
        lambda x: (x - truth).abs().sum() / 2 / 12,
    )


@case
def embedding(ops: Any, g: Any) -> Case:
    index = torch.randint(0, 30, (4, 6), generator=g)
    return Case(
        {"table": randn(g, 30, 40)},
        lambda table: ops.LigerEmbeddingFunction.apply(table, index),
        lambda table: F.embedding(index, table),
    )
