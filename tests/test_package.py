"""The package: names of its folders, what the build exports, what a distribution carries."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("simulator", "kernels", "tiling", "reports")
CYTHON = sorted(p for f in FOLDERS for p in (ROOT / f).rglob("*.pyx"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_cannot_be_imported_under_its_bare_name(folder):
    run = subprocess.run(
        [sys.executable, "-c", f"import {folder}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode != 0
    assert f"ImportError: import ascendtile.{folder}" in run.stderr


@pytest.mark.parametrize("path", CYTHON, ids=lambda p: p.stem)
def test_native_modules_are_built_and_state_types_in_a_stub_or_of_every_argument(path):
    module = ".".join(("ascendtile", *path.relative_to(ROOT).with_suffix("").parts))
    __import__(module)
    taken = re.findall(r"^(?:cp)?def \w+\(([^)]*)\)", path.read_text(), re.M)
    if path.with_suffix(".pyi").exists() or not taken:
        return
    assert f'"{module}"' in (ROOT / "pyproject.toml").read_text()
    arguments = [x.strip() for given in taken for x in re.split(r",(?![^\[]*\])", given) if x.strip()]
    assert not [x for x in arguments if " " not in x]


def test_declared_functions_are_exported_to_other_native_modules():
    """A module's own .pxd is ignored in silence when Cython cannot see the mapped name: then this list is empty."""
    from ascendtile.simulator.precision import _rounding

    assert {"decode_row", "encode_row", "flush_row", "round_row"} <= set(_rounding.__pyx_capi__)


def test_every_package_has_its_files_in_the_distribution():
    text = (ROOT / "setup.py").read_text()
    assert all(kind in text for kind in ('"*.pxd"', '"*.pyx"', '"*.toml"', '"py.typed"'))
    assert all((ROOT / f / "py.typed").exists() for f in FOLDERS)
