"""Where output goes: pages to standard output, everything else to standard error.

A page is 80 columns wide, and as wide as the terminal (or COLUMNS) where that is wider. Colours and styles are for terminals
only, and not with NO_COLOR.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from shutil import get_terminal_size
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PAGE_WIDTH = 80


def make_console(file: IO[str]) -> Console:
    """A console on `file`, as wide as a page: a narrower terminal wraps lines, but no digit is ever cut off."""
    from .clean_console import CleanConsole

    terminal = file.isatty()
    coloured = terminal and not os.environ.get("NO_COLOR")
    plain: Any = dict.fromkeys(("force_jupyter", "highlight", "markup", "emoji"), False)
    colours: Any = "auto" if coloured else None
    console = CleanConsole(
        file=file, color_system=colours, force_terminal=None if terminal else False, **plain
    )
    console.width = PAGE_WIDTH
    return console


def show(page: RenderableType) -> None:
    """Print a page on standard output, as wide as the terminal where that is wider; no line ends in spaces."""
    console = make_console(sys.stdout)
    console.width = max(PAGE_WIDTH, get_terminal_size((PAGE_WIDTH, 24)).columns)
    with console.capture() as captured:
        console.print(page)
    for line in captured.get().splitlines():
        sys.stdout.write(f"{line.rstrip()}\n")


class _Ascii(io.StringIO):
    """What is printed may go anywhere, so bars are # and dots."""

    encoding = "ascii"


def as_text(page: RenderableType) -> str:
    """A page without styles, as `print(record)` shows it; no line ends in spaces."""
    out = _Ascii()
    make_console(out).print(page)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def show_json(data: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    sys.stdout.write(json.dumps(data, indent=2, allow_nan=False))
    sys.stdout.write("\n")


def present(as_json: bool, data: Callable[..., Any], page: Callable[..., Any], *shown: Any) -> None:
    """What is shown as a page or, with --json, as data."""
    if as_json:
        show_json(data(*shown))
    else:
        show(page(*shown))


def note(text: str) -> None:
    """Tell what is going on, on standard error; no control character of a text gets there."""
    from ..facts.texts import clean

    sys.stderr.write("".join(f"{clean(line)}\n" for line in text.splitlines()))
