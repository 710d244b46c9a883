"""Baselines of commits: the file as a commit has it, or as its tests write it. git and pytest are programs of their own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ....simulator.errors import UsageError
from ...facts.texts import clean
from ..baseline.file import Baseline, baseline_of, read_baseline
from ..baseline.state import UPDATE

SHORT = 10  # digits of a commit's name
LAST_LINES = 12  # of what a run of pytest prints
RAN = (0, 1, 5)  # pytest: all passed, some failed, no tests
HERE = "the working tree"


@dataclass(frozen=True)
class CommitFigures:
    """A baseline and where it is from. failed: whether tests of it did not pass, so that figures may be missing."""

    name: str
    tests: Baseline
    failed: bool = False


def committed(file: Path, revision: str) -> CommitFigures | None:
    """The file as a commit of its repository has it; None if it does not. `UsageError` if there is no such commit."""
    name = name_of(file.parent, revision)
    held = _git(file.parent, "ls-tree", "--name-only", name.commit, "--", file.name)
    if not held.strip():
        return None
    raw = _git(file.parent, "cat-file", "blob", f"{name.commit}:./{file.name}")
    return CommitFigures(name.text, baseline_of(raw, f"{file.name} of {name.text}"))


def of_working_tree(file: Path) -> CommitFigures | None:
    """The file as it is on disk; None if there is none."""
    return CommitFigures(HERE, read_baseline(file)) if file.exists() else None


@dataclass(frozen=True)
class CommitName:
    """commit: its full name; text: what the user called it, and its short name."""

    commit: str
    text: str


def name_of(folder: Path, revision: str) -> CommitName:
    """The commit that `revision` names. `UsageError` if there is none, or no repository."""
    found = _run_git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if found.returncode:
        _git(folder, "rev-parse", "--git-dir")  # says if it is no repository
        way = "fetch it first (of actions/checkout: fetch-depth: 0)"
        if not _git(folder, "rev-list", "--max-count=1", "--all"):
            way = "it has none yet; commit the baseline first"
        raise UsageError(f"no commit {clean(revision, 80)!r} in the repository of {folder}: {way}")
    commit = found.stdout.decode().strip()
    short = commit[:SHORT]
    return CommitName(commit, short if commit.startswith(revision) else f"{clean(revision, 60)} ({short})")


def run_tests(folder: Path, revision: str | None, arguments: Sequence[str]) -> CommitFigures:
    """What the tests of a commit write, or those of the working tree if it is None; neither tree is changed.

    Args:
        folder: that the tests are run from, inside of the repository.
        arguments: of pytest, such as ["tests/kernels", "-k", "softmax"].

    Raises `UsageError` if pytest could not run the tests.
    """
    if revision is None:
        return _tested(folder, HERE, arguments)
    name = name_of(folder, revision)
    prefix = _git(folder, "rev-parse", "--show-prefix").decode().strip()
    with _worktree(folder, name.commit) as tree:
        if not (tree / prefix).is_dir():
            return CommitFigures(name.text, {})
        return _tested(tree / prefix, name.text, arguments)


@contextmanager
def _worktree(folder: Path, commit: str) -> Iterator[Path]:
    """A checkout of a commit in a folder of its own, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="ascendtile-ci-") as outer:
        tree = Path(outer, "tree")
        try:
            _git(folder, "worktree", "add", "--detach", "--quiet", str(tree), commit)
            yield tree
        finally:
            if tree.exists():
                _git(folder, "worktree", "remove", "--force", str(tree))


def _tested(folder: Path, name: str, arguments: Sequence[str]) -> CommitFigures:
    if importlib.util.find_spec("pytest") is None:
        raise UsageError("--run starts pytest, which is not installed: pip install pytest")
    with tempfile.TemporaryDirectory(prefix="ascendtile-ci-") as outer:
        file = Path(outer, "baseline.json")
        options = ["-p", "no:cacheprovider", UPDATE, f"--ascendtile-baseline={file}"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *options, *arguments],
            cwd=folder,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode not in RAN:
            raise UsageError(
                f"the tests of {name} cannot be run, pytest ended with status {done.returncode}:\n{_tail(done.stdout)}"
            )
        if done.returncode == 1:
            sys.stderr.write(
                f"tests of {name} failed, their figures are not compared:\n{_tail(done.stdout)}\n"
            )
        return CommitFigures(name, read_baseline(file) if file.exists() else {}, done.returncode == 1)


def _environment(folder: Path) -> dict[str, str]:
    """Modules of the project come from this checkout, also where another one is installed."""
    own = [str(folder), str(folder / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(own)}


def _tail(printed: bytes) -> str:
    return "\n".join(clean(x) for x in printed.decode("utf-8", "replace").splitlines()[-LAST_LINES:])


def _git(folder: Path, *arguments: str) -> bytes:
    done = _run_git(folder, *arguments)
    if done.returncode:
        said = clean(done.stderr.decode("utf-8", "replace").strip(), 300)
        raise UsageError(f"git {arguments[0]} in {folder}: {said or f'status {done.returncode}'}")
    return done.stdout


def _run_git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=False)
    except FileNotFoundError:
        what = f"the folder {folder} does not exist" if not folder.is_dir() else "git is not installed"
        raise UsageError(f"{what}: commits are compared in a checkout of a git repository") from None
