"""`ascendtile ops` and `ascendtile products`."""

from __future__ import annotations

import json

import pytest

from ascendtile.kernels import operators
from ascendtile.simulator.products import product_names


def read(answer):
    assert (answer.status, answer.err) == (0, "")
    return json.loads(answer.out)


def test_ops_as_json(ascendtile):
    data = read(ascendtile("ops", "--json"))
    assert set(data) == {"ops"}
    assert list(data["ops"]) == list(operators())
    one = data["ops"]["rms_norm_grad"]
    assert one["cases"]["llama3-8b"]["sizes"] == {"rows": 2048, "cols": 4096}
    assert one["parameters"]["rows"]["low"] == 1
    assert "full_row" in one["parameters"]["strategy"]["choices"]
    assert read(ascendtile("ops", "RmsNormGrad", "--json")) == {"ops": {"rms_norm_grad": one}}


def test_every_op_has_a_row_and_a_page(ascendtile):
    table = ascendtile("ops").out
    for name, op in operators().items():
        assert name in table
        page = ascendtile("ops", name).out
        words = [*op.cases, *(p.name for p in (*op.parameters, *op.options)), *op.required, *op.outputs]
        assert all(word in page for word in words)
        assert all(len(line) <= 80 for line in page.splitlines())


def test_unknown_op(refused):
    assert "unknown operator 'nothing'; known are" in refused("ops", "nothing", "--json")


def test_every_product_has_a_row(ascendtile):
    answer = ascendtile("products")
    assert all(name in answer.out for name in product_names())
    assert all(len(line) <= 80 for line in answer.out.splitlines())
    assert [p["name"] for p in read(ascendtile("products", "--json"))["products"]] == list(product_names())


def test_one_product(ascendtile):
    page = ascendtile("products", "ascend910b3", "--set", "buffers.ub=256KiB", "l2.size=1MiB").out
    assert "262144 bytes" in page
    assert "1048576 bytes" in page
    assert all(len(line) <= 80 for line in page.splitlines())
    assumed = read(ascendtile("products", "ascend910b3", "--assumed", "--json"))
    assert len(assumed["figures"]) == assumed["assumed"]
    assert {f["grade"] for f in assumed["figures"].values()} == {"D"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["products", "--assumed"], "--assumed needs the NAME of a product"),
        (["products", "--set", "a=1"], "--set needs the NAME of a product"),
        (["products", "ascend910b3", "--set", "bufers.ub=1"], "did you mean buffers.ub"),
        (["products", "none.toml"], "cannot read product file 'none.toml'"),
    ],
)
def test_wrong_input(refused, arguments, message):
    assert message in refused(*arguments)
