"""What the page tells users to type against a server prints what the page shows."""

from pathlib import Path

import pytest

import ascendtile.reports.serving

from ..readme.markdown import commands, read
from ..readme.running import first_difference

pytestmark = pytest.mark.extra("mcp")
PAGE = Path(ascendtile.reports.serving.__path__[0]) / "README.md"
ADDRESS = "http://127.0.0.1:8765"


def test_curl_prints_what_the_page_shows(start, tmp_path, run_shell):
    served = start("--no-torch", "--slots", "1", "--token-file", str(tmp_path / "token"))
    shown = 0
    for block in read(PAGE):
        if "file" in block.marks:
            (tmp_path / block.marks["file"]).write_text(block.text)
        elif block.kind == "console":
            for command, expected in commands(block):
                assert ADDRESS in command
                printed = run_shell(command.replace(ADDRESS, served.url), tmp_path)
                assert first_difference(expected, printed.splitlines()) is None
                shown += 1
    assert shown >= 3
