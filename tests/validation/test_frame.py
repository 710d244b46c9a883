"""Tables, statistics and groups of the validation, apart from what the project predicts."""

import csv
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.kernels.validation import (
    Prediction,
    RankingCase,
    Row,
    predicts,
    read_table,
    read_tables,
    registry,
    summarise,
    validate,
)
from ascendtile.kernels.validation.accuracy.statistics import spearman
from ascendtile.kernels.validation.table import COLUMNS
from ascendtile.simulator.errors import BufferOverflowError, UsageError
from ascendtile.simulator.products import load_product

GOOD = {
    "id": "a", "product": "ascend910b1", "op": "test twice", "group": "g", "shapes": "4", "dtypes": "fp16",
    "tiling": "", "measured": "8", "unit": "us", "fitted": "no", "trust": "A", "excluded": "", "source": "s",
    "note": "",
}  # fmt: skip

PARTS = ("", ": fitted", ": not fitted")


@pytest.fixture(autouse=True)
def double(monkeypatch):
    """An op "test twice" that predicts twice its shape, and "test fails" that does not fit."""
    monkeypatch.setattr(registry, "_predictors", dict(registry.predictors()))

    @predicts("test twice")
    def twice(row):
        return Prediction(2.0 * float(row.shapes), float(row.shapes), "doubled")

    @predicts("test fails")
    def fails(row):
        raise BufferOverflowError("ub overflow, 2 against 1 bytes")


@pytest.fixture
def table(tmp_path):
    """Writes rows that differ from a good one as told; gives the path."""

    def write(*changes, columns=COLUMNS):
        path = tmp_path / "mine.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(GOOD | change for change in changes)
        return path

    return write


def test_a_row_is_read_with_all_its_cells(table):
    (row,) = read_table(table({"note": 'with "quotes", and a comma'}))
    assert row == Row(
        **{**GOOD, "measured": 8.0, "fitted": False, "note": 'with "quotes", and a comma'}, table="mine"
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"measured": "fast"}, "line 2: measured 'fast' is not a number"),
        ({"measured": "nan"}, "finite and above 0, got nan"),
        ({"measured": "-3"}, "finite and above 0, got -3"),
        ({"measured": "1e999"}, "finite and above 0, got 1e999"),
        ({"unit": "hours"}, "unit 'hours' is not one of us, cycles"),
        ({"fitted": "maybe"}, "fitted 'maybe' is not one of yes, no"),
        ({"trust": "Z"}, "trust 'Z' is not one of A, B, C"),
        ({"product": "h100"}, "product 'h100' is not one of ascend310b"),
        ({"source": " "}, "source is empty"),
        ({"note": "x" * 2001}, "note has 2001 characters, at most 2000"),
        ({"note": "x" * 200_000}, "not a CSV table: field larger than field limit"),
    ],
)
def test_a_broken_row_names_line_cell_and_rule(table, change, words):
    with pytest.raises(UsageError, match=r"mine\.csv") as error:
        read_table(table(change))
    assert words in str(error.value)


def test_a_broken_file_is_an_error_in_words(table, tmp_path):
    with pytest.raises(UsageError, match="'a' is there twice"):
        read_table(table({}, {}))
    with pytest.raises(UsageError, match="line 1: source missing"):
        read_table(table({}, columns=[c for c in COLUMNS if c != "source"]))
    for content, words in (
        (b"", "empty; the first line"),
        (b"\xff\xfe", "not UTF-8"),
        (",".join(COLUMNS).encode() + b"\na,b\n", "line 2: 2 cells, the first line names 14"),
        (",".join(COLUMNS).encode() + b'\n"a"b', "not a CSV table"),
    ):
        (tmp_path / "bad.csv").write_bytes(content)
        with pytest.raises(UsageError, match=words):
            read_table(tmp_path / "bad.csv")
    with pytest.raises(UsageError, match="No such file"):
        read_table(tmp_path / "none.csv")


def test_the_projects_tables_are_whole_and_everything_in_them_is_predicted():
    rows = read_tables()
    known = registry.predictors()
    assert {r.op for r in rows if not r.excluded} <= set(known)


