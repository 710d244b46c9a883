"""The table of operations: what can be computed has a cost, and what a product states is used or listed as unused."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from unittest import mock

import pytest

import ascendtile.simulator as sim
from ascendtile.simulator.execution.numpy_backend import EVALUATE
from ascendtile.simulator.interpreter.interpreter import Interpreter
from ascendtile.simulator.products.vocabulary import OPS
from ascendtile.simulator.timing import costs
from ascendtile.simulator.timing.costs.model import CostModel
from ascendtile.simulator.timing.operations import table
from ascendtile.simulator.units import vector


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


def imported_anew() -> None:
    """The module of the table, executed once more beside the one in use."""
    spec = importlib.util.spec_from_file_location(f"{table.__name__}_again", table.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, {spec.name: module}):
        spec.loader.exec_module(module)


@pytest.mark.parametrize("names", ["UNARY", "BINARY"])
def test_an_operation_of_the_vector_unit_without_an_entry_fails_at_import_and_is_named(names: str) -> None:
    imported_anew()
    more = getattr(vector, names) | {"leaky_relu"}
    with (
        mock.patch.object(vector, names, more),
        pytest.raises(ImportError, match="no cost for leaky_relu: the V"),
    ):
        imported_anew()


def test_an_entry_without_row_and_steps_fails_at_import() -> None:
    entry = table.Operation("unary", fallback=(table.WIDE,))
    with mock.patch.dict(table.OPERATIONS, exp=entry), pytest.raises(ImportError, match="no cost for exp"):
        table._check_rows()


def test_the_interpreter_carries_out_nothing_that_has_no_entry() -> None:
    kinds = {name.removeprefix("op_") for name in dir(Interpreter) if name.startswith("op_")}
    assert kinds - set(table.NAMED) <= set(table.OPERATIONS)
    with pytest.raises(ImportError, match="no cost for swizzle: the interpreter"):
        table.require({"add", "swizzle"}, "the interpreter")


def test_what_has_values_on_the_vector_unit_has_a_cost() -> None:
    """What the backend of values evaluates, but for what lowering records itself."""
    dense = set(EVALUATE)
    recorded = {"dot", "alloc", "move", "from_l1", "op", *table.NAMED}
    for name in dense - recorded:
        assert table.OPERATIONS[name].cost or table.OPERATIONS[name].fallback, name


@pytest.mark.parametrize("product", sim.product_names())
def test_a_name_that_is_no_operation_costs_nothing_like_another(product: str) -> None:
    with pytest.raises(sim.UsageError, match="no cost for leaky_relu"):
        CostModel(sim.load_product(product)).vector("leaky_relu", "fp32", 4096, 32)
