"""Build script: maps the top-level folders into one import package, `ascendtile`.

`simulator/` is imported as `ascendtile.simulator`, and so on for the other folders, because the plain names collide with
packages that users of this project have installed. Cython, mypy and pyright need a place on disk where the mapped names
exist: that is `build/alias/ascendtile`, a folder of symbolic links made here.
"""

from __future__ import annotations

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup

ROOT = Path(__file__).resolve().parent
PACKAGE = "ascendtile"
FOLDERS = ("simulator", "kernels", "tiling", "reports")
ALIAS = ROOT / "build" / "alias"
# The code of memoryviews and of functions, which Cython else writes into every module: 2 MB of C in each of twenty.
SHARED = f"{PACKAGE}.simulator._cyutility"

DEBUG = os.environ.get("ASCENDTILE_CYTHON_DEBUG") == "1"
COVERAGE = os.environ.get("ASCENDTILE_CYTHON_COVERAGE") == "1"


def make_alias_tree() -> str:
    """Give Cython, mypy and pyright a path on which `ascendtile.<folder>` exists."""
    (ALIAS / PACKAGE).mkdir(parents=True, exist_ok=True)
    for folder in FOLDERS:
        link = ALIAS / PACKAGE / folder
        if link.is_symlink() and link.resolve() != ROOT / folder:
            link.unlink()  # the checkout was moved or copied: a stale link would compile another tree
        if not link.is_symlink():
            link.symlink_to(ROOT / folder, target_is_directory=True)
    return str(ALIAS)


def extension(source: Path) -> Extension:
    """The module of one source file. One configuration gives the same bits on every machine."""
    trace = ["CYTHON_TRACE", "CYTHON_TRACE_NOGIL"]
    macros = [(m, "1") for m in trace] + [("CYTHON_USE_SYS_MONITORING", "0")]
    return Extension(
        ".".join((PACKAGE, *source.with_suffix("").parts)),
        [str(source)],
        # For the same bits: no contraction, no fast-math, no -march.
        extra_compile_args=["-O3", "-g" if DEBUG else "-g0", "-ffp-contract=off"],
        define_macros=macros if COVERAGE else [],
    )


def extensions() -> list[Extension]:
    """One extension per .pyx file, whatever folder it is in, and the one that they share."""
    files = [pyx.relative_to(ROOT) for folder in FOLDERS for pyx in sorted((ROOT / folder).rglob("*.pyx"))]
    return [extension(file) for file in (*files, Path("simulator/_cyutility.c"))]


setup(
    packages=[
        f"{PACKAGE}.{name}"
        for name in find_packages(str(ROOT), include=[p for f in FOLDERS for p in (f, f"{f}.*")])
    ],
    package_dir={f"{PACKAGE}.{folder}": folder for folder in FOLDERS},
    package_data={
        "": ["*.pxd", "*.pyx", "*.toml", "*.csv", "*.html", "*.css", "*.js", "*.ipynb", "py.typed"]
    },
    options={"build_ext": {"parallel": os.cpu_count()}},
    ext_modules=cythonize(
        extensions(),
        include_path=[make_alias_tree()],
        build_dir=None if COVERAGE else "build/cython",
        shared_utility_qualified_name=SHARED,
        compiler_directives={
            "language_level": 3,
            "boundscheck": DEBUG,
            "wraparound": DEBUG,
            "initializedcheck": DEBUG,
            "cdivision": not DEBUG,
            "freethreading_compatible": True,
            "linetrace": COVERAGE,
        },
    ),
)
