"""Errors that show the kernel's line with a caret, at compile time and at run time."""

from __future__ import annotations

import linecache

from ..errors import CompileError
from .program import Loc


def compile_error(message: str, loc: Loc, source: list[str], first_line: int) -> CompileError:
    """`CompileError` with file, line, column, up to three source lines and a caret under the column.

    `source` holds the lines of the function, `first_line` is the file's number of the first of them.
    """
    index = loc.line - first_line
    shown = source[max(0, index - 2) : index + 1] if 0 <= index < len(source) else []
    text = "\n".join([_head(loc, message), *_excerpt(loc, shown)])
    return CompileError(text, message, (place_in_triton(loc, source, first_line),))


def place_in_triton(loc: Loc, source: list[str], first_line: int) -> str:
    """A place as Triton's errors have it: "at line:column:" from `def` on, the source down to it, a caret."""
    begin = next((n for n, text in enumerate(source) if text.lstrip().startswith("def ")), 0)
    shown = source[begin : loc.line - first_line + 1]
    indent = len(source[begin]) - len(source[begin].lstrip()) if shown else 0
    under = " " * (loc.column - indent) + "^"
    return "\n".join([f"at {len(shown)}:{loc.column - indent}:", *(x[indent:] for x in shown), under])


def at_line(loc: Loc, message: str) -> str:
    """The message with file, line, column, the source line, a caret, and for a helper where it was called."""
    line = linecache.getline(loc.file, loc.line).rstrip("\r\n")
    return "\n".join([_head(loc, message), *_excerpt(loc, [line] if line else []), *_callers(loc)])


def called_at(text: str, helper: str, caller: Loc) -> str:
    """An error's text with the place where a helper was called; the same place again is counted."""
    line = f"  {helper} is called at {caller.file}:{caller.line}"
    before, _, last = text.rpartition("\n")
    rest = last.removeprefix(line)
    if rest == last:
        return f"{text}\n{line}"
    times = int(rest.strip(" ,times") or 1)
    return f"{before}\n{line}, {times + 1} times"


def _head(loc: Loc, message: str) -> str:
    return f"{loc.file}:{loc.line}:{loc.column + 1}: {message}"


def _excerpt(loc: Loc, lines: list[str]) -> list[str]:
    """Source lines, the last of them that of `loc`, and the caret below."""
    if not lines:
        return []
    shown = [f"{n:>5} | {text}" for n, text in enumerate(lines, loc.line - len(lines) + 1)]
    # a tab stays a tab, so that the caret stands under the column however wide tabs are shown
    under = "".join("\t" if c == "\t" else " " for c in lines[-1][: loc.column])
    return [*shown, " " * 8 + under + "^"]


def _callers(loc: Loc) -> list[str]:
    text = ""
    while loc.caller is not None:
        text = called_at(text, loc.helper, loc.caller)
        loc = loc.caller
    return text.split("\n")[1:]
