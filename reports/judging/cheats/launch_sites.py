"""Where an answer's text launches kernels, and whether something stands before it that may keep it from doing so."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

ENTRIES = ("forward", "__call__", "__init__")


@dataclass(frozen=True)
class LaunchSite:
    """A place that launches. conditional: under if, try or a loop, or behind an early return. called: whether the function
    that it stands in is named anywhere else, or is one that the judge calls."""

    line: int
    conditional: bool
    called: bool


def launch_sites(text: str, entry: str) -> tuple[LaunchSite, ...]:
    """Calls of the form kernel[grid](...) and kernel.run(..., grid=...). entry: the function that the judge calls."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    nodes = list(ast.walk(tree))
    used = {x.id for x in nodes if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Load)}
    used |= {x.attr for x in nodes if isinstance(x, ast.Attribute)}
    return tuple(_sites(tree.body, False, True, {*used, *ENTRIES, entry}))


def _sites(body: list[ast.stmt], conditional: bool, called: bool, used: set[str]) -> Iterator[LaunchSite]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            yield from _sites(statement.body, False, statement.name in used, used)
        elif isinstance(statement, ast.ClassDef):
            yield from _sites(statement.body, conditional, called, used)
        elif isinstance(statement, ast.If | ast.Try | ast.For | ast.While | ast.Match):
            yield from _sites(_inner(statement), True, called, used)
            conditional = conditional or any(isinstance(x, ast.Return) for x in ast.walk(statement))
        elif isinstance(statement, ast.With):
            yield from _sites(statement.body, conditional, called, used)
        else:
            yield from _in_expression(statement, conditional, called)


def _inner(statement: ast.stmt) -> list[ast.stmt]:
    parts = [getattr(statement, n, []) for n in ("body", "orelse", "finalbody")]
    parts += [h.body for h in getattr(statement, "handlers", [])] + [
        c.body for c in getattr(statement, "cases", [])
    ]
    return [x for part in parts for x in part]


def _in_expression(statement: ast.stmt, conditional: bool, called: bool) -> Iterator[LaunchSite]:
    nodes = list(ast.walk(statement))
    chosen = any(isinstance(x, ast.IfExp | ast.BoolOp | ast.Lambda) for x in nodes)
    for node in nodes:
        if isinstance(node, ast.Call) and _launches(node):
            yield LaunchSite(node.lineno, conditional or chosen, called)


def _launches(node: ast.Call) -> bool:
    if isinstance(node.func, ast.Subscript):
        return True
    named = isinstance(node.func, ast.Attribute) and node.func.attr == "run"
    return named and any(k.arg == "grid" for k in node.keywords)
