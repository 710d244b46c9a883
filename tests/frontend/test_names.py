"""Names that branches and loops leave behind, and values that change their type."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendtile.simulator.errors import CompileError

from .sources import compile_body

REFUSED = {
    "if n > 1:\n    x = 1\ny = x + 1": "'x' is assigned in one branch of the `if` at line 6 only",
    "if n > 1:\n    x = 1\nif n > 2:\n    x = 2\ny = x": "'x' is assigned in one branch of the `if`",
    "for i in range(n):\n    x = i\ny = x": "'x' is assigned inside a loop only",
    "for i in range(n):\n    pass\ny = i": "'i' is a variable of the loop at line 6",
    "i = 5\nfor i in range(n):\n    pass\ny = i": "'i' is a variable of the loop at line 7",
    "j = 5\nwhile n > 0:\n    n -= 1\n    for j in range(n):\n        pass\ny = j": "is a variable of the loop",
    "x = 0\nfor i in range(n):\n    x = 0.5": "changes its type in the loop: a int32 scalar before it",
    "x = 0\nfor i in range(n):\n    x = x + 0.5": "a fp32 scalar after an iteration",
    "x = tl.zeros((8,), tl.float32)\nfor i in range(n):\n    x = tl.sum(x, 0)": "a fp32 scalar after an iteration",
    "x = 0\nwhile n > 0:\n    x = tl.arange(0, 8)": "a int32 tile of shape [8] after an iteration",
    "x = None\nfor i in range(n):\n    x = i": "'x' is NoneType None and is assigned in a loop",
    "x = 0\nfor i in range(n):\n    if i > 1:\n        y = 1\n    x = y": "'y' is assigned in one branch",
    "if n > 1:\n    x = 1\nelse:\n    x = 1.0\ny = x": "'x' has two types after the `if`",
    "if n > 1:\n    x = 'a'\nelse:\n    x = 'b'\ny = x": "'x' is str 'a' in one branch and str 'b' in the other",
    "y = 1 if n > 1 else None": "NoneType None in the other",
}

ACCEPTED = [
    "if n > 1:\n    x = 1\nif n > 2:\n    x = 2",  # never used after
    "if n > 1:\n    x = 1\nelse:\n    x = 2\ny = x",
    "if B > 1:\n    x = 'a'\nelse:\n    x = 1.0\ny = x",  # a compile-time condition takes one side only
    "for i in range(n):\n    for i in range(n):\n        pass",
    "for i in range(n):\n    pass\nfor i in range(n):\n    y = i",
    "while n > 0:\n    for j in range(n):\n        n -= 1",
    "for i in tl.static_range(3):\n    x = i\ny = x",  # unrolled: as Python has it
    "if n > 1:\n    for j in tl.static_range(3):\n        pass\nelse:\n    j = 2\ny = j",
    "x = 0.0\nfor i in range(n):\n    x = 1",  # a number takes the type of the name
    "x = tl.zeros((B,), tl.float32)\nfor i in range(n):\n    x += tl.load(h + tl.arange(0, B))",
]


@pytest.mark.parametrize("body", REFUSED)
def test_a_name_without_one_value_is_refused_with_the_reason(body: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        compile_body(tmp_path, body)
    assert REFUSED[body] in str(caught.value)


@pytest.mark.parametrize("body", ACCEPTED)
def test_names_that_have_one_value_compile(body: str, tmp_path: Path) -> None:
    compile_body(tmp_path, body)
