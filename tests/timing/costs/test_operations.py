"""The table of operations: what can be computed has a cost, and what a product states is used or listed as unused."""

from __future__ import annotations

import ast
import importlib
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.simulator.interpreter.interpreter import Interpreter
from ascendtile.simulator.ir import operations as table
from ascendtile.simulator.ir.operations import WIDE, Operation, binary, define
from ascendtile.simulator.precision.dtypes import float16
from ascendtile.simulator.products.spec import OPS
from ascendtile.simulator.timing import costs
from ascendtile.simulator.timing.costs.model import CostModel
from ascendtile.simulator.units.vector import rounded

from ...support.elementwise import binary as value_of

# What a user writes: one file outside of the package.
LEAKY = """
import numpy as np
import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.ir.building.registry import Builder, builtin
from ascendtile.simulator.ir.operations import binary, define
from ascendtile.simulator.units.vector import rounded


@builtin(method=True)
@define(binary("lrelu", scalar="lrelu", flops=2, value=rounded(lambda x, slope: np.where(x > 0, x, x * slope))))
def leaky_relu(b: Builder, x, slope):
    return b.binary("leaky_relu", x, slope)


@sim.jit
def leak(x_ptr, out_ptr, SLOPE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, leaky_relu(tl.load(x_ptr + at), SLOPE))
"""


@pytest.fixture(autouse=True)
def table_as_it_was() -> Iterator[None]:
    """The whole table, whichever files of the language were imported so far; what a test adds is taken out again."""
    for name in ("reduction", "hints", "extra.cann.extension"):
        importlib.import_module(f"ascendtile.simulator.language.{name}")
    with mock.patch.dict(table.OPERATIONS):
        yield


