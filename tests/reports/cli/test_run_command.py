"""`ascendtile run` and `ascendtile report`: what is run, what is shown, what is refused and how."""

from __future__ import annotations

import json
import os

import ml_dtypes
import numpy as np
import pytest

import ascendtile.kernels as kernels
from ascendtile.kernels import get_operator
from ascendtile.kernels.operator.draw import DISTRIBUTIONS
from ascendtile.reports.cli.options import spread
from ascendtile.reports.facts.repeat_command import repeat_command
from ascendtile.simulator import load_run
from ascendtile.simulator.device import CUBE_MATH_TYPES, DEFAULT_PRODUCT

TINY = ("run", "rms_norm_grad", "--case", "tiny")
TEXTS = {"op", "product", "case", "dtype", "cube_math_type"}
FIGURES = {"time_us", "cycles", "bound", "bounds", "pipes", "buffers"}
KEYS = TEXTS | FIGURES | {"tiling", "launches", "lines", "errors", "warnings"}


@pytest.fixture
def tiny(tmp_path):
    """The inputs of the tiny case, in float16."""
    return get_operator("rms_norm_grad").inputs("tiny", "float16")


@pytest.fixture
def from_file(tmp_path, refused):
    """The message for a file given to --input."""

    def message(data, operator="rms_norm_grad"):
        path = tmp_path / "x.npz"
        if callable(data):
            with open(path, "wb") as file:
                data(file)
        else:
            path.write_bytes(data)
        text = refused("run", operator, "--input", path)
        return text.removeprefix(f"{path}: ")

    return message


def read(answer):
    assert (answer.status, answer.err) == (0, "")
    return json.loads(answer.out)


# ---- what is run ----


def test_busy_and_waits_add_up_and_sharing_bandwidth_is_part_of_busy(ascendtile):
    """40 cores load at once: with the time that sharing adds the loads' pipe would be busy and wait longer than it runs."""
    run = ("run", "rms_norm", "--product", "ascend910b4", "--size", "rows=640", "cols=4096", "--no-values")
    run = (*run, "--l2", "cold")
    data = read(ascendtile(*run, "--json"))
    for pipe in data["pipes"].values():
        assert pipe["busy_cycles"] + sum(pipe["waits"].values()) == pytest.approx(data["cycles"])
        assert 0 <= pipe["of_busy"]["bandwidth"] <= pipe["busy_cycles"]
    loading = data["pipes"]["AIV.MTE2"]
    assert loading["busy_cycles"] + sum(loading["stalls"].values()) > 1.1 * data["cycles"]
    page = ascendtile(*run).out.splitlines()
    row = next(k for k, line in enumerate(page) if line.startswith("AIV.MTE2"))
    assert "bandwidth" not in page[row]
    assert page[row + 1].startswith("  of which")
    assert page[row + 1].endswith("for shared bandwidth")


def test_operators_take_explain_and_explain_anyway(ascendtile, refused):
    plain, asked = (read(ascendtile(*TINY, "--no-values", *more, "--json")) for more in ((), ("--explain",)))
    assert plain == asked
    assert asked["interval_us"] is not None
    assert "--explain times launches again" in refused(*TINY, "--no-time", "--explain")
    assert "  --explain " in ascendtile("run", "--help").out


