"""What the skill tells agents holds: fields and verdicts that there are, tools by their names, a head that clients read."""

import json
import re
from dataclasses import fields

import pytest

from ascendtile.reports.judging import verdict
from ascendtile.reports.judging.cheats.catalogue import CATALOGUE
from ascendtile.reports.judging.verdict import Verdict
from ascendtile.reports.serving.instructions import INSTRUCTIONS, skill
from ascendtile.reports.serving.tools.catalogue import TOOLS
from ascendtile.reports.serving.tools.library import pages

# Of KernelBench, which says what they are; what is said of them holds for every reader of its results.
ELSEWHERE = {
    "compiled",
    "correctness",
    "metadata",
    "runtime",
    "runtime_stats",
    "ref_runtime",
    "ref_runtime_stats",
}
PLAIN = {"schema", "product", "cycles", "launches", "cases"}  # say themselves what they are


@pytest.fixture(scope="module")
def text():
    return skill()


def test_the_head_is_what_clients_of_skills_read(text):
    head = re.match(r"---\nname: ([a-z0-9-]{1,64})\ndescription: (.{50,1024})\n---\n", text)
    assert head
    assert "<" not in head[2]


def test_every_verdict_has_its_row_and_there_are_no_others(text):
    rows = re.findall(r"^\| `(\w+)` \|", text, re.M)
    assert sorted(rows) == sorted(verdict.VERDICTS)


def test_every_field_that_is_ours_is_explained_and_each_that_is_named_is_there(text):
    names = {f.name for f in fields(Verdict)} - ELSEWHERE - PLAIN
    quoted = set(re.findall(r"`(\w+)`", text))
    assert names <= quoted | {"verdict"}


def test_every_cheat_is_named_by_its_name(text):
    section = text.partition("## What counts as a cheat")[2].partition("\n## ")[0]
    named = set(re.findall(r"`([a-z]+_[a-z]+)`", section))
    assert named == CATALOGUE.keys()
    assert all(p.instead in pages()["cheats"] for p in CATALOGUE.values())


def test_every_tool_is_named_here_and_in_what_an_agent_is_told_first(text):
    assert all(f"`{name}`" in text for name in TOOLS)
    assert "judge" in INSTRUCTIONS
    page = re.search(r"page (\S+\.md)", INSTRUCTIONS)[1]
    assert pages()[page] == text


def test_it_is_short_enough_to_be_read_before_each_task(text):
    assert len(text) < 12_000
    assert json.dumps(text)
