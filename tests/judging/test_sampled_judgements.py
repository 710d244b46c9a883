"""Verdicts on tasks too large to be computed whole: some positions of the output decide, drawn after the answer is fixed."""

import numpy as np
import pytest

from ascendtile.reports.judging.judge import TORCH_MODULES, judge
from ascendtile.reports.judging.processes import Pool

pytestmark = pytest.mark.extra("torch")

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, scale):
        return torch.relu(x - scale).T

def get_inputs():
    return [torch.rand(3000, 4099) * 2, 0.5]
"""
ANSWER = """
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, scale, n, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    for tile in range(tl.program_id(0), tl.cdiv(n, BLOCK), PROGRAMS):
        at = tile * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n)
        tl.store(out_ptr + at, VALUE, mask=at < LAST)

class ModelNew(torch.nn.Module):
    def forward(self, x, scale):
        out = torch.empty_like(x)
        kernel[(40,)](x, out, scale, x.numel(), BLOCK=4096, PROGRAMS=40)
        return out.T
"""
# One program that hands a number on, from tile to tile: no part of it can be computed alone.
ONE_AFTER_ANOTHER = (
    ANSWER.replace("    for tile", "    carry = 0.0\n    for tile")
    .replace("VALUE, mask=at < LAST)", "VALUE + carry, mask=at < LAST)\n        carry = carry * 0.5")
    .replace("(40,)", "(1,)")
    .replace("BLOCK=4096, PROGRAMS=40", "BLOCK=1024, PROGRAMS=1")
)
RIGHT = "tl.maximum(x - scale, 0.0)"


@pytest.fixture(scope="module")
def job():
    with Pool(slots=1, waiting=0, torch=True, modules=TORCH_MODULES) as pool, pool.job() as own:
        yield own


@pytest.fixture
def verdict(tmp_path, job):
    def of(answer, value=RIGHT, last="n"):
        (tmp_path / "task.py").write_text(TASK)
        (tmp_path / "answer.py").write_text(answer.replace("VALUE", value).replace("LAST", last))
        return judge(tmp_path / "task.py", tmp_path / "answer.py", job=job)

    return of


def test_a_right_answer_is_correct_so_far_and_the_same_each_time(verdict):
    found = verdict(ANSWER)
    (output,) = found.outputs
    assert (found.verdict, output.elements) == ("correct_so_far", 3000 * 4099)
    assert 1000 < output.checked < output.elements
    assert found.time_us > 0
    assert found.to_json() == verdict(ANSWER).to_json()


@pytest.mark.parametrize(
    ("value", "last"),
    [
        ("tl.where(at % 64 == 3, 0.0, tl.maximum(x - scale, 0.0))", "n"),  # an element of 64
        ("tl.maximum(x - scale, 0.0) + tl.where(tile % 25 == 3, 1.0, 0.0)", "n"),  # a tile of 25
        (RIGHT, "n - n % BLOCK"),  # all but the masked tail
    ],
)
def test_an_answer_that_is_wrong_in_parts_is_found(verdict, value, last):
    found = verdict(ANSWER, value, last)
    assert found.verdict == "wrong"
    assert not found.outputs[0].passed
    assert ("no kernel writes" in found.message) == (last != "n")


def test_another_shape_and_dtype_pass_where_the_benchmark_looks_at_elements(tmp_path, job):
    answer = ANSWER.replace("VALUE", RIGHT).replace("LAST", "n").replace("class ModelNew", "class Model")
    answer += "\ndef relu_triton_torch(x, scale):\n    return Model()(x, scale).reshape(-1)\n"
    (tmp_path / "task.py").write_text(TASK)
    (tmp_path / "answer.py").write_text(answer)
    found = judge(tmp_path / "task.py", tmp_path / "answer.py", job=job, trials=False)
    assert found.verdict == "correct_so_far"
    assert "has shape [12297000], the task's has [4099, 3000]: AKG compares elements alone" in found.message
    (tmp_path / "answer.py").write_text(answer.replace("_triton_torch", ""))
    assert judge(tmp_path / "task.py", tmp_path / "answer.py", job=job, trials=False).verdict == "wrong"


def test_an_answer_without_parts_is_deferred_with_both_figures(verdict):
    found = verdict(ONE_AFTER_ANOTHER)
    assert found.verdict == "deferred"
    assert "sampled values may take 0.2 s" in found.cases[0].message


# ---- what the task's Model does with its inputs is no cheat of an answer, also where values are not looked at whole ----

IN_PLACE_TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x.mul_(2), x.T

def get_inputs():
    return [torch.rand(3000, 4099)]
"""
IN_PLACE = (
    ANSWER.replace("forward(self, x, scale)", "forward(self, x)")
    .replace("out = torch.empty_like(x)", "out, scale = x, 2.0")
    .replace("return out.T", "return x, x.T")
    .replace("VALUE", "x * scale")
    .replace("LAST", "n")
)


@pytest.mark.parametrize("values", [True, False])
@pytest.mark.parametrize("in_place", [True, False])
def test_an_input_is_returned_where_the_model_returns_one(tmp_path, job, in_place, values):
    task = IN_PLACE_TASK if in_place else IN_PLACE_TASK.replace("x.mul_(2), x.T", "x * 2, x.T * 2")
    (tmp_path / "task.py").write_text(task)
    (tmp_path / "answer.py").write_text(IN_PLACE)
    found = judge(tmp_path / "task.py", tmp_path / "answer.py", values=values, job=job)
    names = {c.name for c in found.cheats}
    assert ("returned_input" in names) != in_place
    assert found.verdict == ("cheat" if not in_place else "correct_so_far" if values else "timed")


# ---- positions that the answer's process gives ----


def test_values_must_be_at_the_drawn_positions():
    from ascendtile.reports.judging.sampling.of_task import required
    from ascendtile.reports.judging.sampling.refusals import NotSampledError

    drawn = np.array([0, 999, 17, 400, 5, 800])
    assert required(np.array([0, 17, 18, 400, 999]), drawn) == ""
    assert "4 of 6 drawn" in required(np.array([0, 5, 6, 400, 999]), drawn)
    assert required(np.array([0, 1]), np.array([0, 1])) == ""
    for elsewhere in (np.arange(1000, 3000), np.array([0, 17, 999])):
        with pytest.raises(NotSampledError, match="of 6 drawn positions, at least 4 are asked for"):
            required(elsewhere, drawn)
