"""The kernels of the probe: plain Triton, each as small as the question that it asks."""

import triton
import triton.language as tl

try:  # the coarse instructions, where a release offers them
    from triton.language.extra.cann.extension import reciprocal_estimate, rsqrt_estimate
except ImportError:
    reciprocal_estimate = rsqrt_estimate = None


@triton.jit
def dot_chain(
    a_ptr, b_ptr, out_ptr,
    STEPS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """out = a[0] @ b[0] + a[1] @ b[1] + ... for each program: the accumulator stays where the Cube keeps it."""
    program = tl.program_id(0)
    rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for step in range(STEPS):
        here = program * STEPS + step
        a = tl.load(a_ptr + here * M * K + rows[:, None] * K + inner[None, :])
        b = tl.load(b_ptr + here * K * N + inner[:, None] * N + columns[None, :])
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
    tl.store(out_ptr + program * M * N + rows[:, None] * N + columns[None, :], acc)


@triton.jit
def dot_store(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """out = a @ b in the type of out: what leaves the accumulator is cast on its way."""
    rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + rows[:, None] * K + inner[None, :])
    b = tl.load(b_ptr + inner[:, None] * N + columns[None, :])
    acc = tl.dot(a, b)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], acc.to(out_ptr.dtype.element_ty))


@triton.jit
def cast(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at).to(out_ptr.dtype.element_ty))


@triton.jit
def cast_toward_zero(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at).to(out_ptr.dtype.element_ty, fp_downcast_rounding="rtz"))


@triton.jit
def add(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at) + tl.load(y_ptr + at))


@triton.jit
def divide(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at) / tl.load(y_ptr + at))


@triton.jit
def whole_quotient(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at) // tl.load(y_ptr + at))


@triton.jit
def fused(x_ptr, y_ptr, z_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x, y, z = tl.load(x_ptr + at), tl.load(y_ptr + at), tl.load(z_ptr + at)
    tl.store(out_ptr + at, tl.fma(x, y, z))


@triton.jit
def root(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.sqrt(tl.load(x_ptr + at)))


@triton.jit
def exponential(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.exp(tl.load(x_ptr + at)))


@triton.jit
def logarithm(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.log(tl.load(x_ptr + at)))


@triton.jit
def coarse_reciprocal(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, reciprocal_estimate(tl.load(x_ptr + at)))


@triton.jit
def coarse_rsqrt(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, rsqrt_estimate(tl.load(x_ptr + at)))


@triton.jit
def row_sum(x_ptr, out_ptr, N: tl.constexpr):
    row = tl.program_id(0)
    tl.store(out_ptr + row, tl.sum(tl.load(x_ptr + row * N + tl.arange(0, N)), 0))


@triton.jit
def add_atomically(x_ptr, out_ptr, N: tl.constexpr):
    """Each element of out once: what a sum in memory is rounded to."""
    at = tl.arange(0, N)
    tl.atomic_add(out_ptr + at, tl.load(x_ptr + at))
