"""Target of kernel source: tokens, lines and constants are changed, then the kernel is compiled, run and checked."""

from __future__ import annotations

import ast
import contextlib
import io
import itertools
import linecache
import re
import tokenize
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import ascendtile.simulator as sim

from .judge import Bench
from .mutators import HOSTILE, Chance, tokens_of

STEPS = 20_000  # of an endless loop
GROUPS = (
    ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "**", "@"),
    ("<", "<=", ">", ">=", "==", "!=", "and", "or", "in", "is"),
    ("=", "+=", "-=", "*=", "//=", ":=", "=="),
    ("(", ")", "[", "]", "{", "}", ",", ":", "."),
    (
        "if",
        "while",
        "for",
        "with",
        "return",
        "assert",
        "not",
        "lambda",
        "else",
        "pass",
        "yield",
        "del",
        "try",
    ),
)
CONSTANTS = (
    "0", "-1", "1", "3", "16", "64", "65", "4096", "1 << 20", "1 << 31", "1 << 62", "1 << 63", "1 << 64", "2 ** 70",
    "10 ** 9", "10 ** 40",
    "1 << 10 ** 9", "2 ** 10 ** 8", "9 ** 9 ** 9", "'a' * 10 ** 10", "(1,) * 10 ** 9", "0.5", "1e300", "1e309",
    "float('nan')",
    "-float('inf')", "1j", "True", "None", "'text'", "b'x'", "...", "(1, 2)", "[3]", "{}", "tl.float32", "tl.int8",
    "tl.float16", "tl",
    "B", "B * B", "n", "pid", "i", "x", "z", "a", "out", "larger", "range", "int", "len", "nothing", "0x" + "f" * 400,
    # Too long a list of digits is no Python; deep and long ones are.
    "(" * 60 + "x" + ")" * 60, "-" * 900 + "1", "x" + " + x" * 900, "-" * 20_000 + "1", "x" + " + 1" * 20_000,
    "1" * 4000, "not " * 3000 + "x",
)  # fmt: skip
CALLS = (
    "tl.arange(0, {})", "tl.zeros(({},), tl.float32)", "tl.full(({}, {}), 1, tl.int32)", "tl.load(a + {})",
    "tl.static_range({})", "range({})", "tl.reshape(x, ({},))", "tl.sum(x, {})", "tl.load(a + i, mask={}, other={})",
    "x[{}]", "x.{}", "tl.{}", "larger({}, {})", "tl.program_id({})", "tl.dot(x, {})", "int({})", "min({}, {})",
    "tl.cdiv({}, {})", "x if {} else {}", "tl.where({}, {}, x)", "tl.broadcast_to(x, ({}, {}))",
    "tl.full((), {}, tl.int64)", "tl.cast({}, tl.int32)", "(i + {}) * {}", "x.to({})",
)  # fmt: skip
_numbers = itertools.count()


@cache
def seeds() -> tuple[str, dict[str, tuple[str, list[str]]]]:
    """What stands before the kernels; name -> its first lines and its body, in lines."""
    text = Path(__file__).with_name("kernels.py").read_text()
    found, lines = {}, text.splitlines()
    functions = [f for f in ast.parse(text).body if isinstance(f, ast.FunctionDef)]
    for f in functions:
        body = f.body[0].lineno - 1
        found[f.name] = "\n".join(lines[f.lineno - 2 : body]), lines[body : f.end_lineno]
    head = "\n".join(lines[: functions[1].lineno - 2])
    return head.replace("from __future__ import annotations", ""), {
        n: x for n, x in found.items() if n != "larger"
    }


def arguments() -> dict[str, Any]:
    draw = np.random.default_rng(0)
    a = draw.normal(size=4096).astype(np.float32)
    c = draw.integers(0, 16, 4096, dtype=np.int32)
    return {
        "a": a,
        "b": a.astype(np.float16),
        "c": c,
        "out": np.zeros_like(a),
        "more": np.zeros_like(c),
        "n": 4000,
        "B": 64,
    }


def kernel_source(chance: Chance, bench: Bench) -> None:
    name = chance.choice(sorted(seeds()[1]))
    source = changed_source(chance, name)
    bench.file("kernel.py", source)
    function = compiled(source, name)
    if function is None:
        return
    given, grid = arguments(), (chance.one_of(1, 2, 2, 40),)
    options: dict[str, Any] = {
        "check": chance.once_in(2),
        "timeline": chance.one_of(0, 100),
        "time": not chance.once_in(4),
    }
    options["masked"] = chance.one_of("zero", "zero", "poison")
    product = chance.one_of(*["ascend910b3"] * 6, "ascend310p", "ascend910a")
    chance.note(f"{product} {options} {grid}")
    printed = contextlib.redirect_stdout(io.StringIO())
    with printed, bench.refusing(), sim.device(product, step_limit=STEPS, **options):
        run = function[grid](**given)
        str(run)
        if options["time"] and not all(np.isfinite(x.cycles) and x.cycles >= 0 for x in run.launches):
            raise AssertionError("a launch of no time")