@pytest.mark.exhaustive
def test_what_is_in_l2_is_chosen_told_and_repeated(ascendtile, refused, tmp_path):
    run, kept = (*TINY, "--no-values"), str(tmp_path / "x.run")
    loop, cold = (read(ascendtile(*run, *more, "--json")) for more in ((), ("--l2", "cold")))
    assert (loop["l2"], cold["l2"]) == ("loop", "cold")
    assert loop["launches"][-1]["resources_bytes"]["HBM"] < cold["launches"][-1]["resources_bytes"]["HBM"]
    assert loop["l2_left_bytes"] == loop["launches"][-1]["l2_left_bytes"] > 0
    named = read(ascendtile(*run, "--l2", "dy=warm,x_ptr=cold", "--json", "--save", kept))
    assert named["l2"] == "dy=warm,x_ptr=cold"
    assert "--l2 dy=warm,x_ptr=cold" in repeat_command(load_run(kept))
    page = " ".join(ascendtile(*run, "--l2", "cold").out.split())
    assert "l2 empty at the start (cold); at the end" in page
    for given, words in (
        ("*=cold", "l2 empty at the start (cold); at the end"),
        ("dy=warm,*=cold", "l2 dy=warm, the others cold; at the end"),
        ("dy=warm,*=loop", "l2 dy=warm, the others as the same run left them; at the end"),
    ):
        assert words in " ".join(ascendtile(*run, "--l2", given).out.split())
    for wrong in ("hot", "x=hot", "x=warm,", "x=warm,x=cold", "=warm"):
        assert "is not one of loop, cold, warm, or by tensor argument" in refused(*run, "--l2", wrong)
    assert "has no tensor argument 'q'" in refused(*run, "--l2", "q=warm")


def test_json_of_a_run(ascendtile):
    data = read(ascendtile(*TINY, "--dtype", "bfloat16", "--json"))
    assert set(data) >= KEYS
    assert (data["op"], data["case"], data["dtype"], data["product"]) == (
        "rms_norm_grad",
        "tiny",
        "bfloat16",
        "ascend910b3",
    )
    assert 0 < data["bound"]["fraction"] <= 1
    assert data["bound"]["time_us"] == data["bounds"][data["bound"]["name"]]
    assert set(data["errors"]) == {"dx", "dgamma"}
    assert data["time_us"] == pytest.approx(sum(x["time_us"] for x in data["launches"]))
    assert data["buffers"]["UB"]["peak_bytes"] <= data["buffers"]["UB"]["capacity_bytes"]
    assert all(os.path.isfile(line["file"]) for line in data["lines"])


def test_page_of_a_run(ascendtile):
    answer = ascendtile(*TINY)
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.startswith("rms_norm_grad  tiny  float16\ndevice  Ascend 910B3 (ascend910b3)\n")
    for part in (
        "time",
        "bound",
        "lower bounds",
        "pipes",
        "buffers at",
        "error against",
        "the lines that cost",
        "keep",
    ):
        assert f"\n{part}" in answer.out
    assert all(len(line) <= 80 for line in answer.out.splitlines())


def test_without_a_case_the_first_one_runs(ascendtile):
    data = read(ascendtile("run", "rms_norm_grad", "--no-values", "--json"))
    assert data["case"] == next(iter(get_operator("rms_norm_grad").cases))


def test_help_names_what_the_simulator_has(ascendtile):
    text = ascendtile("run", "--help").out
    assert all(name in text for name in (*CUBE_MATH_TYPES, *DISTRIBUTIONS))
    assert f"without, {DEFAULT_PRODUCT}." in " ".join(text.split())


def test_values_only_and_time_only(ascendtile):
    values = read(ascendtile(*TINY, "--no-time", "--json"))
    assert (values["time_us"], values["launches"], values["bound"]) == (None, [], None)
    assert values["errors"]["dx"]["max_abs"] > 0
    time = read(ascendtile(*TINY, "--no-values", "--json"))
    assert time["errors"] == {}
    assert time["cycles"] > 0


def test_names_of_aclnn_and_any_spelling(ascendtile):
    for name in ("RmsNormGrad", "aclnnRmsNormGrad", "rms-norm-grad"):
        assert (
            read(ascendtile("run", name, "--case", "tiny", "--no-values", "--json"))["op"] == "rms_norm_grad"
        )


