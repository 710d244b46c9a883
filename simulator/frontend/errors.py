"""Compile errors that show the kernel's line with a caret."""

from __future__ import annotations

from ..errors import CompileError
from .program import Loc


def compile_error(message: str, loc: Loc, source: list[str], first_line: int) -> CompileError:
    """`CompileError` with file, line, column, up to three source lines and a caret under the column.

    `source` holds the lines of the function, `first_line` is the file's number of the first of them.
    """
    index = loc.line - first_line
    head = f"{loc.file}:{loc.line}:{loc.column + 1}: {message}"
    if not 0 <= index < len(source):
        return CompileError(head)
    shown = [f"{first_line + i:>5} | {source[i]}" for i in range(max(0, index - 2), index + 1)]
    # a tab stays a tab, so that the caret stands under the column however wide tabs are shown
    under = "".join("\t" if c == "\t" else " " for c in source[index][: loc.column])
    return CompileError("\n".join([head, *shown, " " * 8 + under + "^"]))
