"""The function around a line, in files that are as odd as files are."""

from __future__ import annotations

import linecache
from pathlib import Path

from ascendtile.simulator.ir.source import Source
from ascendtile.simulator.record.run import LineCost
from ascendtile.simulator.timing.results.timeline import LONGEST_LINE, MOST_LINES, source_texts

TEXT = """x = 1
def outer():
    def inner(a):
        return a + 1
    return inner

def last():
    return 2
y = 3
"""


def kernel() -> int:
    return 1


def found(path: Path, *lines: int) -> list[tuple[int, str]]:
    costs = [LineCost(str(path), n, "", 1.0, {}) for n in lines]
    texts = {str(path): linecache.getlines(str(path))}
    return [(s.first_line, s.text) for s in source_texts(Source.of(kernel), costs, texts)[1:]]


def test_the_nearest_function_that_reaches_the_line(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(TEXT)
    assert found(path, 4)[0][0] == 3
    assert found(path, 5)[0] == (2, "\n".join(TEXT.splitlines()[1:5]))
    assert found(path, 8) == [(7, "def last():\n    return 2")]
    assert found(path, 8, 7) == found(path, 8)  # once each
    assert found(path, 9) == []  # in no function


def test_a_file_that_is_gone_or_no_python_gives_nothing(tmp_path: Path) -> None:
    (tmp_path / "b.py").write_text("def f(:\n  ((\n 'x\n")
    assert found(tmp_path / "gone.py", 3) == []
    assert found(tmp_path / "b.py", 99) == []


def test_what_is_kept_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "c.py"
    path.write_text("def f():\n    x = '" + "a" * 10_000 + "'\n")
    assert len(found(path, 2)[0][1].splitlines()[1]) == LONGEST_LINE
    long = tmp_path / "d.py"
    long.write_text("def f():\n" + "    x = 1\n" * (MOST_LINES + 1))
    assert found(long, 5) == []
