"""Small kernels whose time can be worked out by hand."""

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl


@sim.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@sim.jit
def copy_iterations(x_ptr, out_ptr, iterations, BLOCK: tl.constexpr):
    for iteration in range(0, iterations):
        offsets = (tl.program_id(0) * iterations + iteration) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets)
        tl.store(out_ptr + offsets, x * 2.0)


@sim.jit
def chain(x_ptr, out_ptr, LENGTH: tl.constexpr, BLOCK: tl.constexpr):
    """LENGTH dependent additions of a scalar."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    for _ in tl.static_range(LENGTH):
        x = x + 1.0
    tl.store(out_ptr + offsets, x)


@sim.jit
def fan(x_ptr, out_ptr, LENGTH: tl.constexpr, BLOCK: tl.constexpr):
    """LENGTH independent additions of one tile, each stored."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    for i in tl.static_range(LENGTH):
        tl.store(out_ptr + i * BLOCK + offsets, x + 1.0)


@sim.jit
def read_only(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Reads its share of n elements and stores one number per lane at the end."""
    total = tl.zeros((BLOCK,), tl.float32)
    first = tl.program_id(0) * BLOCK
    for start in range(first, n, tl.num_programs(0) * BLOCK):
        total += tl.load(x_ptr + start + tl.arange(0, BLOCK))
    tl.store(out_ptr + first + tl.arange(0, BLOCK), total)


@sim.jit
def collatz(x_ptr, out_ptr):
    """Iterations depend on the data."""
    pid = tl.program_id(0)
    n = tl.load(x_ptr + pid)
    steps = 0
    while n > 1:
        n = tl.where(n % 2 == 0, n // 2, 3 * n + 1)
        steps += 1
    tl.store(out_ptr + pid, steps)


@sim.jit
def strided_sum(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), total)


@sim.jit
def peek_then_read(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        first = tl.load(x_ptr + start + tl.arange(0, 16))
        x = tl.load(x_ptr + start + tl.arange(0, BLOCK))
        tl.store(out_ptr + start + tl.arange(0, BLOCK), x + tl.sum(first, axis=0))


@sim.jit
def stencil(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        at = start + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(x_ptr + at) + tl.load(x_ptr + at + 1) + tl.load(x_ptr + at + 2))


@sim.jit
def read_half_again(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    x = tl.load(x_ptr + start + tl.arange(0, BLOCK))
    half = tl.load(x_ptr + start + BLOCK // 2 + tl.arange(0, BLOCK // 2))
    tl.store(out_ptr + start + tl.arange(0, BLOCK), x + tl.sum(half, axis=0))