def test_tiling_takes_several_after_one_flag_and_may_repeat(ascendtile):
    knobs = ("--tiling", "strategy=split_row", "cols=64", "--tiling", "buffers=1")
    tiling = read(ascendtile(*TINY, *knobs, "--no-values", "--json"))["tiling"]
    assert (tiling["strategy"], tiling["cols"], tiling["buffers"]) == ("split_row", 64, 1)
    before = (
        "run",
        "--tiling",
        "rows=1",
        "cols=64",
        "rms_norm_grad",
        "--case",
        "tiny",
        "--no-values",
        "--json",
    )
    assert read(ascendtile(*before))["tiling"]["rows"] == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("--t a=1 b=2 op", "--t a=1 --t b=2 op"),
        ("--t a=1 op c=2", "--t a=1 op c=2"),
        ("--t=a=1 b=2 --json", "--t=a=1 --t b=2 --json"),
        ("--t a=-1 --s c=1 d=2", "--t a=-1 --s c=1 --s d=2"),
        ("op --t", "op --t"),
        ("a=1 b=2", "a=1 b=2"),
    ],
)
def test_spread(given, expected):
    assert " ".join(spread(given.split(), {"--t", "--s"})) == expected


def test_changed_product_seed_and_distribution(ascendtile):
    data = read(ascendtile(*TINY, "--set", "buffers.ub=128KiB", "--json"))
    assert data["overrides"] == {"buffers.ub": 131072}
    assert data["buffers"]["UB"]["capacity_bytes"] <= 131072
    errors = {
        tuple(options): read(ascendtile(*TINY, *options, "--json"))["errors"]["dx"]["rmse"]
        for options in ([], ["--seed", "0"], ["--seed", "1"], ["--distribution", "heavy"])
    }
    assert errors[()] == errors["--seed", "0"]
    assert len(set(errors.values())) == 3


def test_sizes_of_ones_own(ascendtile):
    data = read(ascendtile("run", "rms_norm_grad", "--size", "rows=3x5", "cols=64", "--no-values", "--json"))
    assert data["inputs"]["x"] == "float16 [3, 5, 64]"


# ---- records ----


def test_a_record_says_what_the_run_said(ascendtile, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    record = "x.run"
    page = ascendtile(*TINY, "--save", record)
    assert f"ascendtile report {record}" in page.out
    assert ascendtile("report", record).out == page.out
    assert load_run(record).case == "tiny"
    data = read(ascendtile("report", record, "--json"))
    assert data["record"] == record


def test_a_record_that_cannot_be_written_stops_the_run_before_it_starts(refused, monkeypatch, tmp_path):
    monkeypatch.setattr(kernels, "run_op", lambda *_, **__: pytest.fail("was run"))
    assert refused(*TINY, "--save", tmp_path) == f"{tmp_path}: is a folder; give the name of a file"
    assert "does not exist; make it first" in refused(*TINY, "--save", tmp_path / "none" / "x.run", "--json")
    assert "not a regular file" in refused(*TINY, "--save", "/dev/null")


def test_a_failed_run_leaves_the_old_record(refused, tmp_path):
    record = tmp_path / "x.run"
    record.write_text("old")
    refused(*TINY, "--tiling", "colour=red", "--save", record)
    assert record.read_text() == "old"


def test_report_of_what_is_no_record(refused, tmp_path):
    assert "is a folder" in refused("report", tmp_path)
    assert "is no record of ascendtile" in refused("report", __file__, "--json")


# ---- what is refused ----


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "rms_norm_gard"], "did you mean rms_norm_grad"),
        ([*TINY[:3], "tinny"], "has no case 'tinny'; did you mean tiny?"),
        ([*TINY, "--dtype", "float64"], "float64"),
        ([*TINY, "--cube-math-type", "FAST"], "unknown cube_math_type 'FAST'; allowed are KEEP_DTYPE"),
        ([*TINY, "--distribution", "flat"], "unknown distribution 'flat'"),
        ([*TINY, "--product", "ascend910b9"], "unknown product 'ascend910b9'"),
        ([*TINY, "--product", "ascend310b"], "is not available on ascend310b"),
        ([*TINY, "--product", "/none.toml"], "cannot read product file"),
        ([*TINY, "--set", "buffers.ub=many"], "must be a number in bytes"),
        ([*TINY, "--set", "buffers.ub"], "'buffers.ub' is not NAME=VALUE"),
        ([*TINY, "--set", "a=1", "a=2"], "a is given twice, '1' and '2'"),
        ([*TINY, "--tiling", "rows=0"], "'rows' must be at least 1, got 0"),
        ([*TINY, "--tiling", "rows=two"], "'rows' must be an integer, got 'two'"),
        ([*TINY, "--tiling", "colour=red"], "rms_norm_grad has no tiling parameter 'colour'"),
        ([*TINY, "--tiling", "rows="], "'rows=' is not NAME=VALUE"),
        ([*TINY, "--option", "mean=1"], "option 'mean'"),
        ([*TINY, "--no-values", "--no-time"], "leave nothing to do"),
        ([*TINY, "--size", "rows=1"], "--case and --size each say what to run on"),
        ([*TINY, "--input", "x.npz"], "--case and --input each say what to run on"),
        (["run", "rms_norm_grad", "--size", "rows=-1"], "rows must be a number such as 64"),
        (["run", "rms_norm_grad", "--size", "rows=1"], "size 'cols' is missing"),
        (["run", "rms_norm_grad", "--input", "x.npz", "--seed", "1"], "--seed is for random inputs"),
    ],
)
def test_wrong_input_is_named(refused, arguments, message):
    assert message in refused(*arguments)
    assert message in refused(*arguments, "--json")


