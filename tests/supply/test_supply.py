"""What the project takes from others: versions at both ends, licences that are listed, data that never executes."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from .run import ENDS, ROOT, lower_bound, main, requirements

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EVERY = {r.name.lower() for r in requirements()} | {"torch", "ruff", "mypy", "cython-lint", "packaging"}
# What metadata may call a licence.
NAMES = {
    "BSD-2-Clause": "BSD",
    "BSD-3-Clause": "BSD",
    "MIT": "MIT",
    "Apache-2.0": "Apache",
    "PSF-based": "Python Software Foundation|matplotlib",
    "MPL-2.0": "MPL|Mozilla",
}


def pythons() -> list[str]:
    """Those of the classifiers; a name that no Python answers to is skipped."""
    prefix = "Programming Language :: Python :: 3."
    return [
        f"python3.{c.removeprefix(prefix)}" for c in PROJECT["project"]["classifiers"] if c.startswith(prefix)
    ]


def test_wheels_are_built_for_every_python_that_is_promised():
    built = {x.removeprefix("cp3").removesuffix("-*") for x in PROJECT["tool"]["cibuildwheel"]["build"]}
    assert built == {name.removeprefix("python3.") for name in pythons()}
    assert PROJECT["project"]["requires-python"] == f">={pythons()[0].removeprefix('python')}"


def test_every_dependency_has_a_lower_bound():
    bounds = [lower_bound(r) for r in requirements()]
    assert len(bounds) == len(set(bounds)) > 20
    assert all(re.fullmatch(r"[\w-]+==\d[\w.]*", x) for x in bounds)


@pytest.mark.long
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("python", pythons())
def test_the_tests_pass_at_both_ends_of_the_versions(python, end):
    here = f"python3.{sys.version_info.minor}" == python
    command = sys.executable if here else python
    try:
        subprocess.run([command, "-V"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(
            f"there is no {python} here; tests/supply/run.py {end} --python PATH takes one by its path"
        )
    assert main(end, "--python", command) == 0


def licences() -> dict[str, str]:
    """Package -> licence, of the table in simulator/README.md."""
    page = (ROOT / "simulator" / "README.md").read_text()
    section = page.partition("## Licences")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("|")
    ]
    return {name.strip().lower(): licence for names, _, licence in rows[2:] for name in names.split(",")}


def test_the_licence_of_every_dependency_is_listed():
    listed = licences()
    assert listed.keys() == EVERY
    for name, licence in listed.items():
        assert licence in NAMES
        try:
            said = importlib.metadata.metadata(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        texts = [
            said.get("License-Expression") or "",
            said.get("License") or "",
            *(said.get_all("Classifier") or ()),
        ]
        words = " ".join(t for t in texts if "OSI Approved" in t or "::" not in t)
        assert not words.strip() or re.search(NAMES[licence], words), (name, licence, words[:200])


# Where the product runs code that it reads, and why that is none of a file of data.
RUNS_CODE = {"simulator/triton_shim/scripts/script.py": {"exec"}}  # the script that the user asks to run
DANGEROUS = {"eval", "exec"}
UNSAFE_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "yaml", "joblib"}


def uses(path: Path) -> set[str]:
    """Names of dangerous calls, modules and arguments in a source file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in DANGEROUS:
            found.add(node.func.id)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("system", "popen")
        ):
            found.add(node.func.attr)
        if (
            isinstance(node, ast.keyword)
            and node.arg in ("shell", "allow_pickle")
            and getattr(node.value, "value", 1)
        ):
            found.add(f"{node.arg}=True")
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        found |= {n.partition(".")[0] for n in names} & UNSAFE_MODULES
    return found


@pytest.mark.exhaustive
def test_no_data_can_execute():
    """Nothing in the product unpickles, evaluates or hands text to a shell, but for the script that the user runs."""
    sources = [
        p for folder in ("simulator", "kernels", "tiling", "reports") for p in (ROOT / folder).rglob("*.py")
    ]
    found = {p.relative_to(ROOT).as_posix(): uses(p) for p in sources}
    assert {name: some for name, some in found.items() if some} == RUNS_CODE
