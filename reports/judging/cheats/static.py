"""What an answer's text shows without being run: imports, names, assignments to modules of others, code made of texts.

Only what has no honest use is named; whatever is merely strange is left to the checks of the calls. The text is read as a
syntax tree, so that comments and strings say nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..verdict import Cheat
from . import names as known
from .aliases import Aliases

MADE_OF_TEXT = ("join", "decode", "replace", "format", "fromhex", "b64decode")


def static_cheats(text: str, task_name: str = "", siblings: tuple[str, ...] = ()) -> tuple[Cheat, ...]:
    """Cheats in the text of an answer, or of a module beside it, in the order of lines. A text that is no Python has none.

    task_name: the name of the task's module, which an answer must not import. siblings: modules of the answer's own.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found: dict[tuple[str, int], Cheat] = {}
    lines = text.splitlines()
    for name, message, node in _Reader(tree, task_name, siblings).cheats():
        line = getattr(node, "lineno", 1)
        evidence = lines[line - 1].strip()[:120] if line <= len(lines) else ""
        found.setdefault((name, line), Cheat(name=name, message=message, line=line, evidence=evidence))
    return tuple(sorted(found.values(), key=lambda c: (c.line or 0, c.name)))


Found = tuple[str, str, ast.AST]


class _Reader:
    def __init__(self, tree: ast.Module, task_name: str, siblings: tuple[str, ...]) -> None:
        self.nodes, self.siblings = list(ast.walk(tree)), siblings
        self.references = {*known.REFERENCES, *([task_name] if task_name else [])} - set(siblings)
        self.aliases = Aliases(self.nodes)
        self.asked = set(_looked_for_in(self.nodes))

    def cheats(self) -> Iterator[Found]:
        """Everything that is found, in no order."""
        for node in self.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from self._imported(node)
            elif isinstance(node, ast.Attribute):
                yield from self._attribute(node)
            elif isinstance(node, ast.Name):
                yield from self._name(node)
            elif isinstance(node, ast.Call):
                yield from self._called(node)
            elif isinstance(node, ast.ClassDef):
                yield from self._class(node)
            yield from self._assigned(node)

    # ---- imports ----

    def _imported(self, node: ast.Import | ast.ImportFrom) -> Iterator[Found]:
        base = "" if isinstance(node, ast.Import) else node.module or ""
        for alias in node.names:
            name = f"{base}.{alias.name}" if base else alias.name
            yield from self._module(name, base or alias.name, node)
            if alias.name == "*" and base in known.SEARCHED:
                yield "hidden_code", f"imports all names of {base}", node
            if base and name in known.NAMES:
                yield known.NAMES[name], f"imports {name}", node
            if base and alias.name == known.MODEL and base.partition(".")[0] not in self.siblings:
                yield "reference_imported", f"imports {known.MODEL} from {base}", node

    def _module(self, name: str, module: str, node: ast.AST) -> Iterator[Found]:
        top = module.partition(".")[0]
        if top in self.siblings:
            return
        if top in self.references or module in self.references:
            yield "reference_imported", f"imports {module}", node
        if top == known.OWN and not self._is_public(name, module):
            yield "harness_tampered", f"imports {name}", node
        cheat = next((c for m, c in known.MODULES.items() if _below(module, m) or _below(name, m)), None)
        if cheat is not None:
            yield cheat, f"imports {module}", node

    @staticmethod
    def _is_public(name: str, module: str) -> bool:
        if _below(name, f"{known.OWN}.simulator.language") or name in known.PUBLIC:
            return True
        return module == f"{known.OWN}.simulator" and name.removeprefix(f"{module}.") in known.PUBLIC_NAMES

    # ---- names and attributes ----

    def _attribute(self, node: ast.Attribute) -> Iterator[Found]:
        if node.attr in known.ATTRIBUTES:
            yield known.ATTRIBUTES[node.attr], f"reads {node.attr}", node
        full = self.aliases.full(node)
        if full in known.NAMES and node not in self.asked:
            yield known.NAMES[full], f"uses {full}", node
        own = f"{known.OWN}.simulator."
        if (
            full
            and full.startswith(own)
            and full.removeprefix(own).partition(".")[0] not in known.PUBLIC_NAMES
        ):
            yield "harness_tampered", f"uses {full}", node
        if node.attr == "__dict__" and self.aliases.is_imported(node.value) and full != node.attr:
            yield "hidden_code", f"looks through the names of {self.aliases.full(node.value)}", node

    def _name(self, node: ast.Name) -> Iterator[Found]:
        if node.id in known.BUILTINS and isinstance(node.ctx, ast.Load) and node.id not in self.aliases.own:
            yield known.BUILTINS[node.id], f"uses {node.id}", node
        full = self.aliases.full(node)
        if full in known.NAMES and full != node.id:
            yield known.NAMES[full], f"uses {full}", node

    # ---- calls ----

    def _called(self, node: ast.Call) -> Iterator[Found]:
        function = self.aliases.full(node.func) or ""
        if function in known.SETTERS and node.args:
            yield from self._set(node.args[0], _text(node.args[1]) if len(node.args) > 1 else "", node)
        if (
            function.rpartition(".")[2] == "partial"
            and node.args
            and self.aliases.full(node.args[0]) in known.SETTERS
        ):
            yield "function_replaced", "makes a function of setattr", node
        if function in ("getattr", "operator.attrgetter", "importlib.import_module"):
            yield from self._looked_up(function, node)

    def _looked_up(self, function: str, node: ast.Call) -> Iterator[Found]:
        """getattr and its like: a name that stands there counts as if it were written; one that is put together does not."""
        wanted = node.args[1:2] if function == "getattr" else node.args[:1]
        owner = self.aliases.full(node.args[0]) if function == "getattr" and node.args else ""
        for x in wanted:
            name = _text(x)
            full = f"{owner}.{name}" if owner else name
            if name in known.ATTRIBUTES:
                yield known.ATTRIBUTES[name], f"reads {name}", node
            elif name and full in known.NAMES:
                yield known.NAMES[full], f"uses {full}", node
            elif name and function == "importlib.import_module":
                yield from self._module(name, name, node)
            elif not name and (
                _is_put_together(x) or owner in known.SEARCHED or function == "importlib.import_module"
            ):
                yield "hidden_code", f"{function} with a name that is put together", node

    # ---- classes ----

    def _class(self, node: ast.ClassDef) -> Iterator[Found]:
        bases = [self.aliases.full(b) or "" for b in node.bases]
        if any(b in ("torch.Tensor", "torch._tensor.Tensor", "torch.nn.Parameter") for b in bases):
            yield "lazy_output", f"{node.name} is a class of tensors", node
        if any(isinstance(x, ast.FunctionDef) and x.name in known.LAZY_METHODS for x in node.body):
            yield "lazy_output", f"{node.name} intercepts torch's functions", node
        imported = [b for b in bases if b.rpartition(".")[2] == known.MODEL and b not in self.aliases.own]
        if imported:
            yield "reference_imported", f"{node.name} inherits from {imported[0]}", node

    # ---- assignments ----

    def _assigned(self, node: ast.AST) -> Iterator[Found]:
        for target in _targets(node):
            if isinstance(target, ast.Attribute):
                yield from self._set(target.value, target.attr, node)
            elif isinstance(target, ast.Subscript):
                yield from self._set_in_dict(target, node)

    def _set_in_dict(self, target: ast.Subscript, node: ast.AST) -> Iterator[Found]:
        """`vars(torch)["x"] = ...`, `torch.__dict__["x"] = ...`"""
        x = target.value
        if isinstance(x, ast.Attribute) and x.attr == "__dict__":
            yield from self._set(x.value, _text(target.slice), node)
        elif isinstance(x, ast.Call) and self.aliases.full(x.func) == "vars" and x.args:
            yield from self._set(x.args[0], _text(target.slice), node)

    def _set(self, owner: ast.expr, attribute: str, node: ast.AST) -> Iterator[Found]:
        """Setting an attribute of what was imported, or of a class of it."""
        full = self.aliases.full(owner)
        if full is None or not self.aliases.is_imported(owner) or full.partition(".")[0] in self.siblings:
            return
        path = f"{full}.{attribute}"
        if any((path + ".").startswith(s) for s in known.SETTINGS):
            return
        clock = (
            full in known.CLOCKS
            or attribute in known.CLOCK_NAMES
            or full.rpartition(".")[2] in known.CLOCK_NAMES
        )
        yield "timing_replaced" if clock else "function_replaced", f"sets {path}", node