def test_a_tile_that_does_not_fit_is_a_failed_run(refused):
    text = refused(
        "run", "rms_norm_grad", "--tiling", "strategy=full_row", "rows=64", "--no-values", status=1
    )
    assert "ub overflow, requires" in text
    assert "tried and fits: rows=" in text
    assert "ROWS =" not in text, "a size of a kernel inside is no knob of the operator"


# ---- inputs from a file ----


def test_inputs_by_name(ascendtile, tmp_path, tiny):
    path = tmp_path / "x.npz"
    np.savez(path, **tiny)
    data = read(ascendtile("run", "rms_norm_grad", "--input", path, "--json"))
    assert data["case"] is None
    assert data["errors"] == read(ascendtile(*TINY, "--json"))["errors"]
    np.savez_compressed(path, **{**tiny, "x": np.asfortranarray(tiny["x"].astype(np.float64))})
    assert read(ascendtile("run", "rms_norm_grad", "--input", path, "--dtype", "float16", "--json"))[
        "errors"
    ]["dx"]


def test_bfloat16_as_numpy_stores_it(ascendtile, tmp_path):
    path = tmp_path / "x.npz"
    inputs = get_operator("rms_norm_grad").inputs("tiny", "bfloat16")
    assert inputs["x"].dtype == ml_dtypes.bfloat16
    np.savez(path, **inputs)
    data = read(ascendtile("run", "rms_norm_grad", "--input", path, "--json"))
    assert data["dtype"] == "bfloat16"
    assert data["errors"] == read(ascendtile(*TINY, "--dtype", "bfloat16", "--json"))["errors"]


def test_a_single_array_for_an_operator_of_several(from_file, tiny):
    text = from_file(lambda f: np.save(f, tiny["x"]))
    assert text == "is an .npy file, and rms_norm_grad needs 4 inputs: give an .npz with dy, x, rstd, gamma"


