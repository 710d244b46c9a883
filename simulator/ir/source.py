"""The source text of one function, parsed, with the places of its nodes."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass
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
            raw, first = inspect.getsourcelines(fn)
        except (OSError, TypeError, SyntaxError):
            raise CompileError(
                f"the source of {getattr(fn, '__name__', fn)!r} cannot be read: a kernel must be defined in a file "
                "(or a notebook cell), not in exec() or at the interactive prompt"
            ) from None
        tree, header = _first_statement(raw)
        if not isinstance(tree, ast.FunctionDef):
            raise CompileError(
                f"{inspect.getsourcefile(fn)}:{first}: {fn.__name__}: only plain functions can be kernels "
                "(no lambda, no async)"
            )
        file = inspect.getsourcefile(fn) or "<kernel>"
        return Source(file, first, [r.rstrip("\r\n") for r in raw], first - 1 - header, tree)

    def loc(self, node: ast.AST, helper: str = "", caller: Loc | None = None) -> Loc:
        """Place of a node."""
        if caller is None:
            found: Loc | None = node.__dict__.get("place")  # every compilation of the kernel asks again
            if found is None:
                found = node.__dict__["place"] = self._loc(node, helper, None)
            return found
        return self._loc(node, helper, caller)

    def _loc(self, node: ast.AST, helper: str, caller: Loc | None) -> Loc:
        """The tree counts columns in bytes, the message in characters."""
        line = node.lineno + self.shift  # type: ignore[attr-defined]
        column = node.col_offset  # type: ignore[attr-defined]
        text = self.lines[line - self.first_line]
        if not text.isascii():
            column = len(text.encode()[:column].decode(errors="replace"))
        return Loc(self.file, line, column, helper, caller)


def _first_statement(raw: list[str]) -> tuple[ast.stmt | None, int]:
    """The function and the number of lines put above it: an indented one is parsed under an `if`.

    So columns stay those of the file, and a comment or a text that is indented less does no harm.
    """
    indented = raw[0][:1] in (" ", "\t")
    try:
        first = ast.parse(("if 1:\n" if indented else "") + "".join(raw)).body[0]
    except SyntaxError:
        return None, 0
    if not indented:
        return first, 0
    return (first.body[0] if isinstance(first, ast.If) else None), 1
