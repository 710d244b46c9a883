"""What is in a statement: whether it may return, which names it assigns, variables of its loops."""

from __future__ import annotations

import ast
from typing import NamedTuple


class _Below(NamedTuple):
    """What is in a statement: whether it may return, names that it assigns, variables of its loops."""

    returns: bool
    assigned: tuple[str, ...]
    variables: tuple[str, ...]


def _below(s: ast.stmt) -> _Below:
    """Kept with the statement: every compilation of a kernel asks again."""
    found: _Below | None = s.__dict__.get("below")
    if found is None:
        found = s.__dict__["below"] = _look_below(s)
    return found


def _look_below(s: ast.stmt) -> _Below:
    nodes = list(ast.walk(s))
    loops = [n.target for n in nodes if isinstance(n, ast.For)]
    ids = {id(t) for t in loops}
    names = [
        n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and id(n) not in ids
    ]
    return _Below(
        any(isinstance(n, ast.Return) for n in nodes),
        tuple(dict.fromkeys(names)),
        tuple(t.id for t in loops if isinstance(t, ast.Name)),
    )


def returns(body: list[ast.stmt]) -> bool:
    return any(_below(s).returns for s in body)


def assigned(body: list[ast.stmt]) -> list[str]:
    """Names that statements assign, in order of first appearance."""
    return list(dict.fromkeys(n for s in body for n in _below(s).assigned))


def loop_variables(body: list[ast.stmt]) -> list[str]:
    """Names that are variables of loops inside of the statements."""
    return [n for s in body for n in _below(s).variables]
