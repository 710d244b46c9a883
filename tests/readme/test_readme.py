"""What README files promise holds: each command and each Python block runs, each figure is what is printed today."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path

import click
import pytest

from ascendtile.kernels.validation import read_tables
from ascendtile.reports.cli.main import cli
from ascendtile.simulator import triton_shim

from .markdown import cells, read
from .running import Runner
from .tables import GROUPS

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("simulator", "kernels", "tiling", "reports", "tests")
NAMES = ("README*.md", "TABLES.md", "SKILL.md")
PATHS = sorted([*ROOT.glob("README*.md"), *(p for f in FOLDERS for n in NAMES for p in (ROOT / f).rglob(n))])
FILES = [pytest.param(p, id=str(p.relative_to(ROOT))) for p in PATHS]
# Pages whose blocks take seconds, and the first page in its other language, whose blocks are the same: only the exhaustive
# tests run them, with all their blocks.
LATER = {
    "README.zh-CN.md",
    "simulator/README.md",
    "simulator/orders/README.md",
    "simulator/triton_shim/README.md",
    "kernels/README.md",
    "kernels/chains/README.md",
    "kernels/matmul/README.md",
    "kernels/probe/README.md",
    "kernels/quantised/README.md",
    "kernels/study/README.md",
    "kernels/validation/README.md",
    "kernels/validation/TABLES.md",
}
USUAL = [x for x in FILES if x.id not in LATER]


def prose(path):
    return re.sub(r"^ *```.*?^ *```", "", path.read_text(), flags=re.S | re.M)


def inline(path):
    """What stands between backticks in running text, line breaks of the page taken out."""
    return [" ".join(text.split()) for text in re.findall(r"`([^`]+)`", prose(path))]


def run_all(path, folder, monkeypatch, subtests, long):
    cache, work = folder / "cache", folder / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))  # no sweep of an earlier day answers
    monkeypatch.setenv("PYTHONPATH", "")
    runner = Runner(work, long)
    try:
        for block in read(path):
            with subtests.test(block.name):
                runner.run(block)
    finally:
        triton_shim.uninstall()  # a block may install it


@pytest.mark.parametrize("path", USUAL)
def test_every_block_runs_in_order_and_prints_what_is_shown(path, tmp_path, monkeypatch, subtests):
    run_all(path, tmp_path, monkeypatch, subtests, long=False)


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", FILES)
def test_also_the_blocks_that_take_long(path, tmp_path, monkeypatch, subtests):
    run_all(path, tmp_path, monkeypatch, subtests, long=True)


def test_pages_that_run_later_are_there():
    assert {x.id for x in FILES} >= LATER


def test_no_group_of_measurements_is_left_out_of_the_table():
    page = read(ROOT / "kernels/validation/README.md")
    shown = {GROUPS[row[0]] for b in page if b.marks.get("checked") == "validation" for row in cells(b)}
    judged = [r for r in read_tables() if r.measured and not r.excluded and r.table != "micro"]
    assert {r.group for r in judged} <= shown
    assert {"all of micro", "held out: A2 and A3", "held out: all"} <= shown


def test_kernels_of_a_source_that_nothing_was_fitted_on_are_not_much_worse():
    """As the page says, whose table the exhaustive tests compute (minutes). The bounds allow for its rounding."""
    page = read(ROOT / "kernels/validation/README.md")
    crossed = {row[0]: row for b in page if b.marks.get("checked") == "crossing" for row in cells(b)}
    _, rows, fitted, _, left_out, _, order = crossed["all kernels"]
    judged = [
        r for r in read_tables() if r.table == "kernels" and not r.excluded and r.unit == "us" and r.measured
    ]
    assert int(rows) == len(judged)
    assert float(left_out) + 0.1 < float(fitted) + 10.0
    assert float(order) - 0.001 > 0.95


@pytest.mark.parametrize("path", FILES)
def test_commands_in_running_text_exist_with_their_options(path):
    for text in inline(path):
        words = shlex.split(text)
        if words[:1] == ["ascendtile"] and len(words) > 1:
            command = cli.commands.get(words[1]) or cli.get_command(click.Context(cli), words[1])
            assert command is not None, text
            known = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
            assert {w for w in words[2:] if re.match(r"--\w", w)} <= known, text
        if words[:2] == ["python", "-m"]:
            assert import_module(words[2]), text


@pytest.mark.parametrize("path", FILES)
def test_files_and_links_that_are_named_are_there(path):
    links = re.findall(r"\]\(([^)#:]+)\)", prose(path))
    files = [t for t in inline(path) if re.fullmatch(r"[\w.]+/[\w./]*", t)]
    assert not [n for n in links if not (path.parent / n).exists()]
    assert not [n for n in files if not any((folder / n).exists() for folder in (path.parent, ROOT))]


@pytest.mark.parametrize("path", FILES)
def test_python_names_in_running_text_exist(path):
    for text in inline(path):
        if found := re.fullmatch(
            r"(?:ascendtile\.)?((?:simulator|kernels|tiling|reports)(?:\.(?!csv)\w+)+)", text
        ):
            owner = import_module("ascendtile")
            for name in found[1].split("."):
                owner = getattr(owner, name, None) or import_module(f"{owner.__name__}.{name}")
