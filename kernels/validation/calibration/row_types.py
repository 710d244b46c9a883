"""Operators that work along an axis: sums, norms, softmax, maxima; and rows that are moved: slices, transpositions, picks.

A profile tells no axis. That of a sum is seen in the shape of its result; softmax and norms are taken along the last one.
"""

from __future__ import annotations

from math import prod

from .mapping import FLOATS, OpCall, Unmapped, first_of, maps, named, rows_and_columns, several, sizes, typed
from .profile import ProfiledTask

NORMS = ("LpNorm", "LpNormV2", "LpNormReduce", "LpNormReduceV2")
SUMS = {
    "ReduceSum": "reduce_sum", "ReduceSumD": "reduce_sum", "ReduceMean": "reduce_mean", "ReduceMeanD": "reduce_mean",
    "ReduceMax": "reduce_max", "ReduceMaxD": "reduce_max", "ReduceMin": "reduce_min", "ReduceMinD": "reduce_min",
}  # fmt: skip
OF_EVERYTHING = ("reduce_sum", "reduce_mean")
ALONG_ROWS = {
    "SoftmaxV2": "softmax", "LogSoftmaxV2": "log_softmax", "SoftmaxGrad": "softmax_grad",
    "LogSoftmaxGrad": "log_softmax_grad", "LayerNorm": "layernorm", "LayerNormV3": "layernorm",
    "LayerNormV4": "layernorm", "LayerNormGrad": "layernorm_grad", "LayerNormGradV3": "layernorm_grad",
    "RmsNorm": "rmsnorm", "RmsNormGrad": "rmsnorm_grad",
}  # fmt: skip


BATCH_NORMS = {
    "BNTrainingReduce": "batchnorm_reduce", "BNTrainingUpdate": "batchnorm_update",
    "BNTrainingUpdateGrad": "batchnorm_update_grad", "BNTrainingReduceGrad": "batchnorm_reduce_grad",
}  # fmt: skip


@maps(*NORMS)
def _norm(task: ProfiledTask) -> OpCall:
    x, y = first_of(task)
    if not task.outputs or y.size != 1:
        raise Unmapped("a norm along an axis")
    return OpCall("reduce_lpnorm", str(x.size), typed(x, FLOATS))


@maps(*SUMS)
def _sum(task: ProfiledTask) -> OpCall:
    """Over everything, or over neighbouring axes."""
    x, y = first_of(task)
    if not task.outputs or not x.shape or y.shape is None:
        raise Unmapped("no shape of the result")
    op, dtypes = named(SUMS, task), f"{typed(x, FLOATS)}->{typed(y, FLOATS)}"
    if y.size == 1 and op in OF_EVERYTHING:
        return OpCall(op, str(x.size), dtypes)
    a, b, c = _reduced(x.shape, y.shape)
    if c == 1:
        return OpCall(f"{op} rows", sizes((a, b)), dtypes)
    return OpCall(
        f"{op} columns" if a == 1 else f"{op} middle", sizes((b, c) if a == 1 else (a, b, c)), dtypes
    )


def _reduced(whole: tuple[int, ...], left: tuple[int, ...]) -> tuple[int, int, int]:
    """Sizes before, of and behind the axes that went, the last ones that it can be; axes of 1 count for nothing."""
    whole, left = (tuple(n for n in shape if n > 1) for shape in (whole, left))
    gone = len(whole) - len(left)
    for i in range(len(left), -1, -1):
        if gone > 0 and whole[:i] + whole[i + gone :] == left:
            return prod(whole[:i]), prod(whole[i : i + gone]), prod(whole[i + gone :])
    raise Unmapped("a sum over axes that are not neighbours")


@maps(*ALONG_ROWS)
def _along_rows(task: ProfiledTask) -> OpCall:
    x = several(task.inputs, 1, "inputs")[0]
    return OpCall(named(ALONG_ROWS, task), sizes(rows_and_columns(x.shape)), typed(x, FLOATS))


