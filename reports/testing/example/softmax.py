"""Softmax over the rows of a matrix, in plain Triton: the same file runs on a board."""

import triton
import triton.language as tl

ROWS = 8  # rows of a block; a program takes one block after the other
PROGRAMS = 40


@triton.jit
def softmax_rows(x_ptr, y_ptr, rows, cols, programs, ROWS: tl.constexpr, COLS: tl.constexpr):
    """x, y: (rows, cols), cols at most COLS. Sums are in FP32."""
    column = tl.arange(0, COLS)
    for block in range(tl.program_id(0), tl.cdiv(rows, ROWS), programs):
        row = block * ROWS + tl.arange(0, ROWS)
        inside = (row < rows)[:, None] & (column < cols)[None, :]
        at = row[:, None] * cols + column[None, :]
        x = tl.load(x_ptr + at, mask=inside, other=float("-inf")).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=1)[:, None])
        y = e / tl.sum(e, axis=1)[:, None]
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=inside)


def softmax(x, y):
    """Launch it; gives what the launch gives, which is a Run where the simulator runs it."""
    rows, cols = x.shape
    columns = triton.next_power_of_2(cols)
    return softmax_rows[(PROGRAMS,)](x, y, rows, cols, PROGRAMS, ROWS=ROWS, COLS=columns)
