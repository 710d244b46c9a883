"""Operators of the Vector unit: element-wise ones, fills, optimisers, sums, rows."""

from __future__ import annotations

from math import prod

from ..settings import BYTES
from .mapping import FLOATS, OpCall, Unmapped, first_of, maps, rows_and_columns, several, sizes, typed
from .profile import ProfiledTask

# ---- element-wise ----

MOVES = {
    "Cast": "cast", "Relu": "relu", "Muls": "muls", "Log": "log", "TensorMove": "memcpy", "Identity": "memcpy",
    "ViewCopy": "memcpy", "MemCpy": "memcpy",
}  # fmt: skip
PAIRS = {"Add": "add", "Sub": "sub", "Mul": "mul", "RealDiv": "div", "Div": "div", "ReluGrad": "relu_grad"}
FILLS = ("ZerosLike", "OnesLike", "Fill", "Fills", "MemSet", "BroadcastTo")


@maps(*MOVES)
def _move(task: ProfiledTask) -> OpCall:
    x, y = first_of(task)
    op = next(op for name, op in MOVES.items() if name.lower() == task.type.lower())
    if x.size != y.size:
        raise Unmapped("input and output differ in size")
    allowed = FLOATS if op in ("relu", "muls", "log") else tuple(BYTES)
    return OpCall(op, str(x.size), f"{typed(x, allowed)}->{typed(y, allowed)}")


@maps(*PAIRS)
def _pair(task: ProfiledTask) -> OpCall:
    """Two tensors of one size, or one and a number: then as a product with a number."""
    x, y = several(task.inputs, 2, "inputs")[:2]
    op = next(op for name, op in PAIRS.items() if name.lower() == task.type.lower())
    if x.size == y.size:
        return OpCall(op, str(x.size), f"{typed(x)},{typed(y)}->{typed(x)}")
    large = x if y.size == 1 else y if x.size == 1 else None
    if large is None:
        raise Unmapped("a broadcast along an axis")
    return OpCall("muls", str(large.size), f"{typed(large, FLOATS)}->{large.dtype}")


@maps(*FILLS)
def _fill(task: ProfiledTask) -> OpCall:
    y = several(task.outputs or task.inputs, 1, "outputs")[0]
    return OpCall("memset", str(y.size), f"{typed(y)}->{y.dtype}")


# ---- optimisers, sums, rows ----


@maps("ApplyAdamW", "ApplyAdamWV2")
def _adamw(task: ProfiledTask) -> OpCall:
    x = several(task.inputs, 1, "inputs")[0]
    return OpCall("adamw", str(x.size), typed(x, ("fp32",)))


@maps("ApplyMomentum")
def _momentum(task: ProfiledTask) -> OpCall:
    x = several(task.inputs, 1, "inputs")[0]
    return OpCall("momentum", str(x.size), typed(x, ("fp32",)))


@maps(
    "ReduceSum",
    "ReduceSumD",
    "ReduceMean",
    "ReduceMeanD",
    "LpNorm",
    "LpNormV2",
    "LpNormReduce",
    "LpNormReduceV2",
)
def _sum(task: ProfiledTask) -> OpCall:
    x, y = first_of(task)
    if not task.outputs or y.size != 1:
        raise Unmapped("a sum along an axis")
    op = {"m": "reduce_mean", "s": "reduce_sum"}.get(
        task.type.lower().removeprefix("reduce")[0], "reduce_lpnorm"
    )
    return OpCall(op, str(x.size), typed(x, ("fp32",)))


@maps("ArgMaxV2", "ArgMaxD", "ArgMaxWithValue")
def _argmax(task: ProfiledTask) -> OpCall:
    x, y = first_of(task)
    rows, columns = rows_and_columns(x.shape)
    if not task.outputs or y.size != rows:
        raise Unmapped("a maximum along another axis than the last one")
    return OpCall("argmax row", sizes((rows, columns)), typed(x, ("fp32",)))


@maps("RmsNorm")
def _rms_norm(task: ProfiledTask) -> OpCall:
    x = several(task.inputs, 1, "inputs")[0]
    return OpCall("rmsnorm", sizes(rows_and_columns(x.shape)), typed(x, FLOATS))


@maps("RmsNormGrad")
def _rms_norm_grad(task: ProfiledTask) -> OpCall:
    x = several(task.inputs, 1, "inputs")[0]
    return OpCall("rmsnorm_grad", sizes(rows_and_columns(x.shape)), typed(x, FLOATS))


@maps("SwiGlu")
def _swiglu(task: ProfiledTask) -> OpCall:
    x, y = first_of(task)
    rows, columns = rows_and_columns(x.shape)
    if not task.outputs or y.shape is None or y.size * 2 != x.size or y.shape[-1] * 2 != columns:
        raise Unmapped("halves of another axis than the last one")
    return OpCall("swiglu", sizes((rows, columns)), typed(x, FLOATS))


@maps("Slice", "StridedSlice", "StridedSliceD")
def _slice(task: ProfiledTask) -> OpCall:
    """Columns of rows; which ones makes no difference here."""
    x, y = first_of(task)
    if not x.shape or not y.shape or x.shape[:-1] != y.shape[:-1] or x.shape == y.shape:
        raise Unmapped("a slice of another axis than the last one")
    return OpCall("slice", sizes((prod(x.shape[:-1]), y.shape[-1], x.shape[-1])), typed(x))


@maps("Concat", "ConcatD", "ConcatV2", "ConcatV2D")
def _concat(task: ProfiledTask) -> OpCall:
    parts = [x for x in task.inputs if x.shape]
    several(parts, 2, "inputs")
    heads = {x.shape[:-1] for x in parts if x.shape}
    widths = [x.shape[-1] for x in parts if x.shape]
    if (
        len(parts) > 3
        or len(heads) != 1
        or not task.outputs
        or (task.outputs[0].shape or (0,))[-1] != sum(widths)
    ):
        raise Unmapped("more than three tensors, or another axis than the last one")
    return OpCall("concat", sizes((prod(next(iter(heads))), *widths)), typed(parts[0]))
