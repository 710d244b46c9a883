"""Names from outside of the kernel: Triton takes `constexpr` objects only; what changes is compiled anew."""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import ascendtile.simulator as sim
from ascendtile.simulator.errors import CompileError

from .sources import compile_body, module
from .values import output

KERNELS = """
import math
from types import SimpleNamespace
PLAIN = 3
ANNOTATED: tl.constexpr = 5
OBJECT = tl.constexpr(7)
TYPE = tl.float32
CONFIG = SimpleNamespace(scale=2)

@sim.jit
def plain(out):
    tl.store(out, PLAIN + PLAIN)

@sim.jit
def annotated(out):
    tl.store(out, ANNOTATED)

@sim.jit
def accepted(out):
    tl.store(out, (OBJECT + math.pi).to(TYPE) if OBJECT == 0 else OBJECT)

@sim.jit
def of_object(out):
    tl.store(out, CONFIG.scale)

def made(factor):
    @sim.jit
    def inner(out):
        tl.store(out, factor)
    return inner
"""


@pytest.fixture
def kernels(tmp_path: Path) -> ModuleType:
    return module(tmp_path, KERNELS)


def told(kernel: sim.JitFunction) -> tuple[str, ...]:
    with sim.device(time=False):
        return tuple(kernel[(1,)](np.zeros(1, np.float32)).warnings)


def test_a_plain_name_is_taken_and_told_once_with_the_way_out(kernels: ModuleType) -> None:
    (words,) = told(kernels.plain)
    assert f"{kernels.plain.source.file}:{kernels.plain.source.first_line + 2}: 'PLAIN'" in words
    assert "PLAIN = tl.constexpr(3)" in words
    assert output(kernels.plain, 1).tolist() == [6]
    with sim.device(values=False):
        assert words in kernels.plain.time((1,), sim.shape(1, "float32")).warnings


def test_an_annotation_is_not_enough_and_a_closure_is_no_exception(kernels: ModuleType) -> None:
    assert "annotated as constexpr, which Triton 3.5 does not take" in told(kernels.annotated)[0]
    assert "'factor' is a name from outside" in told(kernels.made(4))[0]


def test_what_triton_takes_is_no_warning(kernels: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(kernels.accepted) == ()
    monkeypatch.setenv("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", "1")
    assert told(kernels.made(5)) == ()


def test_a_change_is_never_stale(kernels: ModuleType) -> None:
    assert [
        output(kernels.plain, 1)[0],
        output(kernels.of_object, 1)[0],
        output(kernels.annotated, 1)[0],
    ] == [6, 2, 5]
    kernels.PLAIN, kernels.ANNOTATED, kernels.CONFIG.scale = 4, 6, 9
    assert [
        output(kernels.plain, 1)[0],
        output(kernels.of_object, 1)[0],
        output(kernels.annotated, 1)[0],
    ] == [8, 9, 6]
    assert "PLAIN = tl.constexpr(4)" in told(kernels.plain)[0]


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("math.sqrt(B)", math.sqrt(8)),
        ("math.log(B)", math.log(8)),
        ("math.log2(B)", 3.0),
        ("math.ceil(B / 3)", 3),
        ("math.floor(math.pi)", 3),
        ("math.gcd(B, 12)", 4),
        ("math.prod((B, 2))", 16),
        ("B.bit_length()", 4),
    ],
)
def test_plain_mathematics_on_compile_time_numbers(call: str, value: float, tmp_path: Path) -> None:
    compile_body(tmp_path, f"tl.static_assert({call} == {value!r})", before="import math")


def test_mathematics_on_values_names_the_word(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"math\.sqrt needs compile-time.*use tl\.sqrt"):
        compile_body(tmp_path, "x = math.sqrt(f)", before="import math")
    with pytest.raises(CompileError, match=r"math\.sqrt: .*domain"):
        compile_body(tmp_path, "x = math.sqrt(-1)", before="import math")
