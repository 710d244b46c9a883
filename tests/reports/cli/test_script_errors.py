"""What is said of an error that ends a script: one JSON object, the place in the user's files, hints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ascendtile as package
from ascendtile import kernels, reports, simulator, tiling
from ascendtile.reports.cli.script_command import is_script

KERNEL = """
import functools, sys
import numpy as np
import triton
import triton.language as tl

@triton.jit
def fill(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(x + i, 1.0, mask=i < n)

x = np.zeros(64, np.float32)
"""


@pytest.fixture
def script(ascendtile, tmp_path, monkeypatch):
    """`script(body, options...)`: the answer of `ascendtile run options script.py` in its folder."""
    monkeypatch.chdir(tmp_path)

    def call(body, *options):
        (tmp_path / "script.py").write_text(KERNEL + body)
        return ascendtile("run", *options, "script.py")

    return call


@pytest.mark.parametrize(
    ("body", "status", "launches", "says"),
    [
        ("fill[(1,)](x, 64, B=64)\nfill[(1,)](x, 65, B=128)", 1, 1, "out of bounds"),
        ("fill[(1,)](x, 64, B=64)\nfill[(1,)](x, C=64)", 2, 1, "no parameter 'C'"),
        ("fill[(1,)](None, 64, B=64)", 2, 0, "parameter 'x' of fill was given None"),
        ("sys.exit('enough')", 1, 0, "enough"),
    ],
    ids=["bounds", "argument", "none", "exit"],
)
def test_json_is_one_object_also_when_a_script_fails(script, body, status, launches, says):
    answer = script(body, "--json")
    data = json.loads(answer.out)
    assert (answer.status, data["status"], data["launches"]) == (status, status, launches)
    assert says in data["error"]
    assert says in answer.err


def test_json_of_an_exception_and_of_success(script, capsys):
    from ascendtile.reports.cli.main import status_of

    body = "fill[(1,)](x, 64, B=64)\n"
    assert json.loads(script(body, "--json").out)["error"] is None
    with open("script.py", "a") as file:
        file.write("raise KeyError('mine')\n")
    assert status_of(["run", "--json", "script.py"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["status"], data["error"], data["launches"]) == (1, "KeyError: 'mine'", 1)


def test_a_script_that_is_not_there_is_an_object_too(ascendtile):
    answer = ascendtile("run", "--json", "none.py")
    data = json.loads(answer.out)
    assert (answer.status, data["status"]) == (2, 2)
    assert "cannot read the script" in data["error"]


@pytest.mark.exhaustive
def test_a_package_behind_a_link_is_still_none_of_the_users_files(tmp_path):
    """Python names the files of modules by the way to them, a link where one is on it."""
    linked = tmp_path / "linked" / "ascendtile"
    linked.mkdir(parents=True)
    for file in (package.__file__, *Path(package.__file__).parent.glob("_*.py")):
        name = Path(file).name
        if not (linked / name).exists():
            (linked / name).symlink_to(file)
    for folder in (simulator, kernels, tiling, reports):
        (linked / folder.__name__.rpartition(".")[2]).symlink_to(Path(folder.__file__).parent)
    (tmp_path / "script.py").write_text(KERNEL + "fill[(1,)](x, 65, B=128)\n")
    call = "import sys; from ascendtile.reports.cli.main import status_of; sys.exit(status_of(['run', 'script.py']))"
    environment = {**os.environ, "PYTHONPATH": str(linked.parent)}
    told = subprocess.run(
        [sys.executable, "-c", call],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, "launched at script.py:13" in told.stderr) == (1, True), told.stderr


WRAPPED = """
@functools.lru_cache
def go(n):
    return fill[(1,)](x, n, B=128)
"""


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (f"{WRAPPED}go(65)", "launched at script.py:16: return fill[(1,)](x, n, B=128)"),
        (
            "functools.reduce(lambda a, b: fill[(1,)](x, 65, B=128), [1, 2])",
            "launched at script.py:13: functools.reduce(",
        ),
        ("functools.partial(fill[(1,)], x, 65)(B=128)", "launched at script.py:13: functools.partial("),
    ],
    ids=["decorator", "lambda", "partial"],
)
def test_a_launch_is_placed_in_the_users_files(script, body, place):
    error = script(body).err
    assert place in error
    assert "functools.py" not in error


def test_a_library_between_is_named_after_the_users_line(script, tmp_path, monkeypatch):
    from ascendtile.simulator.triton_shim.scripts import errors as script_errors

    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "library.py").write_text("def call(f, *a, **k):\n    return f(*a, **k)\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(script_errors, "INSTALLED", (f"{folder}/",))
    error = script("import library\nlibrary.call(fill[(1,)], x, 65, B=128)").err
    assert "launched at script.py:14: library.call(" in error
    assert f"through {folder}/library.py:2: return f(*a, **k)" in error


def test_a_kernel_that_cannot_be_made_is_placed_at_its_definition(script):
    error = script("@triton.jit\ndef wrong(x, *args):\n    pass\n").err
    assert error.startswith("error: script.py:14:15: wrong cannot take *args: name every parameter\n")
    assert "launched at" not in error


def test_faults_of_the_script_are_not_called_ours(ascendtile, tmp_path, monkeypatch, capsys):
    from ascendtile.reports.cli.main import status_of

    monkeypatch.chdir(tmp_path)
    for text, says in (
        ("x = (\n", '  File "script.py", line 1'),
        ("import triton.frobnicate\n", "triton has no 'frobnicate' in ascendtile"),
        ("from triton.language import frobnicate\n", "triton.language has no 'frobnicate'"),
    ):
        (tmp_path / "script.py").write_text(text)
        assert status_of(["run", "script.py"]) == 1
        out, err = capsys.readouterr()
        assert says in err
        assert "inside of ascendtile" not in err
        assert "time was not asked for" not in out


def test_time_is_told_of_launches_before_a_failure(script):
    answer = script("fill[(1,)](x, 64, B=64)\nsys.exit(3)")
    assert "1 launch of 1 kernel takes" in answer.out
    assert "time was not asked for" not in answer.out


def test_a_folder_runs_its_main(ascendtile, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app").mkdir()
    answer = ascendtile("run", "app")
    assert answer.status == 2
    assert "app is a folder without __main__.py" in answer.err
    (tmp_path / "app" / "other.py").write_text("word = 'found'")
    (tmp_path / "app" / "__main__.py").write_text(
        "import sys, other; print(__name__, other.word, sys.argv[1:])"
    )
    for name in ("app", "./app", "app/"):
        answer = ascendtile("run", name, "--x")
        assert (answer.status, answer.out.splitlines()[0]) == (0, "__main__ found ['--x']")
    (tmp_path / "rms_norm_grad").mkdir()
    answer = ascendtile("run", "rms_norm_grad", "--no-values", "--no-time")
    assert "leave nothing to do" in answer.err, "an operator comes before a folder of its name"
    assert not is_script("rms_norm_grad")
    assert is_script("./rms_norm_grad")


@pytest.mark.extra("torch")
@pytest.mark.parametrize("how", ["assert torch.zeros(3).is_cuda", "torch.zeros(3, device='cuda')"])
def test_a_script_that_wants_cuda_is_told_what_to_do(tmp_path, monkeypatch, capsys, how):
    from ascendtile.reports.cli.main import status_of

    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(f"import torch\n{how}\n")
    assert status_of(["run", "script.py"]) == 1
    err = capsys.readouterr().err
    assert "hint: tensors stay on the CPU here, so `.is_cuda` is False" in err
    assert "inside of ascendtile" not in err
    assert status_of(["run", "--cuda", "script.py"]) == 0, "what the hint says helps"


def test_a_script_that_needs_torch_without_it_is_told_what_adds_it(tmp_path, monkeypatch, capsys):
    from ascendtile.reports.cli.main import status_of

    monkeypatch.chdir(tmp_path)
    missing = "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')"  # as Python raises it
    (tmp_path / "script.py").write_text(f"{missing}\n")
    assert status_of(["run", "script.py"]) == 1
    last = capsys.readouterr().err.rstrip().splitlines()[-1]
    assert last == "hint: torch is not installed; `pip install 'ascendtile[torch]'` adds it"
