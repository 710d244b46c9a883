"""A product file that lacks a figure, and figures of no sense: which one it is, and who needs it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.reports.cli.main import status_of
from ascendtile.simulator.errors import ProductError
from ascendtile.simulator.products import Product, load_product, loading
from ascendtile.simulator.products.spec import known_keys, needed_by, required_keys

B3 = load_product("ascend910b3")
TEXT = (loading.FOLDER / "ascend910b1.toml").read_text()


def without(line_start: str) -> str:
    """The shipped file without the line that begins so."""
    kept = [line for line in TEXT.splitlines() if not line.startswith(line_start)]
    assert len(kept) < len(TEXT.splitlines())
    return "\n".join(kept)


@given(st.sampled_from(required_keys("split")))
def test_each_figure_that_is_taken_out_is_named_with_who_needs_it(key):
    figures = {k: f for k, f in B3.figures_by_key.items() if k != key}
    with pytest.raises(ProductError) as found:
        Product("mine", figures)
    assert f"mine: missing: {key} ({needed_by(key)}); give every figure, or put base =" in str(found.value)
    assert needed_by(key)


def test_every_key_that_a_file_may_have_says_what_it_is_for():
    assert [key for key in known_keys() if not needed_by(key)] == []
    assert needed_by("vector.op.exp.per_repeat.fp16") == "exp on the Vector unit"
    assert needed_by("buffers.nothing") == ""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ub = { value = 196608", "missing: buffers.ub (every tile of the Vector unit)"),
        ("cross_core_model", "missing: sync.cross_core_model_cycles (what passes between Cube and Vector cores)"),
        ("k_per_cycle", "missing: cube.k_per_cycle.fp16 (tl.dot of fp16), which dtypes.cube_inputs lists"),
        ("lanes =", "missing: vector.lanes.fp16 (every instruction of the Vector unit)"),
    ],
)  # fmt: skip
def test_a_copy_of_a_file_with_a_line_taken_out_ends_with_status_2(capsys, tmp_path, line, words):
    path = tmp_path / "mine.toml"
    path.write_text(without(line))
    status = status_of(["run", "matmul", "--case", "tiny", "--product", str(path)])
    said = capsys.readouterr()
    assert (status, said.out) == (2, "")
    assert words in re.sub(r"\s+", " ", said.err)
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("buffers.ubb=1", "unknown key 'buffers.ubb'; did you mean buffers.ub"),
        ("buffers.l1=0", "buffers.l1 must be greater than zero, got '0'"),
        ("clock.aicore_mhz=-1", "clock.aicore_mhz must not be negative, got '-1'"),
        ("memory.bandwidth_tb_per_s=nan", "memory.bandwidth_tb_per_s must be finite"),
        ("vector.op.exp.per_repeat.fp16=inf", "vector.op.exp.per_repeat.fp16 must be finite"),
        ("buffers.l0a=1000", "buffers.l0a must be a multiple of alignment.l0a = 512 bytes, got 1000"),
        ("cores.cube_cores=0", "cores.cube_cores must be greater than zero"),
    ],
)
def test_an_override_without_sense_ends_with_status_2(capsys, change, words):
    status = status_of(["run", "matmul", "--case", "tiny", "--set", change])
    said = capsys.readouterr()
    assert (status, said.out) == (2, "")
    assert words in re.sub(r"\s+", " ", said.err)
    assert "Traceback" not in said.err
