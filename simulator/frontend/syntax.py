"""Names of the Python syntax that a kernel cannot have, and what to write instead."""

from __future__ import annotations

import ast

_STATEMENTS: dict[str, tuple[str, str]] = {
    "Break": ("`break`", "; put the condition into a `while`, or mask the work"),
    "Continue": ("`continue`", "; put the rest of the body under an `if`"),
    "Try": ("`try`", "; a kernel cannot catch errors"),
    "TryStar": ("`try`", "; a kernel cannot catch errors"),
    "With": ("`with`", "; write its body without it"),
    "Import": ("`import`", "; import outside of the kernel"),
    "ImportFrom": ("`import`", "; import outside of the kernel"),
    "FunctionDef": ("a nested function", "; define a @jit helper outside of the kernel"),
    "AsyncFunctionDef": ("a nested function", "; define a @jit helper outside of the kernel"),
    "ClassDef": ("a class", "; define it outside of the kernel"),
    "Raise": ("`raise`", "; use `assert`"),
    "Global": ("`global`", "; pass the value as an argument, results through a pointer"),
    "Nonlocal": ("`nonlocal`", "; pass the value as an argument, results through a pointer"),
    "Delete": ("`del`", "; tiles are freed after their last use"),
    "Match": ("`match`", "; use `if`"),
}
_EXPRESSIONS: dict[str, tuple[str, str]] = {
    "Lambda": ("a lambda", "; define a @jit helper outside of the kernel"),
    "SetComp": ("a comprehension", "; use a `for` over tl.static_range"),
    "DictComp": ("a comprehension", "; use a `for` over tl.static_range"),
    "NamedExpr": ("`:=`", "; assign on a line of its own"),
    "Dict": ("a dict", "; use names or a tuple"),
    "Set": ("a set", "; use a tuple"),
    "Starred": ("`*` here", "; write the elements out"),
    "Yield": ("`yield`", "; store results through a pointer"),
    "YieldFrom": ("`yield`", "; store results through a pointer"),
    "Await": ("`await`", ""),
}


def statement(s: ast.stmt) -> str:
    """How a message names a statement."""
    return _STATEMENTS.get(type(s).__name__, (f"`{type(s).__name__}`", ""))[0]


def expression(e: ast.expr) -> str:
    """How a message names an expression."""
    return _EXPRESSIONS.get(type(e).__name__, (f"this expression ({type(e).__name__})", ""))[0]


def hint(node: ast.AST) -> str:
    """What to write instead, to follow "... is not supported in a kernel"."""
    name = type(node).__name__
    return _STATEMENTS.get(name, _EXPRESSIONS.get(name, ("", "")))[1]
