"""Judgements from end to end: what the verdict is, that it is the same each time, and what is bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ascendtile
from ascendtile.reports.judging.judge import MODULES, TORCH_MODULES, judge
from ascendtile.reports.judging.processes import Limits, Pool
from ascendtile.reports.judging.verdict import Verdict
from ascendtile.simulator.errors import UsageError

TASK = """
import numpy as np

class Model:
    def forward(self, x, scale):
        return x * scale + 1

def get_inputs():
    return [np.random.rand(40, 50).astype(np.float32), 3.0]
"""
ANSWER = """
import numpy as np
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, scale, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * scale + 1, mask=at < n)

def scaled(x, scale):
    out = np.empty_like(x)
    kernel[(triton.cdiv(x.size, 1024),)](x, out, scale, x.size, BLOCK=1024)
    return out
"""
TORCH_TASK = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, 3)

    def forward(self, x):
        return torch.relu(self.linear(x)), x.sum()

def get_inputs():
    return [torch.rand(5, 16)]

def get_init_inputs():
    return [16]
"""
TORCH_ANSWER = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def linear(x, w, b, out, total, R: tl.constexpr, C: tl.constexpr, N: tl.constexpr):
    rows, cols = tl.arange(0, 8), tl.arange(0, C)
    a = tl.load(x + rows[:, None] * C + cols[None, :], mask=rows[:, None] < R, other=0.0)
    tl.store(total, tl.sum(tl.sum(a, 1), 0))
    for n in range(N):
        y = tl.sum(a * tl.load(w + n * C + cols)[None, :], 1) + tl.load(b + n)
        tl.store(out + rows * N + n, tl.maximum(y, 0.0), mask=rows < R)

class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, 3)

    def forward(self, x):
        w, b = self.linear.weight, self.linear.bias
        out, total = torch.empty(5, 3), torch.empty(())
        linear[(1,)](x, w, b, out, total, R=5, C=16, N=3)
        return out, total
"""
TASK_OF_ONE_INPUT = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return RIGHT

def get_inputs():
    return [torch.rand(300)]
"""
GROUPED = """
import json
import os
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_input_groups():
    with open(os.path.join(os.path.dirname(__file__), "3_Relu.json")) as f:
        cases = [json.loads(line) for line in f if line.strip()]
    return [[torch.randn(c["shape"], dtype=getattr(torch, c["dtype"]))] for c in cases]

def get_init_inputs():
    return []
"""
RELU = """
import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.maximum(tl.load(x_ptr + at, mask=at < n), 0.0), mask=at < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
        return out
"""


@pytest.fixture(scope="module")
def pool():
    with Pool(slots=1, waiting=0, modules=MODULES) as made:
        yield made


@pytest.fixture(scope="module")
def torch_pool():
    with Pool(slots=1, waiting=0, torch=True, modules=TORCH_MODULES) as made:
        yield made


def judged(pool: Pool, folder: Path, task: str, answer: str, **options) -> Verdict:
    (folder / "task.py").write_text(task)
    (folder / "answer.py").write_text(answer)
    with pool.job() as job:
        return judge(folder / "task.py", folder / "answer.py", job=job, **options)


def test_a_right_answer_over_numpy_is_correct_with_time_errors_and_fit(pool, tmp_path):
    found = judged(pool, tmp_path, TASK, ANSWER)
    assert (found.verdict, found.compiled, found.correctness, found.message) == ("correct", True, True, "")
    (output,) = found.outputs
    assert (output.shape, output.elements, output.checked, output.passed) == ((40, 50), 2000, 2000, True)
    assert 0 < output.max_ulp <= 1
    assert found.runtime == found.time_us / 1e3 == found.runtime_stats["mean"]
    assert found.ub.fits
    assert found.line.text.startswith("tl.store(out_ptr")
    assert [x.count for x in found.launches] == [1]
    assert found.metadata["correctness_trials"] == "(2 / 2)"


