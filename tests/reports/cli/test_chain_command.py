"""`ascendtile chain`: pages, JSON, exit statuses and refusals."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest

TINY = ("chain", "mlp", "--size", "tokens=16", "hidden=32", "inner=32")
RUN_KEYS = {
    *(
        "chain",
        "title",
        "product",
        "sizes",
        "data",
        "chosen",
        "formats",
        "modes",
        "time_us",
        "steps",
        "tensors",
    ),
    *("outputs", "need", "passed", "kept", "blame", "notes"),
}
SEARCH_KEYS = {
    *("chain", "product", "need", "met", "formats", "modes", "answer", "proved", "proof", "cheaper", "space"),
    *("passing", "notes", "run"),
}
FILE = """
from ascendtile.kernels.chains import Chain, ChainInput, ChainStep

CHAIN = Chain(
    name="double",
    title="a sum with itself",
    sizes={"n": 40},
    inputs=(ChainInput("x", ("n",)),),
    steps=(ChainStep("twice", "scaled_add", {"a": "x", "b": "x"}, {"out": "y"}),),
    outputs=("y",),
)
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def data_of(answer, status=0):
    assert (answer.status, answer.err) == (status, "")
    return json.loads(answer.out, parse_constant=lambda word: pytest.fail(word))


def test_without_a_name_it_lists_the_chains(ascendtile):
    page = ascendtile("chain").out
    names = [c["name"] for c in data_of(ascendtile("chain", "--json"))["chains"]]
    assert names == ["attention", "mlp", "norm_loss", "train_step"]
    assert all(f"\n{n}  " in f"\n{page}" for n in names)


def test_the_json_of_a_run(ascendtile):
    data = data_of(ascendtile(*TINY, "--formats", "all=fp16,y=fp32", "--lines", "--json"))
    assert set(data) == RUN_KEYS
    assert data["chosen"] == {"all": "fp16", "y": "fp32"}
    assert data["time_us"] == pytest.approx(
        sum(s["time_us"] + sum(c["time_us"] for c in s["casts"]) for s in data["steps"])
    )
    assert sum(data["blame"]["shares"]["y"].values()) == pytest.approx(1)
    assert set(data["blame"]["lines"]["y"]) == {s["name"] for s in data["steps"]}


def test_the_page_of_a_run_shows_steps_tensors_and_blame(ascendtile):
    page = ascendtile(*TINY, "--formats", "w_up=bf16", "--lines").out
    assert "blame of y" in page
    assert "storage of w_up" in page
    assert all(len(line) <= 80 for line in page.splitlines())


def test_a_need_that_is_not_kept_is_exit_status_1(ascendtile):
    few, many = (ascendtile(*TINY, "--formats", "all=fp16", "--need", f"bits={b}") for b in (8, 20))
    assert (few.status, many.status) == (0, 1)
    assert "y: kept" in few.out
    assert "y: not kept" in many.out


def test_a_search_gives_the_cheapest_and_a_command_that_runs_it(ascendtile):
    asked = (*TINY, "--need", "bits=14", "--search", "--space", "weights=fp16,fp32", "make_y=0,3")
    data = data_of(ascendtile(*asked, "--json"))
    assert set(data) == SEARCH_KEYS
    assert data["met"]
    assert data["proved"]
    assert data["run"]["passed"]
    page = ascendtile(*asked).out
    command = page.partition("run it:\n")[2].replace("\\\n", "")
    again = data_of(ascendtile(*shlex.split(command)[1:], "--json"))
    assert (again["formats"], again["modes"]) == (data["formats"], data["modes"])


def test_a_need_that_nothing_keeps_shows_the_nearest_with_exit_status_1(ascendtile):
    asked = (*TINY, "--need", "bits=40", "--search", "--space", "weights=bf16,fp16", "make_y=0,3")
    answer = ascendtile(*asked, "--json")
    data = data_of(answer, status=1)
    assert not data["met"]
    assert data["formats"] is not None
    assert data["answer"].startswith("no assignment keeps 40 bits; nearest is ")
    page = ascendtile(*asked)
    assert page.status == 1
    assert "run the nearest one:" in page.out


def test_a_budget_ends_a_search_without_a_proof(ascendtile):
    data = data_of(ascendtile(*TINY, "--need", "bits=14", "--search", "--budget", "1", "--json"))
    assert data["met"]
    assert not data["proved"]
    assert data["proof"].startswith("not proved: the budget ended")
    assert data["answer"].startswith("cheapest found that keeps 14 bits: ")
    none = data_of(ascendtile(*TINY, "--need", "bits=40", "--search", "--budget", "1", "--json"), status=1)
    assert none["answer"].startswith("no assignment that was evaluated keeps 40 bits; nearest is ")


