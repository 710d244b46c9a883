"""Files of tasks and answers: what they are read as, and what is said of those that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from ascendtile.reports.judging.tasks.files import AnswerError, read_answer, read_task, seed_of
from ascendtile.reports.judging.tasks.loading import as_list
from ascendtile.simulator.errors import UsageError

TASK = """
import numpy as np
class Model:
    def forward(self, x):
        return x + 1
def get_inputs():
    return [np.ones(4, np.float32)]
"""
KERNEL = """
import triton
@triton.jit
def kernel(x): pass
@triton.autotune(configs=[], key=[])
@triton.jit
def tuned(x): pass
"""


def written(folder: Path, text: str, name: str = "task.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def answer(folder: Path, text: str, task: str = TASK):
    return read_answer(written(folder, text, "answer.py"), read_task(written(folder, task)))


def test_a_task_over_numpy_needs_no_torch(tmp_path):
    task = read_task(written(tmp_path, TASK))
    assert (task.grouped, task.needs_torch) == (False, False)
    assert read_task(written(tmp_path, f"import torch.nn as nn\n{TASK}")).needs_torch


def test_cases_and_modules_beside_a_task_come_with_it_and_nothing_else(tmp_path):
    for name in ("7_Relu.json", "named.jsonl", "other.json", "helper.py", "more.py"):
        written(tmp_path, "{}", name)
    text = f"{TASK}\nimport helper\ndef get_input_groups():\n    return open('named.jsonl')\n"
    task = read_task(written(tmp_path, text, "7_Relu.py"))
    assert task.grouped
    assert set(task.companions) == {"7_Relu.json", "named.jsonl", "helper.py"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def get_inputs(): pass", "lacks Model"),
        ("class Model: pass", "lacks get_inputs"),
        ("x = 1", "lacks Model and get_inputs"),
        ("class Model(:", "task.py:1: the task is no Python"),
    ],
)
def test_what_a_task_lacks_is_said(tmp_path, text, said):
    with pytest.raises(UsageError, match=said):
        read_task(written(tmp_path, text))


DEEP = [
    "x = " + "(" * 5000 + "1" + ")" * 5000,
    "x = " + "-" * 2000 + "1",
    "x = a" + ".b" * 600,
    "x = a" + " + 1" * 600,
    "@a" + ".b" * 600 + "\ndef f(x): pass",
    "if a: pass\n" + "elif a: pass\n" * 600,
]


@pytest.mark.parametrize("text", DEEP)
def test_what_is_nested_too_deep_to_be_looked_through_is_refused(tmp_path, text):
    with pytest.raises(UsageError, match=r"task.py:\d+: the task is no Python"):
        read_task(written(tmp_path, f"{TASK}\n{text}\n"))
    with pytest.raises(AnswerError) as error:
        answer(tmp_path, f"def f(x): pass\n{text}\n")
    assert error.value.kind == "SyntaxError"


def test_no_file_a_folder_and_bytes_are_bad_input(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        read_task(tmp_path / "none.py")
    with pytest.raises(UsageError, match="folder"):
        read_task(tmp_path)
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="UTF-8"):
        read_task(tmp_path / "bytes.py")


@pytest.mark.parametrize(
    ("text", "entry", "is_class"),
    [
        ("class ModelNew:\n    pass\ndef f_triton_torch(x): pass", "ModelNew", True),
        ("def f_triton_torch(x): pass\ndef main(x): pass", "f_triton_torch", False),
        ("def first(x): pass\ndef second(x, y): pass\ndef _hidden(x): pass", "second", False),
        (f"def host(x): pass\n{KERNEL}", "host", False),
        ("def f(x): pass\ndef get_inputs(): pass\ndef show(): pass", "f", False),
    ],
)
def test_the_entry_is_model_new_else_that_of_akg_else_the_last_function(tmp_path, text, entry, is_class):
    found = answer(tmp_path, text)
    assert (found.entry, found.is_class, found.of_akg) == (entry, is_class, entry.endswith("_triton_torch"))


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        (KERNEL, "EntryNotFound", "ModelNew"),
        ("def f(x:\n  pass", "SyntaxError", "answer.py:1"),
        ("x = 1\n\ty = 2", "SyntaxError", "answer.py:2"),
        ("x = '\0'", "SyntaxError", "null bytes"),
    ],
)
def test_what_is_no_answer_is_an_error_of_the_answer(tmp_path, text, kind, said):
    with pytest.raises(AnswerError, match=said) as error:
        answer(tmp_path, text)
    assert error.value.kind == kind


def test_a_syntax_error_has_its_caret_below_its_place(tmp_path):
    with pytest.raises(AnswerError) as error:
        answer(tmp_path, "def forward(self, x y):\n    pass")
    _, line, caret = str(error.value).splitlines()
    assert line[caret.index("^")] in "xy"


def test_an_answer_gets_its_own_modules_never_the_task(tmp_path):
    written(tmp_path, "import deeper", "mine.py")
    written(tmp_path, "", "deeper.py")
    written(tmp_path, TASK, "copy_of_task.py")
    found = answer(tmp_path, "import mine, task, copy_of_task, numpy\ndef f(x): pass")
    assert set(found.siblings) == {"mine", "deeper"}


def test_the_seed_depends_on_both_texts_and_on_the_number_that_is_given(tmp_path):
    task = read_task(written(tmp_path, TASK))
    a, b = answer(tmp_path, "def f(x): pass"), answer(tmp_path, "def f(x): return x")
    seeds = {seed_of(task, a, None), seed_of(task, b, None), seed_of(task, a, 0), seed_of(task, a, 1)}
    assert len(seeds) == 4
    assert all(0 <= s < 2**63 for s in seeds)
    assert seed_of(task, a, 1) == seed_of(task, a, 1)


def test_outputs_of_a_dict_are_compared_by_their_keys_in_whatever_order_they_come():
    assert as_list({"b": [1, 2], "a": 3}) == as_list({"a": 3, "b": [1, 2]}) == [3, 1, 2]
