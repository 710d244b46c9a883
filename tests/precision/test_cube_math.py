"""Every cell of the truth tables of cubeMathType, written out again as the specification prints them."""

from __future__ import annotations

from itertools import product as pairs
from typing import Any

import pytest

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.precision.cube_math import MODES, PARAM_INVALID, resolve_convolution, resolve_matmul
from ascendtile.simulator.precision.cube_switches import dot_uses_hf32, framework_mode
from ascendtile.simulator.products import load_product, product_names

OLD = ("fp16", "int8", "uint8")  # 910A, 310P
NEW = ("fp16", "bf16", "hf32", "fp32", "int8")  # 910B, 910C, 310B


def old_products() -> list[str]:
    return [n for n in product_names() if "fp32" not in load_product(n).texts("dtypes.cube_inputs")]


def cells(text: str) -> list[str]:
    return text.split()


# ---- convolution backward, modes 0 to 3

CONVOLUTION = [
    (OLD, ("fp32", "fp32", "fp32"), "err fp16 fp16 err"),
    (OLD, ("fp32", "fp16", "fp16"), "err fp16 fp16 err"),
    (OLD, ("fp16", "fp16", "fp16"), "fp16 fp16 fp16 fp16"),
    (OLD, ("bf16", "bf16", "bf16"), "err err err err"),
    (OLD, ("fp32", "bf16", "fp16"), "err err err err"),
    (NEW, ("fp32", "fp32", "fp32"), "fp32 hf32 fp16 hf32"),
    (NEW, ("fp16", "fp32", "fp16"), "fp32 hf32 fp16 hf32"),
    (NEW, ("fp16", "bf16", "fp16"), "fp32 hf32 fp16 hf32"),
    (NEW, ("fp16", "fp16", "fp16"), "fp16 fp16 fp16 fp16"),
    (NEW, ("bf16", "bf16", "bf16"), "bf16 bf16 fp16 bf16"),
]
CONVOLUTION_CELLS = [
    pytest.param(
        inputs, kinds, mode, cell, id=f"{'old' if inputs is OLD else 'new'}-{'+'.join(kinds)}-{mode}"
    )
    for inputs, kinds, row in CONVOLUTION
    for mode, cell in enumerate(cells(row))
]


def check(found: Any, cell: str) -> None:
    assert found.status == (PARAM_INVALID if cell == "err" else 0)
    assert found.ok == (cell != "err")
    assert found.operand == ("" if cell == "err" else cell)
    assert found.hf32 == (cell == "hf32")
    assert found.compute == {"err": "", "hf32": "fp32"}.get(cell, cell)
    assert found.grade == "D"
    assert found.reason


@pytest.mark.parametrize(("inputs", "kinds", "mode", "cell"), CONVOLUTION_CELLS)
def test_convolution_cell(inputs: Any, kinds: tuple[str, ...], mode: int, cell: str) -> None:
    found = resolve_convolution(inputs, kinds, mode)
    check(found, cell)
    assert found == resolve_convolution(inputs, kinds, list(MODES)[mode])
    warns = (kinds, mode) == (("bf16",) * 3, 2) and inputs is NEW
    assert (found.warning is not None) == warns
    if found.ok:
        assert found.output("grad_weight") == "fp32"
        assert found.output("grad_input") == found.compute
        assert found.hf32_round == "RINT"
        assert not found.grouped


@pytest.mark.parametrize("kind", ["fp16", "bf16", "fp32"])
@pytest.mark.parametrize("mode", range(4))
def test_a_product_without_the_operator_refuses_all(kind: str, mode: int) -> None:
    assert resolve_convolution(NEW, (kind,) * 3, mode, supported=False).status == PARAM_INVALID
    assert resolve_matmul(NEW, (kind,) * 2, mode, supported=False).status == PARAM_INVALID


@pytest.mark.parametrize("mode", [-1, 4, 5])
def test_convolution_takes_modes_0_to_3(mode: int) -> None:
    found = resolve_convolution(NEW, ("fp32",) * 3, mode)
    assert found.status == PARAM_INVALID
    assert found.reason == f"cubeMathType {mode} is outside 0 to 3"


@pytest.mark.parametrize(
    ("inputs", "rank", "ok"), [(OLD, 1, 1), (OLD, 2, 1), (OLD, 3, 0), (NEW, 1, 1), (NEW, 3, 1), (NEW, 4, 0)]
)
def test_ranks(inputs: Any, rank: int, ok: int) -> None:
    assert resolve_convolution(inputs, ("fp16",) * 3, 0, rank).ok == bool(ok)