def test_a_chain_of_a_file_of_the_users(ascendtile, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(FILE)
    assert data_of(ascendtile("chain", file, "--json"))["chain"] == "double"
    assert data_of(ascendtile("chain", file, "--rtol", "1e-2", "--search", "--json"))["met"]


def test_a_format_that_is_written_out_or_in_a_file_is_one_value(ascendtile, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine_e3m4"\nexponent = 3\nmantissa = 4\n')
    asked = (
        "--formats",
        "h=e4m3:bias=12,nan=zero,w_up=bf16",
        f"y={file}",
        "--no-time",
        "--json",
    )
    formats = {t["name"]: t["format"] for t in data_of(ascendtile(*TINY, *asked))["tensors"]}
    assert formats["h"].startswith("e4m3:bias=12")
    assert (formats["w_up"], formats["y"]) == ("bf16", "mine_e3m4")
    space = f"h=e4m3:bias=12,nan=zero,fp16,{file}"
    found = data_of(ascendtile(*TINY, "--search", "--need", "bits=2", "--space", space, "--json"))
    assert found["space"]["axes"]["h"] == ["e4m3:bias=12,nan=zero", "fp16", str(file)]


def test_arrays_of_a_file_take_the_place_of_drawn_numbers(ascendtile, tmp_path):
    file, arrays = tmp_path / "mine.py", tmp_path / "x.npz"
    file.write_text(FILE)
    np.savez(arrays, x=np.full(40, 1 + 2.0**-12))
    data = data_of(ascendtile("chain", file, "--input", arrays, "--formats", "x=fp16", "--json"))
    assert data["data"] == {}
    assert data["tensors"][0]["error"]["max_abs"] == 2.0**-12
    assert "has shape (40,)" in ascendtile("chain", file, "--input", arrays, "--size", "n=41").err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--need", "bits=3"), "--need is of a chain; give its name"),
        (("mpl",), "unknown chain 'mpl'; did you mean mlp"),
        (("none.py",), "none.py: there is no such file"),
        (("mlp", "--formats", "q=fp16"), "has no tensor or step 'q'"),
        (("mlp", "--formats", "x"), "'x' is not NAME=VALUE"),
        (("mlp", "--formats", "x=fp16,x=bf16"), "x is given twice"),
        (("mlp", "--formats", "x=int8"), "floating-point format"),
        (("mlp", "--modes", "activate=USE_HF32"), "multiplies nothing"),
        (("mlp", "--size", "tokens=0"), "must be a whole number from 1"),
        (("mlp", "--size", "tokens=2x2"), "must be a whole number from 1"),
        (("mlp", "--search"), "--search asks what is enough"),
        (("mlp", "--store", "x.sqlite"), "--store is of --search"),
        (("mlp", "--search", "--need", "bits=3", "--lines"), "leave --lines out"),
        (("mlp", "--search", "--need", "bits=3", "--space", "x="), "'x=' is not NAME=VALUE"),
        (("mlp", "--search", "--need", "bits=3", "--space", "x=,"), "has no value"),
        (("mlp", "--search", "--need", "bits=3", "--space", "activate=USE_HF32"), "multiplies nothing"),
        (
            ("mlp", "--search", "--need", "bits=3", "--formats", "x=fp16", "--space", "x=fp16,fp32"),
            "'x' is fixed to fp16 and searched, too",
        ),
        (("mlp", "--search", "--need", "bits=3", "--budget", "0"), "above 0, got '0'"),
        (("mlp", "--need", "bits=3", "--rtol", "1"), "each say what is needed"),
        (("mlp", "--need", "bits=many"), "bits is a number such as 12"),
        (("mlp", "--no-values", "--no-time"), "nothing to do"),
        (("mlp", "--input", "x.npz", "--seed", "1"), "--input brings its own"),
        (("attention", "--size", "heads=3"), "which has other elements than"),
    ],
)
def test_wrong_usage_is_told(refused, arguments, words):
    assert words in refused("chain", *arguments)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "defines no CHAIN"),
        ("CHAIN = 3", "defines no CHAIN"),
        ("1 / 0", "raised ZeroDivisionError"),
        ("(", "SyntaxError"),
    ],
)
def test_a_file_without_a_chain_is_told(refused, tmp_path, source, words):
    file = tmp_path / "mine.py"
    file.write_text(source)
    assert words in refused("chain", file)


@pytest.mark.drawn(1)
@pytest.mark.parametrize("more", [(), ("--search", "--need", "bits=5", "--space", "all=fp16,fp32")])
def test_a_picture_is_written_beside_the_page(ascendtile, tmp_path, more):
    path = tmp_path / "mlp.svg"
    answer = ascendtile(*TINY, "-o", path, *more)
    assert (answer.status, answer.err.splitlines()[-1]) == (0, f"wrote {path}")
    assert path.read_bytes().startswith(b"<?xml")
    assert answer.out.startswith("mlp")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("-o", "mlp.gif"), "the name must end in one of .png, .svg, .pdf"),
        (("-o", "mlp.png", "--no-values"), "--no-values leaves no errors to draw"),
        (("-o", "no/such/mlp.png"), "does not exist; make it first"),
    ],
)
def test_a_picture_that_cannot_be_is_refused_before_anything_runs(refused, arguments, text):
    assert text in refused(*TINY, *arguments)
