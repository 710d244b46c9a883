"""Every kind of Python statement and expression in a kernel: it works, or one error at its place says what to write."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from ascendtile.simulator.errors import CompileError

from .sources import compile_body

# Kind of node -> body that has it, and what the error says; None where the kernel compiles.
STATEMENTS: dict[str, tuple[str, str | None]] = {
    "FunctionDef": ("def g(x):\n    return x", "@jit helper outside"),
    "AsyncFunctionDef": ("async def g(x):\n    return x", "@jit helper outside"),
    "ClassDef": ("class C:\n    x = 1", "define it outside"),
    "Return": ("return", None),
    "Delete": ("x = 1\ndel x", "freed after their last use"),
    "Assign": ("x = n", None),
    "TypeAlias": ("type X = int", "not supported"),
    "AugAssign": ("n += 1", None),
    "AnnAssign": ("x: tl.constexpr = 3", None),
    "For": ("for i in range(n):\n    m += i", None),
    "AsyncFor": ("async def g():\n    async for i in n:\n        pass", "@jit helper outside"),
    "While": ("while n > 0:\n    n -= 1", None),
    "If": ("if n > 0:\n    m = 1", None),
    "With": ("with n:\n    pass", "`with` is not supported in a kernel but for scope"),
    "AsyncWith": ("async def g():\n    async with n:\n        pass", "@jit helper outside"),
    "Match": ("match n:\n    case 1:\n        pass", "use `if`"),
    "Raise": ("raise ValueError('x')", "use `assert`"),
    "Try": ("try:\n    x = 1\nfinally:\n    x = 2", "cannot catch errors"),
    "TryStar": ("try:\n    x = 1\nexcept* ValueError:\n    pass", "cannot catch errors"),
    "Assert": ("assert n > 0, 'positive'", None),
    "Import": ("import math", "import outside of the kernel"),
    "ImportFrom": ("from math import sqrt", "import outside of the kernel"),
    "Global": ("global g", "pass the value as an argument"),
    "Nonlocal": ("def g():\n    nonlocal n", "@jit helper outside"),
    "Expr": ("n + 1", None),
    "Pass": ("pass", None),
    "Break": ("for i in range(n):\n    break", "put the condition into a `while`"),
    "Continue": ("for i in range(n):\n    continue", "under an `if`"),
}
EXPRESSIONS: dict[str, tuple[str, str | None]] = {
    "BoolOp": ("x = n > 0 and m > 0", None),
    "NamedExpr": ("x = (y := n)", "assign on a line of its own"),
    "BinOp": ("x = n + m", None),
    "UnaryOp": ("x = -n", None),
    "Lambda": ("g = lambda x: x", "@jit helper outside"),
    "IfExp": ("x = n if n > m else m", None),
    "Dict": ("x = {1: n}", "use names or a tuple"),
    "Set": ("x = {1, n}", "use a tuple"),
    "ListComp": ("x = [i * n for i in (1, 2)]", None),
    "SetComp": ("x = {i for i in (1, 2)}", "a `for` over tl.static_range"),
    "DictComp": ("x = {i: i for i in (1, 2)}", "a `for` over tl.static_range"),
    "GeneratorExp": ("x = tuple(i * n for i in (1, 2))", None),
    "Await": ("async def g():\n    await n", "@jit helper outside"),
    "Yield": ("x = yield n", "store results through a pointer"),
    "YieldFrom": ("yield from (1, 2)", "store results through a pointer"),
    "Compare": ("x = 1 < n < 3", None),
    "Call": ("x = tl.maximum(n, m)", None),
    "FormattedValue": ("tl.static_assert(B == 8, f'{B:>4} {B!r}')", None),
    "Interpolation": ("x = t'{B}'", "not supported"),
    "JoinedStr": ("tl.static_assert(B == 8, f'of {n}')", "compile-time values only"),
    "TemplateStr": ("x = t'of {B}'", "not supported"),
    "Constant": ("x = 3", None),
    "Attribute": ("x = p.dtype.element_ty", None),
    "Subscript": ("x = tl.arange(0, 8)[:, None]", None),
    "Starred": ("x = tl.maximum(*(n, m))", None),
    "Name": ("x = n", None),
    "List": ("a, b = [n, m]", None),
    "Tuple": ("a, b = n, m", None),
    "Slice": ("x = (1, 2, 3)[0:2]", None),
}


def kinds(base: type[ast.AST]) -> set[str]:
    """Names of the node kinds of this Python; not those that only stand for older ones, nor the compiler's own."""
    return {c.__name__ for c in base.__subclasses__() if c.__module__ in ("ast", "_ast")}


