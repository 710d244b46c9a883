"""The import graph of the source, read from the files: nothing is imported or compiled."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("simulator", "kernels", "tiling", "reports")
CYTHON_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+)?c?import[ \t]+(\([^)]*\)|[^\n(]+)", re.M
)
CYTHON_NO_CODE = re.compile(r'#[^\n]*|"""[\s\S]*?"""')

Arrows = dict[str, set[str]]


def sources(*endings: str) -> list[Path]:
    """Files of the source with these endings."""
    return sorted(p for f in FOLDERS for e in endings for p in (ROOT / f).rglob(f"*{e}"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def nodes(path: Path) -> Iterator[ast.AST]:
    """All of the syntax tree of a file."""
    return ast.walk(tree(path))


def dotted(node: ast.AST) -> str:
    """importlib.import_module; what stands before the dots is left out where it is no name. `ast.unparse` takes long."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def name_of(path: Path) -> str:
    """simulator.timing.estimate"""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[tuple[int, str, list[str]]]:
    """(dots, module, names) of every import, also inside of functions and by a constant name; names of `import a`: none."""
    if path.suffix != ".py":
        yield from _cython_imports(CYTHON_NO_CODE.sub("", path.read_text()))
        return
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((0, a.name, []) for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or "", [a.name for a in node.names]
        elif isinstance(node, ast.Call) and dotted(node.func).endswith(("import_module", "__import__")):
            text = str(node.args[0].value) if isinstance(node.args[0], ast.Constant) else ""
            yield len(text) - len(text.lstrip(".")), text.lstrip("."), []


def _cython_imports(text: str) -> Iterator[tuple[int, str, list[str]]]:
    for dots, module, names in CYTHON_IMPORT.findall(text):
        found = [n.split()[0] for n in names.strip("()\n ").split(",") if n.strip()]
        if dots or module:
            yield len(dots), module, found
        else:
            yield from ((0, n, []) for n in found)


def _base(here: Path, dots: int, module: str) -> str | None:
    """The module that is meant; None for what is not ours."""
    if dots:
        return ".".join([*here.relative_to(ROOT).parts[:-dots], *([module] if module else [])])
    return module.removeprefix("ascendtile.") if module.startswith("ascendtile.") else None


@cache
def graph() -> Arrows:
    """Module -> the modules that it imports. `from package import name` means the module `name` where there is one."""
    paths = sources(".py", ".pyx", ".pxd")
    arrows: Arrows = {name_of(p): set() for p in paths}
    for path in paths:
        here = name_of(path)
        for dots, module, names in imports(path):
            base = _base(path, dots, module)
            if base is not None:
                whole = (f"{base}.{name}".strip(".") for name in names)
                meant = {w if w in arrows else base for w in whole} or {base}
                arrows[here] |= {m for m in meant if m in arrows and m != here}
    return arrows


def circles(arrows: Arrows) -> list[frozenset[str]]:
    """Modules that reach themselves, those of one circle together."""
    found: list[frozenset[str]] = []
    while (start := _on_a_circle(arrows)) is not None:
        back: Arrows = defaultdict(set)
        for name, targets in arrows.items():
            for to in targets:
                back[to].add(name)
        circle = frozenset(_reached(arrows, start) & _reached(back, start))
        found.append(circle)
        arrows = {n: to - circle for n, to in arrows.items() if n not in circle}
    return found


def _on_a_circle(arrows: Arrows) -> str | None:
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return str(error.args[1][0])
    return None


def _reached(arrows: Arrows, start: str) -> set[str]:
    found, front = {start}, {start}
    while front:
        front = {to for name in front for to in arrows.get(name, ())} - found
        found |= front
    return found


def against(arrows: Arrows, package: str, order: tuple[tuple[str, ...], ...]) -> set[str]:
    """Imports between parts of `package` ("" is the root) that do not go to an earlier entry of `order`."""
    rank = {part: k for k, parts in enumerate(order) for part in parts}
    found = set()
    for name, targets in arrows.items():
        one = _part(name, package)
        for to in targets:
            other = _part(to, package)
            if one in rank and other in rank and one != other and rank[one] <= rank[other]:
                found.add(f"{name} -> {to}")
    return found


def _part(name: str, package: str) -> str:
    """The part of the package that a module is in; empty outside of it."""
    inside = (
        name if not package else name.removeprefix(f"{package}.") if name.startswith(f"{package}.") else ""
    )
    return inside.split(".")[0]
