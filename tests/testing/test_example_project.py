"""The example folder as a user takes it: outside of the checkout, with pytest, git and a shell as programs of their own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ascendtile.reports.testing.ci.example_project import write_example

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / ".github/actions/ascendtile/action.yml"
EXAMPLE = ROOT / "reports/testing/example"
FILE = "ascendtile-baseline.json"
REGRESSION = ("ROWS = 8", "ROWS = 2")  # smaller blocks: more of them


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A repository of its own with the example as its only commit, whose tag is `first`."""
    folder = tmp_path_factory.mktemp("project")
    write_example(folder)
    shell(folder, "git init -q . && git add -A && git commit -qm one && git tag first")
    return folder


@pytest.fixture(autouse=True)
def _as_committed(project):
    yield
    shell(project, "git checkout -q -f first && git clean -qfdx")


def shell(folder, command, status=0, **environment):
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
        cwd=folder,
        env={**outside(), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def outside():
    """As in a shell of a user: nothing of this run of pytest, of the checkout, or of a user's git."""
    kept = {n: x for n, x in os.environ.items() if not n.startswith(("PYTEST", "PYTHON", "COV_", "GIT_"))}
    who = {f"GIT_{w}_{n}": "a@b" for w in ("AUTHOR", "COMMITTER") for n in ("NAME", "EMAIL")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**kept, **who, "PATH": path, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}


def make_slower(project):
    path = project / "softmax.py"
    text = path.read_text()
    assert REGRESSION[0] in text
    path.write_text(text.replace(*REGRESSION))


@pytest.mark.exhaustive
def test_the_commands_of_its_page_do_what_they_say(project):
    assert "5 passed" in shell(project, "pytest -q")
    make_slower(project)
    text = shell(project, "pytest -q", status=1)
    assert "4 failed, 1 passed" in text
    assert re.search(
        r"softmax_rows takes [\d,]+ cycles, ascendtile-baseline.json has [\d,]+ \(\+[\d,]+, \+\d+ %", text
    )
    assert "softmax.py:19" in text
    assert "waits for a free buffer" in text
    shell(project, "ascendtile ci")  # the baseline is as it was
    assert "4 changed" in shell(project, "pytest -q --ascendtile-update")
    assert "5 passed" in shell(project, "pytest -q")
    data = json.loads(shell(project, "ascendtile ci --json", status=1))
    assert data["regressions"] == 4


@pytest.mark.exhaustive
def test_tests_of_two_commits_are_run_in_checkouts_of_their_own(project):
    make_slower(project)
    shell(project, "git commit -qam two")
    out = shell(project, "ascendtile ci --run --against first --of HEAD --json -- -k 910b3", status=1)
    kernels = json.loads(out)["kernels"]
    assert len(kernels) == 2
    assert all(k["change_percent"] > 5 for k in kernels)
    assert not shell(project, "git status --porcelain")
    assert shell(project, "git worktree list").count("\n") == 1
    (project / "test_softmax.py").write_text("import nothing_of_that_name")
    done = subprocess.run(
        ["ascendtile", "ci", "--run"], cwd=project, env=outside(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "the tests of the working tree cannot be run, pytest ended with status 2" in done.stderr


def steps(path=ACTION):
    """Name of a step -> its script, and name of an input -> its default, of an action whose scripts stand in `run: |`."""
    text = path.read_text()
    scripts = dict(re.findall(r"- id: (\w+)\n.*?run: \|\n((?: {8}[^\n]*\n)+)", text, re.S))
    inputs = dict(re.findall(r"^  ([\w-]+):\n    description: .*\n    default: (.*)$", text, re.M))
    return {n: re.sub(r"^ {8}", "", s, flags=re.M) for n, s in scripts.items()}, inputs


@pytest.mark.exhaustive
def test_the_steps_of_the_action_write_the_table_and_fail_for_a_regression(project, tmp_path):
    scripts, inputs = steps()
    make_slower(project)
    shell(project, "pytest -q --ascendtile-update && git commit -qam two")
    files = {n: tmp_path / n for n in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    names = {"AGAINST": "first", "BASELINE": inputs["baseline"], "RUN": "false", "RUNNER_TEMP": tmp_path}
    environment = {n: str(x) for n, x in {**names, **files}.items()}
    shell(project, scripts["fetch"], **environment)
    shell(project, scripts["compare"], FAIL_ABOVE="900%", **environment)
    shell(project, scripts["compare"], status=1, FAIL_ABOVE=inputs["fail-above"], **environment)
    comment = tmp_path / "ascendtile.md"
    assert f"comment={comment}\nstatus=0\ncomment={comment}\nstatus=1\n" == files["GITHUB_OUTPUT"].read_text()
    assert files["GITHUB_STEP_SUMMARY"].read_text().endswith(comment.read_text())
    assert "4 regressions" in comment.read_text()
    shell(project, scripts["compare"], status=2, FAIL_ABOVE="much", **environment)
    shell(project, scripts["fetch"], **{**environment, "AGAINST": "0" * 40})
    shell(project, scripts["compare"], FAIL_ABOVE="5%", **{**environment, "AGAINST": "0" * 40})
    assert comment.read_text() == "No commit to compare simulated kernels with.\n"


@pytest.mark.exhaustive
@pytest.mark.parametrize("against", ["base", "origin/base", "first", "the commit"])
def test_the_action_fetches_what_a_shallow_checkout_lacks_by_its_commit_or_name(project, tmp_path, against):
    scripts, _ = steps()
    commit = shell(project, "git rev-parse first").strip()
    shell(
        project, "git branch -f base first && git checkout -q -B work && git commit -q --allow-empty -m two"
    )
    shell(tmp_path, f"git clone -q --depth=1 --branch work file://{project} . && git checkout -q --detach")
    shell(tmp_path, "git config remote.origin.fetch '+refs/heads/*:refs/remotes/origin/*'")
    shell(tmp_path, f"! git cat-file -e {commit} 2> /dev/null")
    name = commit if against == "the commit" else against
    shell(tmp_path, scripts["fetch"], AGAINST=name)
    assert shell(tmp_path, f"git rev-parse '{name}^{{commit}}'").strip() == commit


def test_the_action_installs_what_it_lies_in_and_puts_no_text_of_others_into_a_script():
    scripts, _ = steps()
    assert list(scripts) == ["install", "fetch", "compare"]
    assert (ACTION.parent / "../../..").resolve() == ROOT
    assert not any("${{" in script for script in scripts.values())
    workflow = (EXAMPLE / ".github/workflows/kernels.yml").read_text()
    used = re.search(r"uses: OWNER/REPOSITORY/(.*)@", workflow)
    assert used
    assert (ROOT / used[1] / "action.yml") == ACTION


def test_the_example_is_shipped_and_written_without_its_page(tmp_path):
    """Its page is shipped as those of all folders are, and has links to them."""
    globs = re.search(r'"ascendtile.reports.testing": (\[.*\])', (ROOT / "setup.py").read_text())
    assert globs
    shipped = {
        p.relative_to(EXAMPLE) for g in json.loads(globs[1]) for p in (EXAMPLE.parent).glob(g) if p.is_file()
    }
    written = {p.relative_to(tmp_path / "new") for p in write_example(tmp_path / "new")}
    assert shipped - written == {Path("README.md")}
    assert written <= shipped


@pytest.mark.exhaustive
def test_64_kernels_take_less_than_a_minute_of_processor_time(tmp_path):
    """With two workers, as on a machine of two cores. The figure is that of one run of pytest, its processes included."""
    import resource

    write_example(tmp_path / "project")
    folder = tmp_path / "project"
    (folder / FILE).unlink()
    (folder / "test_softmax.py").unlink()
    shutil.copy(Path(__file__).with_name("many_kernels.py"), folder / "test_many.py")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "64 passed" in shell(folder, "pytest -q -n2 --ascendtile-update")
    assert "64 passed" in shell(folder, "pytest -q -n2")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = sum(getattr(after, n) - getattr(before, n) for n in ("ru_utime", "ru_stime"))
    print(f"64 kernels in a run of pytest: {seconds / 2:.1f} s of processor time")
    assert seconds / 2 < 60
