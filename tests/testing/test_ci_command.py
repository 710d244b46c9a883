"""What changed between two commits: the table, the exit status, and that nothing of a name is markup."""

from __future__ import annotations

import html
import json
import re
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascendtile.reports.terminal.console import as_text
from ascendtile.reports.testing.baseline.entry import BaselineEntry, difference
from ascendtile.reports.testing.baseline.file import write_baseline
from ascendtile.reports.testing.ci import commits
from ascendtile.reports.testing.ci.changes import FASTER, GONE, NEW, OTHER, SAME, SLOWER, compare_baselines
from ascendtile.reports.testing.ci.markdown import MOST_CHARACTERS, changes_markdown, escape
from ascendtile.reports.testing.ci.views import changes_json, changes_page
from ascendtile.simulator.errors import UsageError

FILE = "ascendtile-baseline.json"


@pytest.fixture(scope="module")
def entry(large):
    return BaselineEntry.of(large)


@pytest.fixture(scope="module")
def slower(small):
    return BaselineEntry.of(small)


@pytest.fixture(scope="module")
def changes(entry, slower):
    other = replace(entry, product="ascend310p")
    faulty = replace(entry, faults=("a.py:3: a race",))
    before = {
        "t.py::a": {"add": entry, "gone": entry, "same": entry},
        "t.py::b": {"x": entry, "y": slower, "z": entry},
    }
    after = {
        "t.py::a": {"add": slower, "new": entry, "same": entry},
        "t.py::b": {"x": other, "y": entry, "z": faulty},
    }
    return compare_baselines(before, after, names=("main", "here"))


def test_each_entry_is_told_by_what_became_of_it_regressions_first(changes):
    kinds = {(c.key, c.kind) for c in changes.changes}
    assert kinds == {
        ("add", SLOWER), ("gone", GONE), ("same", SAME), ("new", NEW), ("x", OTHER), ("y", FASTER), ("z", SAME)
    }  # fmt: skip
    assert [c.key for c in changes.regressions] == ["add", "z"] == [c.key for c in changes.changes[:2]]
    assert changes.summary.startswith(
        "7 kernels: 1 slower, 1 for another product or compiler, 1 faster, 1 new, 1 gone, 2 as"
    )
    assert "2 regressions (more than 5 % slower, or new faults)" in changes.summary


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_regression_is_more_than_what_is_allowed(entry, part, above):
    slow = replace(entry, cycles=entry.cycles * (1 + part))
    found = compare_baselines({"t": {"k": entry}}, {"t": {"k": slow}}, above)
    assert bool(found.regressions) == (slow.cycles / entry.cycles - 1 > above)


def test_a_new_kernel_with_faults_is_a_regression_and_an_old_fault_is_none(entry):
    faulty = replace(entry, faults=("a race",))
    assert compare_baselines({}, {"t": {"k": faulty}}).regressions
    assert not compare_baselines({"t": {"k": faulty}}, {"t": {"k": faulty}}).regressions
    at = [
        replace(entry, faults=(f"a.py:{line}: a race",) * count) for line, count in ((3, 1), (5, 1), (5, 2))
    ]
    assert not compare_baselines({"t": {"k": at[0]}}, {"t": {"k": at[1]}}).regressions  # its line moved
    assert compare_baselines({"t": {"k": at[1]}}, {"t": {"k": at[2]}}).changes[0].new_faults == (
        "a.py:5: a race",
    )
    with pytest.raises(UsageError, match="above is a part of 0 or more"):
        compare_baselines({}, {}, -0.1)


def test_the_page_and_the_json_have_the_figures_of_both(changes, entry, slower):
    page = as_text(changes_page(changes))
    assert max(map(len, page.splitlines())) <= 80
    assert f"{entry.cycles:,.0f}" in page
    assert f"{slower.cycles:,.0f}" in page
    assert "new fault: a.py:3: a race" in page
    assert "time by source line" in page
    data = json.loads(json.dumps(changes_json(changes), allow_nan=False))
    add = next(k for k in data["kernels"] if k["kernel"] == "add")
    assert (add["before"]["cycles"], add["after"]["cycles"]) == (entry.cycles, slower.cycles)
    assert add["difference"]["time_us"]["change"] == pytest.approx(slower.time_us - entry.time_us)
    assert data["regressions"] == 2


def test_a_long_name_of_a_test_hides_no_kernel(entry, slower):
    test = f"t.py::test_{'long_' * 9}[{'x' * 40}-ascend910b3]"
    found = compare_baselines({test: {"softmax_rows": entry}}, {test: {"softmax_rows": slower}})
    page = as_text(changes_page(found))
    table = page.partition("test and kernel")[2].partition("time by source line")[0]
    assert "softmax_rows" in table
    assert "ascend910b3" in table.replace("\n", "")
    assert max(map(len, page.splitlines())) <= 80


