"""The example notebooks: they run from the top in a fresh kernel, and those in the repository were executed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ascendtile.kernels import precision_study, run_op
from ascendtile.reports import notebooks
from ascendtile.reports.notebooks.__main__ import NAMES, execute, main
from ascendtile.tiling import explore

HERE = Path(notebooks.__file__).resolve().parent


def read(path: Path) -> list[dict[str, Any]]:
    """The cells of a notebook of version 4."""
    book = json.loads(path.read_text())
    assert book["nbformat"] == 4
    cells: list[dict[str, Any]] = book["cells"]
    return cells


def kinds(cell: dict[str, Any]) -> list[tuple[str, ...]]:
    """What sorts of output a cell has."""
    return [(o["output_type"], *sorted(o.get("data", ()))) for o in cell["outputs"]]


@pytest.mark.parametrize("name", NAMES)
def test_the_notebook_in_the_repository_was_executed_from_the_top(name: str) -> None:
    code = [c for c in read(HERE / f"{name}.ipynb") if c["cell_type"] == "code"]
    assert [c["execution_count"] for c in code] == list(range(1, len(code) + 1))
    shown = {kind for c in code for kind in kinds(c)}
    assert not any(kind[0] == "error" or "stderr" in str(kind) for kind in shown)
    assert ("execute_result", "text/html", "text/plain") in shown
    assert any("image/png" in kind for kind in shown)
    text = (HERE / f"{name}.ipynb").read_text()
    assert not re.search(r"/(?:home|root|work|tmp|Users)/", text)


@pytest.mark.extra("nbformat", "nbclient", "ipykernel")
@pytest.mark.parametrize("name", NAMES)
def test_the_notebook_runs(name: str, tmp_path: Path) -> None:
    """In a fresh kernel, with outputs of the same sorts; needs the extra `notebook`."""
    out = tmp_path / "out.ipynb"
    execute(HERE / f"{name}.ipynb", out)
    before, after = read(HERE / f"{name}.ipynb"), read(out)
    assert [c["source"] for c in after] == [c["source"] for c in before]
    for old, new in zip(before, after, strict=True):
        if old["cell_type"] == "code":
            assert kinds(new) == kinds(old)


def test_records_are_one_line_where_only_text_is_shown() -> None:
    """Not the thousands of numbers that are in them."""
    run = run_op("matmul", {"m": 16, "n": 16, "k": 32}, "float16", values=False).run
    assert re.fullmatch(r"<Run matmul .*float16 on ascend910b3: [\d.]+ us>", repr(run))
    study = precision_study("matmul", sizes={"m": 16, "n": 16, "k": 32}, modes="KEEP_DTYPE", time=False)
    assert repr(study) == f"<Study matmul {study.case} on ascend910b3: {len(study.rows)} rows>"
    found = explore("matmul", case={"m": 64, "n": 64, "k": 64}, space={"block_m": 64, "block_n": 64})
    assert re.fullmatch(r"<Exploration matmul.* on ascend910b3: best [\d.]+ us>", repr(found))


@pytest.mark.extra("nbformat", "nbclient", "ipykernel")
def test_a_folder_that_is_not_there_is_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["notebooks", str(tmp_path / "gone")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert f"error: {tmp_path / 'gone'} is no folder" in capsys.readouterr().err
