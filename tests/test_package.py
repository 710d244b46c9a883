"""The house itself: names, layers, what the build exports, what a sdist carries."""

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("simulator", "kernels", "tiling", "reports")
PYTHON = sorted(p for f in FOLDERS for p in (ROOT / f).rglob("*.py"))
CYTHON = sorted(p for f in FOLDERS for p in (ROOT / f).rglob("*.pyx"))


@functools.cache
def nodes(path):
    """All of the syntax tree of a file."""
    return list(ast.walk(ast.parse(path.read_text())))


@pytest.fixture(scope="module", autouse=True)
def _forget_nodes():
    yield
    nodes.cache_clear()


def imported(path):
    """Absolute names of the modules that a file imports, at its top or later."""
    package = ("ascendtile", *path.relative_to(ROOT).parts[:-1])
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            yield ".".join((*base, *((node.module,) if node.module else ())))


def test_imports_point_down_only():
    order = {name: i for i, name in enumerate(("reports", "tiling", "kernels", "simulator", "_names"))}
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in PYTHON
        for name in imported(path)
        if name.startswith("ascendtile.")
        and order[name.split(".")[1]] < order[path.relative_to(ROOT).parts[0]]
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("folder", "knows_nothing_of"),
    [
        ("frontend", ("execution", "timing", "units")),
        ("language", ("execution", "timing", "units")),
        ("units", ("execution", "timing", "language")),
        ("precision", ("frontend", "language", "execution", "timing", "units")),
        ("products", ("frontend", "language", "execution", "timing", "units")),
    ],
)
def test_parts_of_the_simulator_do_not_know_what_they_need_not(folder, knows_nothing_of):
    for path in (ROOT / "simulator" / folder).rglob("*.py"):
        for name in imported(path):
            parts = name.split(".")
            assert not (
                parts[:2] == ["ascendtile", "simulator"] and len(parts) > 2 and parts[2] in knows_nothing_of
            ), f"{path.relative_to(ROOT)} imports {name}"


def test_the_engine_knows_neither_kernels_nor_products():
    for path in (ROOT / "simulator" / "timing").glob("engine*.py"):
        assert not any(
            part in name for name in imported(path) for part in ("products", "kernels", "frontend")
        )


def test_no_code_contains_a_product_name():
    """The machine is data. The default product and words in help texts are the only places that name one."""
    allowed = {"simulator/device.py", "reports/cli/commands/demo.py"}
    for path in PYTHON:
        name = str(path.relative_to(ROOT))
        if name in allowed:
            continue
        for node in nodes(path):
            if isinstance(node, ast.Compare):
                assert not re.search(r"ascend\d", ast.unparse(node)), f"{name}: {ast.unparse(node)}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_cannot_be_imported_under_its_bare_name(folder):
    run = subprocess.run(
        [sys.executable, "-c", f"import {folder}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode != 0
    assert f"ImportError: import ascendtile.{folder}" in run.stderr


@pytest.mark.parametrize("path", CYTHON, ids=lambda p: p.stem)
def test_native_modules_have_stubs_and_are_built(path):
    assert path.with_suffix(".pyi").exists() or not re.search(r"^def |^cpdef ", path.read_text(), re.M)
    __import__(".".join(("ascendtile", *path.relative_to(ROOT).with_suffix("").parts)))


def test_declared_functions_are_exported_to_other_native_modules():
    """A module's own .pxd is ignored in silence when Cython cannot see the mapped name: then this list is empty."""
    from ascendtile.simulator.precision import _rounding

    assert {"f16_decode_row", "f16_encode_row", "f16_round_row", "bf16_round_row"} <= set(
        _rounding.__pyx_capi__
    )


def test_every_package_has_its_files_in_the_distribution():
    text = (ROOT / "setup.py").read_text()
    assert all(kind in text for kind in ('"*.pxd"', '"*.pyx"', '"*.toml"', '"py.typed"'))
    assert all((ROOT / f / "py.typed").exists() for f in FOLDERS)


def test_nothing_parses_untrusted_data_with_pickle_or_eval():
    for path in PYTHON:
        own = ("exec",) if path.name == "script.py" else ()  # `ascendtile run script.py` is there to run it
        for node in nodes(path):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert name in own or name not in (
                    "eval",
                    "exec",
                    "pickle.load",
                    "pickle.loads",
                    "yaml.load",
                ), f"{path}: {name}"
                assert not any(
                    k.arg == "allow_pickle" and ast.unparse(k.value) == "True" for k in node.keywords
                )
