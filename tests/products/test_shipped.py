"""The shipped files: all load, every figure is complete, and derived rates match hand arithmetic."""

from __future__ import annotations

import re
import time

import pytest

from ascendtile.simulator.products import load_product, loading, product_names
from ascendtile.simulator.products.spec import ASSUMED_GRADE, GRADES, required_keys, rule_for

NAMES = (
    "ascend310b",
    "ascend310p",
    "ascend910a",
    "ascend910b1",
    "ascend910b2",
    "ascend910b3",
    "ascend910b4",
    "ascend910c",
)


def test_shipped_names():
    assert product_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_has_unit_source_grade_and_a_rule(name):
    product = load_product(name)
    for figure in product.figures():
        rule = rule_for(figure.key)
        assert rule is not None
        assert figure.unit == rule.unit
        assert figure.source.strip()
        assert figure.grade in GRADES
        assert not figure.overridden


@pytest.mark.parametrize("name", NAMES)
def test_every_mandatory_figure_is_present(name):
    product = load_product(name)
    assert [key for key in required_keys(product.core_model) if not product.has(key)] == []
    for dtype in product.texts("dtypes.cube_inputs"):
        assert product.integer(f"cube.k_per_cycle.{dtype}") > 0
        assert product.integer(f"cube.k0.{dtype}") > 0


@pytest.mark.parametrize("name", NAMES)
def test_source_ids_are_explained(name):
    product = load_product(name)
    text = " ".join(f"{figure.source} {figure.note or ''}" for figure in product.figures())
    known = [
        "INI",
        "CAM",
        "TIK",
        "KUC",
        "DOC",
        "EX",
        "MSO",
        "KPP",
        "PTO",
        "PTO0",
        "PYP",
        "NPUIR",
        "OPSNN",
        "AIB",
        "CM384",
        "WEB",
        "CALC",
        "OPP",
        "HC31",
    ]
    used = {word for word in known if re.search(rf"\b{word}\b", text)}
    assert used <= set(product.sources)


@pytest.mark.parametrize("name", NAMES)
def test_assumed_is_grade_d(name):
    product = load_product(name)
    expected = tuple(figure for figure in product.figures() if figure.grade == ASSUMED_GRADE)
    assert product.assumed() == expected
    assert expected


@pytest.mark.parametrize("name", NAMES)
def test_carried_over_figures_are_assumed(name):
    for figure in load_product(name).figures():
        if re.search(r"carried over|reused|taken equal|taken over|inferred|assumed", figure.source):
            assert figure.grade == ASSUMED_GRADE or figure.source.startswith("taken equal to add"), figure


@pytest.mark.parametrize("name", ["ascend910a", "ascend310p", "ascend310b"])
def test_vector_table_of_a_coupled_core_is_assumed(name):
    product = load_product(name)
    assert all(figure.assumed for figure in product.figures("vector.op."))
    assert not load_product("ascend910b1").figure("vector.op.add.per_repeat.fp16").assumed


def test_310p_integers_run_at_its_own_lanes():
    product = load_product("ascend310p")
    assert product.value("vector.op.add.per_repeat.int16") == 128 / 32
    assert product.value("vector.op.add.per_repeat.int32") == 64 / 16
    assert product.value("vector.op.add.per_repeat.fp16") == 1


@pytest.mark.parametrize(
    ("name", "hbm", "l2", "tflops"),
    [
        ("ascend910b1", 1.8e12 / 1.85e9, 6.0e12 / 1.85e9, 363.7),
        ("ascend910b3", 1.75e12 / 1.8e9, 5.84e12 / 1.8e9, 294.9),
        ("ascend910b4", 0.8e12 / 1.65e9, 5.0e12 / 1.65e9, 270.3),
        ("ascend910a", 1.228e12 / 1.0e9, 110.0 * 32, 262.1),
        ("ascend310p", 0.204e12 / 1.06e9, 114.0 * 8, 69.5),
        ("ascend310b", 17.0, 256.0, 10.0),
    ],
)
def test_derived_rates(name, hbm, l2, tflops):
    product = load_product(name)
    assert product.hbm_bytes_per_cycle == pytest.approx(hbm, rel=1e-3)
    assert product.l2_bytes_per_cycle == pytest.approx(l2, rel=1e-3)
    macs = product.number("cube.m") * product.number("cube.n") * product.number("cube.k_per_cycle.fp16")
    assert 2 * macs * product.cube_cores * product.aicore_mhz / 1e6 == pytest.approx(tflops, abs=0.06)


def test_time_and_cycles():
    product = load_product("ascend910b1")
    assert product.cycles_to_us(3700) == 2.0
    assert product.us_to_cycles(0.5) == 925.0


def test_numerics_and_storage_follow_the_product():
    for name in NAMES:
        product = load_product(name)
        a2 = product.core_model == "split"
        assert product.text("numerics.overflow_mode") == ("inf_nan" if a2 else "saturate")
        assert product.text("numerics.sum_order") == ("tree_sequential" if a2 else "tree_tree")
        assert ("bf16" in product.texts("dtypes.storage")) == (name not in ("ascend910a", "ascend310p"))


def test_published_ranges_hold_the_value():
    figure = load_product("ascend910b1").figure("cube.startup_cycles")
    assert (figure.low, figure.value, figure.high) == (2.0, 2.1, 6.0)


def test_loading_is_cached_and_fast():
    loading._shipped.cache_clear()
    start = time.perf_counter()
    first = load_product("ascend910b2")
    assert time.perf_counter() - start < 0.5  # 11 ms measured; the limit leaves room for a busy machine
    assert load_product("ascend910b2") is first
