"""Kernels as people write them for FP8 and MX, unchanged: quantised by token and by block, and products of the quantised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.reports.cli.main import cli
from ascendtile.simulator.precision.rounding import round_to

MOST = 448.0  # of E4M3


@sim.jit
def by_token(x_ptr, q_ptr, s_ptr, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x)), eps) / 448.0
    q = tl.clamp(x / scale, -448.0, 448.0).to(q_ptr.dtype.element_ty)
    tl.store(q_ptr + row * stride + cols, q, mask=mask)
    tl.store(s_ptr + row, scale)


def test_quantised_by_token_each_element_is_the_nearest_of_its_row() -> None:
    x = np.random.default_rng(0).standard_normal((7, 200)).astype(ml_dtypes.bfloat16)
    q, s = np.zeros((7, 200), ml_dtypes.float8_e4m3fn), np.zeros(7, np.float32)
    run = by_token[(7,)](x, q, s, 200, 200, 1e-10, BLOCK=256)
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(s, np.abs(wide).max(1) / np.float32(MOST))
    right = round_to(np.clip(wide / s[:, None], -MOST, MOST), "e4m3")
    np.testing.assert_array_equal(q.astype(np.float32), right)
    assert [str(f)[:8] for f in run.faults] == ["what-if:"]


@sim.jit
def weights_by_block(x_ptr, y_ptr, s_ptr, M, N, BLOCK: tl.constexpr):
    pm, pn = tl.program_id(0), tl.program_id(1)
    n = tl.cdiv(N, BLOCK)
    rows, cols = pm * BLOCK + tl.arange(0, BLOCK), pn * BLOCK + tl.arange(0, BLOCK)
    at = rows[:, None] * N + cols[None, :]
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    s = tl.max(tl.abs(x)) / 448.0
    tl.store(y_ptr + at, (x / s).to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(s_ptr + pm * n + pn, s)


@sim.jit
def blockwise_product(
    a_ptr, b_ptr, c_ptr, a_s_ptr, b_s_ptr, M, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """C = A B^T of FP8 operands; scales of A for each row and BK of K, of B for each BN x BK block; sums in FP32."""
    pm, pn = tl.program_id(0), tl.program_id(1)
    k_blocks = tl.cdiv(K, BK)
    rows, cols, ks = (pm * BM + tl.arange(0, BM)) % M, (pn * BN + tl.arange(0, BN)) % N, tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * K + ks[None, :]
    b_ptrs = b_ptr + cols[None, :] * K + ks[:, None]
    a_s_ptrs, b_s_ptrs = a_s_ptr + rows * k_blocks, b_s_ptr + (cols // BK) * k_blocks
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(k_blocks):
        a = tl.load(a_ptrs, mask=ks[None, :] < K - i * BK, other=0.0)
        b = tl.load(b_ptrs, mask=ks[:, None] < K - i * BK, other=0.0)
        acc += tl.dot(a, b) * tl.load(a_s_ptrs)[:, None] * tl.load(b_s_ptrs)[None, :]
        a_ptrs += BK
        b_ptrs += BK
        a_s_ptrs += 1
        b_s_ptrs += 1
    at_m, at_n = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN)
    mask = (at_m[:, None] < M) & (at_n[None, :] < N)
    tl.store(c_ptr + at_m[:, None] * N + at_n[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


def test_a_blockwise_product_is_that_of_the_quantised_values() -> None:
    M, N, K, B = 24, 64, 96, 32
    rng = np.random.default_rng(0)
    w = rng.standard_normal((N, K)).astype(np.float32)
    b, b_s = np.zeros((N, K), ml_dtypes.float8_e4m3fn), np.zeros((N // B, K // B), np.float32)
    weights_by_block[(N // B, K // B)](w, b, b_s, N, K, BLOCK=B)
    back = b.astype(np.float64) * np.kron(b_s, np.ones((B, B)))
    assert np.abs(back - w).max() <= 2.0**-4 * np.abs(w).max() * (1 + 1e-6)
    a = rng.standard_normal((M, K)).astype(ml_dtypes.float8_e4m3fn)
    a_s = rng.uniform(0.5, 2, (M, K // B)).astype(np.float32)
    c = np.zeros((M, N), ml_dtypes.bfloat16)
    run = blockwise_product[(2, 2)](a, b, c, a_s, b_s, M, N, K, BM=16, BN=32, BK=B)
    right = (a.astype(np.float64) * np.repeat(a_s, B, 1)) @ back.T
    assert np.abs(c.astype(np.float64) - right).max() <= 2.0**-8 * np.abs(right).max()
    assert run.pipes["AIC.M"].busy_cycles > 0


@sim.jit
def block_scaled(
    a_ptr, a_s_ptr, b_ptr, b_s_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr, VEC: tl.constexpr, PACK: tl.constexpr, FORMAT: tl.constexpr,
):  # fmt: skip
    """Through descriptors; B is (N, K) in memory and transposed on its way, scales are (rows, K / VEC)."""
    pid = tl.program_id(0)
    pm, pn = pid % tl.cdiv(M, BM), pid // tl.cdiv(M, BM)
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K // PACK], [K // PACK, 1], [BM, BK // PACK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K // PACK], [K // PACK, 1], [BN, BK // PACK])
    rows, cols = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN)
    groups = tl.arange(0, BK // VEC)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), num_stages=2):
        a = a_desc.load([pm * BM, k * (BK // PACK)])
        b = b_desc.load([pn * BN, k * (BK // PACK)])
        at = k * (BK // VEC) + groups
        a_s = tl.load(a_s_ptr + rows[:, None] * (K // VEC) + at[None, :])
        b_s = tl.load(b_s_ptr + cols[:, None] * (K // VEC) + at[None, :])
        acc = tl.dot_scaled(a, a_s, FORMAT, b.T, b_s, FORMAT, acc)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc)


@pytest.mark.parametrize(
    ("name", "vec", "scale"),
    [("e4m3", 32, np.uint8), ("e2m1", 32, np.uint8), ("e2m1", 16, ml_dtypes.float8_e4m3fn)],
)
def test_a_block_scaled_product_through_descriptors(name: str, vec: int, scale: Any) -> None:
    M, N, K, rng = 32, 32, 128, np.random.default_rng(1)
    fmt = sim.element_type(name).format
    finite = np.flatnonzero(np.isfinite(fmt.values) & (np.abs(fmt.values) <= 4))
    values, memory = [], []
    for rows in (M, N):
        codes = rng.choice(finite, (rows, K)).astype(np.uint8)
        values.append(fmt.values[codes])
        memory.append(codes[:, ::2] | codes[:, 1::2] << 4 if fmt.bits == 4 else codes.view(fmt.dtype))
    if scale is np.uint8:
        scales = [rng.integers(125, 130, (rows, K // vec)).astype(np.uint8) for rows in (M, N)]
        factors = [2.0 ** (s.astype(float) - 127) for s in scales]
    else:
        scales = [rng.uniform(0.5, 2, (rows, K // vec)).astype(scale) for rows in (M, N)]
        factors = [s.astype(float) for s in scales]
    c = np.zeros((M, N), np.float32)
    block_scaled[(4,)](
        memory[0], scales[0], memory[1], scales[1], c, M=M, N=N, K=K, BM=16, BN=16, BK=64, VEC=vec,
        PACK=2 if fmt.bits == 4 else 1, FORMAT=name,
    )  # fmt: skip
    a, b = (v * np.repeat(f, vec, 1) for v, f in zip(values, factors, strict=True))
    bound = K * 2.0**-24 * (np.abs(a) @ np.abs(b).T)
    assert (np.abs(c - a @ b.T) <= bound).all()


SCRIPT = """
import torch
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, out_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, (x.to(tl.float32) * 2).to(tl.float8e5))


x = torch.arange(16, dtype=torch.float32).to(torch.float8_e4m3fn)
out = torch.zeros(16, dtype=torch.float8_e5m2)
double[(1,)](x, out, B=16)
assert out.float().tolist() == [float(n) for n in (2 * x.float()).to(torch.float8_e5m2).float().tolist()]
"""


@pytest.mark.extra("torch")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_script_with_fp8_tensors_runs_and_strict_and_check_say_that_it_is_a_what_if(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fp8.py").write_text(SCRIPT)
    for command, status in (("run --strict fp8.py", 1), ("check fp8.py", 1)):
        result = CliRunner().invoke(cli, command.split())
        assert result.exit_code == status, result.output
        assert "what-if: ascend910b3 has no fp8e4nv (e4m3)" in " ".join(result.output.split())
