"""Figures fitted to measured times: what was changed is found again, what rows say nothing of stays, files are safe."""

import csv

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import ascendtile
from ascendtile.kernels.validation import predict, read_table
from ascendtile.kernels.validation.calibration.figures import changed, fitted_figures, prior, scaled_figures
from ascendtile.kernels.validation.calibration.fit import LinearTimes, PriorKnowledge, fit
from ascendtile.kernels.validation.calibration.product_file import nearest, product_toml
from ascendtile.kernels.validation.calibration.rows import read_rows
from ascendtile.kernels.validation.choices import keep, keeping, kept
from ascendtile.kernels.validation.table import COLUMNS
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.products import load_product, product_names

PRODUCT = "ascend910b3"
MEMORY = "memory.bandwidth_tb_per_s"
SMALL = (4096, 8192, 16384, 32768, 65536)
LARGE = (1 << 21, 3 << 20, 1 << 22, 3 << 21, 1 << 23)


@pytest.fixture
def table(tmp_path):
    """Writes a table of measurements of element-wise kernels; gives the path."""
    return lambda rows: written(tmp_path / "mine.csv", rows)


def written(path, rows):
    usual = dict.fromkeys(COLUMNS, "") | {
        "product": PRODUCT, "group": "mine", "dtypes": "fp16->fp16", "unit": "us", "fitted": "no", "trust": "B",
        "source": "my board", "op": "muls",
    }  # fmt: skip
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(usual | row for row in rows)
    return path


def kernels(product, noise=lambda: 1.0, sizes=SMALL + LARGE):
    """Rows of kernels that all cores share, as long as they take on that product."""
    rows = [
        {"id": f"m{n}", "shapes": n, "tiling": "cores=40 block=8192 l2=cold", "measured": 1} for n in sizes
    ]
    return rows, lambda read: [row | {"measured": predict(r, product).value * noise()} for row, r in read]


def as_measured(path, product, noise=lambda: 1.0, sizes=SMALL + LARGE):
    """The table of what these kernels take on a product."""
    rows, timed = kernels(product, noise, sizes)
    written(path, rows)
    return written(path, timed(list(zip(rows, read_table(path), strict=True))))


def slower_launch(product, us):
    """A product whose launch takes so much longer on all cores, by one factor for all that a launch consists of."""
    figures = [f for f in scaled_figures(product, ("launch.",)) if product.figure(f.key).unit == "us"]
    total = empty_us(product)
    return changed(product, dict.fromkeys(figures, 1 + us / total))


def empty_us(product):
    """A kernel on all cores that does next to nothing."""
    return predict(EMPTY, product).value


@pytest.fixture(autouse=True, scope="module")
def _empty(tmp_path_factory):
    global EMPTY
    path = tmp_path_factory.mktemp("empty") / "empty.csv"
    EMPTY = read_table(
        written(path, [{"id": "e", "shapes": 640, "tiling": "cores=40 block=16 l2=warm", "measured": 1}])
    )[0]


@settings(max_examples=2, phases=[Phase.generate])
@given(seed=st.integers(0, 1000), part=st.floats(0.75, 0.9), longer=st.floats(1.5, 3.0))
def test_a_board_with_another_launch_and_memory_is_found_again(tmp_path_factory, seed, part, longer):
    start = load_product(PRODUCT)
    slower = slower_launch(start, longer)
    board = load_product(slower, {MEMORY: start.number(MEMORY) * part})
    draw = np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("board") / "mine.csv"
    as_measured(path, board, lambda: float(np.exp(draw.normal(0, 0.02))))
    found = ascendtile.calibrate(path, PRODUCT, seed=seed)
    assert found.after.median < 0.05 < found.before.median
    assert found.better
    assert found.calibrated.number(MEMORY) == pytest.approx(board.number(MEMORY), rel=0.08)
    left, wrong = (abs(empty_us(p) - empty_us(board)) for p in (found.calibrated, start))
    assert left < 0.25 * wrong
    assert "path.gm_to_l1_nd2nz.bytes_per_cycle" in dict(found.alone)
    assert found.calibrated.number("path.gm_to_l1_nd2nz.bytes_per_cycle") == start.number(
        "path.gm_to_l1_nd2nz.bytes_per_cycle"
    )


