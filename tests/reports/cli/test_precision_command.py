"""`ascendtile precision`: page, JSON and refusals."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from ascendtile.simulator.device import CUBE_MATH_TYPES

TINY = ("precision", "matmul", "--case", "tiny")
ROW = {
    *("cube_math_type", "dtype", "compute_dtype", "output_dtypes", "status"),
    *("time_us", "speedup", "errors", "verdicts", "reason", "tiling", "kept", "seed_bits"),
    *("operands", "octaves"),
}


def read(answer):
    assert (answer.status, answer.err) == (0, "")
    return json.loads(answer.out, parse_constant=lambda word: pytest.fail(word))


def test_json_of_a_study(ascendtile):
    data = read(ascendtile(*TINY, "--json"))
    assert (data["op"], data["product"], data["case"]) == ("matmul", "ascend910b3", "tiny")
    assert all(set(row) == ROW for row in data["rows"])
    assert {row["cube_math_type"] for row in data["rows"]} == set(CUBE_MATH_TYPES)
    first = data["rows"][0]
    assert set(first["errors"]["out"]) == set(first["verdicts"]["out"]) == {"exact_inputs", "rounded_inputs"}
    assert first["errors"]["out"]["exact_inputs"]["effective_bits"] > 20
    assert {v["rule"] for v in first["verdicts"]["out"]["rounded_inputs"]} >= {
        "single-benchmark",
        "mixed-tolerance",
    }


def test_json_of_refused_modes(ascendtile):
    rows = read(ascendtile(*TINY, "--product", "ascend910a", "--modes", "USE_HF32", "--json"))["rows"]
    status = {row["dtype"]: row["status"] for row in rows}
    assert status == {"float32": 161002, "float16": 0, "bfloat16": 161002}
    assert all(row["reason"] and row["time_us"] is None for row in rows if row["status"])


def test_a_strategy_of_the_cube_shows_every_mode_that_is_asked_for(ascendtile):
    modes = ["KEEP_DTYPE", "USE_HF32", "USE_FP16"]
    case = ("precision", "rms_norm_grad", "--case", "tiny", "--no-time", "--modes", ",".join(modes), "--json")
    data = read(ascendtile(*case, "--tiling", "combine=cube"))
    found = [
        (row["cube_math_type"], row["compute_dtype"]) for row in data["rows"] if row["dtype"] == "float16"
    ]
    assert found == list(zip(modes, ("fp32", "hf32", "fp16"), strict=True))
    assert data["notes"] == ["dx never passes the Cube: fp32 in every mode"]
    data = read(ascendtile(*case))
    assert {row["cube_math_type"] for row in data["rows"]} == {"KEEP_DTYPE"}
    assert data["notes"][0].startswith("cube_math_type USE_HF32 and USE_FP16 have no effect")


def test_json_of_a_sweep(ascendtile):
    data = read(ascendtile(*TINY, "--sweep", "scale", "--modes", "KEEP_DTYPE", "--json"))
    assert data["sweep"]["parameter"] == "scale"
    assert [p["value"] for p in data["sweep"]["points"]][:2] == ["2^-24", "2^-16"]
    assert all(set(row) == ROW for p in data["sweep"]["points"] for row in p["rows"])


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "arguments",
    [
        TINY,
        (*TINY, "--product", "ascend910a"),
        (*TINY, "--dtypes", "mixed,float32"),
        (*TINY, "--sweep", "distribution", "--no-time"),
        ("precision", "RmsNormGrad", "--case", "tiny"),
        ("precision", "matmul", "--size", "m=64", "n=64", "k=64", "--sample", "16"),
    ],
)
def test_a_page_is_at_most_80_columns(ascendtile, arguments):
    answer = ascendtile(*arguments)
    assert (answer.status, answer.err) == (0, "")
    assert all(len(line) <= 80 for line in answer.out.splitlines())
    assert "…" not in answer.out


def test_a_page_says_what_was_refused_and_sampled(ascendtile):
    page = " ".join(ascendtile(*TINY, "--product", "ascend910a", "--sample", "16").out.split())
    assert "refused with status 161002: fp32 with KEEP_DTYPE" in page
    assert "values of a block only (a 16x64 and b 64x16), time of the whole case" in page


def test_inputs_from_a_file(ascendtile, tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, a=np.ones((8, 16)), b=np.ones((16, 4), np.float32))
    data = read(ascendtile("precision", "matmul", "--input", path, "--no-time", "--json"))
    assert data["case"] == "x.npz: a 8x16, b 16x4"
    assert data["rows"][0]["errors"]["out"]["exact_inputs"]["effective_bits"] == "Infinity"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("matmul", "--case", "tyni"), "matmul has no case 'tyni'; did you mean tiny?"),
        (("matmul", "--modes", "FAST"), "unknown cube_math_type 'FAST'"),
        (("matmul", "--sweep", "q"), "unknown sweep 'q'"),
        (("matmul", "--input", "x.npz", "--case", "tiny"), "--case and --input each say what to study"),
        (("matmul", "--input", "x.npz", "--seed", "1"), "--seed is for random inputs"),
        (("matmul", "--size", "m=4", "n=4", "k=0"), "size 'k' is 0: a case needs at least one element"),
        (("rms_norm_grad", "--sample", "4"), "rms_norm_grad has no sample"),
        (("nothing",), "unknown operator 'nothing'"),
    ],
)
def test_wrong_usage(refused, arguments, text):
    assert text in refused("precision", *arguments)


def test_reference_numerics_and_tiling_on_the_command_line(ascendtile, refused, tmp_path):
    path = tmp_path / "gpu.npz"
    ask = (*TINY, "--dtypes", "float32", "--modes", "KEEP_DTYPE", "--no-time", "--json")
    shape = read(ascendtile(*ask))["rows"][0]["errors"]["out"]["exact_inputs"]["shape"]
    np.savez(path, out=np.zeros(shape, np.float32))
    data = read(
        ascendtile(*ask, "--reference", path, "--numerics", "cube_block_k=1", "--tiling", "accumulate=blas")
    )
    rules = {v["rule"] for v in data["rows"][0]["verdicts"]["out"]["exact_inputs"]}
    assert {"dual-benchmark L0", "dual-benchmark L1", "dual-benchmark L2"} <= rules
    assert data["numerics"]["cube_block_k"] == "1 (chosen)"
    assert "is no .npz file" in refused(*ask, "--reference", __file__)
    assert "unknown choice of numerics 'k'" in refused(*ask, "--numerics", "k=1")
    assert "--reference is for one study" in refused(*TINY, "--sweep", "scale", "--reference", path)


def test_a_changed_product_counts(ascendtile):
    data = read(ascendtile(*TINY, "--no-time", "--set", "numerics.fp32_subnormals=keep", "--json"))
    assert data["numerics"]["fp32_subnormals"] == "keep (chosen)"


def test_losses_that_overlap_are_not_added(ascendtile, tmp_path):
    """An element may be both too large and NaN, so the sum of both may be more than there are elements."""
    path, page = tmp_path / "study.json", tmp_path / "study.html"
    data = json.loads(ascendtile(*TINY, "--json").out)
    for row in data["rows"]:
        for by in row["errors"].values():
            by["exact_inputs"] |= {"overflow": 7001, "nan_mismatch": 8002, "compared": 0}
    path.write_text(json.dumps(data))
    shown = ascendtile("report", path).out
    assert " 7001  8002 " in shown
    assert max(map(len, shown.splitlines())) <= 80
    ascendtile("report", path, "-o", page)
    assert "7,001</td>" in page.read_text()
    assert "8,002</td>" in page.read_text()
    assert "15,003" not in page.read_text()


@pytest.mark.exhaustive
def test_rows_of_a_sweep_tell_their_modes(ascendtile, tmp_path):
    """USE_FP32_ADD sums FP32 otherwise than KEEP_DTYPE: two rows of the same types."""
    path, page = tmp_path / "sweep.json", tmp_path / "sweep.html"
    call = ("precision", "matmul", "--size", "m=16", "n=16", "k=16", "--sweep", "k", "--json")
    data = json.loads(ascendtile(*call).out)
    for point in data["sweep"]["points"]:
        for row in point["rows"]:
            if row["cube_math_type"] == "USE_FP32_ADD" and row["dtype"] == "float32":
                row["errors"]["out"]["exact_inputs"]["max_ulp"] = 77.0
    path.write_text(json.dumps(data))
    shown = ascendtile("report", path).out
    assert "KEEP_DTYPE" in shown
    assert "USE_FP32_ADD" in shown
    assert "Speed-up" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    ascendtile("report", path, "-o", page)
    assert "KEEP_DTYPE</td>" in page.read_text()
    assert "USE_FP32_ADD</td>" in page.read_text()


NEED = ("precision", "matmul", "--size", "m=64", "n=64", "k=256")


def test_the_answer_is_one_line_and_none_is_status_1(ascendtile):
    answer = ascendtile(*NEED, "--need", "bits=12")
    page = " ".join(answer.out.split())
    assert (answer.status, answer.err) == (0, "")
    assert "answer cheapest that keeps 12 bits: ALLOW_FP32_DOWN_PRECISION or USE_HF32 with float32," in page
    assert "tiling the same in all rows: block_m=64" in page
    answer = ascendtile(*NEED, "--rule", "torch:fp32", "--dtypes", "bfloat16")
    assert answer.status == 1
    assert "no mode keeps torch (fp32): |error| at most 1e-05 + 1.3e-06 |result|" in " ".join(
        answer.out.split()
    )


@pytest.mark.exhaustive
def test_json_of_an_answer_reads_back_as_the_same_page(ascendtile, tmp_path):
    for more in ((), ("--sweep", "k=64,256"), ("--seeds", "2")):
        path = tmp_path / "study.json"
        call = (*NEED, "--rtol", "1e-2", "--atol", "1e-2", "--dtypes", "float32", *more)
        data = read(ascendtile(*call, "--json"))
        path.write_text(json.dumps(data))
        assert data["cheapest"]["cube_math_type"] == "ALLOW_FP32_DOWN_PRECISION"
        assert ascendtile("report", path).out == ascendtile(*call).out
        assert data["answer"] in " ".join(ascendtile("report", path).out.split())


BEST = ("--size", "m=16", "n=16", "k=16", "--tiling", "best")


@pytest.mark.drawn(2)
@pytest.mark.parametrize("more", [(), BEST, ("--seeds", "2", "--need", "bits=3"), ("--sweep", "m=16,32")])
def test_what_is_asked_and_searched_fits_80_columns(ascendtile, more):
    case = ("precision", "matmul") if "--size" in more else NEED
    answer = ascendtile(*case, "--dtypes", "float32,float16", *more)
    assert (answer.status, answer.err) == (0, "")
    assert all(len(line) <= 80 for line in answer.out.splitlines())


def test_a_record_of_an_earlier_release_is_shown(ascendtile, tmp_path):
    data = json.loads(ascendtile(*TINY, "--json").out)
    for name in ("tiling", "seeds", "need", "answer", "cheapest", "nearest"):
        del data[name]
    for row in data["rows"]:
        for name in ("tiling", "kept", "seed_bits"):
            del row[name]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(data))
    for more in ((), ("-o", tmp_path / "old.html")):
        assert ascendtile("report", path, *more).status == 0


@pytest.mark.exhaustive
def test_tables_have_the_rows_of_the_study(ascendtile):
    call = (*NEED, "--dtypes", "float32", "--need", "bits=12", "--export")
    rows = read(ascendtile(*call[:-1], "--json"))["rows"]
    table = list(csv.DictReader(ascendtile(*call, "csv").out.splitlines()))
    assert [float(r["time_us"]) for r in table] == [r["time_us"] for r in rows]
    assert [r["passed"] for r in table] == [str(r["kept"]["out"]["passed"]) for r in rows]
    markdown = ascendtile(*call, "markdown").out.splitlines()
    assert len(markdown) == 2 + len(rows)
    assert len({line.count("|") for line in markdown}) == 1
    latex = ascendtile(*call, "latex")
    assert latex.out.startswith("\\begin{tabular}{")
    assert "KEEP\\_DTYPE & float32 & fp32" in latex.out
    assert latex.err.startswith("cheapest that keeps 12 bits: ")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--need", "ulp=2"), "'ulp' is nothing to need; write --need bits=12"),
        (("--need", "bits=many"), "bits is a number such as 12, got 'many'"),
        (("--need", "bits=12", "--rule", "torch"), "--need and --rule each say what is needed"),
        (("--rule", "torch:fp8"), "no thresholds for 'fp8'"),
        (("--need", "bits=12", "--no-time"), "is told by its time"),
        (("--tiling", "best", "--no-time"), "--tiling best is the fastest, --no-time has no times"),
        (("--tiling", "worst"), "'worst' is not NAME=VALUE"),
        (("--sweep", "k="), "lacks a value; write --sweep k=1024,8192"),
        (("--sweep", "k=1,x"), "size 'k'"),
        (("--json", "--export", "csv"), "--export and --json both print data"),
    ],
)
def test_wrong_questions(refused, arguments, text):
    assert text in refused(*NEED, *arguments)


def test_a_record_with_a_time_below_0_or_without_rows_is_refused(ascendtile, refused, tmp_path):
    data = read(ascendtile(*TINY, "--dtypes", "float16", "--modes", "KEEP_DTYPE", "--json"))
    path = tmp_path / "study.json"
    for rows, text in (
        ([data["rows"][0] | {"time_us": -5}], "time_us is -5, must be above 0"),
        ([], "1 to 2000 rows"),
    ):
        path.write_text(json.dumps(data | {"rows": rows}))
        assert text in refused("report", path)


@pytest.mark.exhaustive
def test_splits_are_rows_of_their_own_with_the_front(ascendtile):
    page = " ".join(ascendtile(*TINY, "--modes", "all,splits", "--dtypes", "float32").out.split())
    assert "FP16X3 fp32 fp16" in page
    assert "front: no row is both faster and more exact than" in page
    assert "front:" not in ascendtile(*TINY, "--dtypes", "float32").out


def test_a_study_of_which_every_row_is_refused_is_status_1(ascendtile):
    refusing = (*TINY, "--no-time", "--product", "ascend910a", "--modes", "USE_HF32")
    for more in ((), ("--sweep", "scale=0,1")):
        assert ascendtile(*refusing, "--dtypes", "float32", *more).status == 1
    assert ascendtile(*refusing, "--dtypes", "float32,float16").status == 0