def test_the_same_judgement_is_the_same_text(pool, tmp_path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    texts = {json.dumps(judged(pool, f, TASK, ANSWER, seed=5).to_json()) for f in (tmp_path, other, tmp_path)}
    assert len(texts) == 1
    assert str(tmp_path) not in texts.pop()


@pytest.mark.parametrize(
    ("change", "verdict", "said"),
    [
        (("* scale", "+ scale"), "wrong", "output 0: "),
        (("BLOCK=1024", "BLOCK=131072"), "does_not_fit", "ub overflow"),
        (("tl.program_id", "tl.programs"), "not_compiled", "no builtin 'programs'"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_is_not_right_says_why(pool, tmp_path, change, verdict, said):
    found = judged(pool, tmp_path, TASK, ANSWER.replace(*change))
    assert (found.verdict, found.correctness, found.accepted) == (verdict, False, False)
    assert said in found.message
    assert found.compiled is (verdict == "wrong")


def test_an_overflow_gives_both_numbers_of_bits(pool, tmp_path):
    ub = judged(pool, tmp_path, TASK, ANSWER.replace("BLOCK=1024", "BLOCK=131072")).ub
    assert not ub.fits
    assert f"requires {ub.bits} bits while {ub.available_bits} bits available" in ub.message


def test_an_answer_without_an_entry_starts_no_process(tmp_path):
    (tmp_path / "task.py").write_text(TASK)
    (tmp_path / "answer.py").write_text("import os\nos.abort()\n")
    found = ascendtile.judge(tmp_path / "task.py", tmp_path / "answer.py")
    assert (found.verdict, found.metadata["compilation_error_name"]) == ("not_compiled", "EntryNotFound")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": -1}, "seed"),
        ({"seed": True}, "seed"),
        ({"full": True, "values": False}, "full"),
        ({"product": "ascend999"}, "ascend999"),
        ({"compiler": "gcc"}, "gcc"),
        ({"overrides": {"buffers.nothing": 1}}, "buffers.nothing"),
    ],
    ids=str,
)
def test_wrong_options_are_refused_before_anything_runs(tmp_path, options, said):
    (tmp_path / "task.py").write_text(TASK)
    (tmp_path / "answer.py").write_text(ANSWER)
    with pytest.raises(UsageError, match=said):
        ascendtile.judge(tmp_path / "task.py", tmp_path / "answer.py", **options)


# ---- torch ----


@pytest.mark.extra("torch")
def test_weights_of_equal_names_are_the_tasks_and_every_output_is_compared(torch_pool, tmp_path):
    found = judged(torch_pool, tmp_path, TORCH_TASK, TORCH_ANSWER)
    assert found.verdict == "correct", found.message
    assert [x.name for x in found.outputs] == ["output 0", "output 1"]
    assert found.reference.time_us / found.time_us == found.speedup
    assert 0 < found.floor_us <= found.time_us
    assert (
        judged(torch_pool, tmp_path, TORCH_TASK, TORCH_ANSWER.replace("+ tl.load(b", "- tl.load(b")).verdict
        == "wrong"
    )


@pytest.mark.extra("torch")
def test_time_alone_takes_no_memory_and_judges_no_values(torch_pool, tmp_path):
    task = (
        GROUPED[: GROUPED.index("def get_input_groups")]
        + "def get_inputs(): return [torch.rand(2**14, 2**14)]\n"
    )
    answer = RELU.replace("256", "16384")
    found = judged(torch_pool, tmp_path, task, answer, values=False, limits=Limits(memory_bytes=1 << 29))
    assert (found.verdict, found.correctness, found.outputs) == ("timed", None, ())
    assert found.time_us > found.floor_us > 900  # 2 GB through memory


@pytest.mark.extra("torch")
def test_cases_of_json_lines_beside_the_task_are_judged_one_by_one(torch_pool, tmp_path):
    rows = [
        {"shape": [], "dtype": "float16"},
        {"shape": [3, 7], "dtype": "float32"},
        {"shape": [300], "dtype": "bfloat16"},
    ]
    (tmp_path / "3_Relu.json").write_text("\n".join(map(json.dumps, rows)))
    found = judged(torch_pool, tmp_path, GROUPED, RELU)
    assert [x.verdict for x in found.cases] == ["correct"] * 3
    assert [x.inputs for x in found.cases] == ["float16[]", "float32[3, 7]", "bfloat16[300]"]
    assert found.time_us == pytest.approx(sum(x.time_us for x in found.cases))
    assert "AscendOpGenAgent" in found.outputs[0].tolerance.source
    broken = judged(
        torch_pool, tmp_path, GROUPED, RELU.replace("cdiv(x.numel(), 256)", "cdiv(x.numel(), 512)")
    )
    assert [x.verdict == "correct" for x in broken.cases] == [True, True, False]
    assert broken.verdict != "correct"


@pytest.mark.extra("torch")
@pytest.mark.parametrize(
    ("task", "said"),
    [
        (GROUPED.replace("3_Relu.json", "4_Relu.json"), "No such file or directory: '4_Relu.json'"),
        (TORCH_TASK.replace("return [16]", "return 16"), "get_init_inputs gives a int"),
        (TORCH_TASK.replace("[torch.rand(5, 16)]", "torch.rand(5, 16)"), "get_inputs gives a Tensor"),
        (f"{TORCH_TASK}\n1/0", "the module of the task raised ZeroDivisionError"),
        (f"{TORCH_TASK}\nraise SystemExit(3)", "the module of the task raised SystemExit: 3"),
    ],
    ids=["file", "init", "inputs", "module", "exit"],
)
def test_a_task_that_does_not_run_is_bad_input_and_no_verdict(torch_pool, tmp_path, task, said):
    with pytest.raises(UsageError, match=said):
        judged(torch_pool, tmp_path, task, TORCH_ANSWER)


@pytest.mark.exhaustive  # a second of waiting
def test_a_task_that_does_not_end_is_bad_input(pool, tmp_path):
    with pytest.raises(UsageError, match=r"the task task\.py took more than 1 s of processor time"):
        judged(pool, tmp_path, f"{TASK}\nwhile True: pass\n", ANSWER, limits=Limits(cpu_s=1.0, wall_s=60.0))


@pytest.mark.extra("torch")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("torch.relu", "torch.relo"), "task.py:11: forward of the task raised AttributeError"),
        (("torch.rand(5, 16)", "torch.linalg.cholesky(-torch.eye(16))[:5]"), "get_inputs of the task raised"),
    ],
    ids=["forward", "values of inputs"],
)
def test_without_a_reference_the_time_is_told_and_the_verdict_deferred(torch_pool, tmp_path, change, said):
    found = judged(torch_pool, tmp_path, TORCH_TASK.replace(*change), TORCH_ANSWER)
    assert (found.verdict, found.correctness) == ("deferred", None)
    assert said in found.message
    assert found.time_us > 0


