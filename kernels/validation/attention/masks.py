# mypy: disable-error-code="no-untyped-def"
"""What a mask and a dropout do to scores and weights, of `ROWS` queries and `PASS` keys.

Source: ops-transformer, attention/common: SelectWithBytesMask and DropOut of ProcessVec1.
"""

from __future__ import annotations

from .... import simulator as sim
from ....simulator import language as tl


@sim.jit
def hide(x, mask_ptr, row, pitch, ROWS: tl.constexpr, PASS: tl.constexpr):
    """x where the mask's byte is 0: bytes become FP16, are compared, and a select follows (SelectWithBytesMask)."""
    at = mask_ptr + (row + tl.arange(0, ROWS))[:, None] * pitch + tl.arange(0, PASS)[None, :]
    return tl.where(tl.load(at).to(tl.float16) > 0.0, -1e30, x)


@sim.jit
def drop(p, bits_ptr, row, pitch, rate, ROWS: tl.constexpr, PASS: tl.constexpr):
    """p / (1 - rate) where its bit is set. Timed only: a minimum stands for the select by bits."""
    at = bits_ptr + (row + tl.arange(0, ROWS))[:, None] * pitch + tl.arange(0, PASS // 8)[None, :]
    kept = tl.max(tl.load(at).to(tl.float16), axis=1).to(tl.float32)
    return tl.minimum(p, kept[:, None]) * (1.0 / (1.0 - rate))
