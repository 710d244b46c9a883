"""Python source of a kernel -> tile program.

One `Scope` compiles one function: the kernel, or a helper at the place of its call. Statements are in `_Statements`,
expressions in `expressions.py`; control flow with its carried values is in `control.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import BuiltinFunctionType
from typing import Any

from ..errors import CompileError, in_triton
from ..ir import affine, liveness
from ..ir.building import buffers
from ..ir.building.buffer_rules import KernelBuffer
from ..ir.building.builder import Builder
from ..ir.building.composite import assembled
from ..ir.building.promotion import KernelError, describe
from ..ir.building.registry import OF_PYTHON, BoundBuiltin, Builtin, Kernel, unwrap
from ..ir.located_errors import called_at, compile_error, place_in_triton
from ..ir.passes import dead_code, fuse, hoist
from ..ir.passes.split_cores import CoreScope, check
from ..ir.program import Loc, Program, Value
from ..ir.types import AnyType
from ..precision.dtypes import DType
from . import syntax
from .expressions import method_of
from .host import describe_function, host_call
from .statements import Control, Return

MAX_INLINE_DEPTH = 24


class Scope(Control):
    """Compiles the body of one function with its own local names."""

    def __init__(
        self, b: Builder, fn: Kernel, env: dict[str, Any], depth: int = 0, caller: Loc | None = None
    ) -> None:
        if depth > MAX_INLINE_DEPTH:
            raise KernelError(
                f"{fn.name}: helpers call each other more than {MAX_INLINE_DEPTH} deep; recursion is not supported"
            )
        self.b = b
        self.fn = fn
        self.source = fn.source
        self.env = env
        self.depth = depth
        self.caller = caller
        self.loops = 0
        self.declared = set(fn.constexprs)

    # -- errors and places -------------------------------------------------------------------------------------------

    def at(self, node: ast.AST) -> None:
        self.b.scope, self.b.node = self, node

    def place(self, node: ast.AST) -> Loc:
        """Where a node of this function stands, and for a helper, where it is called."""
        return self.source.loc(node, self.fn.name, self.caller)

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
            try:
                ended = self.one(s, statements[i + 1 :])
            except KernelError as e:
                raise self.error(str(e), s) from None
            if ended is not None:
                return ended
        return None

    def one(self, s: ast.stmt, rest: list[ast.stmt]) -> Return | None:
        if isinstance(s, ast.Return):
            return Return(self.returned(s))
        if isinstance(s, ast.If):
            return self.if_statement(s, rest)
        if isinstance(s, ast.For):
            self.at(s)
            return self.for_statement(s, rest)
        self.statement(s)
        return None

    def returned(self, node: ast.Return) -> Any:
        if self.loops:
            raise self.error(
                "`return` inside a loop is not supported; use a flag, or an `if` around the work", node
            )
        return None if node.value is None else self.expr(node.value)

    def statement(self, s: ast.stmt) -> None:
        method = self.methods.get(type(s)) or method_of(self.methods, type(self), "do", type(s))
        if method is None:
            raise self.error(f"{syntax.statement(s)} is not supported in a kernel{syntax.hint(s)}", s)
        self.at(s)
        method(self, s)

    def do_Pass(self, s: ast.Pass) -> None:
        """Nothing to do."""

    def do_Expr(self, s: ast.Expr) -> None:
        if isinstance(s.value, ast.Constant):  # a docstring
            return
        self.expr(s.value)
        if isinstance(s.value, ast.Call) and isinstance(s.value.func, ast.Name):
            self.check_used(s.value.func, s)

    def check_used(self, called: ast.Name, s: ast.Expr) -> None:
        """Refuse a call for nothing of a function under `triton.must_use_result`."""
        found = self.fn.lookup(called.id)
        reason = getattr(found[0], "must_use_result", None) if found else None
        if reason is not None:
            raise self.error(f"The result of {called.id} is not being used. {reason}".rstrip(), s)

    def do_Assign(self, s: ast.Assign) -> None:
        value = self.expr(s.value)
        for target in s.targets:
            self.assign(target, value)

    def do_AnnAssign(self, s: ast.AnnAssign) -> None:
        """`name: tl.constexpr = ...` keeps a value of the program as it is: Triton does, and kernels rely on it."""
        if s.value is not None:
            self.assign(s.target, self.expr(s.value))
            if isinstance(s.target, ast.Name) and ast.unparse(s.annotation).rpartition(".")[2] == "constexpr":
                self.declared.add(s.target.id)

    def do_AugAssign(self, s: ast.AugAssign) -> None:
        if not isinstance(s.target, ast.Name):
            raise self.error("augmented assignment needs a plain name on its left", s.target)
        self.assign(s.target, self.binary(s.op, self.expr(s.target), self.expr(s.value), s))

    def do_With(self, s: ast.With) -> None:
        """`with scope(core_mode=...): body`; any other `with` is an error."""
        if any(isinstance(n, ast.Return) for n in ast.walk(s)):
            raise self.error("`return` inside a `with` is not supported; return after it", s)
        outer = self.b.core
        try:
            for item in s.items:
                self.b.core = self.entered(item, s)
            self.block(s.body)
        finally:
            self.b.core = outer

    def entered(self, item: ast.withitem, s: ast.With) -> str:
        """The core that an item of a `with` names."""
        given = self.expr(item.context_expr)
        if not isinstance(given, CoreScope):
            raise self.error(
                f"`with` is not supported in a kernel but for scope(core_mode=...), got {describe(given)}", s
            )
        if item.optional_vars is not None:
            raise self.error("scope(core_mode=...) has no value for `as`", s)
        return given.core

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
            if isinstance(value, KernelBuffer):
                self.b.buffer_names.setdefault(value.key, target.id)
            self.env[target.id] = value
            self.declared.discard(target.id)
        elif isinstance(target, ast.Tuple | ast.List):
            self.unpack(target, value)
        elif isinstance(target, ast.Attribute):
            raise self.error(
                "assignment to an attribute is not supported in a kernel; give the value a name of its own",
                target,
            )
        elif isinstance(target, ast.Starred):
            raise self.error("`*` on the left of an assignment is not supported; name every part", target)
        else:
            raise self.error(
                "assignment to elements is not supported: tiles are values; use tl.where or tl.store", target
            )

    def unpack(self, target: ast.Tuple | ast.List, value: Any) -> None:
        for t in target.elts:
            if isinstance(t, ast.Starred):
                self.assign(t, value)
        if not isinstance(value, tuple | list) or len(value) < len(target.elts):
            raise self.error(f"cannot unpack {describe(value)} into {len(target.elts)} names", target)
        if len(value) > len(target.elts):  # Triton pairs them off and drops the rest
            self.at(target)
            self.b.warn(
                f"{len(value)} values for {len(target.elts)} names: the rest is dropped, as Triton does it; a conditional "
                "needs brackets around its tuples"
            )
        for t, v in zip(target.elts, value, strict=False):
            self.assign(t, v)

    # -- calls -------------------------------------------------------------------------------------------------------

    def call(self, fn: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any:
        """Call a builtin, a jit helper or a harmless Python function with compile-time arguments."""
        fn = _builtin_of(unwrap(fn))
        self.at(node)
        if isinstance(fn, BoundBuiltin):
            fn, args = fn.builtin, [fn.value, *args]
        try:
            if isinstance(fn, Builtin):
                fn.check(args, kwargs)
                self.b.contents = self.env
                return fn.build(self.b, *args, **kwargs)
            if isinstance(fn, Kernel):
                return self.inline(fn, args, kwargs)
            if isinstance(fn, DType):
                if len(args) != 1 or kwargs:
                    raise KernelError(
                        f"{fn} makes a value of one other, got {len(args) + len(kwargs)} arguments"
                    )
                return self.b.cast(args[0], fn)
            return host_call(self.b, fn, args, kwargs)
        except (CompileError, RecursionError):
            raise
        except (
            Exception
        ) as e:  # a builtin given what it cannot take: the kernel's line says more than a trace
            name = "" if isinstance(e, KernelError) else f"{describe_function(fn)}: "
            raise self.error(f"{name}{e}", node) from None

    def inline(self, fn: Kernel, args: list[Any], kwargs: dict[str, Any]) -> Any:
        bound, caller = fn.bind(args, kwargs), self.b.loc
        _check_noinline(fn, bound)
        try:
            inside = buffers.contents(self.env) if self.b.has_buffers else {}
            inner = Scope(self.b, fn, {**bound, **inside}, self.depth + 1, caller)
            out = inner.run()
            if self.b.has_buffers:
                self.env.update(buffers.contents(inner.env))
            return out
        except CompileError as e:
            here = place_in_triton(caller, self.source.lines, self.source.first_line)
            text = called_at(str(e), fn.name, caller)
            raise CompileError(text, e.error_message, (*e.places, here)) from None


def _check_noinline(fn: Kernel, bound: dict[str, Any]) -> None:
    """A function of its own in the vendor's code takes scalars; here every helper is inlined."""
    tiles = [n for n, x in bound.items() if isinstance(x, Value) and x.shape and x.numel != 1]
    if fn.options.get("noinline") and tiles:
        words = in_triton(f"Function {fn.name} is marked noinline, but was called with non-scalar argument")
        raise KernelError(
            f"{fn.name} has noinline=True and is given the tile {tiles[0]} of {bound[tiles[0]].numel} elements; "
            f"such a function takes scalars: leave noinline out{words}"
        )