def test_what_is_not_simulated_has_a_row_and_a_reason():
    """Measurements of others.csv have a figure, a reason, and no row of the same name that is simulated."""
    rows = read_tables()
    others = [r for r in rows if r.table == "others"]
    assert len(others) > 60
    # what is simulated moves to the other table
    assert len(others) + sum(r.table == "kernels" for r in rows) > 415
    assert all(r.excluded and r.measured and not r.fitted for r in others)
    found = validate(others)
    assert not found.failed
    assert not found.groups
    assert {r.failure for r in found.results if r.prediction is None} <= {r.excluded for r in others}
    assert len(found.not_simulated) > 0.95 * len(others)


def test_every_attention_that_is_not_sparse_counts():
    rows = [r for r in read_tables() if r.op == "flash_attention"]
    assert len(rows) == 44
    assert {(r.table, r.group, r.excluded) for r in rows} == {("kernels", "attention", "")}
    in_step = {r.id for r in rows if r.id.startswith("pto-fajit-") and "cores=16 " in r.tiling}
    assert {r.id for r in rows if r.fitted} == {*in_step, "pto-fa-8192-pto"}


def test_errors_groups_and_what_is_not_judged(table):
    rows = read_table(
        table(
            {},
            {"id": "b", "shapes": "5", "fitted": "yes"},
            {"id": "c", "shapes": "1", "excluded": "a power cut"},
            {"id": "d", "op": "test fails"},
            {"id": "e", "measured": ""},
            {"id": "f", "op": "nobody knows", "excluded": "no such unit"},
        )
    )
    found = validate(rows)
    assert [r.error for r in found.results] == [0.0, 0.25, -0.75, None, None, None]
    assert [r.row.id for r in found.excluded] == ["c", "f"]
    assert [(r.row.id, r.failure) for r in found.failed] == [("d", "ub overflow, 2 against 1 bytes")]
    names = {g.name: g.summary for g in found.groups}
    assert list(names) == [
        *(f"g{part}" for part in PARTS),
        *("held out: A2 and A3", "held out: all"),
        *(f"all of mine{part}" for part in PARTS),
    ]
    assert names["g"].rows == 2
    assert names["g"].median_abs_error == pytest.approx(0.125)
    assert names["g: fitted"].median_abs_error == 0.25
    assert names["g: not fitted"].roofline_median_abs_error == 0.5


def test_an_unknown_op_or_group_is_wrong_usage(table):
    with pytest.raises(UsageError, match="nothing predicts the op 'walk'"):
        validate(read_table(table({"op": "walk"})))
    with pytest.raises(UsageError, match="no group 'gg'; there are 'mine', 'g'; did you mean 'g'"):
        validate(read_table(table({})), ["gg"])
    assert len(validate(read_table(table({}, {"id": "b", "group": "h"})), ["h"]).results) == 1


@pytest.mark.parametrize(("shapes", "right"), [("123", True), ("132", False), ("122", False)])
@pytest.mark.parametrize("unit", ["us", "GiB/s"])
def test_an_order_must_come_out_as_published(table, shapes, right, unit):
    order = shapes if unit == "us" else shapes[::-1]
    rows = [{"id": f"r{k}", "shapes": s, "measured": "", "unit": unit} for k, s in enumerate(order)]
    if unit != "us" and shapes == "132":
        right = False
    case = RankingCase("three", ("r0", "r1", "r2"), "a test")
    (group,) = validate(read_table(table(*rows)), cases=[case]).groups
    assert (group.name, group.right, group.summary.rows) == ("ranking: three", right, 3)
    assert (group.summary.spearman == pytest.approx(1)) is right


def test_a_case_may_ask_for_the_winner_only(table):
    rows = read_table(table(*({"id": f"r{k}", "shapes": s, "measured": ""} for k, s in enumerate("132"))))
    case = RankingCase("winner", ("r0", "r1", "r2"), "a test", only_first=True)
    assert [g.right for g in validate(rows, cases=[case]).groups] == [True]


def test_a_case_may_allow_ties_where_it_says_so(table):
    rows = read_table(table(*({"id": f"r{k}", "shapes": s, "measured": ""} for k, s in enumerate("1223"))))
    ids = tuple(r.id for r in rows)

    def right(*ties):
        case = RankingCase("four", ids, "a test", ties=ties)
        return [g.right for g in validate(rows, cases=[case]).groups]

    assert right("r2") == [True]
    assert right() == right("r1", "r3") == [False]