@pytest.mark.parametrize("values", [True, False])
@pytest.mark.parametrize("in_place", [True, False])
def test_an_input_over_numpy_is_returned_where_the_model_returns_one(pool, tmp_path, in_place, values):
    """Without values it is not known whether it does, and nobody is accused."""
    task = TASK.replace(
        "return x * scale + 1",
        "x[...] = x * scale + 1\n        return x" if in_place else "return x * scale + 1",
    )
    answer = ANSWER.replace("np.empty_like(x)", "x")
    found = judged(pool, tmp_path, task, answer, values=values, trials=False)
    honest = in_place or not values
    assert ("returned_input" in {c.name for c in found.cheats}) != honest
    assert found.verdict == (("correct" if values else "timed") if honest else "cheat")


@pytest.mark.extra("torch")
@pytest.mark.parametrize("values", [True, False])
def test_an_answer_that_reads_a_number_it_is_given_is_not_blamed_for_zeros(torch_pool, tmp_path, values):
    task = TASK_OF_ONE_INPUT.replace("forward(self, x)", "forward(self, x, n)").replace(
        "[torch.rand(300)]", "[torch.rand(300), torch.tensor(3)]"
    )
    answer = RELU.replace("forward(self, x)", "forward(self, x, n)").replace("256)", "768 // n.item())")
    found = judged(
        torch_pool, tmp_path, task.replace("RIGHT", "torch.relu(x)"), answer, values=values, trials=False
    )
    assert (found.verdict, found.cheats) == ("correct" if values else "deferred", ())
    assert values or "zeros where only the time is asked" in found.suggestion


