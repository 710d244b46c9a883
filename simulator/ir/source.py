"""The source text of one function, parsed, with the places of its nodes."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ..errors import CompileError
from .program import Loc


@dataclass(frozen=True)
class Source:
    """Parsed source of one function."""

    file: str
    first_line: int
    lines: list[str]
    shift: int  # from a line number of the tree to that of the file
    tree: ast.FunctionDef

    @staticmethod
    def of(fn: Callable[..., Any]) -> Source:
        try:
            lines, above = inspect.findsource(inspect.unwrap(fn))
        except (OSError, TypeError):
            raise CompileError(
                f"the source of {getattr(fn, '__name__', fn)!r} cannot be read: a kernel must be defined in a file "
                "(or a notebook cell), not in exec() or at the interactive prompt"
            ) from None
        file = inspect.getsourcefile(fn) or "<kernel>"
        return Source.of_lines(file, above + 1, lines[above:], fn.__name__)

    @staticmethod
    def of_lines(file: str, first_line: int, lines: list[str], name: str) -> Source:
        """The function that begins with the first of `lines`, which is line `first_line` of the file."""
        tree, header = _first_statement(lines)
        if not isinstance(tree, ast.FunctionDef):
            raise CompileError(
                f"{file}:{first_line}: {name}: only plain functions can be kernels (no lambda, no async)"
            )
        shown = [r.rstrip("\r\n") for r in lines[: (tree.end_lineno or 0) - header]]
        return Source(file, first_line, shown, first_line - 1 - header, tree)

    def loc(self, node: ast.AST, helper: str = "", caller: Loc | None = None) -> Loc:
        """Place of a node; of a helper's, with where it is called."""
        found: Loc | None = node.__dict__.get("place")  # every compilation of the kernel asks again
        if found is None:
            found = node.__dict__["place"] = self._loc(node)
        return found if caller is None else Loc(found.file, found.line, found.column, helper, caller)

    def _loc(self, node: ast.AST) -> Loc:
        """The tree counts columns in bytes, the message in characters."""
        line = node.lineno + self.shift  # type: ignore[attr-defined]
        column = node.col_offset  # type: ignore[attr-defined]
        text = self.lines[line - self.first_line]
        if not text.isascii():
            column = len(text.encode()[:column].decode(errors="replace"))
        return Loc(self.file, line, column)


def _first_statement(lines: list[str]) -> tuple[ast.stmt | None, int]:
    """The function that lines begin with, and the number of lines put above it: an indented one is parsed under an `if`.

    So columns stay those of the file, and a comment or a text that is indented less does no harm. It ends before a line that
    is indented no more than its first one; where such a line is within brackets or a text, what is before it does not parse.
    """
    indent = _indent(lines[0])
    ends = (k for k, x in enumerate(lines) if k and _indent(x) <= indent and x.strip()[:1] not in ("", "#"))
    for end in chain(ends, (len(lines),)):
        try:
            first = ast.parse(("if 1:\n" if indent else "") + "".join(lines[:end])).body[0]
        except SyntaxError:
            continue
        return (first.body[0], 1) if indent and isinstance(first, ast.If) else (first, 0)
    return None, 0


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
