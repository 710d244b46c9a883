"""The two files of a judgement, as texts. Nothing of them runs here: what they define is read from the syntax tree.

A task has `Model`, `get_inputs` or `get_input_groups`, and mostly `get_init_inputs` (KernelBench, AKG; AscendOpGenAgent's
NPUKernelBench, whose cases stand in a file of JSON lines beside it). An answer has `ModelNew`, or a function that takes the
inputs: AKG's end in `_triton_torch`. Over numpy the same names do.
"""

from __future__ import annotations

import ast
import glob
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....simulator.errors import UsageError
from ....simulator.record.files import read_whole

MOST_BYTES = 4 << 20
MOST_NESTED = 400  # levels of a syntax tree, a term of a sum or an elif being one
GROUPS = "get_input_groups"
MODEL, MODEL_NEW = "Model", "ModelNew"
AKG_FUNCTION = "_triton_torch"
CASES = (".json", ".jsonl", ".csv", ".txt")  # kinds of files that tasks read
KERNEL_DECORATORS = ("jit", "autotune", "heuristics")
TORCH = ("torch", "torch_npu", "torchvision")

Definition = ast.ClassDef | ast.FunctionDef


class AnswerError(Exception):
    """An answer that cannot be loaded: `kind` and text are KernelBench's compilation_error_name and compilation_error."""

    def __init__(self, kind: str, text: str, line: int | None = None) -> None:
        super().__init__(text)
        self.kind, self.line = kind, line


@dataclass(frozen=True)
class TaskFile:
    """path: resolved. grouped: whether it has several cases (`get_input_groups`). companions: files beside it that it reads
    or imports, name -> text.
    """

    path: Path
    text: str
    grouped: bool
    needs_torch: bool
    companions: dict[str, str]

    def to_request(self) -> dict[str, Any]:
        """What the process of the task is told of it."""
        return {"name": self.path.name, "text": self.text, "companions": self.companions}


@dataclass(frozen=True)
class AnswerFile:
    """entry: the class ModelNew, or the function that takes the inputs. siblings: modules beside it that it imports."""

    path: Path
    text: str
    entry: str
    is_class: bool
    needs_torch: bool
    siblings: dict[str, str]

    @property
    def of_akg(self) -> bool:
        """Whether it is written as AKG's answers are."""
        return self.entry.endswith(AKG_FUNCTION)


def read_text(path: Path, what: str) -> str:
    """The text of a file; `UsageError` if there is none, it is no text, or too large."""
    try:
        return read_whole(path, MOST_BYTES, what).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path}: {what} is a text in UTF-8, this file is none") from None


def read_task(path: Path) -> TaskFile:
    """The task of a file; `UsageError` says what it lacks."""
    text = read_text(path, "a task")
    try:
        tree = _tree(text)
    except SyntaxError as e:
        raise UsageError(f"{path}:{e.lineno or 1}: the task is no Python: {e.msg}") from None
    names = set(_names(tree.body))
    if MODEL not in names or not names & {GROUPS, "get_inputs"}:
        lacking = [n for n in (MODEL, "get_inputs") if n not in names]
        raise UsageError(
            f"{path}: the task lacks {' and '.join(lacking)}; a task defines {MODEL}, get_inputs (or {GROUPS}) "
            "and, where its Model takes arguments, get_init_inputs"
        )
    path = path.resolve()
    return TaskFile(path, text, GROUPS in names, _imports(tree, TORCH), dict(_companions(tree, path)))


def _companions(tree: ast.Module, task: Path) -> Iterator[tuple[str, str]]:
    """Files in its folder that the task names in a text, imports, or whose name begins with its own."""
    texts = {x.value for x in ast.walk(tree) if isinstance(x, ast.Constant) and isinstance(x.value, str)}
    names = {Path(t).name for t in texts if 0 < len(t) < 256 and "\0" not in t}
    names |= {f"{name}.py" for name in _imported(tree) if name.isidentifier()}
    names |= {p.name for end in CASES for p in task.parent.glob(f"{glob.escape(task.stem)}*{end}")}
    for path in sorted(task.parent / n for n in names if n not in ("", ".", "..", task.name)):
        if path.is_file() and path.suffix in (*CASES, ".py"):
            yield path.name, read_text(path, "a file of the task")


