"""What `TABLES.md` says of tables of measurements is what the code reads: columns, units, types, ops and keys."""

import ast
import re
from pathlib import Path

import pytest

from ascendtile.kernels import validation
from ascendtile.kernels.validation import read_tables
from ascendtile.kernels.validation.registry import predictors
from ascendtile.kernels.validation.settings import BYTES
from ascendtile.kernels.validation.table import COLUMNS, NEEDED, TRUST, UNITS
from tests.readme.markdown import cells, read

FOLDER = Path(validation.__file__).parent
READERS = (
    "text",
    "number",
    "numbers",
)  # of Settings; figures of products are read likewise, their keys have dots
UNUSED = {"ticks", "TFLOP/s"}  # units of rows that are not simulated


def named(cell):
    return re.findall(r"`([^`]+)`", cell)


@pytest.fixture(scope="module")
def tables():
    """Of each first heading all rows of its tables."""
    found = {}
    for block in read(FOLDER / "TABLES.md"):
        if block.kind == "table":
            head = block.lines[0].strip("|").split("|")[0].strip()
            found.setdefault(head, []).extend(cells(block))
    return found


@pytest.fixture(scope="module")
def simulated():
    return [r for r in read_tables() if not r.excluded and r.op in predictors()]


def first_cells(rows):
    names = [name for row in rows for name in named(row[0])]
    assert len(set(names)) == len(names), "each name is explained once"
    return set(names)


def keys_in_code():
    """Names in calls of Settings."""
    for path in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and node.args:
                name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
                asked = node.args[1:2] if name == "number_of" else node.args[:1] if name in READERS else ()
                yield from (x.value for x in asked if isinstance(x, ast.Constant))


def keys_of(row):
    return {entry.partition("=")[0] for entry in row.tiling.split() if "=" in entry}


def test_every_op_is_on_the_page_and_no_other(tables):
    assert first_cells(tables["op"]) == set(predictors())


def test_every_key_that_is_read_is_on_the_page_and_no_other(tables, simulated):
    read_by_name = {key for key in keys_in_code() if str(key).isidentifier()}
    read_by_loop = set().union(*map(keys_of, simulated))  # such as a and b, of which each has a row
    assert {"cores", "l1", "kv_heads"} <= read_by_name
    assert first_cells(tables["key"]) == read_by_name | read_by_loop


def test_every_key_of_the_projects_rows_is_said_to_be_of_their_op(tables, simulated):
    page = (FOLDER / "TABLES.md").read_text()
    part = page.partition("### Of every kernel\n")[2].partition("\n### ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| `")]
    every = {name for line in lines for name in named(line.split("|")[1])}
    assert "cores" in every
    taken = {op: set(named(row[3])) for row in tables["op"] for op in named(row[0])}
    wrong = {(r.op, key) for r in simulated for key in keys_of(r) - every - taken[r.op]}
    assert not wrong


def test_columns_and_what_may_be_empty(tables):
    rows = tables["column"]
    assert [named(row[0])[0] for row in rows] == list(COLUMNS)
    assert {named(row[0])[0] for row in rows if row[1] == "no"} == {*NEEDED, "shapes", "dtypes"}
    (trust,) = [row[2] for row in rows if row[0] == "`trust`"]
    assert tuple(named(trust)) == TRUST


def test_every_type_and_unit_is_on_the_page(tables):
    page = (FOLDER / "TABLES.md").read_text()
    types = page[page.index("## Element types") :].partition(". ")[0]
    assert set(named(types)) == set(BYTES)
    told = {"us"}.union(*(re.split(r", | \(", row[4].strip()) for row in tables["op"] if len(row) == 5))
    assert set(UNITS) - UNUSED <= told