def _compile_helper(b: Builder, fn: Kernel, args: Sequence[Any]) -> Any:
    """Compile a jit function that was given to a builtin, such as the combine function of `tl.reduce`."""
    caller = b.loc
    out = Scope(b, fn, fn.bind(args, {}), 1).run()
    b.loc = caller
    return out


def _given_no_tensor(message: str, fn: Kernel, constants: dict[str, Any]) -> str:
    """Which parameters were given the None or the text that an error is about."""
    out = ""
    for name, x in constants.items():
        kind = "NoneType None" if x is None else f"str {x!r}" if isinstance(x, str) else None
        if kind is not None and kind in message and name not in fn.constexprs:
            advice = f"or guard its use with `if {name} is not None:`" if x is None else "or a number"
            out += (
                f"\n  parameter {name!r} of {fn.name} was given {x!r}, which is no memory: give a numpy array or a torch "
                f"tensor, {advice}"
            )
    return out


def _builtin_of(fn: Any) -> Any:
    """The builtin that a Python function is in a kernel (`print`), else `fn`."""
    return OF_PYTHON.get(fn, fn) if isinstance(fn, BuiltinFunctionType) else fn


def compile_kernel(fn: Kernel, types: dict[str, AnyType], constants: dict[str, Any]) -> Program:
    """Compile `fn` for parameters of the given types; parameters in `constants` are compile-time values.

    Raises `CompileError` with file, line and a caret.
    """
    b = Builder(_compile_helper)
    first = fn.source.first_line
    b.loc = Loc(fn.source.file, first)
    params = {name: b.value(t, (), name) for name, t in types.items()}
    scope = Scope(b, fn, assembled(b, params, constants))
    try:
        scope.run()
    except RecursionError:
        message = "expressions or calls are nested too deeply; recursion is not supported"
        raise compile_error(message, b.loc, fn.source.lines, first) from None
    except CompileError as e:
        text = f"{e}{_given_no_tensor(str(e), fn, constants)}"
        raise CompileError(text, e.error_message, e.places) from None
    program = Program(
        fn.name,
        params,
        constants,
        b.region,
        b.value_count,
        b.op_count,
        captured=tuple(b.captured.values()),
        copies=b.copies,
        file=fn.source.file,
        warnings=tuple(b.warnings),
    )
    program.split_builtins = b.split_builtins
    program.only_elsewhere = b.only_elsewhere
    if b.has_buffers:
        program.buffers = buffers.name_contents(program, b.buffer_names)
    fuse.fuse_accumulators(program)
    affine.classify(program)
    hoist.hoist(program)
    dead_code.remove_dead_code(program)
    program.finish()
    liveness.mark_atomics(program)
    wrong = check(program)
    if wrong is not None:
        lines = fn.source.lines if wrong[1].file == fn.source.file else []
        raise compile_error(*wrong, lines, first)
    return program
