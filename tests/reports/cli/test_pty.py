"""Every kind of record in a real terminal: a page of 80 columns, coloured unless NO_COLOR is set, plain in a pipe."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from rich.cells import cell_len

from ascendtile.kernels import precision_study, precision_sweep, run_op
from ascendtile.reports.facts.study.json_form import study_json, sweep_json
from ascendtile.tiling import explore

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
NAMES = ("a.run", "s.db", "e.json", "p.json", "w.json", "a.run b.run")
# All of them in one process: most of its time is for imports.
COMMAND = (
    sys.executable,
    "-c",
    "import sys; from ascendtile.reports.cli.main import status_of\n"
    "sys.exit(sum(status_of(['report', *names.split()]) for names in sys.argv[1:]))",
    *NAMES,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    run_op("rms_norm_grad", case="tiny").run.save(folder / "a.run")
    run_op("rms_norm_grad", case="tiny", tiling={"buffers": 1}).run.save(folder / "b.run")
    found = explore("rms_norm_grad", case="tiny", space={"rows": (1, 2)}, store=folder / "s.db")
    (folder / "e.json").write_text(json.dumps(found.to_dict()))
    case = {"m": 16, "n": 16, "k": 32}
    (folder / "p.json").write_text(json.dumps(study_json(precision_study("matmul", sizes=case))))
    sweep = precision_sweep("matmul", "scale", case, values=(0, 20), modes="KEEP_DTYPE", time=False)
    (folder / "w.json").write_text(json.dumps(sweep_json("scale", sweep)))
    return folder


def environment(**more: str) -> dict[str, str]:
    inherited = {n: x for n, x in os.environ.items() if n not in ("NO_COLOR", "COLUMNS", "LINES")}
    return {**inherited, "TERM": "xterm-256color", **more}


def in_terminal(files: Path, columns: int, **more: str) -> list[str]:
    """Lines that a terminal of that width is sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    ends = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    with subprocess.Popen(COMMAND, cwd=files, env=environment(**more), **ends) as process:  # type: ignore[call-overload]
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:  # Linux says so when the other side is closed
            pass
        os.close(ours)
    assert process.returncode == 0
    return b"".join(parts).decode().split("\r\n")


def piped(files: Path) -> list[str]:
    """The same in a pipe."""
    made = subprocess.run(COMMAND, cwd=files, env=environment(), capture_output=True, text=True, check=True)
    assert made.stderr == ""
    return made.stdout.split("\n")


@pytest.mark.exhaustive
def test_every_kind_of_page_in_a_terminal(files: Path) -> None:
    coloured = in_terminal(files, 80)
    wide = in_terminal(files, 200, NO_COLOR="1")
    plain = piped(files)
    assert "\x1b" not in "".join(wide)
    assert 80 < max(map(cell_len, wide)) <= 200
    assert max(map(cell_len, plain)) <= 80
    assert ".." not in "".join(wide)
    assert sum(line.startswith("matmul  ") for line in plain) == 2
    assert any(ESCAPE.search(line) for line in coloured)
    bare = [ESCAPE.sub("", line) for line in coloured]
    assert [line.rstrip() for line in bare] == plain
    assert max(map(cell_len, bare)) <= 80
