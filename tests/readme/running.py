"""Runs the blocks of a README as its reader would: in order, in one folder, Python with the names of the blocks before."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ascendtile.reports.cli.main import status_of

from .markdown import Block, cells, commands
from .tables import CHECKS

SHELL = re.compile(r"[|&;<>$`*?~]")
FIGURE = re.compile(r"\W*\d[\d.,]*([ %]|$)")  # 84.3, **84 %**, 1800 MHz; not 910A
HOST_TIME = re.compile(r"\b[\d.,]+ (s|min)\b")


class Runner:
    """folder: empty, and the current one; long: whether blocks marked as exhaustive run, too."""

    def __init__(self, folder: Path, long: bool) -> None:
        self.folder = folder
        self.long = long
        self.names: dict[str, Any] = {"__name__": "readme"}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "OPENBLAS_NUM_THREADS": "1"}

    def run(self, block: Block) -> None:
        """Check one block; skips, saying why, what is not for this run."""
        self._skip(block)
        if "file" in block.marks:
            (self.folder / block.marks["file"]).write_text(block.text)
        else:
            getattr(self, f"_{block.kind}")(block)

    def _skip(self, block: Block) -> None:
        if "skip" in block.marks:
            pytest.skip(block.marks["skip"])
        missing = [n for n in block.marks.get("needs", "").split() if importlib.util.find_spec(n) is None]
        if missing:
            pytest.skip(f"needs {' '.join(missing)}")
        if "exhaustive" in block.marks and not self.long:
            pytest.skip(f"in the exhaustive tests: {block.marks['exhaustive']}")

    def _python(self, block: Block) -> None:
        path = self.folder / f"line{block.line}.py"  # a kernel's source is read from its file
        path.write_text(block.text)
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(block.text, str(path), "exec"), self.names)

    def _sh(self, block: Block) -> None:
        for command, _ in commands(block):
            self.outcome(command, block)

    def _console(self, block: Block) -> None:
        for command, expected in commands(block):
            difference = self.difference(expected or [], self.outcome(command, block).splitlines(), block)
            assert difference is None, f"{command}\n{difference}"

    def difference(self, shown: list[str], printed: list[str], block: Block) -> str | None:
        """The first one; times of the host are none where the block says that they vary."""
        if "varies" in block.marks:
            shown, printed = ([HOST_TIME.sub("TIME", line) for line in text] for text in (shown, printed))
        return first_difference(shown, printed)

    def _table(self, block: Block) -> None:
        if "checked" in block.marks:
            rows = cells(block)
            assert CHECKS[block.marks["checked"]](rows) == rows
        else:
            figures = [cell for row in cells(block) for cell in row if FIGURE.match(cell)]
            assert "varies" in block.marks or not figures, (
                f"a table with figures is checked, or varies: {figures[:3]}"
            )

    def outcome(self, command: str, block: Block) -> str:
        """What it prints, both streams; its exit status has to be the one that is marked, or 0."""
        words = shlex.split(command, comments=True)
        here = (
            words[0] == "ascendtile" and not SHELL.search(shlex.join(words)) and not starts_processes(words)
        )
        status, printed = self._here(words[1:]) if here else self._shell(command)
        assert status == int(block.marks.get("status", 0)), (
            f"{command}: exit status {status}\n{printed[-4000:]}"
        )
        assert "Traceback" not in printed, printed[-4000:]
        return printed

    def _here(self, arguments: list[str]) -> tuple[int, str]:
        """In this process, which is quicker."""
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            return status_of(arguments), stream.getvalue()

    def _shell(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout


def starts_processes(words: list[str]) -> bool:
    """Workers, and a script that is run: both change the process that they are started from."""
    return "--workers" in words or (
        words[1] in ("run", "check") and any(w == "-m" or w.endswith(".py") for w in words)
    )


def first_difference(expected: list[str], printed: list[str]) -> str | None:
    """None if `printed` is what is expected, where a line `...` stands for any number of lines."""
    at = 0
    anywhere = False
    for line in expected:
        if line == "...":
            anywhere = True
            continue
        rest = printed[at:]
        if anywhere and line in rest:
            at += rest.index(line)
        if at >= len(printed) or printed[at].rstrip() != line.rstrip():
            return f"shown:   {line}\nprinted: {printed[at] if at < len(printed) else 'nothing more'}"
        at, anywhere = at + 1, False
    return None if anywhere or at == len(printed) else f"printed and not shown: {printed[at]}"
