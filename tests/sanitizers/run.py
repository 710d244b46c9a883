"""Runs tests on native modules that are built with gcc's AddressSanitizer and UndefinedBehaviorSanitizer.

    python tests/sanitizers/run.py                             those of every folder that reaches them (`TESTS`)
    python tests/sanitizers/run.py tests/timing/engine -k long     these, with options of pytest

The build stands beside the usual one, in `build/sanitized`; a second run compiles what changed. The first finding ends the
run with its report and a status other than 0. Memory that is still held at the end is no finding: the interpreter holds it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TREE = ROOT / "build" / "sanitized"
PARTS = (
    "simulator",
    "kernels",
    "tiling",
    "reports",
    "tests",
    "setup.py",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)
TESTS = tuple(f"tests/{x}" for x in ("timing", "units", "precision", "language", "execution", "checks"))
FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
RUNTIMES = ("libasan.so", "libubsan.so")
NOT_COPIED = shutil.ignore_patterns("*.so", "__pycache__", ".hypothesis")


def copy_sources() -> None:
    """Bring the copy of the checkout up to date; `copy2` keeps times, so that what did not change is not compiled again."""
    TREE.mkdir(parents=True, exist_ok=True)
    for name in PARTS:
        source, target = ROOT / name, TREE / name
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target, ignore=NOT_COPIED)
        else:
            shutil.copy2(source, target)


def runtimes() -> str:
    """The sanitizers' libraries, which have to be there before Python, itself built without them."""
    found = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
        for name in RUNTIMES
    ]
    return " ".join(path.strip() for path in found)


def build() -> None:
    flags = {"CC": "gcc", "CFLAGS": FLAGS, "LDFLAGS": FLAGS}
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=TREE, env={**os.environ, **flags}, check=True)


def environment() -> dict[str, str]:
    """With it Python finds the copy, and its blocks of memory are those of malloc, whose ends are watched."""
    return {
        **os.environ,
        "LD_PRELOAD": runtimes(),
        "PYTHONPATH": str(TREE / "build" / "alias"),
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def check_copy() -> None:
    """Raise SystemExit if Python would take modules from elsewhere."""
    ask = "import ascendtile.simulator.timing.engine._core as m; print(m.__file__)"
    command = [sys.executable, "-c", ask]
    found = subprocess.run(command, cwd=TREE, env=environment(), capture_output=True, text=True, check=False)
    if not Path(found.stdout.strip() or "/").resolve().is_relative_to(TREE):
        raise SystemExit(f"the modules under test are not those of {TREE}: {found.stdout}{found.stderr}")


def main(*asked: str) -> int:
    copy_sources()
    build()
    check_copy()
    tests = asked or TESTS
    command = [sys.executable, "-m", "pytest", "-n0", "-q", "-s", "-p", "no:cacheprovider", *tests]
    return subprocess.run(command, cwd=TREE, env=environment(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
