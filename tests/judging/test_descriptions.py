"""What a task is like is found once for all answers where it hangs on the task alone, and for each seed where it may not."""

import subprocess
import sys
from pathlib import Path

import pytest

from ascendtile.reports.judging.descriptions import description
from ascendtile.reports.judging.processes import Limits, Pool
from ascendtile.reports.judging.processes.pool import MOST_KEPT, MOST_LETTERS
from ascendtile.reports.judging.tasks.describing import described
from ascendtile.reports.judging.tasks.files import TaskFile

MODEL = """
class Model:
    def forward(self, x, *others):
        return x
"""
DRAWS = """
import numpy as np

def get_inputs():
    return [np.zeros(np.random.randint(2, 1000))]
"""
DRAWS_NOTHING = """
import numpy as np

def get_inputs():
    return [np.ones((4, 5)), 3.0]
"""
LOOKS = """
import numpy as np

def get_inputs():
    return [np.zeros(int(np.random.get_state()[1][0]) % 1000)]
"""

# Run in a process of its own: it imports torch, whose compiler must not come with it, and must still work if it does.
WITHOUT_COMPILER = """
import sys
import torch
from ascendtile.reports.judging import warmed_torch

x = torch.empty(4, 4, device="meta")
for f in (torch.relu, torch.exp, lambda x: torch.softmax(x, 0), lambda x: x @ x, lambda x: x.add(1), lambda x: x.le(0)):
    assert f(x).shape == (4, 4)
torch.nn.Conv2d(3, 4, 3, device="meta")(torch.empty(1, 3, 9, 9, device="meta"))
assert not [n for n in sys.modules if n.startswith("torch._dynamo")]

assert torch.compile(torch.sin, backend="eager")(torch.zeros(3)).tolist() == [0, 0, 0]
assert "torch._dynamo" in sys.modules
assert torch.relu(x).shape == (4, 4)
"""


def request(text, seed=1):
    return {"name": "task.py", "text": MODEL + text, "companions": {}, "seed": seed}


def task_of(text, **companions):
    return TaskFile(Path("task.py"), text, grouped=False, needs_torch=False, companions=companions)


class Described:
    """A stand-in for the process of a task: counts how often it is asked."""

    def __init__(self, seeded=False, letters=0):
        self.count, self.seeded, self.letters = 0, seeded, letters

    def __call__(self):
        self.count += 1
        return {"seeded": self.seeded, "cases": ["x" * self.letters], "of": self.count}


@pytest.fixture
def job():
    with Pool(slots=1) as pool, pool.job() as made:  # starts no process before a call
        yield made


@pytest.mark.parametrize(("text", "seeded"), [(DRAWS, True), (DRAWS_NOTHING, False), (LOOKS, True)])
def test_a_task_hangs_on_its_seed_where_it_draws_numbers_or_may_look_at_them(text, seeded):
    assert described(request(text), {})[0]["seeded"] is seeded


def test_what_is_not_seeded_is_the_same_for_every_seed():
    one, other = (described(request(DRAWS_NOTHING, seed), {})[0] for seed in (1, 2))
    assert one == other
    one, other = (described(request(DRAWS, seed), {})[0] for seed in (1, 2))
    assert one != other


def test_a_task_is_described_once_for_all_seeds_if_it_hangs_on_none(job):
    describe = Described()
    found = [description(job, task_of("a"), Limits(), seed, describe) for seed in (1, 2, 3)]
    assert describe.count == 1
    assert found == [found[0]] * 3


def test_a_seeded_task_is_described_once_for_each_seed(job):
    describe = Described(seeded=True)
    found = [description(job, task_of("a"), Limits(), seed, describe)["of"] for seed in (1, 2, 1, 2)]
    assert found == [1, 2, 1, 2]


def test_another_text_file_or_limit_is_described_anew(job):
    describe = Described()
    asked = [
        (task_of("a"), Limits()),
        (task_of("b"), Limits()),
        (task_of("a", **{"a.json": "[]"}), Limits()),
        (task_of("a", **{"a.json": "[1]"}), Limits()),
        (task_of("a"), Limits(cpu_s=1)),
    ]
    for _ in range(2):
        assert [description(job, task, limits, 0, describe)["of"] for task, limits in asked] == [
            1, 2, 3, 4, 5
        ]  # fmt: skip


def test_what_is_kept_is_bounded_and_nobody_changes_it(job):
    long = Described(letters=MOST_LETTERS)
    for _ in range(2):
        description(job, task_of("long"), Limits(), 0, long)
    assert long.count == 2
    describe = Described()
    description(job, task_of("first"), Limits(), 0, describe)["cases"].clear()
    assert description(job, task_of("first"), Limits(), 0, describe)["cases"] == [""]
    for k in range(MOST_KEPT):
        description(job, task_of(str(k)), Limits(), 0, describe)
    assert len(job.pool.kept) == MOST_KEPT
    assert job.recalled("no such key") is None


@pytest.mark.extra("torch")
def test_operations_without_values_need_no_compiler_of_torch_which_works_where_it_comes_later():
    done = subprocess.run([sys.executable, "-c", WITHOUT_COMPILER], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