@pytest.mark.exhaustive
def test_a_profile_is_calibrated_as_a_table_is(tmp_path):
    """op_summary of element-wise operators in turn: times are those of a board whose launch is longer by 2 us."""
    head = "OP Type,Task Type,Task Duration(us),Block Dim,Input Shapes,Input Data Types,Output Shapes,Output Data Types"
    kinds = [(op, n) for op in ("Relu", "Muls", "Neg") for n in (SMALL[0], SMALL[3], LARGE[0])]
    path, board = tmp_path / "op_summary_0.csv", slower_launch(load_product(PRODUCT), 2.0)

    def write(us):
        lines = (
            f'{op},AI_VECTOR_CORE,{us[k]},40,"""{n}""",FLOAT16,"""{n}""",FLOAT16'
            for k, (op, n) in enumerate(kinds)
        )
        path.write_text("\n".join([head, *lines]) + "\n")

    write([1] * len(kinds))
    rows = {r.row.id.split()[1]: r.row for r in read_rows(path, load_product(PRODUCT))[0]}
    write([predict(rows[str(k + 2)], board).value for k in range(len(kinds))])
    found = ascendtile.calibrate(path, PRODUCT, leave_out=0.2)
    assert (found.launches, found.left_out) == (len(kinds), ())
    assert found.after.median < 0.05 < found.before.median


@pytest.mark.exhaustive
def test_a_board_like_the_product_changes_no_figure_much_and_one_file_gives_one_answer(tmp_path):
    path = as_measured(tmp_path / "mine.csv", load_product(PRODUCT))
    found, again = (ascendtile.calibrate(path, PRODUCT, leave_out=0.3, seed=7) for _ in range(2))
    assert found == again
    assert found.after.p90 < 0.01
    assert all(f.new == pytest.approx(f.old, rel=0.02) for f in found.figures)
    assert all(
        f.key.startswith(("launch.", "memory.", "clock.", "l2.", "path.gm_to_ub")) for f in found.figures
    )


@pytest.mark.exhaustive
def test_the_file_that_is_written_is_the_product_that_was_found(tmp_path):
    path = as_measured(tmp_path / "a board's.csv", slower_launch(load_product(PRODUCT), 2.0))
    found, target = ascendtile.calibrate(path, PRODUCT), tmp_path / "mine.toml"
    found.save(target)
    read = load_product(target)
    assert read.fingerprint == found.calibrated.fingerprint
    for f in found.figures:
        assert read.figure(f.key).grade == "C"
        assert read.figure(f.key).source.startswith("calibrated on a board's.csv: ")
    with pytest.raises(UsageError, match=r"mine\.toml exists; take another name, or --force"):
        found.save(target)
    found.save(target, force=True)
    with pytest.raises(UsageError, match=r"must end in \.toml"):
        found.save(tmp_path / "mine.txt")
    again = ascendtile.calibrate(path, target)  # from the user's own product, on its own rows
    assert again.calibrated.figures_by_key.keys() == read.figures_by_key.keys()
    assert again.fitted_after.median < 0.01
    assert [line for line in again.toml().splitlines() if line.startswith("base")] == [f'base = "{PRODUCT}"']


@pytest.mark.parametrize("name", product_names())
def test_a_product_file_without_changes_reads_back_as_its_product(name, tmp_path):
    product = load_product(name, {"launch.kernel_head_us": 0.9}) if name == PRODUCT else load_product(name)
    (tmp_path / "same.toml").write_text(product_toml(product, [], "odd\x07 name\ud800"))
    assert nearest(product).name == name
    assert load_product(tmp_path / "same.toml").fingerprint == product.fingerprint


def test_too_few_rows_and_wrong_options_are_refused_in_words(table, tmp_path):
    few = [{"id": f"m{n}", "shapes": n, "tiling": "cores=40 block=8192", "measured": 9} for n in SMALL[:4]]
    with pytest.raises(UsageError, match=r"4 different kernels .* 4 or more have to stay when 25% are left"):
        ascendtile.calibrate(table(few), PRODUCT)
    lost = {"id": "x", "op": "dream", "shapes": 1, "measured": 5}
    with pytest.raises(UsageError, match="Not used are dream: nothing predicts it"):
        ascendtile.calibrate(table([*few, lost]), PRODUCT)
    assert ascendtile.calibrate(table(few), PRODUCT, leave_out=0).before.rows == 0
    with pytest.raises(UsageError, match=r"leave_out must be from 0 to 0\.9, got 1"):
        ascendtile.calibrate(table(few), PRODUCT, leave_out=1)


