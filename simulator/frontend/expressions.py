"""Expressions of a kernel: names, attributes, operators, indexing, calls."""

from __future__ import annotations

import ast
import builtins
import difflib
import inspect
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import in_triton
from ..ir.building import buffers
from ..ir.building.aggregate import Aggregate
from ..ir.building.builder import Builder
from ..ir.building.promotion import COMPARISON, KernelError, describe, fold
from ..ir.building.registry import OF_PYTHON, BoundBuiltin, Builtin, Kernel, constexpr, unwrap, unwrap_all
from ..ir.program import Value
from ..ir.undefined import Undefined
from . import attributes, syntax
from .outside import capture_attribute, capture_global

if TYPE_CHECKING:
    from ..errors import CompileError
    from ..ir.source import Source

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "shl",
    ast.RShift: "shr",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
}
_PYTHON_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}


_NOT_LOCAL = object()
_AS_IT_IS = {Value, int, float, bool, str, tuple, type(None)}  # what most local names hold
_FROM_OUTSIDE = (*attributes.COMPILE_TIME, Kernel)  # what a name from outside of the kernel may


Method = Callable[[Any, Any], Any]


def method_of(known: dict[type, Method | None], scope: type, name: str, node: type) -> Method | None:
    """The method that compiles such a node, `ex_Name` and the like; None if there is none. known: those of the scope."""
    found = known[node] = getattr(scope, f"{name}_{node.__name__}", None)
    return found