def read_answer(path: Path, task: TaskFile) -> AnswerFile:
    """The answer of a file. `UsageError`: no file; `AnswerError`: what is in it is no answer."""
    text = read_text(path, "an answer")
    tree = _parse(text, path.name)
    entry = _entry(tree)
    if entry is None:
        raise AnswerError(
            "EntryNotFound",
            f"{path.name} defines neither a class {MODEL_NEW} nor a function that takes the inputs",
        )
    siblings = dict(_siblings(tree, path.resolve().parent, task))
    is_class = isinstance(entry, ast.ClassDef)
    return AnswerFile(path.resolve(), text, entry.name, is_class, _imports(tree, TORCH), siblings)


def _parse(text: str, name: str) -> ast.Module:
    try:
        return _tree(text)
    except SyntaxError as e:
        told = f"{name}: {e.msg}" if e.lineno is None else _with_caret(e, name)
        raise AnswerError("SyntaxError", told, e.lineno) from None


def _tree(text: str) -> ast.Module:
    """The syntax tree; `SyntaxError` also for what the parser gives up on, and for a nest too deep for readers of trees."""
    try:
        tree = ast.parse(text)
    except (ValueError, RecursionError, MemoryError) as e:  # a zero byte, a nest of brackets
        raise SyntaxError(str(e) or type(e).__name__) from None
    level: list[ast.AST] = [tree]
    for _ in range(MOST_NESTED):
        level = [below for node in level for below in ast.iter_child_nodes(node)]
        if not level:
            return tree
    raise SyntaxError(f"it is nested deeper than {MOST_NESTED} levels")


def _with_caret(error: SyntaxError, name: str) -> str:
    line = (error.text or "").rstrip("\n").replace("\t", " ")
    caret = " " * max(0, (error.offset or 1) - 1) + "^"
    return f"{name}:{error.lineno}: {error.msg}\n    {line}\n    {caret}"


def _names(body: list[ast.stmt]) -> Iterator[str]:
    """What a module defines at its top, also inside of `if` and `try`."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((a.asname or a.name).partition(".")[0] for a in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name))
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from _names([*node.body, *getattr(node, "orelse", []), *getattr(node, "finalbody", [])])


def _entry(tree: ast.Module) -> Definition | None:
    """ModelNew; else AKG's function, the last one of that name; else the last public function that is no kernel."""
    found = [n for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)]
    models = [n for n in found if n.name == MODEL_NEW]
    functions = [n for n in found if isinstance(n, ast.FunctionDef) and not _is_kernel(n)]
    of_akg = [n for n in functions if n.name.endswith(AKG_FUNCTION)]
    public = [n for n in functions if not n.name.startswith("_") and _takes_arguments(n)]
    return next((group[-1] for group in (models, of_akg, public) if group), None)


def _is_kernel(node: ast.FunctionDef) -> bool:
    named = (d.func if isinstance(d, ast.Call) else d for d in node.decorator_list)
    return any(getattr(d, "attr", getattr(d, "id", "")) in KERNEL_DECORATORS for d in named)


def _takes_arguments(node: ast.FunctionDef) -> bool:
    a = node.args
    return bool(a.posonlyargs or a.args or a.vararg) and node.name not in ("get_inputs", GROUPS)


def _imports(tree: ast.Module, packages: tuple[str, ...]) -> bool:
    return any(name.partition(".")[0] in packages for name in _imported(tree))


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def _siblings(tree: ast.Module, folder: Path, task: TaskFile) -> Iterator[tuple[str, str]]:
    """Files beside the answer that it imports, and those that they import; never the task."""
    waiting, seen = [tree], set()
    while waiting:
        for name in _imported(waiting.pop()):
            path = folder / f"{name}.py"
            if not name.isidentifier() or name in seen or not path.is_file() or path.resolve() == task.path:
                continue
            seen.add(name)
            text = read_text(path, "a module of the answer")
            if text.strip() != task.text.strip():
                yield name, text
                waiting.append(_parse(text, path.name))


def seed_of(task: TaskFile, answer: AnswerFile, seed: int | None) -> int:
    """Seed of inputs and positions: from both texts, so that no answer can hold it. seed: one more number to draw by."""
    beside = (*task.companions.items(), *answer.siblings.items())
    texts = [task.text, answer.text, *(f"{n}\0{t}" for n, t in sorted(beside))]
    digest = hashlib.sha256("\0\0".join([*texts, str(seed)]).encode())
    return int.from_bytes(digest.digest()[:8], "big") >> 1