def test_bf16_with_mode_2_can_be_rejected() -> None:
    for mode in range(4):
        found = resolve_convolution(NEW, ("bf16",) * 3, mode, bf16_mode2="reject")
        assert found.ok == (mode != 2)


@pytest.mark.parametrize(
    ("kind", "mode", "ok"),
    [("fp32", 0, 1), ("fp32", 1, 1), ("fp32", 2, 0), ("fp32", 3, 1), ("fp16", 0, 0), ("bf16", 1, 0)],
)
def test_grouped_3d_weight_gradient_in_fp32(kind: str, mode: int, ok: int) -> None:
    kinds = (kind,) * 3
    assert resolve_convolution(NEW, kinds, mode, 3, groups=2, grad_weight="float32").ok == bool(ok)
    for rank, groups, weight in ((2, 2, "fp32"), (3, 1, "fp32"), (3, 2, "fp16"), (3, 2, None)):
        assert resolve_convolution(NEW, kinds, mode, rank, groups=groups, grad_weight=weight).ok


# ---- matmul, modes 0 to 4

MATMUL = [
    (NEW, ("fp32", "fp32"), "fp32 hf32 fp16 hf32 fp32", ()),
    (NEW, ("fp32", "fp16"), "fp32 hf32 fp16 hf32 fp32", ()),
    (NEW, ("fp32", "bf16"), "fp32 hf32 fp16 hf32 fp32", (2,)),
    (NEW, ("fp16", "bf16"), "fp32 hf32 fp16 hf32 fp32", ()),
    (NEW, ("fp16", "fp16"), "fp16 fp16 fp16 fp16 fp16", (3,)),
    (NEW, ("bf16", "bf16"), "bf16 bf16 bf16 bf16 bf16", (2, 3)),
    (OLD, ("fp32", "fp32"), "err fp16 fp16 err err", ()),
    (OLD, ("fp32", "fp16"), "err fp16 fp16 err err", ()),
    (OLD, ("fp16", "fp16"), "fp16 fp16 fp16 fp16 fp16", ()),
    (OLD, ("bf16", "bf16"), "err err err err err", ()),
    (OLD, ("fp32", "bf16"), "err err err err err", ()),
    (OLD, ("fp16", "bf16"), "err err err err err", ()),
]
MATMUL_CELLS = [
    pytest.param(
        inputs,
        kinds,
        mode,
        cell,
        mode in warned,
        id=f"{'old' if inputs is OLD else 'new'}-{'+'.join(kinds)}-{mode}",
    )
    for inputs, kinds, row, warned in MATMUL
    for mode, cell in enumerate(cells(row))
]


@pytest.mark.parametrize(("inputs", "kinds", "mode", "cell", "warns"), MATMUL_CELLS)
def test_matmul_cell(inputs: Any, kinds: tuple[str, ...], mode: int, cell: str, warns: bool) -> None:
    found = resolve_matmul(inputs, kinds, mode)
    check(found, cell)
    assert (found.warning is not None) == warns
    assert resolve_matmul(inputs, kinds[::-1], mode).operand == found.operand
    assert found.grouped == (mode == 4 and cell == "fp32")
    if found.ok:
        assert found.hf32_round == "ROUND"


@pytest.mark.parametrize(
    ("inputs", "kinds", "mode", "output"),
    [
        (NEW, ("fp16", "fp16"), 0, "fp16"),
        (NEW, ("fp16", "fp16"), 4, "fp32"),
        (NEW, ("bf16", "bf16"), 1, "bf16"),
        (NEW, ("bf16", "bf16"), 4, "fp32"),
        (NEW, ("fp32", "fp32"), 2, "fp16"),
        (NEW, ("fp32", "fp32"), 3, "fp32"),
        (NEW, ("fp16", "bf16"), 0, "fp32"),
        (OLD, ("fp32", "fp32"), 1, "fp32"),
        (OLD, ("fp16", "fp16"), 4, "fp16"),
    ],
)
def test_matmul_output(inputs: Any, kinds: tuple[str, ...], mode: int, output: str) -> None:
    assert resolve_matmul(inputs, kinds, mode).output() == output