def test_changes_are_printed_as_their_summary(changes):
    assert str(changes) == changes.summary
    assert len(repr(changes)) < 100


def test_markdown_has_a_row_for_each_change_and_the_lines_of_regressions(changes, entry, slower):
    text = changes_markdown(changes)
    rows = [line for line in text.splitlines() if line.startswith("| <code>t.py")]
    assert len(rows) == 6  # all but the one that is the same
    assert f"| {round(entry.cycles)} | {round(slower.cycles)} |" in rows[0]
    assert text.count("<details>") == text.count("</details>") == 2
    assert "- new fault: <code>a.py:3: a race</code>" in text
    assert "ascend910b3 triton-ascend 9.0 before, ascend310p" in html.unescape(text)


HOSTILE = "|`*_[x](http://a)<script>@team #1 \\ & &lt;\n~~"


@given(st.text(st.sampled_from(HOSTILE), min_size=1) | st.text(max_size=20))
def test_no_name_is_markup_a_link_or_a_call(entry, name):
    safe = escape(name)
    assert html.unescape(safe) == name or any(
        ord(c) in html._invalid_codepoints or not c.isprintable() for c in name
    )
    assert not set(re.sub(r"&#\d+;", "", safe)) & set("|`*_[]<>@#\\&~!$")
    text = changes_markdown(compare_baselines({}, {name: {name: replace(entry, faults=(name,))}}))
    assert "<script" not in text
    (row,) = (line for line in text.splitlines() if line.startswith("| <code>"))
    assert row.count("|") == 9 + 1


def test_a_comment_is_never_longer_than_a_comment_may_be(entry, slower):
    names = [f"test_{'[' * 80}{n}" for n in range(200)]
    found = compare_baselines({n: {"k": entry} for n in names}, {n: {"k": slower} for n in names})
    text = changes_markdown(found)
    assert len(text) <= MOST_CHARACTERS + 100
    assert "and more regressions than a comment holds" in text
    assert re.search(r"and \d+ more that changed", text)


# ---- the command ----


@pytest.fixture
def repository(tmp_path, monkeypatch, entry, slower):
    """Two commits, `first` and `second`; the kernel is slower in the second."""
    monkeypatch.chdir(tmp_path)
    for name, value in {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}.items():
        monkeypatch.setenv(name, value)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "a")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "a@b")
    git("init", "-q", ".")
    for name, tests in (("first", {"t.py::a": {"add": entry}}), ("second", {"t.py::a": {"add": slower}})):
        write_baseline(tmp_path / FILE, tests)
        git("add", "-A")
        git("commit", "-qm", name)
        git("tag", name)
    return tmp_path


def git(*arguments):
    subprocess.run(["git", *arguments], check=True, capture_output=True)


def test_two_commits_are_compared_and_the_status_is_1_where_one_is_slower(repository, ascendtile):
    answer = ascendtile("ci", "--against", "first", "--of", "second", "--json")
    data = json.loads(answer.out)
    assert (answer.status, data["regressions"]) == (1, 1)
    assert re.fullmatch(r"first \([0-9a-f]{10}\)", data["before"])
    answer = ascendtile("ci", "--against", "second", "--of", "first")
    assert answer.status == 0
    assert "1 faster" in answer.out
    assert ascendtile("ci", "--against", "first", "--fail-above", "1000%").status == 0


def test_without_a_commit_the_working_tree_is_compared_with_the_last_one(repository, ascendtile, entry):
    answer = ascendtile("ci")
    assert (answer.status, "the working tree" in answer.out) == (0, True)
    write_baseline(repository / FILE, {"t.py::a": {"add": replace(entry, cycles=9e6)}})
    assert ascendtile("ci").status == 1
    folder = repository / "deep"
    folder.mkdir()
    assert ascendtile("ci", "--baseline", folder / ".." / FILE).status == 1


def test_in_a_commit_from_before_there_was_a_baseline_every_kernel_is_new(repository, ascendtile):
    git("checkout", "-q", "--orphan", "empty")
    git("rm", "-qf", FILE)
    git("commit", "-qm", "none", "--allow-empty")
    git("checkout", "-q", "second")
    answer = ascendtile("ci", "--against", "empty", "--markdown")
    assert answer.status == 0
    assert "every kernel is new" in answer.err
    assert "1 new" in answer.out


