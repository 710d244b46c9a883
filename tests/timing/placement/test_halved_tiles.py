"""Placement by hand where two Vector cores share rows: what has the rows takes half of its bytes, all else what it took."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.launch import prepare
from ascendtile.simulator.timing.fitting import require_places
from ascendtile.simulator.timing.placement.memory_spaces import UB


@sim.jit
def of_all_kinds(
    x, y, w, row, out, most, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr
):
    """Tiles that land or leave block by block, bf16 that is widened, a selection, sums, a row of all columns."""
    m, k, n = tl.arange(0, M)[:, None], tl.arange(0, K), tl.arange(0, N)
    a = tl.exp(tl.load(x + m * (STEP * K) + STEP * k[None, :]))
    weights = tl.load(w + k[:, None] * N + n[None, :])
    for t in range(4):
        at = (t * M + m) * N + n[None, :]
        p = tl.dot(a, weights)
        p = tl.where(p > n[None, :].to(tl.float32), p, 0.25) + tl.load(row + n)[None, :]
        b = tl.load(y + at)
        tl.store(out + STEP * at, p / tl.sum(p, axis=1)[:, None] + (b * b).to(tl.float32))
        tl.store(most + t * M + tl.arange(0, M), tl.max(p, axis=1))


def placed(m, k, n, step, copies, shared):
    flat = (m * k * step, "float16"), (4 * m * n, "bfloat16"), (k * n, "float16"), (n, "float32")
    tensors = (
        *(sim.shape(*x) for x in flat),
        sim.shape(4 * m * n * step, "float32"),
        sim.shape(4 * m, "float32"),
    )
    how = {"compiler": "ascendc", "bind_sub_block": shared, "multibuffer": copies}
    with sim.device("ascend910b3", overrides={"buffers.ub": 1 << 26}, **how):
        call = prepare(of_all_kinds, (1,), tensors, {"M": m, "K": k, "N": n, "STEP": step})
        return require_places(call)[1]


@given(
    m=st.sampled_from((32, 64, 96)),
    k=st.sampled_from((16, 32)),
    n=st.sampled_from((16, 32, 48)),
    step=st.sampled_from((1, 2)),
    copies=st.sampled_from((1, 2)),
)
@settings(max_examples=15, deadline=None)
def test_slots_with_the_shared_rows_are_half_as_large_and_others_as_large(m, k, n, step, copies):
    half, whole = (placed(m, k, n, step, copies, shared).slots for shared in (True, False))
    rows = placed(m, k, n, step, copies, True).rows
    assert len(half) == len(whole)
    assert not placed(m, k, n, step, copies, False).rows
    shared = 0
    for s, t in zip(half, whole, strict=True):
        assert (s.space, s.why, s.copies, s.start, s.end) == (t.space, t.why, t.copies, t.start, t.end)
        cut = s.space == UB and any(v.id in rows for v in s.values)
        assert s.size * (1 + cut) == t.size, (s.label or s.why, [v.shape for v in s.values])
        shared += cut
    assert {"tile", "scratch", "product in UB"} <= {
        s.why for s in half if any(v.id in rows for v in s.values)
    }
    assert ("stride padding" in {s.why for s in half}) == (step > 1)
    assert shared < len(half)  # the row of all columns
