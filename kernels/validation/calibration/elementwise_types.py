"""Operators that go through their tensors element by element: one, two or three inputs, fills, optimisers."""

from __future__ import annotations

from ..settings import BYTES
from .mapping import FLOATS, OpCall, Unmapped, first_of, maps, named, rows_and_columns, several, sizes, typed
from .profile import ProfiledTask

ONE_IN = {
    "Cast": "cast", "TensorMove": "memcpy", "Identity": "memcpy", "ViewCopy": "memcpy", "MemCpy": "memcpy",
    "Relu": "relu", "Muls": "muls", "Adds": "adds", "Neg": "neg", "Abs": "abs", "Square": "square", "Exp": "exp",
    "Log": "log", "Sqrt": "sqrt", "Rsqrt": "rsqrt", "Reciprocal": "reciprocal", "Inv": "reciprocal", "Sin": "sin",
    "Cos": "cos", "Tanh": "tanh", "Erf": "erf", "Sigmoid": "sigmoid", "Swish": "silu", "Silu": "silu", "Gelu": "gelu",
    "GeluV2": "gelu", "FastGelu": "gelu", "LeakyRelu": "leaky_relu", "SoftplusV2": "softplus", "Elu": "elu",
    "ClipByValueV2": "clamp", "Floor": "floor", "Ceil": "ceil",
}  # fmt: skip
ANY_TYPE = ("cast", "memcpy")
TWO_IN = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "RealDiv": "div", "Div": "div", "Maximum": "maximum",
    "Minimum": "minimum", "Less": "less", "LessEqual": "less_equal", "Greater": "greater",
    "GreaterEqual": "greater_equal", "Equal": "equal", "NotEqual": "not_equal", "ReluGrad": "relu_grad",
    "SigmoidGrad": "sigmoid_grad", "TanhGrad": "tanh_grad", "SwishGrad": "silu_grad", "SiluGrad": "silu_grad",
    "GeluGrad": "gelu_grad", "FastGeluGrad": "gelu_grad", "Axpy": "axpy", "AxpyV2": "axpy",
}  # fmt: skip
THREE_IN = {"Select": "select", "SelectV2": "select", "Addcmul": "addcmul", "Addcdiv": "addcdiv"}
WITH_A_NUMBER = {"add": "adds", "sub": "adds", "mul": "muls", "div": "muls"}
JOINED = ("add", "sub", "mul", "div")  # of rows with one number each, or with one row
FILLS = ("ZerosLike", "OnesLike", "Fill", "Fills", "MemSet")
STEPS = {"ApplyAdamW": "adamw", "ApplyAdamWV2": "adamw", "ApplyMomentum": "momentum"}


@maps(*ONE_IN)
def _one(task: ProfiledTask) -> OpCall:
    x, y = first_of(task)
    op = named(ONE_IN, task)
    if x.size != y.size:
        raise Unmapped("input and output differ in size")
    allowed = tuple(BYTES) if op in ANY_TYPE else FLOATS
    return OpCall(op, str(x.size), f"{typed(x, allowed)}->{typed(y, allowed)}")


@maps(*TWO_IN)
def _two(task: ProfiledTask) -> OpCall:
    """Two tensors of one size; or one and a number; or rows with a number each, or with one row."""
    x, y = several(task.inputs, 2, "inputs")[:2]
    op, result = named(TWO_IN, task), typed((task.outputs or task.inputs)[0])
    if x.size == y.size:
        return OpCall(op, str(x.size), f"{typed(x)},{typed(y)}->{result}")
    large, small = (x, y) if x.size > y.size else (y, x)
    if small.size == 1 and op in WITH_A_NUMBER:
        return OpCall(WITH_A_NUMBER[op], str(large.size), f"{typed(large, FLOATS)}->{result}")
    rows, columns = rows_and_columns(large.shape)
    if op in JOINED and small.shape and small.size == columns == small.shape[-1]:
        return OpCall(f"{op} columns", sizes((rows, columns)), f"{typed(large, FLOATS)}->{result}")
    if op in JOINED and small.shape and small.size == rows and small.shape[-1] == 1:
        return OpCall(f"{op} row", sizes((rows, columns)), f"{typed(large, FLOATS)}->{result}")
    raise Unmapped("a broadcast that is neither a number, nor one row, nor a number for each row")


@maps(*THREE_IN)
def _three(task: ProfiledTask) -> OpCall:
    x, y, z = several(task.inputs, 3, "inputs")[:3]
    if not x.size == y.size == z.size:
        raise Unmapped("a broadcast")
    kinds = ",".join(typed(t) for t in (x, y, z))
    result = typed((task.outputs or task.inputs[1:])[0])
    return OpCall(named(THREE_IN, task), str(x.size), f"{kinds}->{result}")


@maps(*FILLS)
def _fill(task: ProfiledTask) -> OpCall:
    y = several(task.outputs or task.inputs, 1, "outputs")[0]
    return OpCall("memset", str(y.size), f"{typed(y)}->{y.dtype}")


@maps(*STEPS)
def _step(task: ProfiledTask) -> OpCall:
    x = several(task.inputs, 1, "inputs")[0]
    return OpCall(named(STEPS, task), str(x.size), typed(x, ("fp32",)))
