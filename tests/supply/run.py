"""Runs the tests with the lowest or the newest versions of every dependency, in an environment of their own.

    python tests/supply/run.py lowest                            this Python, the usual tests
    python tests/supply/run.py newest --python python3.13        another Python
    python tests/supply/run.py lowest -- tests/units -k cube     these tests, with options of pytest

"lowest" takes exactly the lower bounds of pyproject.toml, so a bound that is no version, or one with which the tests fail,
is found here. "newest" takes what pip takes. Either compiles what is committed with the Cython and setuptools of that end.
Only the pinned extra `torch` is left out: both of its ends are one version, which `.ci/run` has. Environments stand in
`build/supply`, one for each Python and end; a second run keeps what was compiled.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "supply"
EXTRAS = ("test", "search", "cluster", "notebook", "serve")
ENDS = ("lowest", "newest")


def requirements() -> Iterator[Requirement]:
    """What building, running and testing need, the same package in several places once."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    lists = [
        project["build-system"]["requires"],
        project["project"]["dependencies"],
        *(extras[e] for e in EXTRAS),
    ]
    every = [Requirement(text) for some in lists for text in some]
    yield from {r.name.lower(): r for r in every}.values()


def lower_bound(requirement: Requirement) -> str:
    """ "numpy>=2.2,<3" as "numpy==2.2". Raises SystemExit where pyproject.toml says no lower bound."""
    bounds = [s.version for s in requirement.specifier if s.operator in (">=", "==")]
    if not bounds:
        raise SystemExit(
            f"pyproject.toml has no lower bound for {requirement}; write {requirement.name}>=VERSION"
        )
    return f"{requirement.name}=={bounds[0]}"


def wanted(end: str) -> list[str]:
    """Arguments of `pip install` for one end."""
    return [lower_bound(r) if end == "lowest" else str(r) for r in requirements()]


def run(*command: object, cwd: Path | None = None) -> None:
    """Raises SystemExit with the command where it fails."""
    words = [str(x) for x in command]
    if subprocess.run(words, cwd=cwd, check=False).returncode:
        raise SystemExit(f"failed: {' '.join(words)}")


def copied(place: Path) -> Path:
    """What is committed, in a folder of its own; files as old as the commit, so that nothing is compiled twice."""
    tree = place / "tree"
    tree.mkdir(parents=True, exist_ok=True)
    archive = place / "tree.tar"
    run("git", "-c", f"safe.directory={ROOT}", "archive", "-o", archive, "HEAD", cwd=ROOT)
    run("tar", "-x", "-f", archive, "-C", tree)
    archive.unlink()
    return tree


def environment(python: str, end: str) -> tuple[Path, Path]:
    """(its Python, the tree in it), with all packages of that end and ascendtile compiled."""
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    version = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout.strip()
    place = FOLDER / f"python{version}-{end}"
    tree, inside = copied(place), place / "venv" / "bin" / "python"
    if not inside.exists():
        run(python, "-m", "venv", place / "venv")
    pip = (inside, "-m", "pip", "install", "-q")
    run(*pip, *(["--upgrade", "--upgrade-strategy=eager"] if end == "newest" else []), *wanted(end))
    run(*pip, "--no-deps", "--no-build-isolation", "-e", tree)
    run(inside, "-m", "pip", "check")
    return inside, tree


def main(*words: str) -> int:
    cut = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("end", choices=ENDS)
    parser.add_argument("--python", default=sys.executable, help="another Python: its name or path")
    asked = parser.parse_args(words[:cut])
    inside, tree = environment(asked.python, asked.end)
    run(inside, "-m", "pip", "list", "--format=freeze")
    command = [inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(words[cut + 1 :] or ["-n", "auto"])]
    return subprocess.run(command, cwd=tree, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