@pytest.mark.parametrize(("k", "grouped"), [(2047, False), (2048, True), (None, True)])
def test_mode_4_groups_long_sums_only(k: int | None, grouped: bool) -> None:
    assert resolve_matmul(NEW, ("fp32", "fp32"), "USE_FP32_ADD", k).grouped == grouped


def test_matmul_takes_modes_0_to_4() -> None:
    assert [resolve_matmul(NEW, ("fp32", "fp32"), mode).ok for mode in (-1, 0, 4, 5)] == [
        False,
        True,
        True,
        False,
    ]


def test_a_cube_with_fp32_and_no_hf32_stays_in_fp32() -> None:
    found = resolve_matmul(("fp16", "bf16", "fp32"), ("fp32", "fp32"), 3)
    assert (found.operand, found.hf32, found.grade) == ("fp32", False, "A")


# ---- products and names


@pytest.mark.parametrize("name", product_names())
def test_every_shipped_product_matches_one_half_of_the_tables(name: str) -> None:
    product = load_product(name)
    inputs = OLD if name in old_products() else NEW
    for kind, mode in pairs(("fp16", "bf16", "fp32"), range(5)):
        assert (
            resolve_convolution(product, (kind,) * 3, mode).operand
            == resolve_convolution(inputs, (kind,) * 3, mode).operand
        )
        assert (
            resolve_matmul(product, (kind,) * 2, mode) == resolve_matmul(inputs, (kind,) * 2, mode)
            or kind == "bf16"
        )


@pytest.mark.parametrize("kinds", [("int8", "int8"), ("fp64", "fp32")])
def test_other_types_are_refused_with_a_status(kinds: tuple[str, ...]) -> None:
    assert resolve_matmul(NEW, kinds, 0).reason.startswith("unsupported type")


def test_names_of_other_libraries() -> None:
    assert resolve_matmul(NEW, ("torch.float16", "float16"), "KEEP_DTYPE").operand == "fp16"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: resolve_matmul(NEW, ("fp32", "fp32"), "USE_TF32"),
            "unknown cubeMathType 'USE_TF32': known are KEEP_DTYPE",
        ),
        (
            lambda: resolve_convolution(NEW, ("fp32",), 0, bf16_mode2="warn"),
            "bf16_mode2 'warn': known are convert, reject",
        ),
        (lambda: resolve_matmul("fp16", ("fp16",), 0), "give a Product or several names"),
        (lambda: resolve_matmul(NEW, (), 0), "no input types given"),
        (
            lambda: resolve_matmul(NEW, ("fp16", "fp16"), 0).output("grad_input"),
            "no Cube output 'grad_input' here",
        ),
        (lambda: framework_mode("attention", NEW), "operation 'attention': known are convolution, matmul"),
        (lambda: framework_mode("matmul", NEW, precision_mode="x"), "precision_mode 'x'"),
        (lambda: dot_uses_hf32("bf16", ("fp32",) * 3), "input_precision 'bf16': known are ieee, hf32, tf32"),
    ],
)
def test_typing_errors_of_the_caller(call: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        call()


# ---- framework switches


@pytest.mark.parametrize(
    ("hf32", "precision", "mode"),
    [
        (False, "must_keep_origin_dtype", 0),
        (False, "allow_fp32_to_fp16", 2),
        (True, "must_keep_origin_dtype", 3),
        (True, "allow_fp32_to_fp16", 1),
    ],
)
@pytest.mark.parametrize("operation", ["convolution", "matmul"])
def test_two_switches_make_a_mode(operation: str, hf32: bool, precision: str, mode: int) -> None:
    assert framework_mode(operation, NEW, hf32, precision) == mode


def test_framework_defaults() -> None:
    assert [framework_mode("convolution", p) for p in (NEW, OLD)] == [3, 1]
    assert [framework_mode("matmul", p) for p in (NEW, OLD)] == [0, 2]


def test_the_matmul_override_is_for_matmul_only() -> None:
    assert framework_mode("matmul", NEW, cube_math_type="USE_FP32_ADD") == 4
    assert framework_mode("convolution", NEW, cube_math_type=4) == 3


def test_dot_precision_counts_for_fp32_only() -> None:
    assert [dot_uses_hf32(word, ("fp32",) * 3) for word in ("ieee", "hf32", "tf32")] == [False, True, True]
    assert not dot_uses_hf32("hf32", ("fp16", "fp16", "fp32"))