def test_what_cannot_be_compared_is_refused_with_status_2(repository, refused, tmp_path_factory, monkeypatch):
    assert "no commit 'nowhere' in the repository" in refused("ci", "--against", "nowhere")
    assert "no commit '--output=x'" in refused("ci", "--against=--output=x")
    assert "none.json: the working tree has no such file" in refused("ci", "--baseline", "none.json")
    for folder in (".", ""):
        assert f"--baseline {folder!r} is a folder" in refused("ci", "--baseline", folder)
    assert "forms of their own" in refused("ci", "--json", "--markdown")
    assert "which only --run starts" in refused("ci", "--", "-k", "x")
    for percent in ("x", "-1%", "nan"):
        assert "is no percentage of 0 or more" in refused("ci", f"--fail-above={percent}")
    (repository / FILE).write_text("{")
    assert "is damaged" in refused("ci")
    git("commit", "-qam", "damaged")
    assert f"{FILE} of HEAD (" in refused("ci", "--of", "HEAD", "--against", "HEAD")
    monkeypatch.setitem(sys.modules, "pytest", None)
    assert "pytest, which is not installed" in refused("ci", "--run")
    outside = tmp_path_factory.mktemp("outside")
    monkeypatch.chdir(outside)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(outside.parent))
    assert "not a git repository" in refused("ci")
    assert "does not exist" in refused("ci", "--baseline", outside / "no" / FILE)


def test_a_repository_without_commits_and_a_folder_without_the_file_say_so(
    repository, refused, tmp_path_factory, monkeypatch
):
    (repository / "deep").mkdir()
    monkeypatch.chdir(repository / "deep")
    assert f"has no such file in {repository / 'deep'}" in refused("ci")
    monkeypatch.chdir(tmp_path_factory.mktemp("new"))
    git("init", "-q", ".")
    assert "it has none yet; commit the baseline first" in refused("ci")


def test_a_run_of_no_tests_is_no_answer(repository, refused, monkeypatch):
    monkeypatch.setattr(commits, "_tested", lambda folder, name, arguments: commits.CommitFigures(name, {}))
    said = refused("ci", "--run")
    assert "in neither HEAD (" in said
    assert "there is nothing to compare" in said


def test_where_every_kernel_is_gone_nothing_was_measured_and_the_status_is_1(repository, ascendtile, refused):
    write_baseline(repository / FILE, {})
    answer = ascendtile("ci", "--json")
    assert (answer.status, json.loads(answer.out)["regressions"]) == (1, 0)
    assert "the working tree has none of these kernels: nothing was compared" in answer.err
    git("commit", "-qam", "none")
    said = refused("ci")
    assert f"{FILE} has no kernel, neither in HEAD (" in said
    assert "there is nothing to compare" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_stopped_leaves_no_checkout(repository, ascendtile, monkeypatch, number):
    outside = signal.signal(
        number, signal.default_int_handler
    )  # a run in the background is given no SIGINT or SIGHUP
    before, trees = signal.getsignal(number), []

    def stopped(folder, name, arguments):
        trees.append(folder)
        signal.raise_signal(number)

    monkeypatch.setattr(commits, "_tested", stopped)
    assert ascendtile("ci", "--run", "--of", "HEAD").status == 128 + signal.SIGINT
    assert (len(trees), trees[0].exists(), signal.getsignal(number)) == (1, False, before)
    listed = subprocess.run(["git", "worktree", "list"], check=True, capture_output=True, text=True).stdout
    assert len(listed.splitlines()) == 1
    signal.signal(number, outside)


def test_a_line_that_was_edited_is_one_line_and_others_are_not(entry):
    def moved(before, after):
        sides = (
            replace(entry, lines={f"a.py:{n}  {x}": 100.0 for n, x in enumerate(side, 3)})
            for side in (before, after)
        )
        return {
            p.name.partition("  ")[2] for p in difference(*sides).lines if None not in (p.first, p.second)
        }

    first, last = "x = tl.load(x_ptr + at)", "tl.store(y_ptr + at, x)"
    edited = "tl.store(y_ptr + at, tl.exp(x))"
    assert moved([first, last], [first, edited]) == {first, edited}
    assert moved([first, last], ["n = 3", first, edited]) == {first, edited}
    assert moved([first, last], [first, "return"]) == {first}
    assert moved([first, last], [last, first]) == {first, last}
    assert moved([last], [edited, last]) == {last}


def test_what_sums_leave_is_no_time(entry):
    whole = replace(entry, lines={"a.py:3  x": entry.cycles - 1e-7})
    slow = replace(whole, cycles=entry.cycles + 900, time_us=entry.time_us + 0.5)
    page = as_text(changes_page(compare_baselines({"t": {"k": whole}}, {"t": {"k": slow}}, 0.0)))
    assert re.search(r"handing out programs and idle cores +0\.00 +0\.500 +\+0\.500", page)


def test_the_example_is_written_once_and_never_over_something(tmp_path, ascendtile, refused):
    folder = tmp_path / "new"
    answer = ascendtile("ci", "--example", folder, "--json")
    assert answer.status == 0
    names = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert names == {".github/workflows/kernels.yml", FILE, "pytest.ini", "softmax.py", "test_softmax.py"}
    assert json.loads(answer.out) == {"written": sorted(str(folder / name) for name in names)}
    assert "is there, and not an empty folder" in refused("ci", "--example", folder)
    assert "not an empty folder" in refused("ci", "--example", folder / "softmax.py")
    assert "the name of the folder is empty" in refused("ci", "--example", "")