def test_the_tables_have_every_kind_that_this_python_has() -> None:
    assert kinds(ast.stmt) <= set(STATEMENTS)
    assert kinds(ast.expr) <= set(EXPRESSIONS)


CASES = [
    (base, kind, *case)
    for base, table in ((ast.stmt, STATEMENTS), (ast.expr, EXPRESSIONS))
    for kind, case in table.items()
    if kind in kinds(base)
]


@pytest.mark.parametrize(("base", "kind", "body", "says"), CASES, ids=[c[1] for c in CASES])
def test_it_works_or_is_refused_at_its_place(
    base: type[ast.AST], kind: str, body: str, says: str | None, tmp_path: Path
) -> None:
    assert any(
        type(x).__name__ == kind
        for x in ast.walk(ast.parse(f"def k():\n {body.replace(chr(10), chr(10) + ' ')}"))
    )
    if says is None:
        compile_body(tmp_path, body)
        return
    with pytest.raises(CompileError, match=r"kernels_\d+\.py:\d+:\d+: ") as caught:
        compile_body(tmp_path, body)
    assert says in str(caught.value)
    *_, shown, caret = str(caught.value).split("\n")
    assert caret.strip() == "^"
    assert shown[caret.index("^")] != " "


OPERATORS = {
    **dict.fromkeys(
        ("Add", "Sub", "Mult", "FloorDiv", "Mod", "LShift", "RShift", "BitAnd", "BitOr", "BitXor")
    ),
    "Div": None,
    "MatMult": "use tl.dot",
    "Pow": "use libdevice.pow",
}
SIGNS = dict(
    zip(OPERATORS, ["+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^", "/", "@", "**"], strict=True)
)


@pytest.mark.parametrize("kind", sorted(kinds(ast.operator)))
def test_every_operator_of_two_values(kind: str, tmp_path: Path) -> None:
    says = OPERATORS[kind]
    for body in (f"x = n {SIGNS[kind]} m", f"n {SIGNS[kind]}= m"):
        if says is None:
            compile_body(tmp_path, body)
        else:
            with pytest.raises(CompileError, match=says):
                compile_body(tmp_path, body)


COMPARISONS = {
    **{
        k: f"n {s} m"
        for k, s in zip(
            ("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE"), ["==", "!=", "<", "<=", ">", ">="], strict=True
        )
    },
    "Is": "n is None",
    "IsNot": "n is not None",
    "In": "B in (8, 16)",
    "NotIn": "B not in (8, 16)",
}


@pytest.mark.parametrize("kind", sorted(kinds(ast.cmpop)))
def test_every_comparison(kind: str, tmp_path: Path) -> None:
    compile_body(tmp_path, f"x = {COMPARISONS[kind]}")


BUILTINS = {
    "x = 'a' * 10**10": "the limit is 65536",
    "x = (1,) * 10**10": "the limit is 65536",
    "p.x = 3": "assignment to an attribute",
    "x = type(n)": "type cannot be called in a kernel; compute it outside",
    "x = list(range(3))": "take tl.static_range",
    "x = sorted((n, m))": "sorted needs compile-time arguments",
    "x = tuple(n)": "tuple needs a compile-time tuple, got a int32 scalar",
    "x = tl.float32(n, m)": "fp32 makes a value of one other, got 2",
    "tl.store(p, [1, 2])": "a number here, got a tuple",
    "tl.store(p, None)": "a number here, got NoneType None",
    "x = tl.sum(tl.arange(0, 8), n)": "axis a int32 scalar is out of range",
    "x = tl.program_id(n)": "0, 1 or 2, got a int32 scalar",
    "x = tl.arange(0, n)": "take a tl.constexpr size and mask the rest",
    "x = tl.zeros((n,), tl.float32)": "take a tl.constexpr size and mask the rest",
    "x = n in (1, 2)": "compare one by one",
    "while n > 0:\n    n -= 1\nelse:\n    m = 1": "put what follows behind the loop",
}


@pytest.mark.parametrize("body", sorted(BUILTINS))
def test_messages_speak_of_the_kernel_and_not_of_the_simulator(body: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        compile_body(tmp_path, body)
    assert BUILTINS[body] in str(caught.value)


def test_an_unrolled_range_may_be_listed(tmp_path: Path) -> None:
    compile_body(tmp_path, "x = tuple(tl.static_range(3))\ntl.static_assert(x == (0, 1, 2))")
