"""Bad input as a user's script has it, through `ascendtile run`: a clear report, never a trace or a hang."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ascendtile.reports.cli.main import status_of

START = """
import numpy as np
import triton
import triton.language as tl
import triton.language.extra.cann.extension as al

x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)

@triton.jit
def copy(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)

@triton.jit
def kernel(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
"""
LAUNCH = "\nkernel[(2,)](x, out, 64, B=32)\n"
# (what follows, status, words of the report)
SCRIPTS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "too few arguments": (
        "    pass\ncopy[(1,)](x, 64, B=64)",
        2,
        ("copy: missing n; it takes x, out, n, B",),
    ),
    "too many arguments": ("    pass\ncopy[(1,)](x, x, 64, 64, 3)", 2, ("takes 4 arguments", "got 5")),
    "unknown name": ("    pass\ncopy[(1,)](x, x, 64, BLOCK=64)", 2, ("no parameter 'BLOCK'", "x, out, n, B")),
    "dtype": ("    pass\ncopy[(1,)](x * 1j, x, 64, B=64)", 2, ("x: arrays of complex128", "float16")),
    "dtype of no product": (
        "    pass\ncopy[(1,)](x * 1.0, x, 64, B=64)",
        2,
        ("'x' is fp64", "does not have"),
    ),
    "array as a size": (
        "    pass\ncopy[(1,)](x, x, 64, B=x)",
        2,
        ("copy: 'B' is a compile-time argument", "..."),
    ),
    "read-only": (
        "    pass\nout.setflags(write=False)\ncopy[(1,)](x, out, 64, B=64)",
        *(1, ("store to 'out', which is a read-only array; pass a copy", "^")),
    ),
    "shape from data": ("    j = tl.arange(0, tl.load(x))" + LAUNCH, 2, ("take a tl.constexpr size", "^")),
    "out of bounds": (
        "    tl.store(out + i + 40, i)" + LAUNCH,
        1,
        ("element 71 of 'out' in program 0", "8 beyond", "^"),
    ),
    "assertion": (
        "    tl.device_assert(i < 30, 'small')" + LAUNCH,
        1,
        ("program 0, element [30]: small (2 of 32", "^"),
    ),
    "division": (
        "    tl.store(out + i, n // i)" + LAUNCH,
        1,
        ("integer division by zero in program 0, element [0]", "^"),
    ),
    "recursion": (
        "    pass\n@triton.jit\ndef f(n):\n    return f(n - 1)\n@triton.jit\ndef g(x):\n    tl.store(x, f(3))\ng[(1,)](x)",
        *(2, ("recursion is not supported", "f is called at")),
    ),
    "a wait with no set": (
        "    with al.scope(core_mode='vector'):\n        al.sync_block_wait('cube', 'vector', 3)\n"
        "        tl.store(out + i, i)" + LAUNCH,
        *(
            1,
            (
                "hang in program 0: the vector core waits",
                "for event 3, which the cube core does not set",
                "^",
            ),
        ),
    ),
    "no such syntax": (
        "    try:\n        pass\n    finally:\n        pass" + LAUNCH,
        2,
        ("`try` is not supported", "^"),
    ),
}


def told(script: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    path = folder / "script.py"
    path.write_text(START + script)
    capsys.readouterr()
    status = status_of(["run", str(path)])
    assert "triton" not in sys.modules
    return status, *capsys.readouterr()


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_bad_script_gets_a_report(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script, wanted, words = SCRIPTS[name]
    status, _, err = told(script, tmp_path, capsys)
    assert status == wanted
    assert err.startswith("error: ")
    for word in words:
        assert word in err
    assert f"launched at {tmp_path / 'script.py'}:" in err
    assert "Traceback" not in err
    assert "simulator/" not in err


def test_an_endless_loop_is_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "    k = 0\n    while tl.load(x) + k >= 0:\n        k += 1\n"
        "import ascendtile.simulator as sim\nwith sim.device(step_limit=100):\n    kernel[(2,)](x, out, 64, B=32)\n"
    )
    status, _, err = told(script, tmp_path, capsys)
    assert status == 1
    assert (
        "more than 100 loop iterations (step_limit); the loop may never end (program 0 and 1 others still in it)"
        in err
    )
    assert "^" in err


def test_two_writers_and_far_masked_lanes_are_warnings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = (
        "    y = tl.load(x + i * 100000, mask=i < 1)\n    if tl.program_id(0) == 0:\n        tl.store(out + i, y)\n"
        "    else:\n        tl.store(out + i, i + 5)" + LAUNCH
    )
    status, out, err = told(script, tmp_path, capsys)
    said, first = " ".join(out.split()), START.count("\n") + 3
    assert (status, err) == (0, "")
    assert (
        f"programs 0 and 1 both store to element 0 of 'out' (lines {first} and {first + 2}) without an atomic"
        in said
    )
    assert "31 masked-out lanes of a load in program 0 point outside of 'x'" in said