def test_kernels_that_nothing_was_fitted_on_are_summed_up_by_family_whatever_their_group(table):
    rows = read_table(
        table(
            {"group": "memcpy"},
            {"id": "b", "group": "memory-bound", "shapes": "5", "product": "ascend910c"},
            {"id": "c", "group": "small/launch", "shapes": "100", "fitted": "yes"},
            {"id": "d", "shapes": "16", "product": "ascend910a"},
            {"id": "e", "shapes": "16", "product": "ascend310p", "excluded": "a power cut"},
            {"id": "f", "shapes": "1", "unit": "GiB/s"},
        )
    )
    groups = {g.name: g.summary for g in validate(rows).groups}
    families = {n: (s.rows, s.median_abs_error) for n, s in groups.items() if n.startswith("held out")}
    assert families == {
        "held out: A2 and A3": (2, pytest.approx(0.125)),
        "held out: 910A": (1, 3.0),
        "held out: all": (3, 0.25),
    }
    assert not [g for g in validate(rows[2:3]).groups if g.name.startswith("held out")]


values = st.lists(st.floats(0.1, 1e6), min_size=2, max_size=40)


@given(values)
def test_statistics_agree_with_their_definitions(measured):
    predicted = [m * (1 + (-1) ** k * k / 100) for k, m in enumerate(measured)]
    s = summarise(measured, predicted, [None, *measured[1:]], ["us"] * len(measured))
    errors = sorted(k / 100 for k in range(len(measured)))
    place = 0.9 * (len(errors) - 1)
    low = math.floor(place)
    high = min(low + 1, len(errors) - 1)
    assert s.p90_abs_error == pytest.approx(
        errors[low] + (place - low) * (errors[high] - errors[low]), abs=1e-9
    )
    assert s.median_abs_error == pytest.approx(float(np.median(errors)), abs=1e-9)
    assert s.roofline_median_abs_error == 0


@given(st.permutations(range(12)))
def test_rank_correlation_of_different_values_is_the_textbooks_formula(order):
    n = len(order)
    textbook = 1 - 6 * sum((k - x) ** 2 for k, x in enumerate(order)) / (n * (n * n - 1))
    assert spearman(range(n), np.exp(order)) == pytest.approx(textbook)


def test_rank_correlation_shares_ranks_and_says_nothing_of_constants_or_mixed_units():
    assert spearman([1, 1, 2, 3], [1, 1, 2, 3]) == pytest.approx(1)
    assert spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(4.5 / math.sqrt(4.5 * 5))
    assert spearman([1, 1], [1, 2]) is None
    assert summarise([1, 2], [1, 2], [None, None], ["us", "GiB/s"]).spearman is None
    assert summarise([], [], [], []).median_abs_error is None


HUGE = [
    ("matmul", "99999999999x4096x4096", "fp16,fp16->fp16"),
    ("muls", "99999999999999", "fp16->fp16"),
    ("conv2d", "9x9999999x9999999x64x3x1x1", "fp16"),
    ("rmsnorm_grad", "99999999x99999999", "fp16"),
]


@pytest.mark.parametrize(("op", "shapes", "dtypes"), HUGE)
def test_a_tensor_that_memory_cannot_hold_is_refused_at_once(table, op, shapes, dtypes):
    size = load_product("ascend910b1").integer("memory.size")
    rows = read_table(table({"op": op, "shapes": shapes, "dtypes": dtypes, "tiling": "cores=20"}))
    with pytest.raises(
        UsageError, match=f"a: {op} of {shapes} has a tensor of .*memory of ascend910b1 has {size}"
    ):
        validate(rows)


@pytest.mark.parametrize("op", ["conv2d", "conv2d_backward_input", "conv2d_backward_filter"])
def test_a_convolution_whose_kernel_is_larger_than_its_image_is_refused_by_its_row(table, op):
    rows = read_table(table({"op": op, "shapes": "1x3x64x4x7x2x0", "tiling": "cores=20"}))
    with pytest.raises(UsageError, match="a: the kernel of 7 must not be larger than the padded image of 4"):
        validate(rows)
