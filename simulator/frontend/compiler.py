"""Python source of a kernel -> tile program.

One `Scope` compiles one function: the kernel, or a helper at the place of its call. Statements are in `_Statements`,
expressions in `expressions.py`; control flow with its carried values is in `control.py`.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import CompileError
from . import affine, fuse, hoist, liveness
from .builder import Builder, KernelError, describe
from .control import Control
from .errors import compile_error
from .program import Loc, Program, Value
from .types import AnyType
from .words import Word, constexpr, unwrap

if TYPE_CHECKING:
    from .jit import JitFunction

MAX_INLINE_DEPTH = 64


@dataclass(frozen=True)
class Source:
    """Parsed source of one function."""

    file: str
    first_line: int
    lines: list[str]
    indent: int
    tree: ast.FunctionDef

    @staticmethod
    def of(fn: Callable[..., Any]) -> Source:
        try:
            raw, first = inspect.getsourcelines(fn)
        except (OSError, TypeError):
            raise CompileError(
                f"the source of {getattr(fn, '__name__', fn)!r} cannot be read: a kernel must be defined in a file "
                "(or a notebook cell), not in exec() or at the interactive prompt"
            ) from None
        text = textwrap.dedent("".join(raw))
        indent = len(raw[0]) - len(raw[0].lstrip())
        tree = ast.parse(text).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise CompileError(f"{fn.__name__}: only plain functions can be kernels (no lambda, no async)")
        return Source(
            inspect.getsourcefile(fn) or "<kernel>", first, [r.rstrip("\n") for r in raw], indent, tree
        )


@dataclass
class Return:
    """A statement list ended in `return value`."""

    value: Any


class Scope(Control):
    """Compiles the body of one function with its own local names."""

    def __init__(self, b: Builder, fn: JitFunction, env: dict[str, Any], depth: int = 0) -> None:
        if depth > MAX_INLINE_DEPTH:
            raise KernelError(
                f"{fn.name}: helpers call each other more than {MAX_INLINE_DEPTH} deep; recursion is not supported"
            )
        self.b = b
        self.fn = fn
        self.source = fn.source
        self.env = env
        self.depth = depth
        self.loops = 0

    # -- errors and places -------------------------------------------------------------------------------------------

    def at(self, node: ast.AST) -> None:
        line = getattr(node, "lineno", None)
        if line is not None:
            column = getattr(node, "col_offset", 0) + self.source.indent
            self.b.loc = Loc(self.source.file, self.source.first_line + line - 1, column)

    def error(self, message: str, node: ast.AST) -> CompileError:
        self.at(node)
        return compile_error(message, self.b.loc, self.source.lines, self.source.first_line)

    # -- statements --------------------------------------------------------------------------------------------------

    def run(self) -> Any:
        """Compile the function's body; the value is what it returns (None without a return)."""
        ended = self.block(self.source.tree.body)
        return ended.value if ended else None

    def block(self, statements: list[ast.stmt]) -> Return | None:
        """Compile statements in order; a `Return` says that the list ended the function."""
        for i, s in enumerate(statements):
            if isinstance(s, ast.Return):
                return Return(self.returned(s))
            if isinstance(s, ast.If):
                ended = self.if_statement(s, statements[i + 1 :])
                if ended is not None:
                    return ended
                continue
            self.statement(s)
        return None

    def returned(self, node: ast.Return) -> Any:
        if self.loops:
            raise self.error(
                "`return` inside a loop is not supported; use a flag, or an `if` around the work", node
            )
        return None if node.value is None else self.expr(node.value)

    def statement(self, s: ast.stmt) -> None:
        method = getattr(self, f"do_{type(s).__name__}", None)
        if method is None:
            raise self.error(
                f"{_statement_name(s)} is not supported in a kernel{_STATEMENT_HINTS.get(type(s), '')}", s
            )
        self.at(s)
        method(s)

    def do_Pass(self, s: ast.Pass) -> None:
        """Nothing to do."""

    def do_Expr(self, s: ast.Expr) -> None:
        if not isinstance(s.value, ast.Constant):  # a docstring
            self.expr(s.value)

    def do_Assign(self, s: ast.Assign) -> None:
        value = self.expr(s.value)
        for target in s.targets:
            self.assign(target, value)

    def do_AnnAssign(self, s: ast.AnnAssign) -> None:
        if s.value is not None:
            self.assign(s.target, self.expr(s.value))

    def do_AugAssign(self, s: ast.AugAssign) -> None:
        if not isinstance(s.target, ast.Name):
            raise self.error("augmented assignment needs a plain name on its left", s.target)
        load = ast.copy_location(ast.Name(s.target.id, ast.Load()), s.target)
        self.assign(s.target, self.binary(s.op, self.expr(load), self.expr(s.value), s))

    def do_Assert(self, s: ast.Assert) -> None:
        condition = self.expr(s.test)
        text = self.expr(s.msg) if s.msg is not None else ast.unparse(s.test)
        if not isinstance(condition, Value):
            if not condition:
                raise self.error(f"assertion failed at compile time: {text}", s)
            return
        self.b.emit("assert", (self.b.to_bool(condition), None), (), text=str(text))

    def assign(self, target: ast.expr, value: Any) -> None:
        if isinstance(target, ast.Name):
            if isinstance(value, Value) and not value.name:
                value.name = target.id
            self.env[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            self.unpack(target, value)
        else:
            raise self.error(
                "assignment to elements is not supported: tiles are values; use tl.where or tl.store", target
            )

    def unpack(self, target: ast.Tuple | ast.List, value: Any) -> None:
        if not isinstance(value, tuple | list) or len(value) != len(target.elts):
            raise self.error(f"cannot unpack {describe(value)} into {len(target.elts)} names", target)
        for t, v in zip(target.elts, value, strict=True):
            self.assign(t, v)

    # -- calls -------------------------------------------------------------------------------------------------------

    def call(self, fn: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        """Call a word, a jit helper or a harmless Python function with compile-time arguments."""
        from .jit import JitFunction

        fn = unwrap(fn)
        self.at(node)
        try:
            if isinstance(fn, BoundWord):
                return fn.word.build(self.b, fn.value, *args, **kwargs)
            if isinstance(fn, Word):
                return fn.build(self.b, *args, **kwargs)
            if isinstance(fn, JitFunction):
                return self.inline(fn, args, kwargs)
            return self.host_call(fn, args, kwargs)
        except KernelError as e:
            raise self.error(str(e), node) from None
        except TypeError as e:
            raise self.error(f"{getattr(fn, 'name', getattr(fn, '__name__', fn))}: {e}", node) from None

    def inline(self, fn: JitFunction, args: list[Any], kwargs: dict[str, Any]) -> Any:
        bound = fn.bind(args, kwargs)
        return Scope(self.b, fn, dict(bound), self.depth + 1).run()

    def host_call(self, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if fn in (min, max) and any(isinstance(a, Value) for a in args):
            out = args[0]
            for a in args[1:]:
                out = self.b.binary(fn.__name__, out, a)
            return out
        if fn not in HOST_FUNCTIONS and not getattr(fn, "__ascendtile_host__", False):
            raise KernelError(
                f"{describe_function(fn)} cannot be called in a kernel; make it a @jit function"
            )
        if any(isinstance(a, Value) for a in (*args, *kwargs.values())) and fn not in (
            len,
            print,
            tuple,
            list,
        ):
            raise KernelError(
                f"{describe_function(fn)} needs compile-time arguments, got a value of the program"
            )
        return fn(*args, **kwargs)


@dataclass(frozen=True)
class BoundWord:
    """`x.sum` before it is called."""

    word: Word
    value: Any


HOST_FUNCTIONS: tuple[Any, ...] = (
    len,
    int,
    float,
    bool,
    abs,
    min,
    max,
    isinstance,
    tuple,
    list,
    range,
    str,
    round,
    divmod,
)
_STATEMENT_HINTS: dict[type[ast.stmt], str] = {
    ast.Break: "; put the condition into a `while`, or mask the work",
    ast.Continue: "; put the rest of the body under an `if`",
    ast.Try: "; a kernel cannot catch errors",
    ast.With: "",
    ast.Import: "; import outside of the kernel",
    ast.ImportFrom: "; import outside of the kernel",
    ast.FunctionDef: "; define a @jit helper outside of the kernel",
    ast.Raise: "; use tl.device_assert",
    ast.Global: "",
    ast.Delete: "",
}


def describe_function(fn: Any) -> str:
    return f"{getattr(fn, '__module__', '')}.{getattr(fn, '__name__', fn)}".lstrip(".")


def _statement_name(s: ast.stmt) -> str:
    words = {"FunctionDef": "a nested function", "ClassDef": "a class", "With": "`with`", "Try": "`try`"}
    return words.get(type(s).__name__, f"`{type(s).__name__.lower()}`")


def compile_kernel(fn: JitFunction, types: dict[str, AnyType], constants: dict[str, Any]) -> Program:
    """Compile `fn` for parameters of the given types; parameters in `constants` are compile-time values.

    Raises `CompileError` with file, line and a caret.
    """
    b = Builder()
    first = fn.source.first_line
    b.loc = Loc(fn.source.file, first)
    params = {name: b.value(t, (), name) for name, t in types.items()}
    scope = Scope(b, fn, {**params, **constants})
    try:
        scope.run()
    except KernelError as e:
        raise compile_error(str(e), b.loc, fn.source.lines, first) from None
    program = Program(fn.name, params, constants, b.region, b.value_count, b.op_count)
    fuse.fuse_accumulators(program)
    affine.classify(program)
    hoist.hoist(program)
    liveness.mark_atomics(program)
    return program


__all__ = ["BoundWord", "Return", "Scope", "Source", "compile_kernel", "constexpr"]