@maps(*BATCH_NORMS)
def _batch_norm(task: ProfiledTask) -> OpCall:
    """Of images x channels x height x width, or in blocks of channels: as many numbers, which counts here."""
    x = several(task.inputs, 1, "inputs")[0]
    if not x.shape or len(x.shape) not in (4, 5):
        raise Unmapped("not images in NCHW or NC1HWC0")
    n, c, *places, block = x.shape if len(x.shape) == 5 else (*x.shape, 1)
    return OpCall(named(BATCH_NORMS, task), sizes((n, c * block, prod(places))), typed(x, FLOATS))


@maps("ArgMaxV2", "ArgMaxD", "ArgMaxWithValue")
def _argmax(task: ProfiledTask) -> OpCall:
    x, y = first_of(task)
    rows, columns = rows_and_columns(x.shape)
    if not task.outputs or y.size != rows:
        raise Unmapped("a maximum along another axis than the last one")
    return OpCall("argmax row", sizes((rows, columns)), typed(x, FLOATS))


@maps("SwiGlu")
def _swiglu(task: ProfiledTask) -> OpCall:
    x, y = first_of(task)
    rows, columns = rows_and_columns(x.shape)
    if not task.outputs or not y.shape or y.size * 2 != x.size or y.shape[-1] * 2 != columns:
        raise Unmapped("halves of another axis than the last one")
    return OpCall("swiglu", sizes((rows, columns)), typed(x, FLOATS))


@maps("SwiGluGrad")
def _swiglu_grad(task: ProfiledTask) -> OpCall:
    """Of two inputs the larger one is that of SwiGLU."""
    x = max(several(task.inputs, 2, "inputs")[:2], key=lambda t: t.size)
    return OpCall("swiglu_grad", sizes(rows_and_columns(x.shape)), typed(x, FLOATS))


@maps("Slice", "StridedSlice", "StridedSliceD")
def _slice(task: ProfiledTask) -> OpCall:
    """Columns of rows; which ones makes no difference here."""
    x, y = first_of(task)
    if not x.shape or not y.shape or x.shape[:-1] != y.shape[:-1] or x.shape == y.shape:
        raise Unmapped("a slice of another axis than the last one")
    return OpCall("slice", sizes((prod(x.shape[:-1]), y.shape[-1], x.shape[-1])), typed(x))


@maps("Concat", "ConcatD", "ConcatV2", "ConcatV2D")
def _concat(task: ProfiledTask) -> OpCall:
    parts = [x.shape for x in several(task.inputs, 2, "inputs") if x.shape]
    heads, widths = {shape[:-1] for shape in parts}, [shape[-1] for shape in parts]
    result = (task.outputs[0].shape if task.outputs else None) or (0,)
    if len(parts) not in (2, 3) or len(heads) != 1 or result[-1] != sum(widths):
        raise Unmapped("more than three tensors, or another axis than the last one")
    return OpCall("concat", sizes((prod(heads.pop()), *widths)), typed(task.inputs[0]))


@maps("Transpose", "TransposeD")
def _transpose(task: ProfiledTask) -> OpCall:
    """Of the last two axes, or of two neighbours before the last one."""
    x, y = first_of(task)
    if not x.shape or not y.shape or len(x.shape) < 2:
        raise Unmapped("no shapes of two axes or more")
    *before, a, b = x.shape
    if y.shape == (*before, b, a):
        return OpCall("transpose", sizes((prod(before), a, b)), typed(x))
    if len(before) and y.shape == (*before[:-1], a, before[-1], b):
        return OpCall("transpose", sizes((prod(before[:-1]), before[-1], a, b)), typed(x))
    raise Unmapped("other axes than two neighbours at the end change places")


@maps("GatherV2", "GatherV2D", "Embedding")
def _gather(task: ProfiledTask) -> OpCall:
    """Rows of a table."""
    x, picked = several(task.inputs, 2, "inputs")[:2]
    rows, columns = rows_and_columns(x.shape)
    if not task.outputs or len(x.shape or ()) != 2 or task.outputs[0].size != picked.size * columns:
        raise Unmapped("not rows of one table")
    return OpCall("gather", sizes((picked.size, columns, rows)), typed(x))
