"""Norms as torch has them: mean and deviation over axes, each once for all boxes that share them."""

from __future__ import annotations

from typing import Any

import torch

from .boxes import Boxes
from .evaluation import BoxEvaluation, Rule, source_of
from .graph import ModelOperation, Source


def _moments(ev: BoxEvaluation, x: Source, whole: Boxes) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and variance of each box, (n, 1, ..., 1)."""
    once, inverse = whole.unique(x.shape)
    shape = (2, -1, *(1,) * len(x.shape))

    def make(piece: Boxes) -> torch.Tensor:
        values = ev.value(x, piece).reshape(piece.number, -1)
        return torch.stack([values.mean(1), values.var(1, correction=0)], 1)

    found = ev.in_pieces(once, once.elements, make)
    found = found if inverse is None else found[ev.index(inverse)]
    mean, variance = found.T.reshape(shape)
    return mean, variance


def _scaled(x: torch.Tensor, mean: Any, variance: Any, eps: float, weight: Any, bias: Any) -> torch.Tensor:
    out: torch.Tensor = (x - mean) / torch.sqrt(variance + eps)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def _per_channel(ev: BoxEvaluation, x: Any, boxes: Boxes) -> torch.Tensor | None:
    """Elements (channels,) of the channels of each box, (n, 1, c, 1, ...)."""
    source = source_of(x)
    if source is None:
        return None
    found = ev.value(source, boxes.columns([1]))
    return found.reshape(boxes.number, 1, boxes.sizes[1], *(1,) * (len(boxes.sizes) - 2))


def batch_norm(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    """With the batch's own mean and deviation, or with those that were kept."""
    given, x = op.arguments, op.arguments.get("self", op.arguments["input"])
    if boxes.sizes[1] != 1:
        return ev.by_points(boxes, lambda points: batch_norm(ev, op, index, points))
    if given.get("training", given.get("train", "legit" in op.name)):
        others = [k for k in range(len(x.shape)) if k != 1]
        mean, variance = _moments(ev, x, boxes.whole(others, x.shape))
    else:
        kept: Any = [_per_channel(ev, given[n], boxes) for n in ("running_mean", "running_var")]
        mean, variance = kept
    weight, bias = (_per_channel(ev, given[n], boxes) for n in ("weight", "bias"))
    return _scaled(ev.value(x, boxes), mean, variance, given["eps"], weight, bias)


def group_norm(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    given, x = op.arguments, op.arguments["input"]
    if boxes.sizes[0] != 1 or boxes.sizes[1] != 1:
        return ev.by_points(boxes, lambda points: group_norm(ev, op, index, points))
    size = x.shape[1] // given["group"]
    whole = boxes.whole(range(2, len(x.shape)), x.shape)
    mean, variance = _moments(ev, x, whole.replaced(1, boxes.starts[:, 1] // size * size, size))
    weight, bias = (_per_channel(ev, given[n], boxes) for n in ("weight", "bias"))
    return _scaled(ev.value(x, boxes), mean, variance, given["eps"], weight, bias)


def layer_norm(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    """Layer norm, and RMS norm: that has no bias, divides by the mean of squares, and without `eps` takes its type's."""
    given, x = op.arguments, op.arguments["input"]
    inner = range(len(x.shape) - len(given["normalized_shape"]), len(x.shape))
    if any(n != 1 for n in boxes.sizes[: inner.start]):
        return ev.by_points(boxes, lambda points: layer_norm(ev, op, index, points))
    mean, variance = _moments(ev, x, boxes.whole(inner, x.shape))
    weight, bias = (_inner(ev, given.get(n), boxes.columns(inner), inner.start) for n in ("weight", "bias"))
    eps = torch.finfo(op.dtypes[0]).eps if given["eps"] is None else given["eps"]
    if "bias" not in given:
        mean, variance = torch.zeros_like(mean), variance + mean * mean
    return _scaled(ev.value(x, boxes), mean, variance, eps, weight, bias)


def _inner(ev: BoxEvaluation, x: Any, inner: Boxes, lead: int) -> torch.Tensor | None:
    source = source_of(x)
    return (
        None if source is None else ev.value(source, inner).reshape(inner.number, *(1,) * lead, *inner.sizes)
    )


NORMS: dict[str, Rule] = {
    **dict.fromkeys(
        ("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training"), batch_norm
    ),
    "native_group_norm": group_norm,
    **dict.fromkeys(("native_layer_norm", "_fused_rms_norm"), layer_norm),
}
