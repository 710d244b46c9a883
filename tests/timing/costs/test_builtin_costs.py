"""Costs of functions, scans, sorts and moves: by hand from the rows of the product, listed where assumed, never zero."""

from __future__ import annotations

from typing import Any

import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.ir.operations import OPERATIONS
from ascendtile.simulator.language.extra import libdevice

P = sim.load_product("ascend910b3")


def row(name: str, repeats: int, dtype: str = "fp32") -> float:
    """Cycles of one instruction and its dependent successor's wait."""
    key = f"vector.op.{name}."
    return repeats * P.number(f"{key}per_repeat.{dtype}") + P.number(f"{key}fixed_cycles")


@sim.jit
def one_word(x, out, WHAT: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    if WHAT == "exp2":
        v = tl.exp2(v)
    elif WHAT == "erf":
        v = tl.erf(v)
    elif WHAT == "fma":
        v = tl.fma(v, v, v)
    elif WHAT == "sort":
        v = tl.sort(v)
    elif WHAT == "sort down":
        v = tl.sort(v, descending=True)
    elif WHAT == "scan":
        v = tl.cumsum(v, 0)
    elif WHAT == "max nan":
        v = tl.maximum(v, v * 1, tl.PropagateNan.ALL)
    elif WHAT == "bitcast":
        v = v.to(tl.int32, bitcast=True).to(tl.float32, bitcast=True)
    elif WHAT == "flip":
        v = tl.flip(v)
    elif WHAT == "halves":
        v = tl.interleave(*tl.split(v.reshape(B // 2, 2)))
    elif WHAT == "gather":
        v = tl.gather(v, B - 1 - i, 0)
    elif WHAT == "umulhi":
        v = tl.umulhi(v.to(tl.uint32), 77).to(tl.float32)
    elif WHAT == "histogram":
        v = v + tl.histogram(v.to(tl.int32), B)
    elif WHAT == "integer sort":
        v = tl.sort(v.to(tl.int32)).to(tl.float32)
    elif WHAT == "print":
        tl.device_print("v", v)
    tl.store(out + i, v)


def launch(what: str, block: int = 4096, dtype: str = "float32", compiler: str = "ascendc") -> Any:
    s = sim.shape(block, dtype)
    with sim.device("ascend910b3", compiler=compiler):
        return one_word.time((1,), s, s, WHAT=what, B=block)


def busy(what: str, pipe: str = "V", **kw: Any) -> float:
    """Cycles of a pipe, those of a plain load and store taken away."""
    one, none = (launch(w, **kw).launches[0].pipes[f"AIV.{pipe}"].busy_cycles for w in (what, "nothing"))
    return float(one - none)


def waits(rows: list[tuple[str, int]], repeats: int) -> float:
    """Occupancy of one record of dependent instructions: all but the last wait for their result."""
    total = sum(n * row(name, repeats) for name, n in rows)
    return total - P.number(f"vector.op.{rows[-1][0]}.fixed_cycles")


def test_exp2_is_a_product_and_an_exponential() -> None:
    assert busy("exp2") == pytest.approx(waits([("muls", 1), ("exp", 1)], 64))


def test_half_precision_functions_run_in_fp32_between_two_casts() -> None:
    up, down = "cast_f16_f32", "cast_f32_f16"
    parts = [row("muls", 64), row("exp", 64), row(up, 64, "any")]
    last = 64 * P.number(f"vector.op.{down}.per_repeat.any")
    assert busy("exp2", dtype="float16") == pytest.approx(sum(parts) + last)


def test_a_fused_product_is_one_instruction() -> None:
    assert busy("fma") == pytest.approx(waits([("fusedmuladd", 1)], 64))


def test_sorts_go_through_sort32_and_merges_of_four() -> None:
    """4096 elements are 128 lists of 32: merges to 128, 512, 2048, 8192. Ascending order negates before and after."""
    repeats = 4096 // 32
    sorting = row("sort32", repeats, "any") + 4 * (6 + row("mrgsort4", repeats, "any"))  # 6: its issue cycles
    picked = 64 * P.number("vector.op.gather_mask.per_repeat.fp32")
    assert busy("sort down") == pytest.approx(sorting + picked)
    assert busy("sort") == pytest.approx(sorting + picked + 2 * row("muls", 64))


def test_a_running_sum_waits_for_every_element_before() -> None:
    assert busy("scan", block=512) == pytest.approx(waits([("add", 511)], 1), rel=0.2)
    assert busy("scan", block=1024) == pytest.approx(2 * busy("scan", block=512), rel=0.01)


@pytest.mark.parametrize("what", ["erf", "scan", "max nan", "flip", "halves", "gather"])
def test_rearranging_and_functions_take_the_vector_unit(what: str) -> None:
    assert busy(what) > 0


@pytest.mark.parametrize(
    ("what", "word"), [("erf", "erf"), ("max nan", "max_nan"), ("scan", "scan"), ("print", "device_print")]
)
def test_assumed_sequences_are_listed(what: str, word: str) -> None:
    notes = [n for n in launch(what).notes if n.startswith(f"{word}: ")]
    assert len(notes) == 1
    assert "assumed" in notes[0]


@pytest.mark.parametrize("what", ["umulhi", "histogram", "integer sort"])
def test_what_has_no_instruction_runs_on_the_scalar_unit_and_says_so(what: str) -> None:
    run = launch(what)
    assert busy(what, "S") > 4096
    assert any("runs element by element on the scalar unit" in w for w in run.warnings)


def test_prints_cost_the_scalar_unit() -> None:
    assert busy("print", "S") >= 4096


def test_a_bitcast_is_free() -> None:
    assert launch("bitcast").cycles == launch("nothing").cycles


def test_every_function_has_a_sequence_of_rows_that_the_product_has() -> None:
    named = set(libdevice.UNARY) | set(libdevice.BINARY.values())
    own_row = {"exp", "log", "sqrt", "floor", "ceil", "add", "sub", "mul", "div"}
    assert {name for name in named if not OPERATIONS[name].steps} <= own_row
    for name in OPERATIONS:
        for instruction, count in OPERATIONS[name].steps:
            assert count > 0, name
            assert P.has(f"vector.op.{instruction}.fixed_cycles"), (name, instruction)


@sim.jit
def wrapped_rows(a, b, c, M, K: tl.constexpr, N: tl.constexpr, B: tl.constexpr):
    """Rows taken modulo M, as the tutorials do: the offsets leave the affine form although no tile is in UB."""
    rows = (tl.program_id(0) * B + tl.arange(0, B)) % M
    k, n = tl.arange(0, K), tl.arange(0, N)
    x = tl.load(a + rows[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(c + (tl.arange(0, B)[:, None] * N + n[None, :]), tl.dot(x, y).to(tl.float16))


@pytest.mark.parametrize("product", ["ascend910b3", "ascend310p"])
def test_offsets_of_a_matmul_may_need_the_vector_core(product: str) -> None:
    half = sim.shape((64, 64), "float16")
    with sim.device(product):
        run = wrapped_rows.time((1,), half, half, half, 64, K=64, N=64, B=64)
    assert run.cycles > 0
    assert run.pipes["AIV.V" if product == "ascend910b3" else "AICORE.V"].busy_cycles > 0
    assert not any("no vector instruction" in w for w in run.warnings)
