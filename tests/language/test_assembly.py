"""Inline assembly: what Triton-Ascend's documents show, values of each instruction, costs, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError

from .values import output


@sim.jit
def two(out, x, y, ASM: tl.constexpr, TYPE: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    args = [tl.load(x + i), tl.load(y + i)]
    tl.store(out + i, tl.inline_asm_elementwise(ASM, "=l,l,l", args, dtype=TYPE, is_pure=True, pack=1))


WIDE = np.array([2**62, -(2**63), -1, 7, 2**40], np.int64)
INSTRUCTIONS: dict[str, Any] = {
    "ADD.s64": lambda x, y: x + y,
    "SUB.s64": lambda x, y: x - y,
    "MUL.u64": lambda x, y: x * y,
    "MAX.s64": np.maximum,
    "MAX.u64": lambda x, y: np.maximum(x.view(np.uint64), y.view(np.uint64)).view(np.int64),
    "MIN.s64": np.minimum,
    "AND.b64": np.bitwise_and,
    "OR.b64": np.bitwise_or,
    "XOR.b64": np.bitwise_xor,
}


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_instructions_on_64_bits(name: str) -> None:
    x, y = WIDE, WIDE[::-1].copy()
    with np.errstate(over="ignore"):
        want = INSTRUCTIONS[name](x, y)
    got = output(two, 5, x, y, f"\n  {name} $0, $1, $2\n", tl.int64, dtype=np.int64, N=5)
    assert got.tolist() == want.tolist()


def test_narrow_integers_are_read_as_64_bits_and_floats_as_32() -> None:
    x, y = np.array([127, -128, 100], np.int8), np.array([127, -128, -100], np.int8)
    got = output(two, 3, x, y, "ADD.s64 $0, $1, $2", tl.int64, dtype=np.int64, N=3)
    assert got.tolist() == [254, -256, 0]
    x, y = np.array([1.5, 1e38, -2], np.float32), np.array([0.1, 1e38, 2], np.float32)
    got = output(two, 3, x, y, "MUL.f32 $0, $1, $2", tl.float32, N=3)
    with np.errstate(over="ignore"):
        assert got.tolist() == (x * y).tolist()


@sim.jit
def several(out, x, n, N: tl.constexpr):
    i = tl.arange(0, N)
    rows = tl.load(x + i)[:, None]
    asm: tl.constexpr = "ADD.s64 $0, $2, $3; MUL.s64 $1, $0, $0\nMOV $0, $2"
    a, c = tl.inline_asm_elementwise(asm, "=l,=l,l,l", [rows, i[None, :] + n], (tl.int32, tl.int64), True, 1)
    at = i[:, None] * N + i[None, :]
    tl.store(out + at, a.to(tl.int64))
    tl.store(out + N * N + at, c)


def test_lines_read_what_lines_before_wrote_and_arguments_broadcast() -> None:
    x = np.array([3, -4], np.int32)
    got = output(several, 8, x, 10, dtype=np.int64, N=2).reshape(2, 2, 2)
    assert got[0].tolist() == [[3, 3], [-4, -4]]
    assert got[1].tolist() == [[13**2, 14**2], [6**2, 7**2]]


@sim.jit
def clock(out):
    now = tl.inline_asm_elementwise("MOV $0, SYS_CNT", "=l", [], dtype=(tl.int64), is_pure=False, pack=1)
    tl.store(out, now)


def test_the_clock_reads_0_and_the_run_says_so() -> None:
    out = np.ones(1, np.int64)
    run = clock[(1,)](out)
    assert out[0] == 0
    assert any("SYS_CNT reads 0" in str(w) for w in run.warnings)


def test_each_element_costs_a_turn_of_the_scalar_unit() -> None:
    costs = {}
    for n in (64, 128):
        x = sim.shape(n, "float32")
        run = two.time((1,), x, x, x, "ADD.f32 $0, $1, $2", tl.float32, N=n)
        costs[n] = run.pipes["AIV.S"].busy_cycles
        assert any("ADD of inline assembly" in str(w) for w in run.warnings)
    assert costs[128] - costs[64] > 64 * 8


@pytest.mark.parametrize(
    ("asm", "dtype", "text"),
    [
        ("add.s64 $0, $1, $2;", tl.int64, r"'add.s64 \$0, \$1, \$2' is none of the instructions .* assembly of one GPU"),
        ("ADD.s64 $0, $1", tl.int64, "none of the instructions"),
        ("DIV.s64 $0, $1, $2", tl.int64, "none of the instructions"),
        ("ADD.s64 $3, $1, $2", tl.int64, r"writes to \$3, which is no result"),
        ("ADD.s64 $1, $1, $2", tl.int64, r"writes to \$1, which is no result"),
        ("ADD.s64 $0, $1, $7", tl.int64, r"reads \$7, which must be \$0 to \$2"),
        ("ADD.s64 $0, $0, $1", tl.int64, r"reads \$0, which was not written before"),
        ("ADD.f32 $0, $1, $2", tl.float32, "reads a int64 tile of shape .* as f32"),
        ("ADD.s64 $0, $1, $2", tl.float32, "it cannot be read as fp32"),
        ("", tl.int64, r"nothing writes to \$0"),
    ],
)  # fmt: skip
def test_what_is_refused(asm: str, dtype: Any, text: str) -> None:
    x = np.zeros(4, np.int64)
    with pytest.raises(CompileError, match=text):
        two[(1,)](x, x, x, asm, dtype, N=4)


def test_halves_are_no_registers() -> None:
    x = np.zeros(4, np.float16)
    with pytest.raises(CompileError, match="takes int8, int16, int32, int64, fp32, got a fp16 tile"):
        two[(1,)](x, x, x, "ADD.f32 $0, $1, $2", tl.float32, N=4)