@pytest.fixture
def leak(tmp_path: Path) -> Any:
    file = tmp_path / "leaky.py"
    file.write_text(LEAKY)
    return runpy.run_path(str(file))["leak"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_an_operation_of_a_users_file_computes_and_takes_the_cycles_of_its_row(leak: Any, dtype: Any) -> None:
    x = np.linspace(-3, 3, 4096, dtype=dtype)
    out = np.zeros_like(x)
    with sim.device("ascend910b3"):
        run = leak[(1,)](x, out, SLOPE=0.1, BLOCK=4096)
    slope = dtype(0.1)
    assert out.tolist() == np.where(x > 0, x, x * slope).tolist()
    kind = {2: "fp16", 4: "fp32"}[x.itemsize]
    a_repeat = sim.load_product("ascend910b3").number(f"vector.op.lrelu.per_repeat.{kind}")
    assert (
        run.pipes["AIV.V"].busy_cycles == 4096 * x.itemsize // 256 * a_repeat
    )  # 64 on float32, nothing before it
    assert run.launches[0].roofs[f"Vector {kind}"].amount == 2 * 4096
    assert not run.warnings
    assert not any("leaky_relu" in note for note in run.launches[0].notes)


def test_what_a_users_operation_needs_beside_its_row_is_looked_up_in_its_entry(leak: Any) -> None:
    """Without a row for scalars its slope is written out as a tile: an instruction more and scratch for it."""
    shape = sim.shape(4096, "float32")
    alone = leak.time((1,), shape, shape, SLOPE=0.1, BLOCK=4096)
    table.OPERATIONS["leaky_relu"] = binary(
        "lrelu", value=rounded(np.multiply), scratch=table.Scratch.OPERANDS | table.Scratch.SCALARS
    )
    more = leak.time((1,), shape, shape, SLOPE=0.2, BLOCK=4096)
    assert more.pipes["AIV.V"].busy_cycles > alone.pipes["AIV.V"].busy_cycles
    assert more.buffers["UB"].peak_bytes >= alone.buffers["UB"].peak_bytes + 4096 * 4


def test_a_users_operation_falls_back_to_the_scalar_unit_where_its_entry_says_so(leak: Any) -> None:
    entry = table.OPERATIONS["leaky_relu"]
    table.OPERATIONS["leaky_relu"] = binary(
        "lrelu", value=rounded(np.multiply), fallback=table.by_element("leaky_relu")
    )
    shape = sim.shape(256, "float32")
    run = leak.time((1,), shape, shape, SLOPE=0.1, BLOCK=256)
    assert any("leaky_relu has no vector instruction" in w for w in run.warnings)
    assert run.pipes["AIV.V"].busy_cycles == 0
    assert entry.infer is not None


def test_an_operation_without_a_cost_or_a_value_fails_where_it_is_defined_and_is_named() -> None:
    for entry in (
        binary(value=rounded(np.add)),
        binary(value=rounded(np.add), fallback=(WIDE,)),
        Operation(value=lambda at, op, x: x),
        Operation("guessed", "add"),
    ):
        with pytest.raises(ImportError, match=r"^no cost for leaky_relu: "):
            define(entry, name="leaky_relu")(lambda b, x: x)
    with pytest.raises(ImportError, match=r"^no value for leaky_relu: "):
        define(Operation("unary", "abs"), name="leaky_relu")(lambda b, x: x)
    assert "leaky_relu" not in table.OPERATIONS


def test_a_row_that_no_product_has_fails_where_it_is_named() -> None:
    with pytest.raises(
        ImportError, match="the entry of leaky_relu names leaky, which no product has a row for"
    ):
        define(binary("leaky", value=rounded(np.add)), name="leaky_relu")(lambda b, x: x)


def test_a_name_is_given_once_but_its_own_function_may_be_defined_anew() -> None:
    def swirl(b: Any, x: Any) -> Any:
        return x

    with pytest.raises(ImportError, match=r"there is an operation add already, built by .*Builder\.binary"):
        define(binary("add", value=rounded(np.add)), name="add")(swirl)
    define(binary("add", value=rounded(np.add)))(swirl)
    define(binary("max", value=rounded(np.fmax)))(swirl)
    assert table.OPERATIONS["swirl"].row == "max"
    with pytest.raises(ImportError, match="there is an operation swirl already"):
        define(binary("add", value=rounded(np.add)), name="swirl")(lambda b, x: x)


def test_a_value_of_plain_arrays_is_rounded_once_to_its_type() -> None:
    define(binary("add", value=rounded(lambda a, b: a + b)), name="swirl")(lambda b, x: x)
    a, b = np.float32([[1, 1000]]), np.float32([[2**-11 + 2**-20, 0.3]])
    from_double = (a.astype(np.float64) + b).astype(np.float16)
    assert value_of("swirl", a, b, float16).tolist() == from_double.tolist()


def test_every_row_of_the_products_is_used_by_an_operation_or_listed_as_unused() -> None:
    assert table.used_rows() | set(table.UNUSED) == set(OPS)
    assert not table.used_rows() & set(table.UNUSED)
    assert all(table.UNUSED.values())


def test_rows_that_costs_name_are_in_the_table() -> None:
    """What a cost is made of is written in code; a row that only code knows would be missed by the test above."""
    named = set()
    for file in Path(costs.__file__).parent.glob("*.py"):
        found = ast.walk(ast.parse(file.read_text()))
        named |= {n.value for n in found if isinstance(n, ast.Constant) and n.value in OPS}
    assert len(named) > 10
    assert named <= table.used_rows()


def test_the_interpreter_carries_out_nothing_that_has_no_entry() -> None:
    kinds = {name.removeprefix("op_") for name in dir(Interpreter) if name.startswith("op_")}
    assert kinds - set(table.NAMED) <= set(table.OPERATIONS)


def test_an_operation_that_is_not_defined_is_refused_at_its_line(leak: Any) -> None:
    del table.OPERATIONS["leaky_relu"]
    shape = sim.shape(64, "float32")
    with pytest.raises(
        sim.AscendtileError, match=r"(?s)leaky.py:19.*there is no operation leaky_relu; `define` it"
    ):
        leak.time((1,), shape, shape, SLOPE=0.1, BLOCK=64)


def test_what_the_compiler_does_not_make_itself_names_the_function_that_builds_it() -> None:
    own = {name for name, entry in table.OPERATIONS.items() if entry.infer is None}
    assert own == {"for", "while", "if", "assert", "send", "receive", "index", "defined", "float64"}


@pytest.mark.parametrize("product", sim.product_names())
def test_a_name_that_is_no_operation_costs_nothing_like_another(product: str) -> None:
    with pytest.raises(sim.UsageError, match="no cost for leaky_relu"):
        CostModel(sim.load_product(product)).vector("leaky_relu", "fp32", 4096, 32)
