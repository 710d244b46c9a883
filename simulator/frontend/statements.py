"""Control flow: `if`, `for`, `while`, the ternary, and the values that they carry.

A name assigned in a loop body and known before the loop is carried: it becomes an argument of the body and a result of the
loop, and must keep its type and shape. A name assigned in a branch is a result of the `if` when both sides know it.
An `if` that may return takes the rest of the function into both of its branches.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..errors import CompileError, in_triton
from ..ir.building import buffers, rearrange
from ..ir.building.aggregate import children, flatten, rebuild, same_structure
from ..ir.building.promotion import describe, is_number
from ..ir.building.ranges import DynamicRange, StaticRange
from ..ir.building.registry import unwrap
from ..ir.program import Region, Value
from ..ir.types import AnyType
from ..ir.undefined import Undefined
from ..precision import dtypes as ty
from . import lanes
from .carried import LoopCarried
from .expressions import Expressions
from .names_below import assigned, loop_variables, returns

MAX_STATIC_ITERATIONS = 100_000
RETURNED, TERNARY = "return value", "the conditional expression"
_MISMATCHES = {
    RETURNED: "Inconsistent return types",
    TERNARY: "Ternary expression with dynamic condition has inconsistent types",
}


@dataclass
class Return:
    """A statement list ended in `return value`."""

    value: Any


@dataclass
class Branches:
    """Both sides of an `if` at `node`, and the values that it gives."""

    then: Region
    other: Region
    node: ast.AST
    results: list[Value] = field(default_factory=list)


class Control(Expressions):
    """The part of a scope that compiles control flow."""

    # -- if ----------------------------------------------------------------------------------------------------------

    def if_statement(self, s: ast.If, rest: list[ast.stmt]) -> Return | None:
        """Compile an `if`; where it may return, `rest` goes into its branches and the `Return` of all of it is given."""
        condition = self.condition(s.test, by_lane=self.b.by_lane)
        taken_has_return = returns(s.body) or returns(s.orelse)
        if not isinstance(condition, Value):
            return self.constant_if(s.body if condition else s.orelse, rest, taken_has_return)
        if condition.shape:
            return self.if_by_lane(condition, s, rest if taken_has_return else None)
        if not taken_has_return:
            self.dynamic_if(condition, s)
            return None
        return self.returning_if(condition, s, rest)

    def constant_if(self, taken: list[ast.stmt], rest: list[ast.stmt], may_return: bool) -> Return | None:
        if not may_return:
            self.block(taken)
            return None
        return self._ended(self.block([*taken, *rest]))

    def _ended(self, ended: Return | None) -> Return:
        return ended or Return(None)

    def dynamic_if(self, condition: Value, s: ast.If) -> None:
        before = dict(self.env)
        then, then_env, _ = self.branch(s.body, before)
        other, other_env, _ = self.branch(s.orelse, before)
        undefined = _undefined(then_env, other_env, self.source.loc(s).line)
        body = [*s.body, *s.orelse]
        written = (*assigned(body), *loop_variables(body), *buffers.contents(before))
        names = [n for n in written if n in then_env and n not in undefined]
        sides = Branches(then, other, s)
        merged = self.merge(names, then_env, other_env, sides)
        self.emit_if(condition, sides)
        self.env = {**before, **merged, **undefined}

    def branch(
        self, body: list[ast.stmt], env: dict[str, Any]
    ) -> tuple[Region, dict[str, Any], Return | None]:
        """Compile statements into a region of their own; gives the names as they are at its end."""
        outer, self.b.region = self.b.region, Region()
        self.env = dict(env)
        ended = self.block(body)
        region, self.b.region = self.b.region, outer
        return region, self.env, ended

    def merge(
        self, names: list[str], then_env: dict[str, Any], other_env: dict[str, Any], sides: Branches
    ) -> dict[str, Any]:
        """Names after an `if`; where their value differs between the branches it is a result of the `if`."""
        out: dict[str, Any] = {}
        for n in names:
            a, c = then_env[n], other_env[n]
            out[n] = a if _same_constant(a, c) else self.merge_one(n, a, c, sides)
        return out

    def merge_one(self, name: str, a: Any, c: Any, sides: Branches) -> Any:
        a, c = unwrap(a), unwrap(c)
        if a is c:
            return a
        mine, others = children(a), children(c)
        if mine is not None and others is not None and same_structure(a, c):
            pairs = zip(mine, others, strict=True)
            return rebuild(a, tuple(self.merge_one(name, x, y, sides) for x, y in pairs))
        if _same_constant(a, c):
            return a
        if not all(isinstance(x, Value) or is_number(x) for x in (a, c)):
            raise self.error(
                f"{name!r} is {describe(a)} in one branch and {describe(c)} in the other", sides.node
            )
        dtype = a.dtype if isinstance(a, Value) else c.dtype if isinstance(c, Value) else None
        va, vc = self.in_region(sides.then, a, dtype), self.in_region(sides.other, c, dtype)
        if va.dtype != vc.dtype or va.shape != vc.shape:
            raise self.error(
                f"{name!r} has two types after the `if`: {describe(va)} in one branch, {describe(vc)} in the other; "
                f"cast or reshape so that both agree{in_triton(_MISMATCHES.get(name, f'Mismatched type for {name}'))}",
                sides.node,
            )
        sides.then.yields.append(va)
        sides.other.yields.append(vc)
        sides.results.append(self.b.value(va.dtype, va.shape, name))
        return sides.results[-1]

    def in_region(self, region: Region, x: Any, dtype: AnyType | None = None) -> Value:
        """`x` as a value of the program, its constant (if it is one) placed at the end of that region."""
        if isinstance(x, Value):
            return x
        outer, self.b.region = self.b.region, region
        value = self.b.const(x, dtype if isinstance(dtype, ty.DType) and _takes(dtype, x) else None)
        self.b.region = outer
        return value

    def emit_if(self, condition: Value, sides: Branches) -> None:
        self.at(sides.node)
        self.b.emit("if", (condition,), sides.results, regions=(sides.then, sides.other))

    def returning_if(self, condition: Value, s: ast.If, rest: list[ast.stmt]) -> Return:
        if self.loops:
            raise self.error(
                "`return` inside a loop is not supported; use a flag, or an `if` around the work", s
            )
        before = dict(self.env)
        then, then_env, ended_then = self.branch([*s.body, *rest], before)
        other, other_env, ended_other = self.branch([*s.orelse, *rest], before)
        a, c = self._ended(ended_then).value, self._ended(ended_other).value
        a = self.unknown_like(then, c, s) if a is None else a
        c = self.unknown_like(other, a, s) if c is None else c
        sides = Branches(then, other, s)
        value = None if a is None else self.merge_one(RETURNED, a, c, sides)
        kept = self.merge(list(buffers.contents(before)), then_env, other_env, sides)
        self.emit_if(condition, sides)
        self.env = {**before, **kept}
        return Return(value)

    def unknown_like(self, region: Region, x: Any, node: ast.AST) -> Any:
        """What stands for the value of a path that returns none, where another path returns `x`."""
        if not isinstance(x, Value) or not isinstance(x.dtype, ty.DType):
            if x is not None:
                raise self.error(
                    f"one path of the function returns {describe(x)} and another returns nothing", node
                )
            return None
        self.at(node)
        self.b.warn("one path of the function returns nothing: its result is undefined there, as in Triton")
        outer, self.b.region = self.b.region, region
        out = self.b.full(x.shape, ty.poison(x.dtype), x.dtype)
        self.b.region = outer
        return out

    def if_by_lane(self, condition: Value, s: ast.If, rest: list[ast.stmt] | None) -> Return | None:
        """An `if` on elements; `rest` follows in both of its sides where it may return."""
        before, first = dict(self.env), len(self.b.region.ops)
        sides = []
        for body in (s.body, s.orelse):
            self.env = dict(before)
            ended = self.block([*body, *(rest or [])])
            sides.append((self.env, ended))
        self.guard(lanes.check_sides, s, self.b.region.ops[first:])
        (then, a), (other, c) = sides
        if rest is not None:
            a, c = self._ended(a), self._ended(c)
            return Return(
                self.guard(lanes.chosen, s, self.b, condition, "the return value", a.value, c.value)
            )
        undefined = _undefined(then, other, self.source.loc(s).line)
        names = [n for n in assigned([*s.body, *s.orelse]) if n in then and n not in undefined]
        both = {n: self.guard(lanes.chosen, s, self.b, condition, repr(n), then[n], other[n]) for n in names}
        self.env = {**before, **both, **undefined}
        return None

    def ternary(self, node: ast.IfExp) -> Any:
        condition = self.condition(node.test, by_lane=self.b.by_lane)
        if not isinstance(condition, Value):
            return self.expr(node.body if condition else node.orelse)
        if condition.shape:
            first = len(self.b.region.ops)
            a, c = self.expr(node.body), self.expr(node.orelse)
            self.guard(lanes.check_sides, node, self.b.region.ops[first:])
            return self.guard(lanes.chosen, node, self.b, condition, "the conditional expression", a, c)
        outer = self.b.region
        sides = []
        for e in (node.body, node.orelse):
            self.b.region, before = Region(), buffers.contents(self.env)
            sides.append((self.expr(e), self.b.region))
            if buffers.contents(self.env) != before:
                raise self.error("a conditional expression cannot write a buffer; use an `if` statement", e)
        self.b.region = outer
        (a, then), (c, other) = sides
        branches = Branches(then, other, node)
        out = a if _same_constant(a, c) else self.merge_one(TERNARY, a, c, branches)
        if branches.results or then.ops or other.ops:  # a call for its effect, such as a store
            self.emit_if(condition, branches)
        return out

    def condition(self, node: ast.expr, by_lane: bool = False) -> Any:
        """A condition of control flow: a compile-time truth value or a boolean scalar of the program.

        A tile of one element is that element. by_lane: a tile of more is given as it is.
        """
        c = unwrap(self.expr(node))
        if not isinstance(c, Value):
            return bool(c)
        if c.shape and by_lane:
            return self.guard(self.b.to_bool, node, c)
        if c.shape and c.numel == 1 and not c.is_pointer:
            return self.guard(rearrange.element, node, self.b, self.b.to_bool(c))
        if c.shape:
            raise self.error(
                f"a condition must be one truth value per program, got {describe(c)}; use tl.where for elements",
                node,
            )
        if c.is_pointer:
            return True  # a pointer that is not None
        return self.b.to_bool(c)

    # -- loops -------------------------------------------------------------------------------------------------------

    def do_For(self, s: ast.For) -> None:
        self.for_statement(s, [])

    def for_statement(self, s: ast.For, rest: list[ast.stmt]) -> Return | None:
        """Compile a `for`; one that is unrolled and may return takes `rest` with it and gives the `Return` of all."""
        if s.orelse:
            raise self.error(
                "`for ... else` is not supported in a kernel; put what follows behind the loop", s
            )
        iterable = self.expr(s.iter)
        if isinstance(iterable, DynamicRange):
            self.dynamic_for(s, iterable)
            return None
        values = self.unrolled_values(iterable, s.iter)
        if not returns(s.body):
            self.unrolled(s, values)
            return None
        unrolled = [t for x in values for t in (Bind(s.target, x, s), *s.body)]
        return self._ended(self.block([*unrolled, *rest]))

    def unrolled_values(self, iterable: Any, node: ast.AST) -> Any:
        if isinstance(iterable, DynamicRange):
            raise self.error(
                "a comprehension is unrolled at compile time: take tl.static_range or a tuple, not a range of the program",
                node,
            )
        if not isinstance(iterable, StaticRange | range | tuple | list):
            raise self.error(
                f"a `for` runs over range, tl.range, tl.static_range or a tuple, not {describe(iterable)}",
                node,
            )
        values = iterable.values if isinstance(iterable, StaticRange) else iterable
        if len(values) > MAX_STATIC_ITERATIONS:
            raise self.error(
                f"{len(values)} unrolled iterations; the limit is {MAX_STATIC_ITERATIONS}. Use range instead",
                node,
            )
        return values

    def unrolled(self, s: ast.For, values: Any) -> None:
        for x in values:
            self.assign(s.target, x)
            self.block(s.body)

    def do_Bind(self, s: Bind) -> None:
        self.assign(s.target, s.value)

    def dynamic_for(self, s: ast.For, over: DynamicRange) -> None:
        if not isinstance(s.target, ast.Name):
            raise self.error("a `for` over a range needs one plain name", s.target)
        target = s.target.id
        bounds = [self.bound(x, s.iter) for x in (over.start, over.stop, over.step)]
        wide = any(b.dtype in (ty.int64, ty.uint64, ty.uint32) for b in bounds)
        dtype = ty.int64 if wide else ty.int32
        bounds = [self.b.cast(x, dtype) for x in bounds]

        def compile_body(carried: LoopCarried) -> list[Region]:
            region = Region()
            region.args = [self.b.value(dtype, (), target)]
            self.loop_body(region, carried, s.body, s, {target: region.args[0]})
            return [region]

        carried, regions = self.carry(s.body, {target}, s, compile_body)
        self.finish_loop("for", [*bounds, *carried.initial], regions, carried, s, {"hints": over.hints})
        self.forget([target], s)

    def bound(self, x: Any, node: ast.AST) -> Value:
        v = self.b.to_value(unwrap(x)) if isinstance(unwrap(x), Value | int) else None
        if v is None or v.shape or not v.dtype.is_int():
            raise self.error(f"a bound of a range must be an integer scalar, got {describe(x)}", node)
        return v

    def do_While(self, s: ast.While) -> None:
        if s.orelse:
            raise self.error(
                "`while ... else` is not supported in a kernel; put what follows behind the loop", s
            )

        def compile_body(carried: LoopCarried) -> list[Region]:
            condition, body = Region(), Region()
            before = dict(self.env)
            self.loop_body(condition, carried, [], s, {}, test=s.test)
            self.env = before
            self.loop_body(body, carried, s.body, s, {})
            return [condition, body]

        carried, regions = self.carry([*s.body, ast.Expr(s.test)], set(), s, compile_body)
        self.finish_loop("while", carried.initial, regions, carried, s, {})

    def carry(
        self,
        body: list[ast.stmt],
        targets: set[str],
        node: ast.AST,
        compile_body: Callable[[LoopCarried], list[Region]],
    ) -> tuple[LoopCarried, list[Region]]:
        """What a loop carries, with its compiled regions.

        Names the body assigns that are known before it are carried, in parts. Parts of block pointers and the like that
        stay the same are found by trying: a body that changes one is compiled again with that part carried; a number
        that no iteration changed is compiled again as the constant it is.
        """
        written = (*assigned(body), *buffers.contents(self.env))
        names = [n for n in written if n in self.env and n not in targets]
        names = [n for n in names if not isinstance(self.env[n], Undefined)]
        carried = LoopCarried({n: unwrap(self.env[n]) for n in names})
        env = self.env
        while True:
            self.env = dict(env)
            carried.initial = [self.carried_value(x, in_block) for x, in_block in carried.moving()]
            regions = self.tried_body(carried, compile_body)
            if regions is not None and not carried.changed:
                return carried, regions
            carried.settle()

    def carried_value(self, x: Any, in_block: bool) -> Value:
        return self.b.const(x, ty.int64) if in_block and is_number(x) else self.b.to_value(x)

    def tried_body(
        self, carried: LoopCarried, compile_body: Callable[[LoopCarried], list[Region]]
    ) -> list[Region] | None:
        """The compiled regions; None where a number that may be a constant has to be tried as one first."""
        region, loops = self.b.region, self.loops
        try:
            return compile_body(carried)
        except CompileError:
            carried.changed = carried.untried_numbers()
            if not carried.changed:
                raise
            self.b.region, self.loops = region, loops
            return None

    def loop_body(
        self,
        region: Region,
        carried: LoopCarried,
        body: list[ast.stmt],
        node: ast.AST,
        extra: dict[str, Value],
        test: ast.expr | None = None,
    ) -> None:
        """Compile a body into `region`, with carried names as its arguments, and check what it hands back."""
        args = [
            self.b.value(v.dtype, v.shape, n) for n, v in zip(carried.owners(), carried.initial, strict=True)
        ]
        region.args.extend(args)
        outer, self.b.region = self.b.region, region
        before = self.env
        self.env = {**before, **carried.names_with(args), **extra}
        self.loops += 1
        if test is not None:
            condition = self.condition(test)
            region.yields = [self.b.to_value(condition)]
        else:
            self.block(body)
            region.yields = self.iteration_results(carried, args, node)
        self.loops -= 1
        self.b.region = outer
        new_names = set(self.env) - set(before)
        self.env = {**before, **{n: Undefined(f"{n!r} is assigned inside a loop only") for n in new_names}}
        self.forget([n for n in loop_variables(body) if n not in carried.trees], node)

    def iteration_results(self, carried: LoopCarried, args: list[Value], node: ast.AST) -> list[Value]:
        """What an iteration hands to the next one, for every carried part in order."""
        out: list[Value] = []
        position = iter(zip(args, carried.initial, strict=True))
        for name, tree in carried.trees.items():
            after = unwrap(self.env[name])
            if isinstance(after, Undefined):
                raise self.error(f"{after.why}, but the next iteration of the loop needs it", node)
            if not same_structure(tree, after):
                raise self.error(
                    f"{name!r} changes its type in the loop: {describe(tree)} before it, {describe(after)} after an "
                    "iteration; give it its final type and shape before the loop",
                    node,
                )
            for k, (old, new) in enumerate(zip(flatten(tree), flatten(after), strict=True)):
                if (name, k) in carried.fixed:
                    self._check_fixed(carried, name, k, old, new, node)
                    continue
                arg, initial = next(position)
                if new is arg and is_number(old) and (name, k) not in carried.tried:
                    carried.changed.append((name, k))
                out.append(self.handed_back(name, initial, new, node))
        return out

    def _check_fixed(
        self, carried: LoopCarried, name: str, k: int, old: Any, new: Any, node: ast.AST
    ) -> None:
        if old is new or (not isinstance(old, Value) and _same_constant(old, new)):
            return
        if not isinstance(old, Value) and not is_number(old):
            raise self.error(
                f"{name!r} is {describe(old)} and is assigned in a loop, which makes it {describe(new)}; only tiles, "
                "scalars and numbers can change in a loop",
                node,
            )
        carried.changed.append((name, k))

    def forget(self, names: list[str], node: ast.AST) -> None:
        """Names that a loop used as its variable have no value after it."""
        line = self.source.loc(node).line
        for n in names:
            self.env[n] = Undefined(
                f"{n!r} is a variable of the loop at line {line} and has no value after it"
            )

    def handed_back(self, name: str, initial: Value, x: Any, node: ast.AST) -> Value:
        if (
            not isinstance(x, Value)
            and is_number(x)
            and isinstance(initial.dtype, ty.DType)
            and not initial.shape
        ):
            x = self.b.const(x, initial.dtype if _takes(initial.dtype, x) else None)
        if not isinstance(x, Value) or x.dtype != initial.dtype or x.shape != initial.shape:
            raise self.error(
                f"{name!r} changes its type in the loop: {describe(initial)} before it, {describe(x)} after an iteration; "
                "give it its final type and shape before the loop, or cast",
                node,
            )
        return x

    def finish_loop(
        self,
        kind: str,
        args: list[Value],
        regions: list[Region],
        carried: LoopCarried,
        node: ast.AST,
        attrs: dict[str, Any],
    ) -> None:
        self.at(node)
        owners = carried.owners()
        results = [self.b.value(v.dtype, v.shape, n) for n, v in zip(owners, carried.initial, strict=True)]
        self.b.emit(kind, args, results, regions=regions, **attrs)
        self.env.update(carried.names_with(results))


class Bind(ast.stmt):
    """Gives a value to the variable of an unrolled loop, between two copies of its body."""

    def __init__(self, target: ast.expr, value: Any, at: ast.AST) -> None:
        super().__init__()
        self.target, self.value = target, value
        ast.copy_location(self, at)


def _takes(dtype: ty.DType, x: Any) -> bool:
    """Whether a Python number may stand where values of that type are expected."""
    return dtype.is_floating() or (dtype.is_bool() == isinstance(x, bool) and not isinstance(x, float))


def _same_constant(a: Any, c: Any) -> bool:
    if isinstance(a, Value) or isinstance(c, Value):
        return a is c
    try:
        return type(a) is type(c) and bool(a == c)
    except ValueError:
        return False


def _undefined(then_env: dict[str, Any], other_env: dict[str, Any], line: int) -> dict[str, Undefined]:
    """Names that an `if` leaves without a value on one side at least."""
    out: dict[str, Undefined] = {}
    for n in {**then_env, **other_env}:
        sides = [env[n] for env in (then_env, other_env) if n in env]
        known = [x for x in sides if isinstance(x, Undefined)]
        if known or len(sides) == 1:
            why = f"{n!r} is assigned in one branch of the `if` at line {line} only"
            out[n] = known[0] if known and len(known) == len(sides) else Undefined(why)
    return out
