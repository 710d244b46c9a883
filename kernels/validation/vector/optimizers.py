# mypy: disable-error-code="no-untyped-def"
"""One step of an optimiser over a tensor."""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl
from ..registry import Prediction, predicts
from ..remarks import remark
from ..settings import dtypes_of, tensor
from ..table import Row
from .streams import elements, own_elements, streamed


@sim.jit
def momentum(w_ptr, m_ptr, g_ptr, n, per_core, BLOCK: tl.constexpr):
    """One step: weights and their momentum are read and written, the gradient is read."""
    start, end = own_elements(n, per_core)
    for s in range(start, end, BLOCK):
        o = s + tl.arange(0, BLOCK)
        mask = o < end
        m = tl.load(m_ptr + o, mask=mask) * 0.9 + tl.load(g_ptr + o, mask=mask)
        tl.store(m_ptr + o, m, mask=mask)
        tl.store(w_ptr + o, tl.load(w_ptr + o, mask=mask) - m * 0.001, mask=mask)


@sim.jit
def adamw(w_ptr, m_ptr, v_ptr, g_ptr, n, per_core, BLOCK: tl.constexpr):
    """One step: weights and both moments are read and written, the gradient is read."""
    start, end = own_elements(n, per_core)
    for s in range(start, end, BLOCK):
        o = s + tl.arange(0, BLOCK)
        mask = o < end
        g = tl.load(g_ptr + o, mask=mask)
        m = tl.load(m_ptr + o, mask=mask) * 0.9 + g * 0.1
        v = tl.load(v_ptr + o, mask=mask) * 0.95 + g * g * 0.05
        w = tl.load(w_ptr + o, mask=mask) * 0.999 - m / (tl.sqrt(v) + 1e-8) * 0.001
        tl.store(m_ptr + o, m, mask=mask)
        tl.store(v_ptr + o, v, mask=mask)
        tl.store(w_ptr + o, w, mask=mask)


# Kernel, tensors, bytes read and written for each element.
STEPS = {"adamw": (adamw, 4, 16, 12), "momentum": (momentum, 3, 12, 8)}


@predicts(*STEPS)
def _step(row: Row) -> Prediction:
    """shapes: elements of the weights; all in fp32."""
    n, share = elements(row)
    kernel, count, read, written = STEPS[row.op]
    if kinds := {x for types in dtypes_of(row) for x in types} - {"fp32"}:
        remark(f"{row.op} is timed in fp32, not in {' and '.join(sorted(kinds))}")
    tensors = [tensor("fp32", n) for _ in range(count)]
    return streamed(row, read + written + 8, (n * read, n * written), kernel, *tensors, n, share)