@pytest.mark.parametrize(
    ("change", "verdict"),
    [(("empty_like(x)", "empty(x.size, np.float32)"), "correct"), (("+ 1, mask", "+ 2, mask"), "wrong")],
    ids=["values", "others"],
)
def test_akgs_check_looks_at_elements_alone_and_what_differs_is_told(pool, tmp_path, change, verdict):
    answer = ANSWER.replace("def scaled", "def scaled_triton_torch").replace(*change)
    found = judged(pool, tmp_path, TASK, answer, trials=False)
    assert (found.verdict, found.cheats) == (verdict, ())
    if verdict == "correct":
        assert (
            found.message == "output 0 has shape [2000], the task's has [40, 50]: AKG compares elements alone"
        )
        assert found.message == found.outputs[0].message
    plain = answer.replace("_triton_torch", "")
    assert judged(pool, tmp_path, TASK, plain, trials=False).verdict == "wrong"


@pytest.mark.extra("torch")
def test_no_narrow_output_that_passes_is_below_the_floor_of_a_wide_one(torch_pool, tmp_path):
    task = TASK_OF_ONE_INPUT.replace("RIGHT", "x.float()").replace(
        "torch.rand(300)", "torch.randint(-128, 127, (1 << 20,), dtype=torch.int8)"
    )
    answer = RELU.replace(
        "tl.maximum(tl.load(x_ptr + at, mask=at < n), 0.0)", "tl.load(x_ptr + at, mask=at < n)"
    )
    answer = answer.replace("256", "16384").replace("class ModelNew", "class Copying")
    answer += "\ndef copied_triton_torch(x):\n    return Copying().forward(x)\n"
    found = judged(torch_pool, tmp_path, task, answer, values=False, trials=False)
    wide = judged(
        torch_pool,
        tmp_path,
        task,
        answer.replace("empty_like(x)", "empty_like(x, dtype=torch.float32)"),
        values=False,
        trials=False,
    )
    assert (found.verdict, wide.verdict) == ("timed", "timed")
    assert found.floor_us < found.time_us < wide.time_us
    assert found.floor_us < wide.floor_us


@pytest.mark.extra("torch")
@pytest.mark.parametrize("right", ["torch.full_like(x, 2.0)", "torch.full((300,), 2.0, device='npu')"])
def test_a_constant_is_the_answer_to_a_task_that_reads_no_input(torch_pool, tmp_path, right):
    task = TASK_OF_ONE_INPUT.replace("RIGHT", right)
    answer = RELU.replace(
        "tl.maximum(tl.load(x_ptr + at, mask=at < n), 0.0)", "tl.full((BLOCK,), 2.0, tl.float32)"
    )
    found = judged(torch_pool, tmp_path, task, answer, trials=False)
    assert found.outputs[0].passed
    assert (found.verdict, found.cheats) == ("correct", ())


@pytest.mark.extra("torch")
def test_a_task_may_name_the_device(torch_pool, tmp_path):
    task = TORCH_TASK.replace("torch.rand(5, 16)", "torch.rand(5, 16).npu()").replace(
        "import torch\n", "import torch, torch_npu\n", 1
    )
    assert judged(torch_pool, tmp_path, task, TORCH_ANSWER).verdict == "correct"


@pytest.mark.extra("torch")
@pytest.mark.parametrize(
    ("change", "verdict", "said"),
    [
        (("        w, b =", "        raise ValueError('no')\n        w, b ="), "failed", "ValueError: no"),
        (("        w, b =", "        while True: pass\n        w, b ="), "failed", "2 s of processor time"),
        (("import torch\n", "import torch\nimport no_such\n"), "not_compiled", "no_such"),
        (("return out, total", "return out"), "wrong", "1 outputs were returned, the task's Model gives 2"),
        (
            ("return out, total", "return out.half(), total"),
            "wrong",
            "output 0 is float16, the task's is float32",
        ),
        (("return out, total", "return out[:4], total"), "wrong", "shape [4, 3], the task's has [5, 3]"),
        (("return out, total", "return out, 1.0"), "wrong", "output 1 is a float, the task's is a tensor"),
    ],
    ids=["raises", "hangs", "import", "fewer", "dtype", "shape", "number"],
)
def test_what_an_answer_does_wrong_is_its_verdict(torch_pool, tmp_path, change, verdict, said):
    limits = Limits(cpu_s=2.0, wall_s=60.0)
    found = judged(torch_pool, tmp_path, TORCH_TASK, TORCH_ANSWER.replace(*change), limits=limits)
    assert found.verdict == verdict, found.message
    assert said in found.message
