"""`ascendtile demo`, with small cases in the place of its real ones."""

from __future__ import annotations

import json
import tempfile

import pytest

import ascendtile.kernels as kernels
from ascendtile.kernels import get_operator
from ascendtile.reports.cli.commands import demo
from ascendtile.simulator import load_product, load_run
from ascendtile.simulator.errors import RunError


@pytest.fixture
def small(monkeypatch):
    """Two runs in milliseconds."""
    runs = (("rms_norm_grad", "tiny", "float16"), ("rms_norm_grad", "tiny", "float32"))
    monkeypatch.setattr(demo, "RUNS", runs)
    return runs


def test_the_runs_of_the_demo_exist():
    wanted = {("rms_norm_grad", d) for d in ("float16", "bfloat16", "float32")}
    assert {(op, dtype) for op, _, dtype in demo.RUNS} == wanted | {("bce_with_logits_backward", "float16")}
    for op, case, dtype in demo.RUNS:
        get_operator(op).case(case)
        get_operator(op).require(load_product(demo.PRODUCT), dtype)


def test_what_it_shows_and_keeps(ascendtile, small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = ascendtile("demo")
    assert (answer.status, answer.err) == (0, "")
    assert all(len(line) <= 80 for line in answer.out.splitlines())
    for op, case, dtype in small:
        record = f"ascendtile-demo/{op}-{case}-{dtype}.run"
        assert load_run(record).dtype == dtype
        assert f"ascendtile report {record}" in answer.out
    for part in ("time ", "bound ", "pipes ", "UB ", "error against float64", "the lines that cost most"):
        assert answer.out.count(f"\n{part}") == 2
    assert answer.out.count("\ndgamma ") == 2
    summary = answer.out.partition("\nsummary\n")[2]
    assert [line.split()[:2] for line in summary.splitlines()[1:3]] == [[op, dtype] for op, _, dtype in small]


def test_json(ascendtile, small, tmp_path):
    answer = ascendtile("demo", "--out", tmp_path / "new" / "folder", "--json")
    data = json.loads(answer.out)
    assert [(x["op"], x["case"], x["dtype"]) for x in data["runs"]] == list(small)
    assert all(load_run(x["record"]).cycles == x["cycles"] for x in data["runs"])
    assert answer.err.count("\n") == 2


def test_a_second_demo_replaces_the_records(ascendtile, small, tmp_path):
    for _ in range(2):
        assert ascendtile("demo", "--out", tmp_path).status == 0
        assert len(list(tmp_path.iterdir())) == 2


def test_a_folder_that_cannot_be_written(refused, small, tmp_path, monkeypatch):
    monkeypatch.setattr(kernels, "run_op", lambda *_, **__: pytest.fail("was run"))
    (tmp_path / "file").write_text("")
    assert "file: cannot write to it: File exists" in refused("demo", "--out", tmp_path / "file")
    assert "cannot write to it: Not a directory" in refused("demo", "--out", tmp_path / "file" / "x")

    def no_permission(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", no_permission)
    assert refused("demo", "--out", tmp_path) == f"{tmp_path}: cannot write to it: Permission denied"


def test_a_run_that_fails(refused, small, tmp_path, monkeypatch):
    def run_op(*_, **__):
        raise RunError("ub overflow")

    monkeypatch.setattr(kernels, "run_op", run_op)
    assert refused("demo", "--out", tmp_path, status=1) == "ub overflow"
    assert list(tmp_path.iterdir()) == []
