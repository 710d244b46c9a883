"""Compile errors that show the kernel's line with a caret."""

from __future__ import annotations

from ..errors import CompileError
from .program import Loc


def compile_error(message: str, loc: Loc, source: list[str], first_line: int) -> CompileError:
    """`CompileError` with file, line, column, up to three source lines and a caret under the column.

    `source` holds the lines of the function, `first_line` is the file's number of the first of them.
    """
    index = loc.line - first_line
    shown = [
        f"{first_line + i:>5} | {source[i]}" for i in range(max(0, index - 2), index + 1) if i < len(source)
    ]
    caret = " " * (8 + loc.column) + "^"
    excerpt = "\n".join([*shown, caret]) if shown else ""
    return CompileError(f"{loc.file}:{loc.line}:{loc.column + 1}: {message}\n{excerpt}".rstrip())
