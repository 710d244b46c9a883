"""Comparisons and arithmetic of integers: by hand from the rows of the product, as the vendor's compiler rewrites them.

Sources: AscendNPU-IR, HFusion's Normalize and ShouldLowerToScalarLoops.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.ir.operations import OPERATIONS

P = sim.load_product("ascend910b3")
N = 4096
NOT = (("not", "int16", N // 16),)


@sim.jit
def integers(x, y, out, k, WHAT: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.load(x + i), tl.load(y + i)
    if WHAT == "lt":
        r = a < b
    elif WHAT == "le":
        r = a <= b
    elif WHAT == "gt":
        r = a > b
    elif WHAT == "ge":
        r = a >= b
    elif WHAT == "eq":
        r = a == b
    elif WHAT == "ne":
        r = a != b
    elif WHAT == "gt number":
        r = a > k
    elif WHAT == "//":
        r = a // b
    elif WHAT == "%":
        r = a % b
    elif WHAT == "// number":
        r = a // 7
    elif WHAT == "^":
        r = a ^ b
    elif WHAT == "~":
        r = ~a
    elif WHAT == ">>":
        r = a >> b
    elif WHAT == ">> number":
        r = a >> 3
    elif WHAT == "<<":
        r = a << b
    elif WHAT == "+":
        r = a + b
    elif WHAT == "|":
        r = a | b
    elif WHAT == "argmax":
        r = a + tl.argmax(b, 0)
    elif WHAT == "sum":
        r = a + tl.sum(b, 0)
    else:
        r = a
    if a.dtype == r.dtype:
        tl.store(out + i, r)
    else:
        tl.store(out + i, tl.where(r, a, b))


def launch(what: str, kind: str, n: int = N) -> Any:
    """Without conflicts between banks, which depend on where tiles lie."""
    s = sim.shape(n, kind)
    with sim.device("ascend910b3", overrides={"ub_banks.read_read_conflict": "none"}):
        return integers.time((1,), s, s, s, 5, WHAT=what, B=n).launches[0]


def cycles(rows: Sequence[tuple[str, str, int]]) -> float:
    """Of dependent instructions on so many elements of a type, the wait for the last one's result left out."""
    total = 0.0
    for name, kind, n in rows:
        lanes = 256 // (2 if kind in ("fp16", "int16") else 4)
        key = f"vector.op.{name}."
        per = P.number(f"{key}per_repeat.{kind if P.has(f'{key}per_repeat.{kind}') else 'any'}")
        total += max(-(-n // lanes) * per, P.number("vector.min_instruction_cycles"))
        total += P.number(f"{key}fixed_cycles")
        total += P.number("vector.partial_mask_penalty_cycles") if n % lanes else 0.0
    return total - P.number(f"vector.op.{rows[-1][0]}.fixed_cycles")


def busy(what: str, kind: str) -> float:
    """Of the Vector unit, without the selection behind a comparison."""
    found = float(launch(what, kind).pipes["AIV.V"].busy_cycles)
    compared = what.split()[0] in ("lt", "le", "gt", "ge", "eq", "ne")
    each = "fp16" if kind in ("int8", "int16") else "fp32"
    return found - (cycles([("select", each, N)]) if compared else 0.0)


def on(kind: str, *names: str) -> tuple[tuple[str, str, int], ...]:
    return tuple((name, kind, N) for name in names)


EQUAL = on("fp32", "compare")
WIDENED = on("fp32", "cast_s32_f32")
BLOCK = (("duplicate", "fp32", 8),)  # of a number that every repeat reads
QUOTIENT = on("fp32", "div", "cast_f32_s32")


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    ("what", "rows"),
    [
        ("ge", on("int32", "max") + EQUAL),
        ("le", on("int32", "max") + EQUAL),
        ("gt", on("int32", "max") + EQUAL + NOT),
        ("lt", on("int32", "max") + EQUAL + NOT),
        ("eq", EQUAL),
        ("ne", EQUAL + NOT),
        ("gt number", on("int32", "maxs") + on("fp32", "compares") + NOT),
        ("//", WIDENED * 2 + QUOTIENT),
        ("%", WIDENED * 2 + QUOTIENT + on("int32", "mul", "sub")),
        ("// number", WIDENED + BLOCK + QUOTIENT),
    ],
)
def test_integers_of_32_bits_take_these_vector_instructions(what: str, rows: Any) -> None:
    run = launch(what, "int32")
    assert busy(what, "int32") == pytest.approx(cycles(rows))
    assert not any("vector instruction" in w for w in run.warnings)


@pytest.mark.parametrize("what", ["lt", "eq", "ne"])
def test_integers_of_8_bits_are_compared_as_fp16(what: str) -> None:
    rows = on("fp16", "cast_s8_f16", "cast_s8_f16", "compare") + (NOT if what == "ne" else ())
    got = (
        launch(what, "int8").pipes["AIV.V"].busy_cycles - launch("nothing", "int8").pipes["AIV.V"].busy_cycles
    )
    select = launch("eq", "int8").pipes["AIV.V"].busy_cycles - cycles(
        on("fp16", "cast_s8_f16", "cast_s8_f16", "compare")
    )
    assert got - select == pytest.approx(cycles(rows))


@pytest.mark.parametrize(("what", "many"), [("^", 4), ("~", 1)])
def test_an_exclusive_or_is_four_instructions_and_a_complement_one(what: str, many: int) -> None:
    rows = ("and", "not", "or", "and")[:many] if many > 1 else ("not",)
    per = sum(64 * P.number(f"vector.op.{r}.per_repeat.int16") for r in rows)
    waits = sum(P.number(f"vector.op.{r}.fixed_cycles") for r in rows[:-1])
    assert busy(what, "int32") == pytest.approx(per + waits)


SCALAR = [
    ("lt", "int16"), ("eq", "int16"), ("lt", "uint32"), ("lt", "uint8"), ("lt", "int64"), ("eq", "int64"),
    ("+", "int64"), ("//", "int64"), ("%", "int64"), (">> number", "int64"), ("sum", "int64"), (">>", "int32"),
    ("argmax", "int32"),
]  # fmt: skip
VECTOR = [
    ("eq", "uint32"), ("lt", "int32"), ("lt", "int8"), ("|", "int64"), ("//", "int32"), ("//", "int16"),
    ("^", "int32"), (">> number", "int32"), ("<<", "int32"), ("sum", "int32"), ("lt", "float32"),
]  # fmt: skip


@pytest.mark.drawn(5)
@pytest.mark.parametrize(("what", "kind"), SCALAR)
def test_what_the_scalar_unit_does_is_named(what: str, kind: str) -> None:
    run = launch(what, kind)
    element = P.number("scalar.ub_half_add_cycles_per_element")
    assert run.pipes["AIV.S"].busy_cycles >= N * element
    assert any("runs element by element on the scalar unit" in w for w in run.warnings)


@pytest.mark.parametrize(("what", "kind"), VECTOR)
def test_what_the_vector_unit_does_is_not(what: str, kind: str) -> None:
    run = launch(what, kind)
    assert run.pipes["AIV.S"].busy_cycles < N
    assert not any("scalar unit" in w for w in run.warnings)


@pytest.mark.parametrize(
    ("what", "kind"),
    [("lt", "int64"), ("lt", "uint32"), ("ge", "int16"), ("+", "int64"), ("%", "int64"), ("sum", "int64")],
)
def test_the_cure_is_named_with_what_it_costs(what: str, kind: str) -> None:
    run = launch(what, kind)
    words = next(w for w in run.warnings if "element by element" in w)
    found = re.search(
        r"\((\d+) cycles, (\d+) as a vector instruction on \.to\(tl\.int32\), which is exact below 2\*\*31",
        words,
    )
    assert found, words
    scalar, vector = map(int, found.groups())
    wide = launch(what, "int32").pipes["AIV.V"].busy_cycles
    assert 0 < vector <= round(wide) < scalar / 20


@sim.jit
def masked_scores(s, out, first, M: tl.constexpr, N: tl.constexpr, CAUSAL: tl.constexpr):
    i, j = tl.program_id(0) * M + tl.arange(0, M), first + tl.arange(0, N)
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(s + at)
    if CAUSAL:
        x = tl.where(i[:, None] >= j[None, :], x, float("-inf"))
    tl.store(out + at, x)


def test_a_causal_mask_costs_a_few_vector_instructions() -> None:
    """Two tiles of indices are written out, then a maximum, a comparison and a selection; no scalar loop. The constant is
    one block."""
    s = sim.shape((64, 128), "float32")
    with sim.device("ascend910b3"):
        plain, causal = (
            masked_scores.time((1,), s, s, 0, M=64, N=128, CAUSAL=c).launches[0] for c in (False, True)
        )
    assert plain.pipes["AIV.V"].busy_cycles == 0
    repeats = 64 * 128 * 4 // 256
    assert repeats * 5 <= causal.pipes["AIV.V"].busy_cycles < repeats * 5 + 6 * 35
    assert causal.pipes["AIV.S"].busy_cycles < 100
    assert causal.cycles < 2 * plain.cycles


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_the_maximum_tells_the_order(name: str) -> None:
    """What the costs take for granted: a >= b where max(a, b) == a, a > b where max(a, b) != b, and so on."""
    edge = np.array([-(2**31), -1, 0, 1, 2**31 - 1], np.int32)
    a, b = np.repeat(edge, 5), np.tile(edge, 5)
    most = np.maximum(a, b)
    rewritten = {
        "ge": most == a, "le": most == b, "gt": ~(most == b), "lt": ~(most == a), "eq": a == b, "ne": ~(a == b),
    }[name]  # fmt: skip
    out = np.zeros(25, np.int32)
    integers[(1,)](a, b, out, 5, WHAT=name, B=25)
    np.testing.assert_array_equal(out, np.where(rewritten, a, b))


def test_the_rows_of_these_operations_are_in_the_table() -> None:
    assert {"max", "maxs", "not", "cast_s8_f16"} <= OPERATIONS["compare"].all_rows
    assert {"mul", "sub", "duplicate", "div"} <= OPERATIONS["mod"].all_rows
    assert OPERATIONS["xor"].all_rows == {"and", "not", "or"}


@sim.jit
def along(x, out, WHAT: tl.constexpr, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    v = tl.load(x + at)
    if WHAT == "scan of rows":
        v = tl.cumsum(v, 1)
    elif WHAT == "scan of columns":
        v = tl.cumsum(v, 0)
    elif WHAT == "last of equals":
        v = v + tl.argmax(v, 1, tie_break_left=False)[:, None]
    elif WHAT == "first of equals":
        v = v + tl.argmax(v, 1)[:, None]
    tl.store(out + at, v)


@pytest.mark.parametrize(
    ("what", "by_compiler"),
    [
        ("scan of rows", True),
        ("scan of columns", False),
        ("last of equals", True),
        ("first of equals", False),
    ],
)
def test_what_only_the_compiler_leaves_to_the_scalar_unit(what: str, by_compiler: bool) -> None:
    s = sim.shape((16, 64), "float32")
    slow = {}
    for author in ("triton-ascend", "ascendc"):
        with sim.device("ascend910b3", compiler=author):
            run = along.time((1,), s, s, WHAT=what, R=16, C=64).launches[0]
        slow[author] = any(
            "no vector code of the compiler: runs element by element" in w for w in run.warnings
        )
        assert slow[author] == (run.pipes["AIV.S"].busy_cycles > 1024 * 30)
    assert slow == {"triton-ascend": by_compiler, "ascendc": False}


NO_CONFLICTS = {"ub_banks.read_write_conflict": "none", "ub_banks.read_read_conflict": "none"}


@sim.jit
def with_number(x, out, WHAT: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    if WHAT == "1 / x":
        v = 1.0 / v
    elif WHAT == "3 / x":
        v = 3.0 / v
    else:
        v = tl.where(v > 0, v, 2.0)
    tl.store(out + i, v)


@pytest.mark.parametrize("compiler", ["triton-ascend", "ascendc"])
@pytest.mark.parametrize(("what", "kind"), [("3 / x", "float32"), ("1 / x", "float32"), ("where", "float32")])
def test_a_number_is_one_block_in_compiled_code_and_a_tile_by_hand(
    what: str, kind: str, compiler: str
) -> None:
    s = sim.shape(N, kind)
    with sim.device("ascend910b3", compiler=compiler, overrides=NO_CONFLICTS):
        found = with_number.time((1,), s, s, WHAT=what, B=N).launches[0].pipes["AIV.V"].busy_cycles
    made = BLOCK if compiler == "triton-ascend" else on("fp32", "duplicate")
    if what == "where":
        late = P.number(
            "vector.op.compares.fixed_cycles"
        )  # the number is made meanwhile: no wait for the comparison
        assert found == pytest.approx(cycles(on("fp32", "compares") + made + on("fp32", "select")) - late)
    else:
        assert found == pytest.approx(cycles(made + on("fp32", "div")))


@pytest.mark.parametrize("author", ["ascendc", "triton-ascend"])
def test_integers_of_64_bits_take_the_scalar_unit_less_time_by_hand_than_as_compiled(author: str) -> None:
    with sim.device(compiler=author):
        run = launch("+", "int64")
    figure = "by_hand" if author == "ascendc" else "ub_half_add"
    busy = N * P.number(f"scalar.{figure}_cycles_per_element")
    assert busy <= run.pipes["AIV.S"].busy_cycles < 1.2 * busy + 100
