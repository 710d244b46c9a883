"""`triton.compile`: a kernel for types alone, with errors as Triton words them."""

from __future__ import annotations

import re
from typing import Any

import pytest

import ascendtile.simulator.language as tl
from ascendtile.simulator.errors import CompileError, UsageError

pytestmark = pytest.mark.usefixtures("shim")


def added(x_ptr: Any, n: Any, BLOCK: tl.constexpr) -> None:
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at) + n)


def twice(x: Any) -> Any:
    return x @ 2


def calls(x_ptr: Any) -> None:
    # a line between
    tl.store(x_ptr, outer(tl.load(x_ptr)))  # type: ignore[name-defined] # noqa: F821


def chosen(x_ptr: Any) -> None:
    tl.where(tl.full((64,), 0, tl.uint32), 1.0, 2.0)


def compiled(fn: Any, signature: dict[str, str], constexprs: Any = None, **options: Any) -> Any:
    import triton

    source = triton.compiler.ASTSource(triton.jit(fn), signature, constexprs or {})
    return triton.compile(source, **options)


@pytest.mark.parametrize("key", ["BLOCK", 2, (2,)])
def test_constants_are_named_by_name_number_or_path(key: Any) -> None:
    signature = {"x_ptr": "*fp16", "n": "i32", "BLOCK": "constexpr"}
    found = compiled(added, signature, {key: 32})
    assert "fp16[32]" in found.program.text()
    assert found.name == "added"
    with pytest.raises(UsageError, match="no code of a device"):
        found.asm["ttir"]


def test_an_error_has_line_and_column_from_def_on_and_the_rule_as_its_cause() -> None:
    with pytest.raises(CompileError) as e:
        compiled(added, {"x_ptr": "*fp16", "n": "*i32", "BLOCK": "constexpr"}, {"BLOCK": 32})
    lines = str(e.value).splitlines()
    assert lines[0] == "at 3:25:"
    assert lines[1].startswith("def added(")
    assert lines[-2] == " " * 25 + "^"
    assert lines[-1] == str(e.value.__cause__)


def test_an_error_in_a_helper_is_the_cause_of_one_at_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    import triton

    monkeypatch.setitem(globals(), "outer", triton.jit(twice))
    with pytest.raises(CompileError, match=r"^at 3:20:\n") as e:
        compiled(calls, {"x_ptr": "*fp32"})
    assert re.match(r"at 2:11:\ndef twice", str(e.value.__cause__))


def test_what_a_launch_would_be_warned_of_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="condition of uint32"):
        compiled(chosen, {"x_ptr": "*fp32"})


def test_files_of_an_ir_and_other_devices_are_refused() -> None:
    import triton
    from triton.backends.compiler import GPUTarget

    with pytest.raises(UsageError, match="a file of TTIR or TTGIR is not read"):
        triton.compile("k.ttgir")
    with pytest.raises(UsageError, match="no code of another device"):
        compiled(chosen, {"x_ptr": "*fp32"}, target=GPUTarget("cuda", "90", 32))