def _below(name: str, module: str) -> bool:
    return name == module or name.startswith(module + ".")


def _looked_for_in(nodes: list[ast.AST]) -> Iterator[ast.expr]:
    """`sys.modules` of `"x" in sys.modules`, which looks at nothing."""
    for node in nodes:
        if isinstance(node, ast.Compare) and all(isinstance(o, ast.In | ast.NotIn) for o in node.ops):
            yield from node.comparators


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_put_together(node: ast.expr) -> bool:
    """A text that is computed of texts: "ma" + "tmul", "".join(...), "lumtam"[::-1], f"{a}b"."""
    texts = any(isinstance(x, ast.Constant) and isinstance(x.value, str | bytes) for x in ast.walk(node))
    if isinstance(node, ast.BinOp | ast.Subscript):
        return texts
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in MADE_OF_TEXT
    return False


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    """What is assigned to, or deleted, in whatever form."""
    if isinstance(node, ast.Assign):
        waiting = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.comprehension | ast.AsyncFor):
        waiting = [node.target]
    elif isinstance(node, ast.Delete):
        waiting = list(node.targets)
    elif isinstance(node, ast.With):
        waiting = [x.optional_vars for x in node.items if x.optional_vars is not None]
    else:
        return
    while waiting:
        target = waiting.pop()
        if isinstance(target, ast.Tuple | ast.List):
            waiting += target.elts
        elif isinstance(target, ast.Starred):
            waiting.append(target.value)
        else:
            yield target
