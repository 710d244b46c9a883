"""Small mutators. What they do follows from a target's name and a number alone, so an input can be made again."""

from __future__ import annotations

import io
import random
import re
import tokenize
from collections.abc import Sequence
from typing import Any

# Texts that a page, a terminal, a file name or a formula must not take for its own.
HOSTILE = (
    "", " ", "\n", "\0", "a" * 5000, "<fuzz>", "</script><fuzz>", "\"'><fuzz onload=fuzz()>", "--><fuzz>",
    "]]><fuzz>", "{{ 7 * 7 }}", "${fuzz}", "javascript:fuzz()", "\x1b[31mred\x1b[2J", "\x9b31m", "\r\b\b\b",
    "\u202etxet", "\ud800", "../../up", "/etc/passwd", "a/b\\c", "nan", "NaN", "Infinity", "None", "true", "-1",
    "1e999", "0x10", "%s%n", "$array", "é" * 40, "漢字", "e\u0301", "\U0001f600", "[red]bold[/red]", "[/]", "$x^{2}$",
    "_a_{", "%", "&amp;", "=1+1", "+", ",", ";",
)  # fmt: skip
NUMBERS: tuple[Any, ...] = (
    0, 1, -1, 2, 3, 7, 8, 64, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63,
    2**70, 10**40, -(2**63), 0.0, -0.0, 0.5, 1e-12, 5e-324, 1e12, 1e30, 1e300, -1e300,
)  # fmt: skip
OTHERS: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [[]],
    {"": None},
    "1",
    1.5,
    3,
    [1, 2, 3],
    "NaN",
    "Infinity",
)


class Chance(random.Random):
    """The choices for one input. log: what was changed, for whoever has to understand a finding."""

    def __init__(self, target: str, number: int) -> None:
        super().__init__(f"{target} {number}")
        self.log: list[str] = []

    def note(self, text: str) -> None:
        self.log.append(text[:300])

    def one_of(self, *choices: Any) -> Any:
        return self.choice(choices)

    def once_in(self, n: int) -> bool:
        return self.randrange(n) == 0

    def few(self) -> int:
        """1 more often than 2, and so on."""
        return next(n for n in range(1, 100) if n == 6 or self.random() < 0.5)


# ---- bytes ----


def mutated_bytes(chance: Chance, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """Some bytes flipped, cut out, doubled, or taken from another file."""
    out = bytearray(data)
    for _ in range(chance.few()):
        chance.one_of(_flip, _flip, _set, _cut, _insert, _double, _end)(chance, out)
        if others and chance.once_in(4):
            _splice(chance, out, chance.choice(others))
    return bytes(out)


def _place(chance: Chance, out: bytearray) -> int:
    """Anywhere, or near an end, where the head or the directory of a file is."""
    near = min(len(out), 200)
    return chance.one_of(
        chance.randrange(len(out) + 1), chance.randrange(near + 1), len(out) - chance.randrange(near + 1)
    )


def _flip(chance: Chance, out: bytearray) -> None:
    if at := _place(chance, out):
        bit = 1 << chance.randrange(8)
        out[at - 1] ^= bit
        chance.note(f"byte {at - 1} flipped by {bit}")


def _set(chance: Chance, out: bytearray) -> None:
    at, size = _place(chance, out), chance.one_of(1, 2, 4, 8)
    new = chance.one_of(b"\0" * size, b"\xff" * size, b"\x7f" + b"\xff" * (size - 1), chance.randbytes(size))
    out[at : at + size] = new
    chance.note(f"bytes from {at} set to {new!r}")


def _cut(chance: Chance, out: bytearray) -> None:
    at, size = _place(chance, out), chance.one_of(1, 2, 16, 100, len(out) // 2)
    del out[at : at + size]
    chance.note(f"{size} bytes from {at} cut out")


def _end(chance: Chance, out: bytearray) -> None:
    at = _place(chance, out)
    del out[at:]
    chance.note(f"cut off at {at}")


def _insert(chance: Chance, out: bytearray) -> None:
    at, new = _place(chance, out), chance.randbytes(chance.one_of(1, 3, 30))
    out[at:at] = new
    chance.note(f"{new!r} inserted at {at}")


def _double(chance: Chance, out: bytearray) -> None:
    at, size = _place(chance, out), chance.one_of(1, 8, 64, 1000)
    out[at:at] = out[at : at + size] * chance.one_of(1, 1, 50)
    chance.note(f"{size} bytes at {at} repeated")


def _splice(chance: Chance, out: bytearray, other: bytes) -> None:
    at, start = _place(chance, out), chance.randrange(len(other) + 1)
    size = chance.one_of(8, 100, len(other))
    out[at : at + chance.one_of(0, size)] = other[start : start + size]
    chance.note(f"{size} bytes of another file, from {start}, put at {at}")


# ---- text ----


def mutated_lines(chance: Chance, text: str) -> str:
    """Lines left out, doubled, moved, or with another number or word."""
    lines = text.split("\n")
    for _ in range(chance.few()):
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        line = lines[at]
        change = chance.randrange(8)
        if change == 0:
            lines[at] = ""
        elif change == 1:
            lines.insert(other, line)
        elif change == 2:
            lines[at], lines[other] = lines[other], line
        elif change == 3:
            lines[at] = (
                line[: chance.randrange(len(line) + 1)]
                + chance.choice(HOSTILE)
                + line[chance.randrange(len(line) + 1) :]
            )
        else:
            lines[at] = with_another_word(chance, line, re.findall(r"[\w.]+", lines[other]))
        chance.note(f"line {at}: {line!r:.100} -> {lines[at]!r:.150}")
        lines = lines or [""]
    return "\n".join(lines)


def with_another_word(chance: Chance, line: str, words: Sequence[str]) -> str:
    """A number becomes another number, a word one of `words`."""
    found = list(re.finditer(r"-?\d[\d.e+]*|\w+", line))
    if not found:
        return line
    old = chance.choice(found)
    numeric = old[0].lstrip("-")[0].isdigit()
    new = (
        str(chance.one_of(*NUMBERS, "nan", "inf", "1_0", "0x1F", "1e5"))
        if numeric
        else chance.choice([*words, "x"])
    )
    return line[: old.start()] + new + line[old.end() :]


def tokens_of(source: str) -> list[tokenize.TokenInfo]:
    """Those with a text, of Python source."""
    kinds = (tokenize.NAME, tokenize.NUMBER, tokenize.OP, tokenize.STRING)
    return [t for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type in kinds]
