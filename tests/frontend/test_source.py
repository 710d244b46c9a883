"""Wherever and however a kernel is written down, it is found and errors point into it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError, UsageError

from .sources import compiled, module
from .values import output


def plain(fn: Any) -> Any:
    return fn


def make_kernel(scale: int) -> Any:
    offset = 100

    @sim.jit
    @plain
    def inner(
        out,  # where to
        n,
        B: tl.constexpr = 4,
    ):
        """A text
        less indented than the code.
        """
        # a comment
        # a comment indented less
        i = tl.arange(0, B)

        tl.store(
            out + i,
            i * scale + offset,
            mask=i < n,
        )

    return inner


class Holder:
    @staticmethod
    @sim.jit(do_not_specialize=["n"])
    def method(out, n, B: "tl.constexpr"):  # noqa: UP037
        i = tl.arange(0, B)
        tl.store(out + i, i, mask=i < n)


def test_closures_decorators_signatures_over_lines_and_odd_indentation() -> None:
    assert output(make_kernel(3), 4, 3).tolist() == [100, 103, 106, -7]
    assert output(make_kernel(5), 4, 4).tolist() == [100, 105, 110, 115]
    assert output(Holder.method, 4, 2, B=4).tolist() == [0, 1, -7, -7]


@pytest.mark.parametrize(
    ("text", "line", "column", "under"),
    [
        ("@sim.jit\ndef k(p):\n\tif p is not None:\n\t\tx = nope\n", 6, 7, "nope"),
        ("@sim.jit\ndef k(p):\n    x = 'äöü€', nope\n", 5, 17, "nope"),
        ("if True:\n  @sim.jit\n  def k(p):\n   # äö\n   x = nope\n", 7, 8, "nope"),
        ("@sim.jit\ndef k(p):\n    x = (1 +\n         nope)\n", 6, 10, "nope"),
    ],
)
def test_the_caret_counts_characters_tabs_and_indentation(
    text: str, line: int, column: int, under: str, tmp_path: Path
) -> None:
    kernel = module(tmp_path, text).k
    with pytest.raises(CompileError) as caught:
        compiled(kernel)
    message = str(caught.value)
    assert f".py:{line}:{column}: " in message
    shown, caret = message.split("\n")[-2:]
    assert shown[caret.index("^") :].startswith(under)
    assert caret[8:-1] == "".join("\t" if c == "\t" else " " for c in shown[8 : 8 + column - 1])


def test_an_error_in_a_helper_shows_the_helper_and_the_call(tmp_path: Path) -> None:
    text = "@sim.jit\ndef helper(x):\n    return x.nope\n\n@sim.jit\ndef k(n):\n    y = helper(n)\n"
    with pytest.raises(CompileError) as caught:
        compiled(module(tmp_path, text).k)
    message = str(caught.value)
    assert ".py:5:12: a tile has no attribute 'nope'" in message
    assert message.endswith(".py:9")
    assert "helper is called at" in message


@pytest.mark.parametrize(
    "body",
    [
        "    return f(x - 1)",
        "    if x > 0:\n        return f(x - 1)\n    return x",
        "    return f(x - 1) + f(x - 2) if x > 1 else x",
        "    return g(x)",
    ],
)
def test_recursion_is_refused(body: str, tmp_path: Path) -> None:
    text = f"@sim.jit\ndef g(x):\n    return f(x)\n\n@sim.jit\ndef f(x):\n{body}\n\n@sim.jit\ndef k(n):\n    y = f(n)\n"
    with pytest.raises(CompileError, match="recursion is not supported"):
        compiled(module(tmp_path, text).k)


def test_recursion_that_ends_at_compile_time_is_fine(tmp_path: Path) -> None:
    text = "@sim.jit\ndef f(x: tl.constexpr):\n    if x == 0:\n        return 1\n    return x * f(x - 1)\n"
    compiled(module(tmp_path, text + "\n@sim.jit\ndef k(p):\n    tl.store(p, f(5))\n").k)


def test_an_expression_nested_too_deeply_is_an_error_of_the_kernel(tmp_path: Path) -> None:
    text = f"@sim.jit\ndef k(n):\n    x = {' + '.join(['n'] * 900)}\n"
    with pytest.raises(CompileError, match="nested too deeply"):
        compiled(module(tmp_path, text).k)


def test_kernels_without_source_say_so() -> None:
    names: dict[str, Any] = {"sim": sim}
    # A name of its own: under "<string>" Python 3.13 keeps the text of `python -c`, with which pytest-xdist starts workers.
    exec(compile("@sim.jit\ndef k(p):\n    pass\n", "<nowhere>", "exec"), names)
    with pytest.raises(CompileError, match="'k' cannot be read: a kernel must be defined in a file"):
        output(names["k"], 1)


def test_a_kernel_given_on_the_command_line_says_so() -> None:
    code = (
        "import numpy as np, ascendtile.simulator as sim\n@sim.jit\ndef k(p):\n    pass\n"
        "try:\n    k[(1,)](np.zeros(1))\nexcept sim.UsageError as e:\n    print('refused:', e)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    readable = sys.version_info >= (3, 13)  # from then on Python keeps the text of -c
    assert readable or done.stdout.startswith("refused: ")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sim.jit(int), "jit makes a kernel of a function, got type"),
        (lambda: sim.jit(3), "jit makes a kernel of a function, got int 3"),
        (lambda: sim.jit(lambda p: None).source, "no lambda"),
        (lambda: sim.jit(_star), "cannot take"),
        (lambda: sim.jit(_async).source, "no async"),
        (lambda: sim.jit(_star_star), r"test_source\.py:\d+:\d+: _star_star cannot take \*\*p: name"),
    ],
)
def test_what_cannot_be_a_kernel(make: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        make()


def _star(*p: Any) -> None: ...


def _star_star(**p: Any) -> None: ...


async def _async(p: Any) -> None: ...


def test_a_kernel_and_a_word_cannot_be_called_from_python() -> None:
    with pytest.raises(UsageError, match=r"launch it as inner\[grid\]"):
        make_kernel(1)(np.zeros(1))
    with pytest.raises(UsageError, match="only be called inside a @jit function"):
        tl.exp(1.0)
