"""What a kernel cannot say is refused at its place, with what to write instead, and never with a trace of ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ascendtile.simulator.errors import CompileError

from .sources import compile_body

# (body, what the message says, the text under whose first character the caret stands)
REFUSED: dict[str, tuple[str, str, str]] = {
    "break": ("for i in range(3):\n    break", "`break` is not supported", "break"),
    "continue": ("for i in range(3):\n    continue", "under an `if`", "continue"),
    "try": ("try:\n    x = 1\nexcept ValueError:\n    pass", "`try` is not supported", "try"),
    "with": ("with f:\n    x = 1", "`with` is not supported", "with"),
    "lambda": ("g = lambda x: x", "a lambda is not supported", "lambda"),
    "comprehension": ("t = [i for i in tl.arange(0, 8)]", "a `for` runs over", "tl.ar"),
    "comprehension's if": ("t = [i for i in (1, 2) if i < n]", "known at compile time", "i < n"),
    "nested function": ("def g(x):\n    return x", "@jit helper outside", "def g"),
    "class": ("class C:\n    pass", "a class is not supported", "class"),
    "return in a loop": ("for i in range(3):\n    return", "`return` inside a loop", "return"),
    "return in a loop's if": ("for i in range(3):\n    if i > n:\n        return", "inside a loop", "if i"),
    "return in while": ("while n > 0:\n    return", "`return` inside a loop", "return"),
    "matmul": ("x = tl.zeros((8, 8), tl.float32) @ 3", "use tl.dot", "tl.zeros"),
    "starred assignment": ("a, *b = (1, 2, 3)", "name every part", "*b"),
    "global": ("global g", "`global` is not supported", "global"),
    "nonlocal": ("import math", "import outside", "import"),
    "del": ("x = 1\ndel x", "`del` is not supported", "del"),
    "raise": ("raise ValueError", "`raise` is not supported", "raise"),
    "match": ("match n:\n    case 1:\n        pass", "use `if`", "match"),
    "element assignment": ("x = tl.arange(0, 8)\nx[0] = 1", "assignment to elements", "x[0]"),
    "augmented element": ("x = tl.arange(0, 8)\nx[0] += 1", "plain name", "x[0]"),
    "element read": ("x = tl.arange(0, 8)\ny = x[0]", "indexed with `:` and None", "x[0]"),
    "too many indices": ("x = tl.arange(0, 8)\ny = x[:, :, None]", "too many indices", "x[:"),
    "slice": ("x = tl.arange(0, 8)\ny = x[1:4]", "indexed with `:` and None", "x[1"),
    "unknown builtin": ("x = tl.arrange(0, 8)", "tl has no builtin 'arrange'; did you mean arange", "tl.arr"),
    "unknown method": ("x = tl.arange(0, 8).foo()", "no attribute 'foo'", "tl.ar"),
    "unknown name": ("x = nothing + 1", "'nothing' is not defined", "nothing"),
    "unknown keyword": ("x = tl.exp(f, base=8)", "unexpected keyword argument 'base'", "tl.exp"),
    "missing argument": ("x = tl.where(n > 1, 1)", "missing a required argument: 'y'", "tl.wh"),
    "too many arguments": ("x = tl.exp(f, f)", "too many positional arguments", "tl.exp"),
    "keywords spread": ("x = tl.exp(**n)", "`**` in a call", "tl.exp"),
    "arguments spread": ("x = tl.exp(*f)", "`*` needs a tuple", "*f"),
    "walrus": ("x = (y := 3)", "`:=` is not supported", "y :="),
    "dict": ("x = {1: 2}", "a dict is not supported", "{1"),
    "yield": ("x = yield 3", "`yield` is not supported", "yield"),
    "while else": ("while n > 0:\n    n -= 1\nelse:\n    n = 0", "while ... else", "while"),
    "for else": ("for i in range(3):\n    pass\nelse:\n    n = 0", "for ... else", "for"),
    "for over a tile": ("for i in tl.arange(0, 8):\n    pass", "a `for` runs over range", "tl.ar"),
    "for over a number": ("for i in 3:\n    pass", "a `for` runs over range", "3:"),
    "float bound": ("for i in range(1.5):\n    pass", "integer scalar", "range"),
    "tile bound": ("for i in range(tl.arange(0, 8)):\n    pass", "integer scalar", "range"),
    "zero step": ("for i in range(0, 8, 0):\n    pass", "step of a range must not be zero", "range"),
    "zero static step": ("for i in tl.static_range(0, 8, 0):\n    pass", "must not be zero", "tl.st"),
    "two loop names": ("for i, j in range(3):\n    pass", "one plain name", "i, j"),
    "static value": ("for i in tl.static_range(n):\n    pass", "use range", "tl.st"),
    "if of a tile": ("x = tl.arange(0, 8)\nif x > 1:\n    pass", "use tl.where for elements", "x > 1"),
    "while of a tile": ("x = tl.arange(0, 8)\nwhile x > 1:\n    pass", "use tl.where", "x > 1"),
    "ternary of a tile": ("x = tl.arange(0, 8)\ny = 1 if x > 1 else 2", "use tl.where", "x > 1"),
    "unpack a tile": ("a, b = tl.arange(0, 8)", "cannot unpack a int32 tile", "a, b"),
    "unpack too few": ("a, b, c = (1, 2)", "cannot unpack", "a, b, c"),
    "value in f-string": ("tl.static_assert(False, f'{n}')", "compile-time values only", ""),
    "python print": ("print(n)", "static_print", "print"),
    "python sum": ("x = sum(tl.arange(0, 8))", "use tl.sum", "sum"),
    "call a number": ("x = B(3)", "int 8 cannot be called", "B(3)"),
    "compare kinds": ("x = 'a' < 3", "cannot compare str 'a' with int 3", "'a'"),
    "string arithmetic": ("x = 'a' - 3", "has no meaning", "'a'"),
    "string sign": ("x = -'a'", "has no meaning", "-'a'"),
    "division by zero": ("x = B // 0", "division by zero in a compile-time expression", "B //"),
    "cdiv by zero": ("x = tl.cdiv(B, 0)", "cdiv", "tl.cdiv"),
    "negative shift": ("x = 1 << -1", "compile-time expression", "1 <<"),
    "huge shift": ("x = 1 << 100000000000", "compile-time expression", "1 <<"),
    "huge power": ("x = 2.0 ** 4000.0", "compile-time expression", "2.0"),
    "huge integer": ("x = n + 2 ** 70", "does not fit into 64 bits", "n +"),
    "bad int()": ("x = int('no')", "invalid literal", "int("),
    "negative arange": ("x = tl.arange(8, 0)", "end must be above start", "tl.ar"),
    "value in arange": ("x = tl.arange(0, n)", "compile-time integer", "tl.ar"),
    "value in a shape": ("x = tl.zeros((n,), tl.float32)", "compile-time integers", "tl.z"),
    "type as text": ("x = tl.zeros((8,), 'float32')", "element type such as tl.float32", "tl.z"),
    "sum type as text": ("x = tl.sum(tl.arange(0, 8), 0, dtype='int32')", "element type", "tl.sum"),
    "number for a tile": ("x = tl.zeros_like(3)", "zeros_like", "tl.z"),
    "number reshaped": ("x = tl.reshape(3, (1,))", "reshape", "tl.re"),
    "shapes": ("x = tl.arange(0, 8) + tl.arange(0, 9)", "axis 0 is 8 on the left and 9", "tl.ar"),
    "reshape": ("x = tl.reshape(tl.arange(0, 8), (3, 3))", "has 8 elements but [3, 3] needs 9", "tl.re"),
    "axis": ("x = tl.sum(tl.arange(0, 8), axis=1)", "axis 1 is out of range for rank 1", "tl.sum"),
    "grid axis": ("x = tl.program_id(3)", "0, 1 or 2, got 3", "tl.pr"),
    "other without mask": ("x = tl.load(p, other=1.0)", "needs a `mask`", "tl.load"),
    "load a number": ("x = tl.load(n)", "must be a pointer", "tl.load"),
    "store tile to scalar": ("tl.store(p, tl.arange(0, 8))", "pointer is a scalar", "tl.st"),
    "pointer times": ("x = p * 2", "+ or - with integers only", "p *"),
    "pointer plus float": ("x = p + f", "must be an integer", "p +"),
    "pointer plus bool": ("x = p + (n > 1)", "must be an integer", "p +"),
    "exp of integers": ("x = tl.exp(n)", "needs floating point", "tl.exp"),
    "float bits": ("x = f & 1", "needs integers or booleans", "f &"),
    "invert a float": ("x = ~f", "needs integers or booleans", "~f"),
    "float floordiv": ("x = f // 2.0", "divide with / and round down", "f //"),
    "power": ("x = f ** 2", "`**` of tiles or scalars", "f **"),
    "none in and": ("x = (n > 1) and None", "with None has no meaning", "None"),
    "none below": ("x = n < None", "'lt' needs tiles or numbers", "n <"),
    "out of range": ("x = tl.arange(0, 8).to(tl.int8) + 300", "300 is out of range for int8", "tl.ar"),
    "mixed signs": ("x = n // n.to(tl.uint32)", "one is signed", "n //"),
    "static assert": ("tl.static_assert(B > 8, 'too small')", "static_assert failed: too small", "tl.st"),
    "assert now": ("assert B > 8", "assertion failed at compile time: B > 8", "assert"),
    "index by a value": ("x = (1, 2)[n]", "index must be known at compile time", "n]"),
    "tuple index": ("x = (1, 2)[5]", "tuple index out of range", "(1"),
    "value in tuple": ("x = 3 in (n, 1)", "`in` needs a tuple", "3 in"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_syntax_is_named_at_its_place(name: str, tmp_path: Path) -> None:
    body, says, under = REFUSED[name]
    with pytest.raises(CompileError) as caught:
        compile_body(tmp_path, body)
    text = str(caught.value)
    assert says in text
    head, *_, shown, caret = text.split("\n")
    file, line, column = head.split(": ")[0].rsplit(":", 2)
    assert Path(file).parent == tmp_path
    assert Path(file).read_text().split("\n")[int(line) - 1] == shown.partition(" | ")[2]
    assert caret.strip() == "^"
    assert caret.index("^") == shown.index(" | ") + 3 + int(column) - 1
    assert shown[caret.index("^") :].startswith(under)
    assert caught.value.__cause__ is None


def test_every_refusal_is_one_error_of_the_kernel_not_of_the_simulator(tmp_path: Path) -> None:
    for body, *_ in REFUSED.values():
        with pytest.raises(CompileError) as caught:
            compile_body(tmp_path, body)
        assert "Traceback" not in str(caught.value)
        assert "site-packages" not in str(caught.value)
        assert "simulator/frontend" not in str(caught.value)
        assert not re.search(r"%\d|object at 0x", str(caught.value))
