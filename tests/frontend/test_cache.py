"""Compiled programs: one for each set of types and constants, and the same text every time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.ir.types import PointerType
from ascendtile.simulator.precision import dtypes as ty

from .sources import HEADER, compile_body
from .values import output

SCALE = 2
TABLE = (1, 2)
ALIAS = tl.constexpr


@sim.jit
def constant(out, C: tl.constexpr):
    tl.store(out, C)


@sim.jit
def helper():
    return SCALE


@sim.jit
def uses_globals(out):
    tl.store(out, helper() * 10 + TABLE[1])


@sim.jit
def aliased(out, n: ALIAS, m: "ALIAS", o: "tl.constexpr"):  # noqa: UP037
    tl.store(out, tl.sum(tl.arange(0, n) * m + o, 0))


def program(c: Any) -> Any:
    return constant.program({"out": PointerType(ty.float32)}, {"C": c})


def test_constants_that_python_calls_equal_are_different_programs() -> None:
    values = [1, 1.0, True, 0.0, -0.0, (1, 2), (1.0, 2), (True, 2), "1", None]
    programs = []
    for c in values:
        try:
            programs.append(program(c))
        except UsageError:
            programs.append(c)  # a text or None cannot be stored, which is not the point here
    assert len({id(p) for p in programs}) == len(values)
    assert program(1) is programs[0]
    assert output(constant, 1, True, dtype=np.int32).tolist() == [1]
    assert np.signbit(output(constant, 1, -0.0)).all()


def test_a_constant_must_be_hashable() -> None:
    with pytest.raises(UsageError, match="must be hashable"):
        program(np.zeros(2))


def test_numpy_numbers_are_constants_too() -> None:
    assert output(aliased, 1, np.int64(4), np.int32(3), o=np.int8(1)).tolist() == [22]


def test_a_changed_global_gives_a_new_program(monkeypatch: pytest.MonkeyPatch) -> None:
    assert output(uses_globals, 1).tolist() == [22]
    monkeypatch.setitem(globals(), "SCALE", 3)
    assert output(uses_globals, 1).tolist() == [32]
    monkeypatch.setitem(globals(), "TABLE", (1, 5))
    assert output(uses_globals, 1).tolist() == [35]
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert output(uses_globals, 1).tolist() == [35]


def test_a_redefined_helper_gives_a_new_program(monkeypatch: pytest.MonkeyPatch) -> None:
    assert output(uses_globals, 1).tolist() == [22]

    @sim.jit
    def other():
        return 7

    monkeypatch.setitem(globals(), "helper", other)
    assert output(uses_globals, 1).tolist() == [72]


BODY = """
x = 0
for i in range(n):
    if i > m:
        x, y = i, x
    else:
        x, y = x, i
    tl.store(k + i, x + y)
"""


def test_the_text_of_a_program_is_the_same_every_time(tmp_path: Path) -> None:
    first, second = (compile_body(tmp_path, BODY).text() for _ in range(2))
    assert first == second
    assert first.splitlines()[0].endswith("# line 7")


@pytest.mark.exhaustive
def test_the_text_does_not_depend_on_the_order_of_hashes(tmp_path: Path) -> None:
    path = tmp_path / "stable.py"
    lines = "\n".join("    " + line for line in BODY.strip().split("\n"))
    types = "{'k': PointerType(ty.int32), 'n': ty.int32, 'm': ty.int32}"
    path.write_text(
        f"{HEADER}from ascendtile.simulator.ir.types import PointerType\n"
        f"from ascendtile.simulator.precision import dtypes as ty\n"
        f"@sim.jit\ndef kernel(k, n, m):\n{lines}\n\nprint(kernel.program({types}, {{}}).text())\n"
    )
    texts = {
        subprocess.run(
            [sys.executable, path],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