class Expressions(ABC):
    """The part of a scope that compiles expressions."""

    b: Builder
    fn: Kernel
    source: Source
    env: dict[str, Any]
    declared: set[str]  # names that are marked `tl.constexpr`
    loops: int
    methods: ClassVar[dict[type, Method | None]] = {}  # by type of node, those that were met so far

    @abstractmethod
    def at(self, node: ast.AST) -> None: ...

    @abstractmethod
    def error(self, message: str, node: ast.AST) -> CompileError:
        """The error to raise: the message with file, line, excerpt and caret at `node`."""

    @abstractmethod
    def call(self, fn: Any, args: list[Any], kwargs: dict[str, Any], node: ast.AST) -> Any: ...

    @abstractmethod
    def block(self, statements: list[ast.stmt]) -> Any: ...

    @abstractmethod
    def assign(self, target: ast.expr, value: Any) -> None: ...

    @abstractmethod
    def ternary(self, node: ast.IfExp) -> Any: ...

    def expr(self, node: ast.expr) -> Any:
        kind = type(node)
        if kind is ast.Name:
            x = self.env.get(node.id, _NOT_LOCAL)  # type: ignore[attr-defined]
            if type(x) in _AS_IT_IS:
                return x
        elif kind is ast.Constant:
            return node.value  # type: ignore[attr-defined]
        b = self.b
        b.scope, b.node = self, node  # as `at`
        method = self.methods.get(kind) or method_of(self.methods, type(self), "ex", kind)
        if method is None:
            raise self.error(
                f"{syntax.expression(node)} is not supported in a kernel{syntax.hint(node)}", node
            )
        return method(self, node)

    def ex_Name(self, node: ast.Name) -> Any:
        x = self.env.get(node.id, _NOT_LOCAL)
        if x is not _NOT_LOCAL:
            x = unwrap(x)
            if isinstance(x, Undefined):
                raise self.error(f"{x.why}; give it a value before", node)
            return x
        found = self.fn.lookup(node.id)
        if found is None:
            return self.builtin(node)
        return self.checked_global(found[0], node)

    def builtin(self, node: ast.Name) -> Any:
        if node.id == "range":
            return OF_PYTHON[range]
        if hasattr(builtins, node.id):
            return getattr(builtins, node.id)
        raise self.error(f"{node.id!r} is not defined", node)

    def checked_global(self, x: Any, node: ast.Name) -> Any:
        """A name from outside of the kernel: constants must be simple, since they are frozen at compile time."""
        given, x = x, unwrap_all(x)
        if isinstance(x, (Builtin, ModuleType)):
            return x
        if x is None or isinstance(x, _FROM_OUTSIDE):
            self.at(node)
            capture_global(self.b, self.fn, node.id, given, x)
            return x
        if callable(x) or hasattr(x, "__dict__"):
            return x
        raise self.error(
            f"{node.id!r} is {describe(x)}; a kernel may use numbers, strings, types and jit functions", node
        )

    def ex_Attribute(self, node: ast.Attribute) -> Any:
        owner = self.expr(node.value)
        if isinstance(owner, Value):
            return self.value_attribute(owner, node)
        if isinstance(owner, Aggregate) and node.attr in owner.methods:
            return BoundBuiltin(owner.methods[node.attr], owner)
        try:
            x = unwrap(getattr(owner, node.attr))
        except AttributeError:
            return self.constant_attribute(owner, node)
        capture_attribute(self.b, owner, node.attr, x)
        return x

    def constant_attribute(self, owner: Any, node: ast.Attribute) -> Any:
        """What Python's own object lacks and Triton's compile-time value has."""
        declared = not isinstance(node.value, ast.Name) or node.value.id in self.declared
        try:
            return attributes.of_constant(owner, node.attr, declared)
        except AttributeError:
            near = difflib.get_close_matches(node.attr, [n for n in dir(owner) if n[0] != "_"], 3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            what = "builtin" if inspect.ismodule(owner) else "attribute"
            raise self.error(f"{ast.unparse(node.value)} has no {what} {node.attr!r}{hint}", node) from None

    def value_attribute(self, v: Value, node: ast.Attribute) -> Any:
        if not attributes.has(v, node.attr):
            raise self.error(f"a tile has no attribute {node.attr!r}", node)
        return self.guard(attributes.of_value, node, self.b, v, node.attr)

    def guard(self, build: Any, node: ast.AST, *args: Any) -> Any:
        """Run a builder call; a broken rule becomes an error at this node."""
        self.at(node)
        try:
            return build(*args)
        except (KernelError, OverflowError) as e:
            raise self.error(str(e), node) from None

    def ex_Call(self, node: ast.Call) -> Any:
        fn = self.expr(node.func)
        args: list[Any] = []
        for a in node.args:
            if isinstance(a, ast.Starred):
                spread = self.expr(a.value)
                if not isinstance(spread, tuple | list | range):
                    raise self.error(f"`*` needs a tuple, got {describe(spread)}", a)
                args.extend(spread)
            else:
                args.append(self.expr(a))
        if None in [k.arg for k in node.keywords]:
            raise self.error("`**` in a call is not supported in a kernel; write the keywords out", node)
        kwargs = {k.arg: self.expr(k.value) for k in node.keywords if k.arg}
        return self.call(fn, args, kwargs, node)

    # -- operators ---------------------------------------------------------------------------------------------------

    def ex_BinOp(self, node: ast.BinOp) -> Any:
        return self.binary(node.op, self.expr(node.left), self.expr(node.right), node)

    def binary(self, op: ast.operator, a: Any, b: Any, node: ast.AST) -> Any:
        name = _BINARY.get(type(op))
        if name is None:
            raise self.error("`@` is not supported; use tl.dot", node)
        if not isinstance(a, Value) and not isinstance(b, Value):
            return self.guard(fold, node, name, a, b)
        if name == "pow":
            raise self.error(
                "`**` of tiles or scalars of the program is not supported; multiply, or use libdevice.pow",
                node,
            )
        return self.guard(self.b.binary, node, name, a, b)

    def ex_UnaryOp(self, node: ast.UnaryOp) -> Any:
        x = self.expr(node.operand)
        if isinstance(node.op, ast.Not):
            return self.guard(lambda: self.logical_not(x), node)
        if not isinstance(x, Value):
            return self.guard(lambda: _python_unary(node.op, x), node)
        if isinstance(node.op, ast.UAdd):
            return x
        if isinstance(node.op, ast.Invert):
            if x.dtype.is_bool():
                return self.guard(lambda: self.logical_not(x), node)
            return self.guard(lambda: self.b.invert(x), node)
        return self.guard(lambda: self.b.unary("neg", x), node)

    def logical_not(self, x: Any) -> Any:
        """`not`: of an integer tile every bit flipped, as Triton-Ascend has it."""
        if not isinstance(x, Value):
            return not x
        if x.dtype.is_floating():
            words = in_triton(f"unexpected type {x.dtype}")
            raise KernelError(
                f"`not` needs integers or booleans, got {describe(x)}; compare with == 0{words}"
            )
        if x.shape and x.dtype.is_int() and not x.dtype.is_bool():
            return self.b.invert(x)
        return self.b.binary("xor", self.b.to_bool(x), True)

    def ex_BoolOp(self, node: ast.BoolOp) -> Any:
        """`and` / `or`: elementwise on tiles, with Python's short cut while the left side is a compile-time value."""
        is_and = isinstance(node.op, ast.And)
        out = self.expr(node.values[0])
        for e in node.values[1:]:
            if not isinstance(out, Value):
                if bool(out) != is_and:
                    return out
                out = self.expr(e)
                continue
            right = self.expr(e)
            if not isinstance(right, Value) and right is None:
                raise self.error("`and` / `or` of a tile with None has no meaning", e)
            left = out
            out = self.guard(
                lambda left=left, right=right: self.b.binary(
                    "and" if is_and else "or", self.b.to_bool(left), self.b.to_bool(right)
                ),
                node,
            )
        return out

    def ex_Compare(self, node: ast.Compare) -> Any:
        left = self.expr(node.left)
        out: Any = None
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.expr(right_node)
            one = self.compare(op, left, right, node)
            out = (
                one
                if out is None
                else self.guard(lambda out=out, one=one: self.b.binary("and", out, one), node)
            )
            left = right
        return out

    def compare(self, op: ast.cmpop, a: Any, b: Any, node: ast.AST) -> Any:
        kind = type(op)
        if kind in (ast.Is, ast.IsNot):
            return (unwrap(a) is unwrap(b)) == (kind is ast.Is)
        if kind in (ast.In, ast.NotIn):
            if isinstance(a, Value):
                raise self.error(
                    "`in` needs a compile-time value on its left; compare one by one: (x == a) | (x == b)",
                    node,
                )
            if not isinstance(b, tuple | list | str | range) or any(isinstance(e, Value) for e in b):
                raise self.error("`in` needs a tuple of compile-time values on its right", node)
            return (a in b) == (kind is ast.In)
        if not isinstance(a, Value) and not isinstance(b, Value):
            return self.guard(_python_compare, node, op, a, b)
        if kind in (ast.Eq, ast.NotEq) and (
            a is None or b is None or isinstance(a, str) or isinstance(b, str)
        ):
            return kind is ast.NotEq
        return self.guard(self.b.compare, node, _COMPARE[kind], a, b)

    def ex_IfExp(self, node: ast.IfExp) -> Any:
        return self.ternary(node)

    # -- containers --------------------------------------------------------------------------------------------------

    def ex_Tuple(self, node: ast.Tuple) -> Any:
        return tuple([self.expr(e) for e in node.elts])

    def ex_List(self, node: ast.List) -> Any:
        return tuple([self.expr(e) for e in node.elts])

    def ex_ListComp(self, node: ast.ListComp | ast.GeneratorExp) -> Any:
        """A tuple: the comprehension is unrolled, so it runs over compile-time tuples and ranges."""
        outer = self.env
        self.env = dict(outer)
        out = tuple(self.comprehended(node.generators, node.elt))
        outer.update(buffers.contents(self.env))
        self.env = outer
        return out

    ex_GeneratorExp = ex_ListComp

    def comprehended(self, generators: list[ast.comprehension], element: ast.expr) -> list[Any]:
        if not generators:
            return [self.expr(element)]
        first, *rest = generators
        out: list[Any] = []
        for x in self.unrolled_values(self.expr(first.iter), first.iter):
            self.assign(first.target, x)
            tests = [unwrap(self.expr(test)) for test in first.ifs]
            if any(isinstance(t, Value) for t in tests):
                raise self.error("a comprehension's `if` must be known at compile time", first.ifs[0])
            if all(tests):
                out.extend(self.comprehended(rest, element))
        return out

    @abstractmethod
    def unrolled_values(self, iterable: Any, node: ast.AST) -> Any:
        """What an unrolled loop or a comprehension runs over."""

    def ex_JoinedStr(self, node: ast.JoinedStr) -> str:
        return "".join(str(self.expr(p)) for p in node.values)

    def ex_FormattedValue(self, node: ast.FormattedValue) -> str:
        x = self.expr(node.value)
        if isinstance(x, Value):
            raise self.error(
                'an f-string takes compile-time values only; print values of the program with tl.device_print("text", x)',
                node,
            )
        conversions: dict[int, Callable[[Any], Any]] = {97: ascii, 114: repr, 115: str}
        x = conversions.get(node.conversion, lambda v: v)(x)
        spec = "" if node.format_spec is None else self.expr(node.format_spec)
        return str(self.guard(lambda: _formatted(x, spec), node))

    def ex_Slice(self, node: ast.Slice) -> slice:
        if node.lower is node.upper is node.step is None:
            return slice(None)
        return slice(*(None if e is None else self.expr(e) for e in (node.lower, node.upper, node.step)))

    def ex_Subscript(self, node: ast.Subscript) -> Any:
        owner = self.expr(node.value)
        index = self.expr(node.slice)
        if not isinstance(owner, Value):
            if isinstance(index, Value):
                raise self.error(f"an index must be known at compile time, got {describe(index)}", node.slice)
            try:
                return unwrap(owner[index])
            except (TypeError, IndexError, KeyError, ValueError) as e:
                raise self.error(f"cannot index {describe(owner)}: {e}", node) from None
        return self.guard(self.index_tile, node, owner, index)

    def index_tile(self, v: Value, index: Any) -> Value:
        """x[:, None] and the like: `:` keeps an axis, None adds one. Elements cannot be picked."""
        parts = index if isinstance(index, tuple) else (index,)
        for p in parts:
            if p is not None and (not isinstance(p, slice) or p != slice(None)):
                raise KernelError(
                    f"a tile is indexed with `:` and None only, got {describe(p)}; load the element, or use a mask "
                    f"and tl.sum{in_triton(f'unsupported tensor index: {p}')}"
                )
        # Triton takes a `:` for a scalar, too, which None makes a tile of one element: p[None, :] has shape [1]
        if sum(p is not None for p in parts) > (len(v.shape) or None in parts):
            raise KernelError(f"too many indices for a tile of shape {list(v.shape)}")
        for axis, p in enumerate(parts):
            if p is None:
                v = self.b.splat(v, (1,)) if not v.shape else self.b.expand_dims(v, axis)
        return v


def _python_compare(op: ast.cmpop, a: Any, b: Any) -> bool:
    try:
        return COMPARISON[_COMPARE[type(op)]](a, b)
    except TypeError:
        raise KernelError(f"cannot compare {describe(a)} with {describe(b)}") from None


def _python_unary(op: ast.unaryop, x: Any) -> Any:
    try:
        return not x if isinstance(op, ast.Invert) and isinstance(x, bool) else _PYTHON_UNARY[type(op)](x)
    except TypeError:
        raise KernelError(f"the sign of {describe(x)} has no meaning") from None


def _formatted(x: Any, spec: str) -> str:
    try:
        return format(x, spec)
    except (TypeError, ValueError) as e:
        raise KernelError(str(e)) from None


__all__ = ["Expressions", "constexpr"]
