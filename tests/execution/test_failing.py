"""What a kernel does wrong at run time is shown like a compile error: place, source, caret, program, numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
import ascendtile.simulator.language.extra.cann.extension as al
from ascendtile.simulator.errors import DeviceAssertionError, OutOfBoundsError
from ascendtile.simulator.interpreter.faults import program_name
from tests.frontend.sources import module

from .runs import launch


@sim.jit
def fetched(p, i):
    return tl.load(p + i)


@sim.jit
def reads(x, out, B: tl.constexpr):
    i = (tl.program_id(0) + 2 * tl.program_id(1)) * B + tl.arange(0, B)
    tl.store(out + i % B, fetched(x, i))


@sim.jit
def gathers(x, table, B: tl.constexpr):
    j = tl.load(table + tl.program_id(0) * B + tl.arange(0, B))
    tl.store(x + j, j, mask=j > -5)


@sim.jit
def divides(x, out, d, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, 7 // tl.load(x + i) + 1 // d)


@sim.jit
def claims(x, B: tl.constexpr):
    tl.device_assert(tl.load(x + tl.arange(0, B)) > 0, "all positive")


@sim.jit
def endless(x):
    i = 0
    while tl.load(x) + i >= 0:
        i += 1


@sim.jit
def spins(x):
    while tl.load(x) == 0:
        pass


@sim.jit
def waits(x, B: tl.constexpr):
    i = tl.arange(0, B)
    with al.scope(core_mode="vector"):
        al.sync_block_wait("cube", "vector", 3)
        tl.store(x + i, i)


@sim.jit
def stays(x, step):
    for i in range(0, 5, step):
        tl.store(x + i, i)


def integers(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


ONES = integers(1, 1, 1, 1)
# kernel, grid, arguments, what is raised, what its first line says, the text at the caret
FAULTS: dict[str, tuple[Any, Any, tuple[Any, ...], type[Exception], str, str]] = {
    "load": (
        *(reads, (2, 2), (np.zeros(13, np.float32), np.zeros(4, np.float32), 4), OutOfBoundsError),
        "load of element 15 of 'x' in program 3 (program_id 1, 1) is out of bounds: the tensor has shape [13], "
        "legal elements are 0 to 12, this is 3 beyond the last (tile element [3])",
        "tl.load(p + i)",
    ),
    "scatter": (
        *(gathers, (2,), (integers(*range(9)), integers(0, 1, 2, 3, -1, 9, 4, -2), 4), OutOfBoundsError),
        "store of element -1 of 'x' in program 1 is out of bounds: the tensor has shape [9], legal elements are 0 to 8, "
        "this is 1 before the first (tile element [0], 3 such elements)",
        "tl.store(x + j",
    ),
    "division of elements": (
        *(divides, (1,), (integers(1, 0, 3, 0), ONES.copy(), 1, 4), sim.RunError),
        "integer division by zero in program 0, element [1] (2 of 4 are 0)",
        "7 // tl.load",
    ),
    "division of scalars": (
        *(divides, (1,), (ONES, ONES.copy(), 0, 4), sim.RunError),
        "integer division by zero in program 0 (d is 0)",
        "1 // d",
    ),
    "assertion": (
        *(claims, (1,), (integers(1, 2, -3, -4), 4), DeviceAssertionError),
        "assertion failed in program 0, element [2]: all positive (2 of 4 elements fail)",
        "tl.device_assert",
    ),
    "endless": (
        *(endless, (3,), (integers(0),), sim.RunError),
        "more than 50 loop iterations (step_limit); the loop may never end (program 0 and 2 others still in it)",
        "while tl.load",
    ),
    "spin": (
        *(spins, (3,), (integers(0),), sim.RunError),
        "hang in program 0 and 2 others: the loop never ends, as nothing that its condition depends on changes any more: "
        "it waits for element 0 of 'x', which is 0, and no program of the launch stores to it",
        "while tl.load",
    ),
    "hang": (
        *(waits, (1,), (ONES.copy(), 4), sim.RunError),
        "for event 3, which the cube core does not set: no sync_block_set of it is in the kernel; the cube core has ended",
        "al.sync_block_wait",
    ),
    "step": (
        *(stays, (1,), (np.zeros(5, np.int32), 0), sim.RunError),
        "the step of the range is zero in program 0",
        "for i in range",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_shown_at_its_place_with_program_and_numbers(name: str) -> None:
    kernel, grid, args, kind, says, under = FAULTS[name]
    with sim.device(step_limit=50), pytest.raises(kind) as caught:
        launch(kernel, grid, *args)
    head, shown, caret, *_ = str(caught.value).split("\n")
    assert says in head
    file, line, column = head.split(": ")[0].rsplit(":", 2)
    source = Path(file).read_text().split("\n")[int(line) - 1]
    assert shown == f"{int(line):>5} | {source}"
    assert source[int(column) - 1 :].startswith(under)
    assert caret.index("^") == shown.index(" | ") + 3 + int(column) - 1
    assert "Traceback" not in str(caught.value)


def test_a_fault_in_a_helper_names_its_call() -> None:
    kernel, grid, args, *_ = FAULTS["load"]
    with pytest.raises(OutOfBoundsError) as caught:
        launch(kernel, grid, *args)
    line = reads.source.first_line + 3
    assert str(caught.value).endswith(f"  fetched is called at {reads.source.file}:{line}")


def test_recursion_is_told_in_few_lines(tmp_path: Path) -> None:
    text = "@sim.jit\ndef f(n):\n    return f(n - 1)\n\n@sim.jit\ndef k(x, n):\n    tl.store(x, f(n))\n"
    with pytest.raises(sim.UsageError, match="recursion is not supported") as caught:
        launch(module(tmp_path, text).k, (1,), np.zeros(1, np.int32), 3)
    assert len(str(caught.value).split("\n")) < 8
    assert "f is called at" in str(caught.value)
    assert ", 23 times" in str(caught.value)


def test_a_compile_time_array_is_named_shortly() -> None:
    with pytest.raises(
        sim.UsageError, match=r"claims: 'B' is a compile-time argument.*got ndarray array\(\[0\."
    ) as caught:
        launch(claims, (1,), ONES, np.zeros(500))
    assert len(str(caught.value)) < 200


@given(st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)), st.data())
def test_the_name_of_a_program_gives_its_place_in_the_grid(grid: tuple[int, int, int], data: Any) -> None:
    number = data.draw(st.integers(0, grid[0] * grid[1] * grid[2] - 1))
    name = program_name(number, grid)
    assert name.startswith(f"program {number}")
    if grid[1] == grid[2] == 1:
        assert name == f"program {number}"
        return
    ids = [int(x) for x in name.rpartition("program_id ")[2].rstrip(")").split(", ")]
    assert len(ids) == (3 if grid[2] > 1 else 2)
    assert np.ravel_multi_index((*ids, 0)[2::-1], grid[::-1]) == number