def test_files_that_are_no_inputs(refused, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, words in {
        tmp_path / "none.npz": "cannot read it: No such file or directory",
        tmp_path: "is a folder; an input is a file",
        tmp_path / "pipe": "is not a regular file",
        __file__: "is neither an .npz nor an .npy file",
    }.items():
        assert refused("run", "rms_norm_grad", "--input", path).startswith(f"{path}: {words}")


def test_damaged_files(from_file, tmp_path, tiny):
    np.savez(tmp_path / "whole.npz", **tiny)
    whole = (tmp_path / "whole.npz").read_bytes()
    assert "neither an .npz nor" in from_file(b"")
    assert "is cut short or damaged" in from_file(whole[:-30])
    changed = whole.replace(b"\x93NUMPY", b"\x93NUMBY", 1)
    assert "array 'dy.npy' has a damaged header" in from_file(changed) or "Bad CRC" in from_file(changed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.array([{}], object)}, "array 'x.npy' holds Python objects, which are never loaded"),
        ({"y": np.zeros(3)}, "has no input 'y'"),
        ({"x": None}, "input x missing; it takes dy, x, rstd and gamma"),
        ({"x": np.zeros((8, 65), np.float16)}, "65"),
        ({"x": np.zeros((8, 64), np.complex64)}, "complex64"),
        ({"x": np.zeros((8, 64), "U3")}, "<U3"),
        ({"x": np.zeros((8, 64), np.int32)}, "int32"),
        ({"x": np.zeros((8, 64), np.float32)}, "float32"),
        ({f"x{k}": np.zeros(1) for k in range(65)}, "must have 1 to 64 arrays"),
    ],
    ids=["objects", "name", "missing", "shape", "complex", "text", "integers", "mixed", "many"],
)
def test_arrays_that_do_not_fit(from_file, tiny, change, message):
    arrays = {n: x for n, x in {**tiny, **change}.items() if x is not None}
    assert message in from_file(lambda f: np.savez(f, **arrays))


def test_headers_that_claim_too_much(from_file, tiny):
    header = np.lib.format.header_data_from_array_1_0(tiny["x"])

    def claim(shape):
        def write(file):
            np.lib.format.write_array_header_1_0(file, {**header, "shape": shape})
            file.write(bytes(64))

        return write

    assert "is an .npy file" in from_file(claim((10**9, 10**9)))

    def archive(file):
        import zipfile

        with zipfile.ZipFile(file, "w") as z, z.open("x.npy", "w") as member:
            claim((10**9, 10**9))(member)

    assert "array 'x.npy' claims shape (1000000000, 1000000000) of float16" in from_file(archive)


def test_memory_that_runs_out_is_a_failed_run(monkeypatch, refused):
    def run_op(*_, **__):
        raise MemoryError

    monkeypatch.setattr(kernels, "run_op", run_op)
    assert "not enough memory for this run" in refused(*TINY, status=1)


def test_spread_over_the_orders_of_atomics(ascendtile):
    case = ("run", "RmsNormGrad", "--size", "rows=160", "cols=64", "--no-time", "--atomic-seeds", "3")
    page = ascendtile(*case).out
    assert "order of atomics, 3 seeds" in page
    spread = json.loads(ascendtile(*case, "--json").out)["atomic_spread"]
    assert spread["dx"]["differing"] == 0
    assert spread["dgamma"]["differing"] > 0
    assert spread["dgamma"]["min_ulp"] < 0 < spread["dgamma"]["max_ulp"]
    assert all(len(line) <= 80 for line in page.splitlines())


def test_spread_needs_values(refused):
    message = refused("run", "RmsNormGrad", "--no-values", "--atomic-seeds", "3")
    assert message.startswith("--atomic-seeds compares values, which --no-values leaves out")


@pytest.mark.parametrize("folder", ["", "./"])
def test_a_record_is_not_run(ascendtile, refused, tmp_path, monkeypatch, folder):
    """Neither as an operator's name nor, with a path, as a script."""
    monkeypatch.chdir(tmp_path)
    assert ascendtile(*TINY, "--no-time", "--save", "a.run").status == 0
    message = refused("run", f"{folder}a.run")
    assert "is a record of a run" in message
    assert f"ascendtile report {folder}a.run" in message


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no folder that is there and takes no files")
def test_a_folder_that_takes_no_files_is_not_called_missing(ascendtile, refused, tmp_path):
    assert ascendtile(*TINY, "--no-values", "--save", tmp_path / "a.run").status == 0
    message = refused("export", tmp_path / "a.run", "-o", "/proc/x.json")
    assert "the folder /proc takes no new files" in message
    assert "No such file" not in message
