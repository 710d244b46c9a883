"""Runs tests on native modules that are built with gcc's AddressSanitizer and UndefinedBehaviorSanitizer.

    python tests/sanitizers/run.py                             those of every folder that reaches them (`TESTS`)
    python tests/sanitizers/run.py tests/timing/engine -k long     these, with options of pytest

The build stands beside the usual one, in `build/sanitized`; a second run compiles what changed. The first finding ends the
run with its report and a status other than 0. So does one in a process that a test started, whose output is hidden or that
others replace: reports go to files, which are printed at the end. Before the tests three faults are made on purpose, and
each has to leave its file. Memory that is still held at the end is no finding: the interpreter holds it.

gcc 12's ASan does not take its locks when a process with threads forks: a worker of tests/tiling may then stand still before
it begins. It uses no time and waits in `futex_do_wait`; `kill` it, and its pool starts another one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TREE = ROOT / "build" / "sanitized"
REPORTS = TREE / "found"
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
FOLDERS = ("timing", "units", "precision", "language", "execution", "checks", "random_kernels")
TESTS = tuple(f"tests/{x}" for x in (*FOLDERS, "kernels", "tiling", "reports"))
FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
RUNTIMES = ("libasan.so", "libubsan.so")
# A library that every process loads. gcc's UBSan beside ASan reads no `log_path`: it is told here. And functions with one
# fault each, with a word of the report that each has to leave.
WATCH = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
__attribute__((constructor)) static void log_to_files(void) {
    void *ubsan = dlopen("libubsan.so.1", RTLD_NOW | RTLD_NOLOAD);
    void (*set)(const char *) = ubsan ? dlsym(ubsan, "__sanitizer_set_report_path") : NULL;
    if (set) set(getenv("SANITIZER_REPORTS"));
}
static int table[4];
int fault_behind(int n) { volatile int *p = malloc(4 * sizeof(int)); return p[n]; }
int fault_index(int n) { return table[n]; }
int fault_sum(int n) { return n + 2147483647; }
"""
LIBRARY = TREE / "build" / "watch.so"
TOLD = {
    "fault_behind": "heap-buffer-overflow",
    "fault_index": "out of bounds",
    "fault_sum": "signed integer overflow",
}
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
    """The sanitizers' libraries, which have to be there before Python, itself built without them, and ours."""
    found = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout
        for name in RUNTIMES
    ]
    return " ".join([*(path.strip() for path in found), str(LIBRARY)])


def build() -> None:
    flags = {"CC": "gcc", "CFLAGS": FLAGS, "LDFLAGS": FLAGS}
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=TREE, env={**os.environ, **flags}, check=True)
    source = LIBRARY.with_suffix(".c")
    source.write_text(WATCH)
    subprocess.run(["gcc", *FLAGS.split(), "-shared", "-fPIC", str(source), "-o", str(LIBRARY)], check=True)


def environment() -> dict[str, str]:
    """With it Python finds the copy, and its blocks of memory are those of malloc, whose ends are watched."""
    return {
        **os.environ,
        "LD_PRELOAD": runtimes(),
        "PYTHONPATH": str(TREE / "build" / "alias"),
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": f"detect_leaks=0:log_path={REPORTS}/report",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "SANITIZER_REPORTS": f"{REPORTS}/report",
    }


def check_copy() -> None:
    """Raise SystemExit if Python would take modules from elsewhere."""
    ask = "import ascendtile.simulator.timing.engine._core as m; print(m.__file__)"
    command = [sys.executable, "-c", ask]
    found = subprocess.run(command, cwd=TREE, env=environment(), capture_output=True, text=True, check=False)
    if not Path(found.stdout.strip() or "/").resolve().is_relative_to(TREE):
        raise SystemExit(f"the modules under test are not those of {TREE}: {found.stdout}{found.stderr}")


def reports() -> str:
    """What has been found since the last call, in this process or in others."""
    found = sorted(REPORTS.glob("report*"))
    text = "\n".join(path.read_text(errors="replace") for path in found)
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir(parents=True)
    return text


def check_reports() -> None:
    """Raise SystemExit if a fault made on purpose leaves no report."""
    for name, word in TOLD.items():
        reports()
        call = f"import ctypes; ctypes.CDLL({str(LIBRARY)!r}).{name}(5)"
        ended = subprocess.run(
            [sys.executable, "-c", call], env=environment(), capture_output=True, check=False
        )
        if word not in reports() or not ended.returncode:
            raise SystemExit(f"the sanitizers do not report a fault made on purpose: {name}, {word!r}")


def main(*asked: str) -> int:
    copy_sources()
    build()
    check_copy()
    check_reports()
    tests = asked or TESTS
    command = [sys.executable, "-m", "pytest", "-n0", "-q", "-s", "-p", "no:cacheprovider", *tests]
    status = subprocess.run(command, cwd=TREE, env=environment(), check=False).returncode
    found = reports()
    print(found or "no report of a sanitizer")
    return status or bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
