"""Build script: maps the top-level folders into one import package, `ascendtile`.

`simulator/` is imported as `ascendtile.simulator`, and so on for the other folders, because the plain names collide with
packages that users of this project have installed; `ascendtile` itself is `simulator/ascendtile/`. Cython, mypy and
pyright need a place on disk where the mapped names exist: that is `build/alias/ascendtile`, a folder of symbolic links made
here.
"""

from __future__ import annotations

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup

ROOT = Path(__file__).resolve().parent
PACKAGE = "ascendtile"
FOLDERS = ("simulator", "kernels", "tiling", "reports")
TOP = "simulator/ascendtile"  # what `import ascendtile` reads
ALIAS = ROOT / "build" / "alias"

DEBUG = os.environ.get("ASCENDTILE_CYTHON_DEBUG") == "1"
COVERAGE = os.environ.get("ASCENDTILE_CYTHON_COVERAGE") == "1"


def make_alias_tree() -> str:
    """Give Cython, mypy and pyright a path on which `ascendtile.<folder>` exists."""
    (ALIAS / PACKAGE).mkdir(parents=True, exist_ok=True)
    for source in (*(ROOT / folder for folder in FOLDERS), *(ROOT / TOP).glob("*.py")):
        link = ALIAS / PACKAGE / source.name
        if link.is_symlink() and link.resolve() != source:
            link.unlink()  # the checkout was moved or copied: a stale link would compile another tree
        if not link.is_symlink():
            link.symlink_to(source)
    return str(ALIAS)


def packages() -> list[str]:
    """The names that the folders are imported by; that of `TOP` is the package itself."""
    found = find_packages(str(ROOT), include=[p for f in FOLDERS for p in (f, f"{f}.*")])
    return [PACKAGE, *(f"{PACKAGE}.{name}" for name in found if name != TOP.replace("/", "."))]


def extensions() -> list[Extension]:
    """One extension per .pyx file, whatever folder it is in."""
    trace = ["CYTHON_TRACE", "CYTHON_TRACE_NOGIL"]
    macros = [(m, "1") for m in trace] + [("CYTHON_USE_SYS_MONITORING", "0")]
    return [
        Extension(
            ".".join((PACKAGE, *pyx.relative_to(ROOT).with_suffix("").parts)),
            [str(pyx.relative_to(ROOT))],
            # One configuration gives the same bits on every machine: no contraction, no fast-math, no -march.
            extra_compile_args=["-O3", "-ffp-contract=off"],
            define_macros=macros if COVERAGE else [],
        )
        for folder in FOLDERS
        for pyx in sorted((ROOT / folder).rglob("*.pyx"))
    ]


setup(
    packages=packages(),
    package_dir={PACKAGE: TOP, **{f"{PACKAGE}.{folder}": folder for folder in FOLDERS}},
    package_data={
        "": ["*.pxd", "*.pyx", "*.toml", "*.csv", "*.html", "*.css", "*.js", "*.ipynb", "py.typed"]
    },
    options={"build_ext": {"parallel": os.cpu_count()}},
    ext_modules=cythonize(
        extensions(),
        include_path=[make_alias_tree()],
        build_dir=None if COVERAGE else "build/cython",
        annotate=not COVERAGE,
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
