"""No published way around a task passes, each is refused by its name, and no honest twin is refused."""

from __future__ import annotations

import pytest

from ascendtile.reports.judging.cheats import CATALOGUE
from ascendtile.reports.judging.cheats.static import static_cheats
from ascendtile.reports.judging.judge import TORCH_MODULES, judge
from ascendtile.reports.judging.processes import Pool

from .answers import TASKS, answer
from .pairs import PAIRS

HONEST = {answer(p.task, **p.honest): p for p in PAIRS}  # many pairs have the same twin
UNSEEN = ("below_floor",)  # which no answer reaches here: see test_judging.py


@pytest.fixture(scope="module")
def job():
    with Pool(slots=1, torch=True, modules=TORCH_MODULES) as pool, pool.job() as own:
        yield own


def judged(job, folder, task, text):
    (folder / "task.py").write_text(TASKS[task])
    (folder / "answer.py").write_text(text)
    return judge(folder / "task.py", folder / "answer.py", job=job)


def test_every_pattern_of_the_catalogue_has_a_pair():
    assert {p.name for p in PAIRS} == set(CATALOGUE) - set(UNSEEN)


@pytest.mark.extra("torch")
@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: f"{p.name}-{p.label}")
def test_a_cheat_is_refused_by_its_name(pair, job, tmp_path):
    found = judged(job, tmp_path, pair.task, answer(pair.task, **pair.cheat))
    assert (found.verdict, found.accepted) == ("cheat", False)
    assert pair.name in {c.name for c in found.cheats}, found.cheats


@pytest.mark.extra("torch")
@pytest.mark.parametrize("text", HONEST, ids=lambda t: f"{HONEST[t].name}-{HONEST[t].label}")
def test_an_honest_twin_is_correct(text, job, tmp_path):
    found = judged(job, tmp_path, HONEST[text].task, text)
    assert (found.verdict, found.cheats) == ("correct", ()), found.message


@pytest.mark.parametrize("text", HONEST, ids=lambda t: f"{HONEST[t].name}-{HONEST[t].label}")
def test_the_text_of_an_honest_twin_shows_nothing(text):
    assert static_cheats(text, "task") == ()
