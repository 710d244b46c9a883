"""`npu_fusion_attention` against the documented formula in float64, written without blocks or layouts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ascendtile.simulator as sim
from ascendtile.simulator.triton_shim.torch_npu import attention
from ascendtile.simulator.triton_shim.torch_npu.attention import npu_fusion_attention

torch: Any = pytest.importorskip("torch", reason="torch is an optional extra")
pytestmark = pytest.mark.extra("torch")


def formula(q: Any, k: Any, v: Any, scale: float, masked: Any = None, pse: Any = 0.0) -> Any:
    """(B, N, S, D) each, in float64; masked: True where a score is left out."""
    group = q.shape[1] // k.shape[1]
    q, k, v = q.double(), k.double().repeat_interleave(group, 1), v.double().repeat_interleave(group, 1)
    scores = (torch.einsum("bnid,bnjd->bnij", q, k) + pse) * scale
    if masked is not None:
        scores = scores.masked_fill(masked, float("-inf"))
    return torch.einsum("bnij,bnjd->bnid", torch.softmax(scores, -1), v), scores


LAYOUTS = {
    "BNSD": lambda x: x,
    "BSND": lambda x: x.transpose(1, 2),
    "BSH": lambda x: x.transpose(1, 2).flatten(2),
    "SBH": lambda x: x.permute(2, 0, 1, 3).flatten(2),
}


def drawn(*shape: int, dtype: Any = None, seed: int = 0) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype or torch.float32)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(LAYOUTS)),
    st.integers(1, 2),
    st.integers(1, 3),
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from([None, "mask", "left", "right", "band"]),
    st.integers(1, 16),
)
def test_layouts_masks_and_blocks(
    layout: str, batch: int, heads: int, rows: int, columns: int, mask: str | None, block: int
) -> None:
    if mask == "right":
        columns = max(columns, rows)  # otherwise the first rows have no score at all
    q, k, v = (drawn(batch, heads, n, 8, seed=i) for i, n in enumerate((rows, columns, columns)))
    i, j = torch.arange(rows)[:, None], torch.arange(columns)[None, :]
    options: dict[str, Any] = {}
    masked = None
    if mask == "mask":
        masked = (i + j) % 3 == 1
        masked[:, 0] = False
        options = {"sparse_mode": 1, "atten_mask": masked.to(torch.uint8)}
    elif mask == "left":
        masked, options = j > i, {"sparse_mode": 2, "atten_mask": torch.ones(2048, 2048)}
    elif mask == "right":
        masked, options = j > i + columns - rows, {"sparse_mode": 3, "atten_mask": torch.ones(2048, 2048)}
    elif mask == "band":
        at = i + columns - rows
        masked = (j > at + columns + rows) | (j < at - columns - rows)
        options = {
            "sparse_mode": 4,
            "atten_mask": torch.ones(2048, 2048),
            "pre_tockens": columns + rows,
            "next_tockens": columns + rows,
        }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "BLOCK_SCORES", block)
        given_ = [LAYOUTS[layout](x) for x in (q, k, v)]
        out, high, total, *rest = npu_fusion_attention(*given_, heads, layout, scale=0.3, **options)
    expected, scores = formula(q, k, v, 0.3, masked)
    torch.testing.assert_close(out.double(), LAYOUTS[layout](expected), rtol=1e-5, atol=1e-6)
    assert high.shape == total.shape == (batch, heads, rows, 8)
    torch.testing.assert_close(high[..., 3].double(), scores.amax(-1), rtol=1e-5, atol=1e-6)
    sums = (scores - scores.amax(-1, keepdim=True)).exp().sum(-1)
    torch.testing.assert_close(total[..., 7].double(), sums, rtol=1e-5, atol=1e-6)
    assert rest[1:] == [0, 0, 0]


def test_a_band_leaves_out_what_is_far() -> None:
    q, k, v = (drawn(1, 1, 6, 8, seed=i) for i in range(3))
    i, j = torch.arange(6)[:, None], torch.arange(6)[None, :]
    band = (j > i + 1) | (j < i - 2)
    expected, _ = formula(q, k, v, 1.0, band)
    for mode in (0, 4):
        mask = band if mode == 0 else torch.ones(2048, 2048)
        out = npu_fusion_attention(
            q, k, v, 1, "BNSD", atten_mask=mask, pre_tockens=2, next_tockens=1, sparse_mode=mode
        )[0]
        torch.testing.assert_close(out.double(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_fewer_heads_positions_and_types(dtype: str) -> None:
    kind = getattr(torch, dtype)
    q, k, v = (drawn(2, n, 5, 16, dtype=kind, seed=n) for n in (4, 2, 2))
    pse = drawn(1, 4, 5, 5, dtype=kind, seed=9)
    out = npu_fusion_attention(q, k, v, 4, "BNSD", pse=pse, scale=0.25)[0]
    assert out.dtype == kind
    expected, _ = formula(q, k, v, 0.25, pse=pse.double())
    torch.testing.assert_close(out.double(), expected, rtol=torch.finfo(kind).eps, atol=1e-5)


def test_gradients() -> None:
    given_ = [drawn(1, 2, 7, 8, seed=i).requires_grad_() for i in range(3)]
    exact = [x.detach().double().requires_grad_() for x in given_]
    weight = drawn(1, 2, 7, 8, seed=5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "BLOCK_SCORES", 14)  # two rows at a time
        (npu_fusion_attention(*given_, 2, "BNSD", scale=0.3)[0] * weight).sum().backward()
    (formula(*exact, 0.3)[0] * weight.double()).sum().backward()
    for x, y in zip(given_, exact, strict=True):
        torch.testing.assert_close(x.grad.double(), y.grad, rtol=1e-4, atol=1e-6)


Q = torch.zeros(1, 2, 4, 8)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"padding_mask": Q}, "padding_mask is not supported"),
        ({"prefix": [1]}, "prefix is not supported"),
        ({"keep_prob": 0.9}, "keep_prob must be 1"),
        ({"sparse_mode": 6}, "sparse_mode must be 0 to 4"),
        ({"input_layout": "TND"}, "input_layout must be one of"),
        ({"input_layout": "BSH"}, "which is no BSH"),
        ({"key": Q.half()}, "all float16, bfloat16 or float32"),
        ({"key": torch.zeros(1, 3, 4, 8)}, "do not fit"),
        ({"atten_mask": torch.zeros(3, 4)}, "its last axes must be"),
        ({"atten_mask": torch.zeros(4, 4), "next_tockens": 0}, "keeps scores outside"),
        ({"atten_mask": torch.ones(4, 4), "sparse_mode": 1}, "leaves a row of scores without any"),
    ],
)
def test_what_is_not_supported_is_said(options: dict[str, Any], says: str) -> None:
    call = {"query": Q, "key": Q, "value": Q, "head_num": 2, "input_layout": "BNSD", **options}
    with pytest.raises(sim.UsageError, match=says):
        npu_fusion_attention(**call)


@pytest.mark.usefixtures("shim")
def test_it_is_a_name_of_torch_npu() -> None:
    import torch_npu

    assert torch_npu.npu_fusion_attention is npu_fusion_attention
