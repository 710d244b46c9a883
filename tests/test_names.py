"""What a person meets before the first run: version, help, the names that completion offers, and the package's metadata."""

import inspect
import pkgutil
import pydoc
import runpy
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import metadata, version
from pathlib import Path

import pytest

import ascendtile

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PARTS = ("simulator", "kernels", "tiling", "reports")
PACKAGES = [f"ascendtile.{part}" for part in PARTS]
PUBLIC = [
    *PACKAGES,
    *(f"ascendtile.simulator.{p}" for p in ("language", "precision", "products", "triton_shim", "units")),
    *(f"ascendtile.simulator.language.extra{p}" for p in ("", ".cann")),
    *(f"ascendtile.kernels.{p}" for p in ("aclnn", "examples", "tutorials", "validation")),
    *(f"ascendtile.reports.{p}" for p in ("comparing", "html", "pictures")),
]


def defined_here(module, name):
    return name in module.__all__ or any(m.name == name for m in pkgutil.iter_modules(module.__path__))


@pytest.mark.parametrize("package", PUBLIC)
def test_completion_offers_public_names_only_and_each_of_them_is_there(package):
    module = import_module(package)
    offered = dir(module)
    assert set(getattr(module, "__all__", ())) <= set(offered)
    for name in offered:
        assert not name.startswith("_")
        assert getattr(module, name) is not None
        assert defined_here(module, name), f"{package}.{name} is another module's"


@pytest.mark.parametrize("package", ["ascendtile", *PUBLIC])
def test_a_public_package_says_what_it_is_for(package):
    assert inspect.getdoc(import_module(package))


@pytest.mark.parametrize("package", ["ascendtile", "ascendtile.simulator", "ascendtile.kernels"])
def test_a_name_that_is_not_there_is_told_as_python_tells_it(package):
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = import_module(package).nothing


def test_the_package_lists_its_parts_and_its_version():
    assert sorted(dir(ascendtile)) == sorted(["__version__", "calibrate", "judge", *PARTS])
    assert ascendtile.__version__ == version("ascendtile")


def test_help_names_every_part_and_its_examples_run(tmp_path, capsys):
    shown = pydoc.render_doc(ascendtile)
    assert all(package in shown for package in PACKAGES)
    _, *examples = inspect.cleandoc(ascendtile.__doc__).split(":\n\n    ")
    for number, example in enumerate(examples):
        lines = example.splitlines()
        code = [lines[0], *(line[4:] for line in lines[1:] if line.startswith("    ") or not line)]
        path = tmp_path / f"example{number}.py"  # a kernel's source is read from its file
        path.write_text("\n".join(code))
        runpy.run_path(str(path))
        assert " us" in capsys.readouterr().out
    assert len(examples) == 2


def test_metadata_names_licence_and_authors_and_invents_no_address():
    assert PROJECT["license"] == "Apache-2.0"
    assert PROJECT["license-files"] == ["LICENSE"]
    assert PROJECT["authors"] == [{"name": "The ascendtile authors"}]
    assert "urls" not in PROJECT
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert metadata("ascendtile")["License-Expression"] == PROJECT["license"]


def test_classifiers_name_every_python_that_is_allowed_and_no_licence():
    """With an SPDX expression a licence classifier is an error of the build."""
    found = [
        c.rsplit(" :: ", 1)[1]
        for c in PROJECT["classifiers"]
        if c.startswith("Programming Language :: Python :: 3.")
    ]
    assert f">={found[0]}" == PROJECT["requires-python"]
    assert not [c for c in PROJECT["classifiers"] if c.startswith("License")]


def test_the_change_log_has_this_version_and_what_is_not_released():
    text = (ROOT / "CHANGELOG.md").read_text()
    headings = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert headings[0] == "[Unreleased]"
    assert any(h.startswith(f"[{ascendtile.__version__}]") for h in headings)


def test_importing_the_package_imports_no_part():
    code = "import sys, ascendtile; print(*(n for n in sys.modules if n.startswith('ascendtile.') or n == 'numpy'))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["ascendtile._names"]
