"""Build script: maps the top-level folders into one import package, `ascendtile`.

`simulator/` is imported as `ascendtile.simulator`, and so on for the other folders, because the plain names collide with
packages that users of this project have installed; `ascendtile` itself is `simulator/ascendtile/`. Cython, mypy and
pyright need a place on disk where the mapped names exist: that is `build/alias/ascendtile`, a folder of symbolic links made
here.

pip builds in a new environment and in new folders each time. What time stamps say is worth nothing there, so what was
built is kept in `build/` by content, and a second `pip install` compiles only what changed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

import Cython
from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
PACKAGE = "ascendtile"
FOLDERS = ("simulator", "kernels", "tiling", "reports")
TOP = "simulator/ascendtile"  # what `import ascendtile` reads
ALIAS = ROOT / "build" / "alias"
KEPT = Path("build", "kept")
# The code of memoryviews and of functions. Cython writes it into each of twenty modules, 0.8 MB a time, if no module
# is there to share it.
SHARED = Path("simulator", "_cyutility.c")

DEBUG = os.environ.get("ASCENDTILE_CYTHON_DEBUG") == "1"
COVERAGE = os.environ.get("ASCENDTILE_CYTHON_COVERAGE") == "1"
C_FILES = Path("build", "cython" + "-debug" * DEBUG + "-coverage" * COVERAGE)


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


def sources(pattern: str) -> list[Path]:
    """Files of a kind in all folders, relative to the root."""
    return [path.relative_to(ROOT) for folder in FOLDERS for path in sorted((ROOT / folder).rglob(pattern))]


def module_name(source: Path) -> str:
    return ".".join((PACKAGE, *source.with_suffix("").parts))


def extension(source: Path) -> Extension:
    """The module of one file, which need not exist yet."""
    trace = ["CYTHON_TRACE", "CYTHON_TRACE_NOGIL"]
    macros = [(m, "1") for m in trace] + [("CYTHON_USE_SYS_MONITORING", "0")]
    return Extension(
        module_name(source),
        [str(source)],
        # One configuration gives the same bits on every machine: no contraction, no fast-math, no -march.
        # What the modules share has no loop over elements.
        extra_compile_args=[
            "-O2" if source == SHARED else "-O3",
            "-g" if DEBUG else "-g0",
            "-ffp-contract=off",
        ],
        define_macros=macros if COVERAGE else [],
    )


def digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def write_c(modules: list[Extension]) -> list[Extension]:
    """Cython's step. Its own include files are new in each environment of pip: ours alone say what is out of date."""
    state = C_FILES / "state"
    ours = digest(
        Cython.__version__, *((p, p.read_bytes()) for kind in ("*.pyx", "*.pxd") for p in sources(kind))
    )
    if state.exists() and state.read_text() == ours:
        for file in C_FILES.rglob("*.c"):
            file.touch()
    state.unlink(missing_ok=True)
    modules = cythonize(
        modules,
        include_path=[make_alias_tree()],
        build_dir=None if COVERAGE else str(C_FILES),
        shared_utility_qualified_name=module_name(SHARED),
        nthreads=os.cpu_count(),
        compiler_directives={
            "language_level": 3,
            "boundscheck": DEBUG,
            "wraparound": DEBUG,
            "initializedcheck": DEBUG,
            "cdivision": not DEBUG,
            "freethreading_compatible": True,
            "linetrace": COVERAGE,
        },
    )
    C_FILES.mkdir(parents=True, exist_ok=True)
    state.write_text(ours)
    return modules


class BuildExtensions(build_ext):
    """The compiler's step, for what it did not do before."""

    def build_extension(self, ext: Extension) -> None:
        flags = (ext.extra_compile_args, ext.define_macros, self.compiler.compiler_so, sys.version)
        key = digest(flags, *(Path(source).read_bytes() for source in ext.sources))
        built, kept = Path(self.get_ext_fullpath(ext.name)), KEPT / f"{ext.name}-{key}"
        if self.force or not kept.exists():
            built.unlink(missing_ok=True)  # newer than its source, perhaps, but of other flags
            super().build_extension(ext)
            for old in KEPT.glob(f"{ext.name}-*"):
                old.unlink()
            KEPT.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(built, f"{kept}.new")
            os.replace(f"{kept}.new", kept)  # in one step: half a file would be kept for good
        built.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(kept, built)


if __name__ == "__main__":  # Cython starts processes, which import this file where they are not forked
    setup(
        packages=packages(),
        package_dir={PACKAGE: TOP, **{f"{PACKAGE}.{folder}": folder for folder in FOLDERS}},
        # The sources of native modules are data, too: `engine_version` of the tilings' store is made from them. Pages are
        # what the tool `docs` of `ascendtile serve` reads.
        package_data={
            "": [
                "*.pxd",
                "*.pyx",
                "*.toml",
                "*.csv",
                "*.html",
                "*.css",
                "*.js",
                "*.ipynb",
                "*.json",
                "*.md",
                "py.typed",
            ],
            "ascendtile.reports.testing": ["example/*.*", "example/.github/workflows/*"],
        },
        options={"build_ext": {"parallel": os.cpu_count()}},
        cmdclass={"build_ext": BuildExtensions},
        ext_modules=write_c([extension(p) for p in (*sources("*.pyx"), SHARED)]),
    )
