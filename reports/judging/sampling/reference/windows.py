"""Convolutions and pools: each element from the places of a window, tap by tap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from .boxes import Boxes
from .evaluation import OF_PLACE, BoxEvaluation, Rule, source_of
from .graph import ModelOperation, Source


def _taps(size: Sequence[int]) -> np.ndarray:
    """(taps, axes): the index of each place of a window."""
    return np.indices(tuple(size)).reshape(len(size), -1).T


def _each(x: Any, rank: int) -> np.ndarray:
    """One number for each axis."""
    numbers = list(x) if isinstance(x, list | tuple) else [x]
    return np.array(numbers * rank if len(numbers) == 1 else numbers, np.int64)


def _gathered(
    ev: BoxEvaluation, x: Source, lead: np.ndarray, channels: int, places: np.ndarray
) -> tuple[torch.Tensor, torch.Tensor]:
    """Elements (n, taps, channels) of `x`, (batch, channels, ...), and which lie inside, (n, taps, 1); else 0.

    lead: (n, 2), batch and first channel. places: (n, taps, axes), on the other axes.
    """
    ev.worked(OF_PLACE * places.shape[0] * places.shape[1])
    limits = np.array(x.shape[2:], np.int64)
    inside = _inside(places, limits)
    clipped = np.clip(places, 0, np.maximum(limits - 1, 0))
    starts = np.concatenate([np.broadcast_to(lead[:, None], (*places.shape[:2], 2)), clipped], 2)
    boxes = Boxes(starts.reshape(-1, len(x.shape)), (1, channels, *(1,) * len(limits)))
    found = ev.value(x, boxes).reshape(*places.shape[:2], channels)
    mask = ev.index(inside)[:, :, None]
    return torch.where(mask, found, torch.zeros((), dtype=found.dtype, device=found.device)), mask


def _inside(places: np.ndarray, limits: np.ndarray) -> np.ndarray:
    return np.asarray(((places >= 0) & (places < limits)).all(2))


def convolution(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    def make(points: Boxes) -> torch.Tensor:
        weight = op.arguments["weight"]
        work = math.prod(weight.shape[2:]) * weight.shape[0 if op.arguments["transposed"] else 1]
        return ev.in_pieces(points, 2 * work, lambda piece: _convolved(ev, op, piece))

    return ev.by_points(boxes, make)


def _convolved(ev: BoxEvaluation, op: ModelOperation, points: Boxes) -> torch.Tensor:
    given, weight = op.arguments, op.arguments["weight"]
    x, window = given["input"], weight.shape[2:]
    taps, axes = _taps(window), len(window)
    stride, padding, dilation = (_each(given[n], axes) for n in ("stride", "padding", "dilation"))
    out, channel = points.starts[:, None, 2:], points.starts[:, 1]
    if given["transposed"]:
        places, odd = np.divmod(out + padding - taps * dilation, stride)
        places = np.where((odd == 0).all(2, keepdims=True), places, -1)
    else:
        places = out * stride - padding + taps * dilation
    channels = x.shape[1] // given["groups"]
    group = channel // (
        (weight.shape[1] * given["groups"] if given["transposed"] else weight.shape[0]) // given["groups"]
    )
    lead = np.stack([points.starts[:, 0], group * channels], 1)
    values, _ = _gathered(ev, x, lead, channels, places)
    weights = _weights(ev, weight, channel, group * channels, channels, given["transposed"])
    total = torch.einsum("ntc,nct->n", values, weights)
    bias = source_of(given["bias"])
    total = total if bias is None else total + ev.value(bias, Boxes(channel[:, None], (1,))).reshape(-1)
    return total.reshape(points.number, *points.sizes)


def _weights(
    ev: BoxEvaluation, weight: Source, channel: np.ndarray, first: np.ndarray, channels: int, transposed: bool
) -> torch.Tensor:
    """(n, channels of the input, taps)"""
    window = tuple(weight.shape[2:])
    zeros = np.zeros((len(channel), len(window)), np.int64)
    if transposed:
        head, sizes = np.stack([first, channel % weight.shape[1]], 1), (channels, 1, *window)
    else:
        head, sizes = np.stack([channel, 0 * channel], 1), (1, channels, *window)
    found = ev.value(weight, Boxes(np.concatenate([head, zeros], 1), sizes))
    return found.reshape(len(channel), channels, -1)


def pool(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    """Largest or mean of a window; the second result of `max_pool2d_with_indices` is where it was found."""

    def make(points: Boxes) -> torch.Tensor:
        window = math.prod(_each(op.arguments["kernel_size"], len(points.sizes) - 2).tolist())
        return ev.in_pieces(points, window, lambda piece: _pooled(ev, op, index, piece))

    return ev.by_points(boxes, make)


def _pooled(ev: BoxEvaluation, op: ModelOperation, index: int, points: Boxes) -> torch.Tensor:
    given, x = op.arguments, op.arguments["self"]
    axes = len(x.shape) - 2
    size = _each(given["kernel_size"], axes)
    stride = _each(given["stride"] or size.tolist(), axes)
    padding, dilation = _each(given["padding"], axes), _each(given.get("dilation", 1), axes)
    places = points.starts[:, None, 2:] * stride - padding + _taps(size.tolist()) * dilation
    values, inside = _gathered(ev, x, points.starts[:, :2], 1, places)
    if op.name.startswith("max"):
        lowest = torch.full((), -math.inf, dtype=values.dtype, device=values.device)
        found, which = torch.where(inside, values, lowest)[:, :, 0].max(1)
        if index:
            flat = np.ravel_multi_index(
                tuple(np.clip(places, 0, None).transpose(2, 0, 1)), x.shape[2:], mode="clip"
            )
            found = ev.index(flat).gather(1, which[:, None])[:, 0]
    else:
        found = values[:, :, 0].sum(1) / ev.index(_divisor(given, x, points, places, stride, padding, size))
    return found.reshape(points.number, *points.sizes)


def _divisor(
    given: dict[str, Any],
    x: Source,
    points: Boxes,
    places: np.ndarray,
    stride: np.ndarray,
    padding: np.ndarray,
    size: np.ndarray,
) -> np.ndarray:
    """By how much the sum of each window is divided."""
    limits = np.array(x.shape[2:], np.int64)
    if given.get("divisor_override"):
        return np.full(points.number, given["divisor_override"], np.float64)
    if not given["count_include_pad"]:
        return np.asarray(_inside(places, limits).sum(1), np.float64)
    first = points.starts[:, 2:] * stride - padding
    ends = np.minimum(first + size, limits + padding)  # a window may reach beyond the padding (ceil_mode)
    return np.asarray((ends - first).prod(1), np.float64)


WINDOWS: dict[str, Rule] = {
    "convolution": convolution,
    **dict.fromkeys(("max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d", "avg_pool3d"), pool),
}
