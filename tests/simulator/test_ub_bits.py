"""ENABLE_PRINT_UB_BITS: a line for each kernel as it is compiled, in the words of the vendor's memory planner."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ascendtile.simulator as sim
import ascendtile.simulator.language as tl
from ascendtile.kernels import run_op
from ascendtile.reports.facts.json_view import run_json

PATTERN = r"UB\s+size\s*=\s*(\d+)\s*bits"  # by which Triton-Ascend reads it


def copy_kernel():
    """A kernel of its own: lines are printed once for each."""

    @sim.jit
    def copy(x_ptr, out_ptr, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + at, tl.load(x_ptr + at) + 1.0)

    return copy


def launch(kernel, block, **device):
    with sim.device("ascend910b3", values=False, **device):
        return kernel.time((4,), sim.shape(1 << 16, "float32"), sim.shape(1 << 16, "float32"), BLOCK=block)


@pytest.mark.parametrize("value", ["1", "true", "TRUE"])
def test_each_block_of_a_kernel_has_one_line_with_the_bytes_of_its_plan(monkeypatch, capsys, value):
    monkeypatch.setenv("ENABLE_PRINT_UB_BITS", value)
    kernel = copy_kernel()
    runs = [launch(kernel, b) for b in (256, 1024, 256)]
    lines = capsys.readouterr().out.splitlines()
    placed = [x.launches[0].buffers["UB"].placed_bytes for x in runs[:2]]
    assert lines == [f"copy: [AscendNPU IR] Allocated UB size = {8 * n} bits" for n in placed]
    assert [int(re.search(PATTERN, x).group(1)) for x in lines] == [8 * n for n in placed]


@sim.jit
def twice_added(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    """Five tiles, of which three are alive at once."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.exp(tl.load(x_ptr + at)) + tl.load(y_ptr + at)
    tl.store(out_ptr + at, tl.where(total > 0, total, tl.load(x_ptr + at + 8)))


@pytest.mark.parametrize("block", [256, 1024, 8192, 10240])
def test_the_page_and_the_json_have_the_printed_figure_beside_the_need(monkeypatch, capsys, block):
    monkeypatch.setenv("ENABLE_PRINT_UB_BITS", "1")
    x = sim.shape(1 << 16, "float32")
    with sim.device("ascend910b3", values=False):
        found = twice_added.time((2,), x, x, x, BLOCK=block)
    printed = int(re.search(PATTERN, capsys.readouterr().out).group(1))
    ub = run_json(found)["buffers"]["UB"]
    assert ub["placed_bits"] == printed
    page = " ".join(str(found).split())
    assert (f"{printed:,} bits are allocated" in page) == (printed != ub["peak_bits"])
    assert f"{ub['peak_bits']:,} of 1,572,864 bits" in page


@pytest.mark.parametrize("value", [None, "", "0", "false"])
def test_nothing_is_printed_unless_asked(monkeypatch, capsys, value):
    monkeypatch.delenv("ENABLE_PRINT_UB_BITS", raising=False)
    if value is not None:
        monkeypatch.setenv("ENABLE_PRINT_UB_BITS", value)
    launch(copy_kernel(), 256)
    assert capsys.readouterr().out == ""


def test_kernels_that_stand_for_ascend_c_have_no_line(monkeypatch, capsys):
    """No Triton compiler makes them."""
    monkeypatch.setenv("ENABLE_PRINT_UB_BITS", "1")
    launch(copy_kernel(), 256, compiler="ascendc")
    run_op("rms_norm", "tiny", values=False)
    assert capsys.readouterr().out == ""


def test_a_kernel_that_does_not_fit_has_the_message_of_the_overflow_alone(monkeypatch, capsys):
    monkeypatch.setenv("ENABLE_PRINT_UB_BITS", "1")
    with pytest.raises(sim.RunError, match=r"ub overflow, requires \d+ bits while 1572864 bits available"):
        launch(copy_kernel(), 1 << 16)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("value", "compiler"), [("1", None), ("1", "ascendc"), (None, None)])
def test_what_is_printed_is_in_the_metadata_and_else_nothing(monkeypatch, capsys, value, compiler):
    monkeypatch.delenv("ENABLE_PRINT_UB_BITS", raising=False)
    if value is not None:
        monkeypatch.setenv("ENABLE_PRINT_UB_BITS", value)
    found = launch(copy_kernel(), 256, compiler=compiler).metadata
    printed = re.search(PATTERN, capsys.readouterr().out)
    assert (found.name, found.kernel_name) == ("copy", "copy")
    assert found.required_ub_bits == (int(printed.group(1)) if printed else 0)
    assert bool(printed) == (value is not None and compiler is None)


def test_a_run_that_was_not_timed_says_so():
    x = np.zeros(256, np.float32)
    with sim.device(time=False):
        run = copy_kernel()[(1,)](x, x, BLOCK=256)
    with pytest.raises(sim.UsageError, match="not timed"):
        run.metadata  # noqa: B018