@pytest.mark.exhaustive
def test_rows_that_cannot_be_used_are_told_with_the_reason(table):
    sizes = [
        {"id": f"m{n}", "shapes": n, "tiling": "cores=40 block=8192", "measured": n / 1e5} for n in LARGE
    ]
    odd = [
        {"id": "a", "op": "dream", "shapes": 1, "measured": 5},
        {
            "id": "b",
            "shapes": 4096,
            "tiling": "cores=40 block=8192",
            "measured": 5,
            "excluded": "the board was hot",
        },
        {"id": "c", "shapes": 4096, "tiling": "cores=40 block=8192", "measured": 5, "product": "ascend910b4"},
        {"id": "d", "shapes": 4096, "tiling": "cores=40 block=8192", "measured": 5, "unit": "GB/s"},
        {"id": "e", "shapes": 4096, "tiling": "cores=many", "measured": 5},
    ]
    found = ascendtile.calibrate(table(sizes + odd), PRODUCT, leave_out=0, most_rows=5)
    assert found.capped == 1
    told = {(x.type, x.reason) for x in found.left_out}
    assert ("dream", "nothing predicts it") in told
    assert {"the board was hot", "measured on ascend910b4", "no time in us (GB/s)"} <= {
        why for _, why in told
    }
    found = ascendtile.calibrate(table(sizes + odd), PRODUCT, leave_out=0)
    assert any("cores=<whole number>" in x.reason for x in found.left_out)


def test_rows_that_are_too_few_because_of_a_limit_name_the_limit(table):
    rows = [{"id": f"m{n}", "shapes": n, "tiling": "cores=40 block=8192", "measured": 9} for n in SMALL]
    with pytest.raises(UsageError, match=r"that --most-rows keeps .4 are left. .* a larger --most-rows"):
        ascendtile.calibrate(table(rows), PRODUCT, most_rows=1)
    with pytest.raises(UsageError, match=r"of this file can be predicted.* give a longer profile"):
        ascendtile.calibrate(table(rows[:3]), PRODUCT)


values = st.floats(0.5, 2.0)


@given(true=st.tuples(values, values), seed=st.integers(0, 99), outlier=st.floats(3.0, 30.0))
def test_the_fit_finds_two_figures_and_lets_outliers_be(true, seed, outlier):
    """Times that are sums of two parts, one of them wrong by a large factor."""
    draw = np.random.default_rng(seed)
    parts = draw.uniform(1, 100, (30, 2))
    measured = parts @ np.array(true) * np.exp(draw.normal(0, 0.01, 30))
    measured[0] *= outlier
    line = LinearTimes(parts.sum(axis=1), parts, np.zeros(2))
    found = fit(line, measured, PriorKnowledge(np.zeros(2), np.full(2, 0.5), np.log(4)))
    assert np.exp(found.log_u) == pytest.approx(true, rel=0.05)
    assert found.condition < 30
    assert not found.together


@given(true=values)
def test_what_rows_tell_only_together_is_said_and_shared_by_what_is_known_before(true):
    parts = np.linspace(1, 2, 20)[:, None] * np.array([[1.0, 1.0, 0.0]]) + np.array([[0.0, 0.0, 5.0]])
    line = LinearTimes(parts.sum(axis=1), parts, np.zeros(3))
    known = PriorKnowledge(np.zeros(3), np.array([0.5, 0.01, 0.5]), np.log(4))
    found = fit(line, line.base + (true - 1) * parts[:, 0], known)
    assert found.condition > 1e5
    assert found.together == (0, 1)
    assert abs(found.log_u[1]) < 0.05
    assert np.exp(found.log_u[0]) == pytest.approx(true, rel=0.1)


@given(name=st.sampled_from(product_names()), slow=st.floats(0.5, 2.0))
@settings(max_examples=5)
def test_a_slower_figure_makes_things_slower_and_its_range_is_around_the_value(name, slow):
    product = load_product(name)
    for f in (*scaled_figures(product), *fitted_figures(product)):
        value = changed(product, {f: slow}).number(f.key)
        assert value == pytest.approx(product.number(f.key) * (1 / slow if f.rate else slow))
        assert prior(product, f, at_value=True).centre == 0
        far = prior(product, f, at_value=False)
        assert far.told or far.centre == 0
        assert abs(far.centre) <= far.width + 1e-9


def test_a_choice_is_kept_for_a_row_and_only_inside():
    keep("a", [1, 2, 3], 2)
    assert kept("a", [1, 2, 3]) == [1, 2, 3]
    with keeping():
        keep("a", [1, 2, 3], 2)
        assert kept("a", [1, 2, 3]) == [2]
        assert kept("b", [1, 2, 3]) == [1, 2, 3]
        assert kept("a", [1, 2]) == [1, 2]
    assert kept("a", [1, 2, 3]) == [1, 2, 3]
