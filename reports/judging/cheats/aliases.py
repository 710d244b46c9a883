"""Which module or function a name of an answer stands for: imports under other names, and assignments of them."""

from __future__ import annotations

import ast
from collections.abc import Sequence


class Aliases:
    """Names of a module, by all nodes of its tree. own: those that it defines itself, which hide Python's."""

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self.names: dict[str, str] = {}  # name -> full name of what was imported
        self.own: set[str] = set()
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                self.own.add(node.name)
            elif isinstance(node, ast.arg):
                self.own.add(node.arg)
            elif isinstance(node, ast.Import):
                for a in node.names:
                    self.names[a.asname or a.name.partition(".")[0]] = (
                        a.name if a.asname else a.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom) and not node.level:
                for a in node.names:
                    self.names[a.asname or a.name] = f"{node.module}.{a.name}"
        self._follow(nodes)

    def _follow(self, nodes: Sequence[ast.AST]) -> None:
        """`t = torch`, `F = torch.nn.functional`, `alias = t.cuda`; twice, as one may be made of another below it."""
        simple = [
            (node.targets[0].id, node.value)
            for node in nodes
            if isinstance(node, ast.Assign)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
        ]
        simple += [(n.target.id, n.value) for n in nodes if isinstance(n, ast.NamedExpr)]
        for _ in range(2):
            for name, value in simple:
                full = self.full(value) if isinstance(value, ast.Name | ast.Attribute) else None
                known = full is not None and (self.is_imported(value) or full in PYTHON)
                if known and full is not None:
                    self.names.setdefault(name, full)
        self.own |= {name for name, _ in simple if name not in self.names}

    def full(self, node: ast.expr) -> str | None:
        """The full name of a name or a chain of attributes; None of anything else."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.full(node.value)
            return None if owner is None else f"{owner}.{node.attr}"
        if isinstance(node, ast.Call) and self.full(node.func) == "type" and len(node.args) == 1:
            return None
        return None

    def is_imported(self, node: ast.expr) -> bool:
        """Whether a chain of attributes begins with an import, or an alias of one."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and (node.id in self.names or node.id == "builtins")


PYTHON = (
    "setattr",
    "delattr",
    "getattr",
    "exec",
    "eval",
    "compile",
    "__import__",
    "open",
    "vars",
    "object.__setattr__",
)