def compiled(source: str, name: str) -> Any:
    """The kernel of a module that has a text but no file; None where Python itself refuses the text."""
    number = next(_numbers)
    file = f"<fuzz {number}>"
    try:
        with warnings.catch_warnings(action="ignore"):
            code = compile(source, file, "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    linecache.cache.pop(f"<fuzz {number - 50}>", None)  # nobody asks for its lines any more
    scope: dict[str, Any] = {"__name__": "fuzzed_kernel"}
    exec(code, scope)
    return scope[name]


def changed_source(chance: Chance, name: str) -> str:
    head, found = seeds()
    first, body = found[name]
    lines = list(body)
    gently = not chance.once_in(3)
    for _ in range(1 if gently else chance.few()):
        _change(chance, lines, [line for _, other in found.values() for line in other], gently)
    return "\n".join([head, first, *lines, ""])


def _change(chance: Chance, lines: list[str], others: list[str], gently: bool) -> None:
    """gently: a token becomes another of its kind, so that the kernel is most likely still one."""
    at = chance.randrange(len(lines))
    way = 9 if gently else chance.randrange(10)
    old = lines[at]
    if way == 0:
        lines[at] = old[: len(old) - len(old.lstrip())] + chance.one_of(chance.choice(others).strip(), "pass")
    elif way == 1:
        lines.insert(at, old[: len(old) - len(old.lstrip())] + chance.choice(others).strip())
    elif way == 2:
        lines[at] = chance.one_of("    ", "  ", "") + old
    elif way == 3 and len(lines) > 1:
        del lines[at]
    elif way == 4:
        lines[at] = old + chance.one_of("  # ", "; x = ", " + ") + chance.choice(PRINTABLE)
    else:
        lines[at] = _with_another_token(chance, old, _names_in(lines) if gently else None)
    chance.note(f"line {at}: {old!r:.120} -> {lines[min(at, len(lines) - 1)]!r:.200}")


def _names_in(lines: Sequence[str]) -> list[str]:
    """Variables of a body: what is assigned, or counts a loop."""
    return sorted(
        {
            n
            for line in lines
            for n in re.findall(r"(?:^| )(\w+)(?=,? [\w, ]*[+]?= )|for (\w+) in", line)
            for n in n
            if n
        }
    )


def _with_another_token(chance: Chance, line: str, names: list[str] | None) -> str:
    """names: those that another name may become; without, anything becomes anything."""
    try:
        tokens = tokens_of(line.strip())
    except (tokenize.TokenError, SyntaxError):
        return line
    if names is not None:
        tokens = [
            t
            for t in tokens
            if t.type == tokenize.NUMBER or t.string in (*ARITHMETIC, *DTYPES, *LANGUAGE, *names)
        ]
    if not tokens:
        return line
    old = chance.choice(tokens)
    new = _instead(chance, old) if names is None else _of_its_kind(chance, old, names)
    indent = len(line) - len(line.lstrip())
    return line[: indent + old.start[1]] + new + line[indent + old.end[1] :]


PRINTABLE = [h for h in HOSTILE if h.isprintable()]
DTYPES = (
    "float32",
    "float16",
    "bfloat16",
    "int32",
    "int8",
    "int16",
    "int64",
    "uint8",
    "int1",
    "uint32",
    "float64",
)
ARITHMETIC = ("+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "<", ">=", "==")
LITERALS = (
    "0", "1", "2", "3", "5", "16", "33", "64", "100", "4096", "-1", "0.5", "B", "n", "(1 << 31)", "(1 << 62)", "1e30",
)  # fmt: skip
VARIANTS = (
    "{}[:, None]",
    "-{}",
    "({} > 0)",
    "{}.to(tl.float16)",
    "{}.to(tl.int64)",
    "tl.sum({})",
    "({} + 1)",
    "({} * {})",
)


def _of_its_kind(chance: Chance, old: tokenize.TokenInfo, names: Sequence[str]) -> str:
    if old.string in names:
        variant = chance.one_of("{}", "{}", chance.choice(VARIANTS))
        return str(variant.replace("{}", chance.choice(names)))
    kinds = [
        (LITERALS, old.type == tokenize.NUMBER),
        (ARITHMETIC, old.type == tokenize.OP),
        (DTYPES, old.string in DTYPES),
    ]
    return str(chance.choice(next((k for k, found in kinds if found), LANGUAGE)))


def _instead(chance: Chance, old: tokenize.TokenInfo) -> str:
    for group in GROUPS:
        if old.string in group and not chance.once_in(6):
            return str(chance.choice(group))
    if chance.once_in(3):
        call = chance.choice(CALLS)
        return str(call.format(*(chance.choice(CONSTANTS) for _ in range(call.count("{}")))))
    if old.type == tokenize.NAME and chance.once_in(3):
        return str(chance.choice(LANGUAGE))
    return str(chance.choice(CONSTANTS))


LANGUAGE = sorted(n for n in vars(sim.language) if not n.startswith("_"))
