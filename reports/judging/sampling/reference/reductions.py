"""Reductions, scans, softmax: each element from all of some axes of the operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from .boxes import Boxes
from .evaluation import BoxEvaluation, Rule, axes_of, axis_of
from .graph import ModelOperation

# (values, axes, keepdim, arguments of the operation) -> reduced
Reduction = Callable[[torch.Tensor, list[int], bool, dict[str, Any]], torch.Tensor]


def _deviation(root: bool) -> Reduction:
    def reduced(x: torch.Tensor, axes: list[int], keep: bool, given: dict[str, Any]) -> torch.Tensor:
        one = given.get("correction", given.get("unbiased", True))
        out = torch.var(x, axes, correction=1 if one is None else one, keepdim=keep)
        return out.sqrt() if root else out

    return reduced


def _norm(x: torch.Tensor, axes: list[int], keep: bool, given: dict[str, Any]) -> torch.Tensor:
    order = given.get("ord", given.get("p"))
    found: torch.Tensor = torch.linalg.vector_norm(x, 2 if order is None else order, axes, keep)
    return found


def _last(function: Any) -> Reduction:
    """A reduction of torch over one axis: several are brought together first."""

    def reduced(x: torch.Tensor, axes: list[int], keep: bool, given: dict[str, Any]) -> torch.Tensor:
        rest = [k for k in range(x.ndim) if k not in axes]
        flat = x.permute(*rest, *axes).reshape(*(x.shape[k] for k in rest), -1)
        out: torch.Tensor = function(flat, -1)
        return out.reshape([1 if k in axes else n for k, n in enumerate(x.shape)]) if keep else out

    return reduced


REDUCTIONS: dict[str, Reduction] = {
    "sum": lambda x, axes, keep, _: x.sum(axes, keep),
    "mean": lambda x, axes, keep, _: x.mean(axes, keep),
    "amax": lambda x, axes, keep, _: x.amax(axes, keep),
    "amin": lambda x, axes, keep, _: x.amin(axes, keep),
    "logsumexp": lambda x, axes, keep, _: torch.logsumexp(x, axes, keep),
    "prod": _last(torch.prod),
    "argmax": _last(torch.argmax),
    "argmin": _last(torch.argmin),
    "any": _last(torch.any),
    "all": _last(torch.all),
    "var": _deviation(False),
    "std": _deviation(True),
    "linalg_vector_norm": _norm,
    "norm": _norm,
}


def reduction(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    name = op.name
    if name in ("max", "min"):
        name = ("arg" if index else "a") + name
    return _reduced(ev, op, boxes, REDUCTIONS[name])


def _reduced(ev: BoxEvaluation, op: ModelOperation, boxes: Boxes, reduce: Reduction) -> torch.Tensor:
    x, given = op.arguments["self"], op.arguments
    axes = axes_of(given.get("dim"), len(x.shape))
    keep = bool(given.get("keepdim")) and len(boxes.sizes) == len(x.shape)
    inner = boxes if keep else boxes.with_axes(axes)
    inner = inner.whole(axes, x.shape)
    behind = [k + 1 for k in axes]

    def make(piece: Boxes) -> torch.Tensor:
        return reduce(ev.value(x, piece), behind, keep, given)

    return ev.in_pieces(inner, inner.elements, make).reshape(boxes.number, *boxes.sizes)


def softmax(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    x, axis = op.arguments["self"], axis_of(op.arguments["dim"], len(boxes.sizes))
    function = SOFTMAX[op.name]
    inner = boxes.replaced(axis, 0, x.shape[axis])
    return _along(ev, op, axis, inner, boxes, lambda v: function(v, axis + 1))


def scan(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    """Of the axis only what lies before the last box's end."""
    axis = axis_of(op.arguments["dim"], len(boxes.sizes))
    function = getattr(torch, op.name)
    end = int(boxes.starts[:, axis].max(initial=0)) + boxes.sizes[axis]
    inner = boxes.replaced(axis, 0, end)
    return _along(ev, op, axis, inner, boxes, lambda v: function(v, axis + 1))


def _along(
    ev: BoxEvaluation,
    op: ModelOperation,
    axis: int,
    inner: Boxes,
    boxes: Boxes,
    make: Callable[[torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Parts of what a function makes of whole axes: of each row once, however many parts of it are asked for."""
    x = op.arguments["self"]
    rows, inverse = inner.unique(x.shape)
    which = np.arange(boxes.number) if inverse is None else inverse
    out: torch.Tensor | None = None
    size = max(1, (1 << 22) // max(1, rows.elements))
    for k in range(0, rows.number, size):
        mine = np.flatnonzero((which >= k) & (which < k + size))
        made = make(ev.value(x, rows.rows(slice(k, k + size))))
        found = _picked(ev, made, which[mine] - k, axis, boxes.rows(mine))
        out = found.new_empty((boxes.number, *boxes.sizes)) if out is None else out
        out[ev.index(mine)] = found
    assert out is not None
    return out


def _picked(ev: BoxEvaluation, made: torch.Tensor, row: np.ndarray, axis: int, boxes: Boxes) -> torch.Tensor:
    """Parts of rows: of points without a copy of the row for each."""
    if boxes.elements == 1:
        where = [ev.index(np.zeros(len(row), np.int64)) for _ in boxes.sizes]
        where[axis] = ev.index(boxes.starts[:, axis])
        found: torch.Tensor = made[(ev.index(row), *where)]
        return found.reshape(boxes.number, *boxes.sizes)
    return ev.part(made[ev.index(row)], axis, boxes.starts[:, axis], boxes.sizes[axis])


def _safe_softmax(x: torch.Tensor, axis: int) -> torch.Tensor:
    """0 where all of a row is masked out."""
    return torch.softmax(x, axis).masked_fill((x == -torch.inf).all(axis, keepdim=True), 0)


SOFTMAX: dict[str, Callable[..., torch.Tensor]] = {
    "_softmax": torch.softmax,
    "_log_softmax": torch.log_softmax,
    "_safe_softmax": _safe_softmax,
}
REDUCING: dict[str, Rule] = {
    **dict.fromkeys((*REDUCTIONS, "max", "min"), reduction),
    **dict.fromkeys(SOFTMAX, softmax),
    **dict.fromkeys(("cumsum", "cumprod"), scan),
}
