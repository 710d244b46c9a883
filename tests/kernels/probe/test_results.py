"""Result files: what is not of these experiments, is damaged or claims too much is refused, and errors are reasons."""

import json

import numpy as np
import pytest

from ascendtile.kernels.probe import read_probe, write_probe
from ascendtile.kernels.probe.all_experiments import all_experiments
from ascendtile.kernels.probe.predict import predict
from ascendtile.kernels.probe.space import units_of
from ascendtile.simulator import UsageError

NAME = "fused_fp32"


def result(folder, name=NAME, arrays=None, **about):
    """One result file, with fields of its own."""
    experiment = all_experiments()[name]
    note = {
        "experiment": name,
        "digest": experiment.digest,
        "error": "",
        "product": "board",
        "versions": {},
    } | about
    path = folder / "results" / f"{name}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    given = {"out": predict(experiment, units_of({}))} if arrays is None else arrays
    np.savez(path, about=np.frombuffer(json.dumps(note).encode(), np.uint8), **given)
    return path


def test_one_result_answers_one_question(tmp_path):
    result(tmp_path, versions={"torch": "2.1"})
    found = read_probe(tmp_path)
    assert (found.product, found.versions, found.choices) == (
        "board",
        {"torch": "2.1"},
        {"fma_round": "once"},
    )
    assert {a.verdict for a in found.answers} == {"named", "open"}


def test_the_error_of_a_kernel_is_the_reason_of_its_question(tmp_path):
    result(tmp_path, arrays={}, error="CompilationError: no fma\nat line 3")
    told = next(a for a in read_probe(tmp_path).answers if a.question == "multiply-add")
    assert (told.verdict, told.detail) == (
        "open",
        f"no result of {NAME} (CompilationError: no fma at line 3)",
    )


@pytest.mark.parametrize(
    ("about", "arrays", "message"),
    [
        ({"digest": "0"}, None, "with inputs 0, not of fused_fp32"),
        ({"experiment": "cast_fp16"}, None, "is of experiment cast_fp16"),
        ({"versions": 3}, None, "is no result of a probe"),
        ({}, {}, "output out is missing"),
        ({}, {"out": np.zeros(3, np.uint32)}, r"output out is uint32 \(3,\), it must be uint32 \(128,\)"),
        ({}, {"out": np.zeros(128, np.float32)}, r"output out is float32 \(128,\)"),
        ({}, {"out": np.zeros(1 << 21, np.uint32)}, "at most 4194304 bytes"),
    ],
)
def test_results_of_something_else_are_refused(tmp_path, about, arrays, message):
    path = result(tmp_path, NAME, arrays, **about)
    with pytest.raises(UsageError, match=message) as caught:
        read_probe(tmp_path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("cut", [0, 10, 300, -30])
def test_damaged_results_are_refused(tmp_path, cut):
    path = result(tmp_path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(
        UsageError, match=f"{NAME}.npz: is damaged \\(is cut short or damaged: it does not end as"
    ):
        read_probe(tmp_path)


def test_a_changed_byte_is_noticed(tmp_path):
    path = result(tmp_path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data)
    with pytest.raises(UsageError, match="is damaged"):
        read_probe(tmp_path)


def test_results_of_two_boards_are_kept_apart(tmp_path):
    result(tmp_path, product="one")
    result(tmp_path, "cast_fp16", product="other")
    with pytest.raises(UsageError, match="others are of"):
        read_probe(tmp_path)


def test_pickled_objects_are_not_opened(tmp_path):
    path = result(tmp_path, arrays={"out": np.array([{"a": 1}], object)})
    with pytest.raises(UsageError, match=str(path)):
        read_probe(tmp_path)


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_a_folder_without_results_is_told_what_to_do(tmp_path, name):
    with pytest.raises(UsageError, match=r"run_probe\.py in it fills results/"):
        read_probe(tmp_path / name)


def test_a_probe_is_not_written_over_anything(tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(UsageError, match="is there and not empty"):
        write_probe(tmp_path)
    with pytest.raises(UsageError, match="is there and not empty"):
        write_probe(tmp_path / "mine")


def test_a_probe_lists_what_it_writes(tmp_path):
    names = write_probe(tmp_path / "new")
    listed = json.loads((tmp_path / "new" / "experiments.json").read_text())
    assert [e["name"] for e in listed["experiments"]] == names == list(all_experiments())
    for e in listed["experiments"]:
        with np.load(tmp_path / "new" / "inputs" / f"{e['name']}.npz", allow_pickle=False) as data:
            assert set(data) == {n for n, _ in (*e["inputs"], *e["outputs"])}
