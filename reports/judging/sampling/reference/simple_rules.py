"""Operations on elements, and those that only move them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..refusals import NotSampledError
from .boxes import Boxes, at
from .evaluation import BoxEvaluation, Rule, axes_of, axis_of, source_of
from .graph import ModelOperation, Source

UNKNOWN = (
    "rand_like",
    "randn_like",
    "randint_like",
    "bernoulli",
    "native_dropout",
    "empty_like",
    "new_empty",
)


def elementwise(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    """Each element from those at its place; operands of length 1 along an axis are spread over it."""
    given = {n: _operand(ev, x, boxes) for n, x in op.arguments.items()}
    name = op.func._schema.name.removeprefix("aten::")
    if op.func._schema.is_mutable:
        name = name.removesuffix("_")
    func = getattr(getattr(torch.ops.aten, name), op.func._overloadname)
    names = [a.name for a in func._schema.arguments if not a.kwarg_only]
    out: torch.Tensor = func(
        *(given[n] for n in names), **{n: x for n, x in given.items() if n not in names and x is not None}
    )
    return _spread(out, boxes)


def _operand(ev: BoxEvaluation, x: Any, boxes: Boxes) -> Any:
    if isinstance(x, list | tuple):
        return type(x)(_operand(ev, y, boxes) for y in x)
    source = source_of(x)
    return x if source is None else aligned(ev, source, boxes)


def aligned(ev: BoxEvaluation, source: Source, boxes: Boxes) -> torch.Tensor:
    """The elements of an operand that is spread, (n, ...) with as many axes as the result."""
    rank = len(source.shape)
    lead = len(boxes.sizes) - rank
    inner = boxes.columns(range(lead, len(boxes.sizes)))
    inner = inner.whole([k for k, n in enumerate(source.shape) if n == 1], source.shape)
    return ev.value(source, inner).reshape(boxes.number, *(1,) * lead, *inner.sizes)


def _spread(x: torch.Tensor, boxes: Boxes) -> torch.Tensor:
    return x.expand(boxes.number, *boxes.sizes)


def cast(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    """Floats stay in float64: the reference has no rounding."""
    x = aligned(ev, op.arguments["self"], boxes)
    dtype = op.dtypes[index]
    return x.to(torch.float64 if dtype.is_floating_point else dtype)


def same(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    return _spread(aligned(ev, op.arguments["self"], boxes), boxes)


def copied(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    return _spread(aligned(ev, op.arguments["src"], boxes), boxes)


def constant(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    """Tensors that hold one number."""
    given, dtype = op.arguments, op.dtypes[index]
    number = given.get("fill_value", given.get("value", 1 if "ones" in op.name else 0))
    if source_of(number) is not None:
        raise NotSampledError(f"the reference has no rule for {op.func} of a tensor")
    made = torch.float64 if dtype.is_floating_point else dtype
    return torch.full(
        (1,) * (1 + len(boxes.sizes)), number, dtype=made, device=ev.index(np.zeros(1)).device
    ).expand(boxes.number, *boxes.sizes)


def triangle(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    x = ev.value(op.arguments["self"], boxes)
    rows, columns = (_numbers(boxes, k) for k in (-2, -1))
    distance = columns - rows
    kept = distance >= op.arguments["diagonal"] if op.name == "triu" else distance <= op.arguments["diagonal"]
    return torch.where(ev.index(kept), x, torch.zeros((), dtype=x.dtype, device=x.device))


def _numbers(boxes: Boxes, axis: int) -> np.ndarray:
    """Index along an axis of each element, (n, 1, ..., size, ..., 1)."""
    rank = len(boxes.sizes)
    shape = [1] * rank
    shape[axis] = boxes.sizes[axis]
    steps = np.arange(boxes.sizes[axis]).reshape(1, *shape)
    return boxes.starts[:, axis].reshape(-1, *(1,) * rank) + steps


# -- moving ----------------------------------------------------------------------------------------------------------


def permute(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    x, rank = op.arguments["self"], len(boxes.sizes)
    if op.name == "permute":
        order = [axis_of(k, rank) for k in op.arguments["dims"]]
    else:
        order = list(range(rank))
        a, b = (0, rank - 1) if op.name == "t" else (axis_of(op.arguments[n], rank) for n in ("dim0", "dim1"))
        order[a], order[b] = order[b], order[a]
    back = [order.index(k) for k in range(rank)]
    return ev.value(x, boxes.columns(back)).permute(0, *(k + 1 for k in order))


def unsqueeze(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    axis = axis_of(op.arguments["dim"], len(boxes.sizes))
    inner = boxes.columns([k for k in range(len(boxes.sizes)) if k != axis])
    return ev.value(op.arguments["self"], inner).unsqueeze(axis + 1)


def squeeze(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    x = op.arguments["self"]
    asked = axes_of(op.arguments.get("dim"), len(x.shape))
    gone = [k for k in asked if x.shape[k] == 1]
    return ev.value(x, boxes.with_axes(gone)).reshape(boxes.number, *boxes.sizes)


def expand(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    return same(ev, op, index, boxes)


def view(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    """Axes at the end that stay as they are keep their boxes; in front of them elements are found by their number."""
    x, shape = op.arguments["self"], op.shapes[index]
    inner, lead, pairs = _common_end(x.shape, shape)
    if any(n != 1 for n in boxes.sizes[:lead]):
        return ev.by_points(boxes, lambda points: view(ev, op, index, points))
    number = np.zeros(boxes.number, np.int64)
    for k in range(lead):
        number = number * shape[k] + boxes.starts[:, k]
    starts = np.zeros((boxes.number, len(x.shape)), np.int64)
    starts[:, :inner] = at(number, x.shape[:inner]).starts
    sizes = [1] * len(x.shape)
    for mine, theirs in pairs:
        starts[:, mine], sizes[mine] = boxes.starts[:, theirs], boxes.sizes[theirs]
    return ev.value(x, Boxes(starts, tuple(sizes))).reshape(boxes.number, *boxes.sizes)


def _common_end(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, int, list[tuple[int, int]]]:
    """Axes in front of what both shapes end with, axes of length 1 left out, and which axes are the same there."""
    i, j, pairs = len(a), len(b), []
    while i and j:
        if a[i - 1] == b[j - 1]:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif a[i - 1] == 1:
            i -= 1
        elif b[j - 1] == 1:
            j -= 1
        else:
            break
    return i, j, pairs


def sliced(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    given, x = op.arguments, op.arguments["self"]
    axis, step = axis_of(given["dim"], len(boxes.sizes)), given["step"]
    if step != 1 and boxes.sizes[axis] != 1:
        return ev.by_points(boxes, lambda points: sliced(ev, op, index, points))
    n = x.shape[axis]
    start = min(max((given["start"] or 0) + (n if (given["start"] or 0) < 0 else 0), 0), n)
    return ev.value(x, boxes.replaced(axis, start + boxes.starts[:, axis] * step, boxes.sizes[axis]))


def select(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    x = op.arguments["self"]
    axis = axis_of(op.arguments["dim"], len(x.shape))
    inner = boxes.with_axes([axis]).replaced(axis, axis_of(op.arguments["index"], x.shape[axis]), 1)
    return ev.value(x, inner).squeeze(axis + 1)


def flip(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    x, axes = op.arguments["self"], axes_of(op.arguments["dims"], len(boxes.sizes))
    for axis in axes:
        boxes = boxes.replaced(
            axis, x.shape[axis] - boxes.starts[:, axis] - boxes.sizes[axis], boxes.sizes[axis]
        )
    return ev.value(x, boxes).flip([k + 1 for k in axes])


def cat(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    axis = axis_of(op.arguments["dim"], len(boxes.sizes))
    if boxes.sizes[axis] != 1:
        return ev.by_points(boxes, lambda points: cat(ev, op, index, points))
    out, begin = None, 0
    for x in op.arguments["tensors"]:
        n = x.shape[axis] if len(x.shape) == len(boxes.sizes) else 0
        chosen = np.flatnonzero((boxes.starts[:, axis] >= begin) & (boxes.starts[:, axis] < begin + n))
        if len(chosen):
            mine = boxes.rows(chosen)
            found = ev.value(x, mine.replaced(axis, mine.starts[:, axis] - begin, 1))
            out = found.new_empty((boxes.number, *boxes.sizes)) if out is None else out
            out[ev.index(chosen)] = found
        begin += n
    assert out is not None
    return out


def stack(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    axis = axis_of(op.arguments["dim"], len(boxes.sizes))
    if boxes.sizes[axis] != 1:
        return ev.by_points(boxes, lambda points: stack(ev, op, index, points))
    rest = [k for k in range(len(boxes.sizes)) if k != axis]
    out: torch.Tensor | None = None
    for number, x in enumerate(op.arguments["tensors"]):
        chosen = np.flatnonzero(boxes.starts[:, axis] == number)
        if len(chosen):
            found = ev.value(x, boxes.rows(chosen).columns(rest)).unsqueeze(axis + 1)
            out = found.new_empty((boxes.number, *boxes.sizes)) if out is None else out
            out[ev.index(chosen)] = found
    assert out is not None
    return out


def piece(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    """ModelResult `index` of a tensor that is cut along an axis."""
    x = op.arguments["self"]
    axis = axis_of(op.arguments["dim"], len(x.shape))
    if op.name == "unbind":
        return ev.value(x, boxes.with_axes([axis]).replaced(axis, index, 1)).squeeze(axis + 1)
    begin = sum(shape[axis] for shape in op.shapes[:index])
    return ev.value(x, boxes.replaced(axis, begin + boxes.starts[:, axis], boxes.sizes[axis]))


def embedding(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    """Rows of a table whose numbers are elements themselves."""
    if boxes.elements != 1:
        return ev.by_points(boxes, lambda points: embedding(ev, op, index, points))
    table, last = op.arguments["weight"], len(boxes.sizes) - 1
    numbers = ev.value(op.arguments["indices"], boxes.columns(range(last))).reshape(-1)
    rows = np.zeros(boxes.number, np.int64) if ev.counting else np.asarray(numbers.numpy())
    inner = Boxes(np.stack([rows, boxes.starts[:, last]], 1), (1, 1))
    return ev.value(table, inner).reshape(boxes.number, *boxes.sizes)


def not_known(ev: BoxEvaluation, op: ModelOperation, index: int, boxes: Boxes) -> torch.Tensor:
    raise NotSampledError(f"{op.func} gives elements that nobody knows beforehand")


SIMPLE: dict[str, Rule] = {
    **dict.fromkeys(("_to_copy", "to"), cast),
    **dict.fromkeys(
        ("clone", "detach", "alias", "lift_fresh", "contiguous", "expand", "_reshape_copy"), same
    ),
    **dict.fromkeys(("copy_", "copy"), copied),
    **dict.fromkeys(
        ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "fill_", "zero_"),
        constant,
    ),
    **dict.fromkeys(("triu", "tril"), triangle),
    **dict.fromkeys(("permute", "transpose", "t"), permute),
    **dict.fromkeys(("view", "_unsafe_view", "reshape"), view),
    **dict.fromkeys(UNKNOWN, not_known),
    "unsqueeze": unsqueeze,
    "squeeze": squeeze,
    "slice": sliced,
    "select": select,
    "flip": flip,
    "cat": cat,
    "stack": stack,
    "embedding": embedding,
    **dict.fromkeys(("split", "split_with_sizes", "unbind", "chunk"), piece),
}
