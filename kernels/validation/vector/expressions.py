# mypy: disable-error-code="no-untyped-def"
"""What element-wise kernels compute: an expression for each op of the tables, in fp32 where the operands are bf16.

Numbers in them stand for attributes of an operator, whose values do not change a time.
"""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ....simulator.jit_function import JitFunction


# fmt: off
@sim.jit
def same(x): return x
@sim.jit
def relu(x): return tl.maximum(x, 0.0)
@sim.jit
def times(x): return x * 0.5
@sim.jit
def plus(x): return x + 0.5
@sim.jit
def negative(x): return -x
@sim.jit
def magnitude(x): return tl.abs(x)
@sim.jit
def square(x): return x * x
@sim.jit
def exponential(x): return tl.exp(x)
@sim.jit
def logarithm(x): return tl.log(x)
@sim.jit
def root(x): return tl.sqrt(x)
@sim.jit
def inverse_root(x): return tl.rsqrt(x)
@sim.jit
def inverse(x): return 1.0 / x
@sim.jit
def sine(x): return tl.sin(x)
@sim.jit
def cosine(x): return tl.cos(x)
@sim.jit
def tangent_h(x): return tl.math.tanh(x)  # type: ignore[attr-defined]
@sim.jit
def error_function(x): return tl.erf(x)
@sim.jit
def logistic(x): return 1.0 / (1.0 + tl.exp(-x))
@sim.jit
def silu(x): return x / (1.0 + tl.exp(-x))
@sim.jit
def gelu(x): return x / (1.0 + tl.exp(-1.5957691 * (x + 0.044715 * x * x * x)))
@sim.jit
def gelu_erf(x): return x * (0.5 + 0.5 * tl.erf(x * 0.70710678))
@sim.jit
def leaky_relu(x): return tl.where(x > 0.0, x, x * 0.01)
@sim.jit
def softplus(x): return tl.log(1.0 + tl.exp(x))
@sim.jit
def elu(x): return tl.where(x > 0.0, x, tl.exp(x) - 1.0)
@sim.jit
def clamped(x): return tl.minimum(tl.maximum(x, -1.0), 1.0)
@sim.jit
def power(x): return tl.math.pow(x, 2.5)  # type: ignore[attr-defined]
@sim.jit
def floor(x): return tl.floor(x)
@sim.jit
def ceiling(x): return tl.ceil(x)
@sim.jit
def dropped(x): return tl.where(x > 0.0, x, 0.0) * 1.25


@sim.jit
def add(x, y): return x + y
@sim.jit
def sub(x, y): return x - y
@sim.jit
def mul(x, y): return x * y
@sim.jit
def div(x, y): return x / y
@sim.jit
def maximum(x, y): return tl.maximum(x, y)
@sim.jit
def minimum(x, y): return tl.minimum(x, y)
@sim.jit
def less(x, y): return x < y
@sim.jit
def less_equal(x, y): return x <= y
@sim.jit
def greater(x, y): return x > y
@sim.jit
def greater_equal(x, y): return x >= y
@sim.jit
def equal(x, y): return x == y
@sim.jit
def not_equal(x, y): return x != y
@sim.jit
def relu_grad(dy, x): return tl.where(x > 0.0, dy, 0.0)
@sim.jit
def sigmoid_grad(dy, y): return dy * (1.0 - y) * y
@sim.jit
def tanh_grad(dy, y): return dy * (1.0 - y * y)
@sim.jit
def axpy(x, y): return x + 0.5 * y


@sim.jit
def silu_grad(dy, x):
    s = 1.0 / (1.0 + tl.exp(-x))
    return dy * s * (1.0 + x * (1.0 - s))


@sim.jit
def gelu_grad(dy, x):
    s = 1.0 / (1.0 + tl.exp(-1.5957691 * (x + 0.044715 * x * x * x)))
    return dy * (s + x * s * (1.0 - s) * (1.5957691 + 0.2140644 * x * x))


@sim.jit
def select(c, x, y): return tl.where(c > 0.0, x, y)
@sim.jit
def addcmul(x, y, z): return x + 0.5 * y * z
@sim.jit
def addcdiv(x, y, z): return x + 0.5 * y / z
# fmt: on


UNARY: dict[str, JitFunction] = {
    "memcpy": same, "cast": same, "relu": relu, "muls": times, "adds": plus, "neg": negative, "abs": magnitude,
    "square": square, "exp": exponential, "log": logarithm, "sqrt": root, "rsqrt": inverse_root, "reciprocal": inverse,
    "sin": sine, "cos": cosine, "tanh": tangent_h, "erf": error_function, "sigmoid": logistic, "silu": silu,
    "gelu": gelu, "gelu erf": gelu_erf, "leaky_relu": leaky_relu, "softplus": softplus, "elu": elu, "clamp": clamped,
    "pow": power, "floor": floor, "ceil": ceiling, "dropout": dropped,
}  # fmt: skip
BINARY: dict[str, JitFunction] = {
    "add": add, "sub": sub, "mul": mul, "div": div, "maximum": maximum, "minimum": minimum, "less": less,
    "less_equal": less_equal, "greater": greater, "greater_equal": greater_equal, "equal": equal,
    "not_equal": not_equal, "relu_grad": relu_grad, "sigmoid_grad": sigmoid_grad, "tanh_grad": tanh_grad,
    "silu_grad": silu_grad, "gelu_grad": gelu_grad, "axpy": axpy, "foreach_add": add,
}  # fmt: skip
TERNARY: dict[str, JitFunction] = {"select": select, "addcmul": addcmul, "addcdiv": addcdiv}
