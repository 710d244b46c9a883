"""A user's constraints as rules: their names, and the arguments of a kernel that they ask for."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from ...simulator.errors import UsageError
from .space import Rule, rule_of

LONGEST_NAME = 60
LIMITED = ("error", "time", "ub")  # in us, ub in bytes


def rules_of(
    constraints: Sequence[Callable[..., Any] | Rule], axes: Collection[str], arguments: Mapping[str, Any]
) -> list[Rule]:
    """Constraints as rules over the axes; other parameters take the kernel's arguments of these names.

    Raises `UsageError` for a constraint that is no function, or asks for anything else.
    """
    return [c if isinstance(c, Rule) else _rule(c, axes, arguments) for c in constraints]


def _rule(constraint: Any, axes: Collection[str], arguments: Mapping[str, Any]) -> Rule:
    if not callable(constraint):
        raise UsageError(f"a constraint is a function of axes by name, lambda BLOCK: ..., got {constraint!r}")
    name = _name(constraint)
    try:
        parameters = inspect.signature(constraint).parameters
    except (TypeError, ValueError):
        return Rule(name, constraint)
    for n, p in parameters.items():
        free = p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) or p.default is not p.empty
        if not free and n not in axes and n not in arguments:
            known = ", ".join([*axes, *arguments])
            raise UsageError(f"the rule {name!r} asks for {n!r}; points have {known}")
    given = {n: arguments[n] for n in parameters if n in arguments and n not in axes}
    return Rule(name, partial(constraint, **given) if given else constraint)


def _name(constraint: Callable[..., Any]) -> str:
    return _of_lambda(constraint) or rule_of(constraint).name


def _of_lambda(constraint: Callable[..., Any]) -> str | None:
    """The text of a lambda, even if there are more on its lines; None for other functions, or without a source."""
    code = getattr(constraint, "__code__", None)
    if code is None or code.co_name != "<lambda>":
        return None
    try:
        text = inspect.getsource(constraint)
    except (OSError, TypeError):
        return None
    places = (m.start() for m in re.finditer("lambda", text))
    found = [x for start in places if (x := _read(text[start:]))]
    same = [x for x in found if _alike(x, code)]
    chosen = same or found
    return " ".join(ast.unparse(chosen[0]).split())[:LONGEST_NAME] if chosen else None


def _read(text: str) -> ast.Lambda | None:
    """The lambda that a text begins with: the longest piece that is an expression; what follows a comma is another one."""
    for end in range(len(text), len("lambda"), -1):
        try:
            found = ast.parse(f"({text[:end]}\n)", mode="eval").body
        except (SyntaxError, ValueError):
            continue
        first = found.elts[0] if isinstance(found, ast.Tuple) and found.elts else found
        return first if isinstance(first, ast.Lambda) else None
    return None


def _alike(found: ast.Lambda, code: Any) -> bool:
    """Whether compiled it says the same."""
    made = compile(ast.Expression(found), "", "eval").co_consts[0]
    names = ("co_code", "co_names", "co_varnames")
    alike = all(getattr(made, n) == getattr(code, n) for n in names)
    return alike and repr(made.co_consts) == repr(code.co_consts)


def told_apart(rules: Sequence[Rule]) -> list[Rule]:
    """Rules with different names, so that each has a count of its own."""
    out: list[Rule] = []
    for rule in rules:
        names, name, k = {r.name for r in out}, rule.name, 2
        while name in names:
            name, k = f"{rule.name} ({k})", k + 1
        out.append(Rule(name, rule.allows, rule.columns))
    return out


def limit_of(text: str) -> tuple[str, float]:
    """("error", 0.001) of "error<1e-3". Raises `UsageError`."""
    name, less, most = (x.strip() for x in text.partition("<"))
    try:
        value = float(most)
    except ValueError:
        value = 0.0
    if name not in LIMITED or not less or not 0 < value < float("inf"):
        raise UsageError(
            f"a constraint is a function of knobs, or {', '.join(f'{n}<NUMBER' for n in LIMITED)} with a number above 0, "
            f'got {text!r}; several go in a list, constraint=["error<1e-3", "time<15"]'
        )
    return name, value
