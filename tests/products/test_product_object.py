"""A Product as an object: typed reading, identity, round trip, and the views of it."""

from __future__ import annotations

import copy
import dataclasses
import io
import json

import pytest
from rich.console import Console

from ascendtile.reports.terminal.products_view import (
    product_json,
    product_page,
    products_json,
    products_table,
)
from ascendtile.simulator.errors import ProductError
from ascendtile.simulator.products import Product, load_product, product_names

B3 = "ascend910b3"


def rendered(renderable, width=80):
    console = Console(file=io.StringIO(), width=width)
    console.print(renderable)
    return console.file.getvalue()


def test_typed_properties():
    p = load_product(B3)
    sizes = (p.ub_bytes, p.l1_bytes, p.l0a_bytes, p.l0b_bytes, p.l0c_bytes, p.bt_bytes)
    assert sizes == (196608, 524288, 65536, 65536, 131072, 1024)
    assert (p.cube_cores, p.vector_cores, p.aiv_per_aic, p.aicore_mhz) == (20, 40, 2, 1800.0)
    assert (p.name, p.title, p.core_model) == (B3, "Ascend 910B3", "split")


def test_reading_by_key():
    p = load_product(B3)
    assert p.value("path.gm_to_ub.pipe") == p.text("path.gm_to_ub.pipe") == "MTE2"
    assert p.texts("dtypes.vector_arithmetic") == ("fp16", "fp32", "int16", "int32")
    assert p.has("buffers.ub")
    assert not p.has("path.gm_to_l0a.bytes_per_cycle")
    assert p.keys()[0] == "product.name"
    assert {figure.key.split(".")[1] for figure in p.figures("path.")} >= {"gm_to_ub", "ub_to_gm"}


@pytest.mark.parametrize(
    ("method", "key", "message"),
    [
        ("value", "buffers.ubb", "ascend910b3 has no figure 'buffers.ubb'; did you mean buffers.ub"),
        ("number", "product.name", "product.name is not a number but 'Ascend 910B3'"),
        ("integer", "clock.aicore_mhz", "is not a whole number but 1800.0"),
        ("text", "buffers.ub", "buffers.ub is not a text but 196608"),
        ("texts", "buffers.ub", "buffers.ub is not a list but 196608"),
    ],
)
def test_wrong_reading_is_a_product_error(method, key, message):
    with pytest.raises(ProductError, match=message):
        getattr(load_product(B3), method)(key)


def test_product_and_figure_are_frozen():
    p = load_product(B3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        p.name = "x"
    with pytest.raises(dataclasses.FrozenInstanceError):
        p.figure("buffers.ub").value = 1
    with pytest.raises(TypeError):
        p.figures_by_key["buffers.ub"] = None


def test_round_trip_through_json_keeps_product_equal():
    for name in product_names():
        p = load_product(name, {"buffers.ub": "128KiB"})
        again = Product.from_dict(json.loads(json.dumps(p.to_dict())))
        assert again == p
        assert hash(again) == hash(p)
        assert again.fingerprint == p.fingerprint
        assert again.figure("buffers.ub").overridden


def test_deep_copy_is_equal():
    assert copy.deepcopy(load_product(B3)) == load_product(B3)


def test_fingerprint_follows_values_only():
    p = load_product(B3)
    assert len({load_product(name).fingerprint for name in product_names()}) == len(product_names())
    assert load_product(p, {"buffers.ub": 196608}).fingerprint == p.fingerprint
    assert load_product(p, {"buffers.ub": 196640}).fingerprint != p.fingerprint
    assert load_product(p, {"buffers.ub": 196608}) != p


@pytest.mark.parametrize(
    "data", [None, 3, {}, {"figures": {}}, {"name": 1, "figures": {}}, {"name": "x", "figures": {"a": 1}}]
)
def test_damaged_record_is_a_product_error(data):
    with pytest.raises(ProductError):
        Product.from_dict(data)


def test_table_of_products_fits_80_columns():
    text = rendered(products_table([load_product(name) for name in product_names()]))
    assert max(map(len, text.splitlines())) <= 80
    assert "294.9" in text
    assert "192/512" in text


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", product_names())
def test_page_fits_80_columns_and_marks_assumed(name):
    text = rendered(product_page(load_product(name), assumed_only=False))
    assert max(map(len, text.splitlines())) <= 80
    assert "D*" in text
    assert "[buffers]" in text


def test_page_of_assumed_figures_only():
    p = load_product(B3)
    text = rendered(product_page(p, assumed_only=True))
    assert "cross_core_model_cycles" in text
    assert "[buffers]" not in text
    assert set(product_json(p, assumed_only=True)["figures"]) == {figure.key for figure in p.assumed()}


def test_json_views_are_plain_data():
    p = load_product(B3)
    assert json.loads(json.dumps(product_json(p)))["figures"]["buffers.ub"]["value"] == 196608
    row = json.loads(json.dumps(products_json([p])))["products"][0]
    assert row["cube_fp16_tflops"] == pytest.approx(294.912)
