"""The plug-in of pytest: what is compared, what is written, and that nothing is lost."""

from __future__ import annotations

import importlib
import json
import os
import shlex
import subprocess
import sys

import numpy as np
import pytest

from ascendtile.reports.testing import assert_cycles, assert_no_faults
from ascendtile.reports.testing.baseline.file import read_baseline
from ascendtile.simulator import triton_shim

from ..support.kernels import add

pytest_plugins = "pytester"

FILE = "ascendtile-baseline.json"
KERNEL = """
import pytest
import ascendtile.simulator as sim
import ascendtile.simulator.language as tl

@sim.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)

def timed(block):
    return double.time((-(-10000 // block),), sim.shape((10000,), "float16"), 10000, BLOCK=block)
"""
TESTS = """
from kernel import *
BLOCKS = {"one": 1024, "two": 1024}

@pytest.mark.parametrize("name", list(BLOCKS))
def test_time(name, assert_cycles):
    assert_cycles(timed(BLOCKS[name]))
"""


@pytest.fixture(scope="module")
def loaded(small, large):
    """What runs of pytest in this process use is imported once: each of them forgets what it was the first to import."""
    with triton_shim.installed():
        importlib.import_module("triton")
    with pytest.raises(AssertionError):
        assert_cycles(large, baseline=small)
    out = np.ones(64, np.float16)
    assert_no_faults(add[(1,)](out, out, out, 64, BLOCK=64))


@pytest.fixture
def project(pytester, loaded):
    """`project("-k", "one", passed=1)` runs pytest on its tests; gives what was printed."""
    pytester.makepyfile(kernel=KERNEL, test_it=TESTS)
    pytester.syspathinsert()

    def run(*arguments, **outcomes):
        result = pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)
        if outcomes:
            result.assert_outcomes(**outcomes)
        else:
            assert result.ret == pytest.ExitCode.USAGE_ERROR
        return result.stdout.str() + result.stderr.str()

    run.pytester = pytester
    return run


def edit(project, old, new, file="test_it.py"):
    path = project.pytester.path / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def entries(project):
    return {t: set(x) for t, x in read_baseline(project.pytester.path / FILE).items()}


def test_a_test_without_an_entry_fails_until_it_is_written_and_then_only_when_time_changes(project):
    text = project(failed=2)
    assert f"{FILE} has no 'double' of test_it.py::test_time[one]" in text
    assert "to accept it: pytest --ascendtile-update 'test_it.py::test_time[one]'" in text
    assert not (project.pytester.path / FILE).exists()
    assert f"{FILE}: 2 new, 0 changed, 0 as they were" in project("--ascendtile-update", passed=2)
    project(passed=2)
    edit(project, '"two": 1024', '"two": 512')
    text = project(passed=1, failed=1)
    assert "to accept it: pytest --ascendtile-update 'test_it.py::test_time[two]'" in text
    assert "tiling BLOCK" in text
    assert "def assert_cycles" not in text  # the trace ends where the test calls it


def test_an_update_changes_what_changed_and_leaves_every_other_byte(project):
    project("--ascendtile-update", passed=2)
    before = json.loads((project.pytester.path / FILE).read_text())
    assert "0 new, 0 changed, 2 as they were" in project("--ascendtile-update", passed=2)
    assert json.loads((project.pytester.path / FILE).read_text()) == before
    edit(project, '"two": 1024', '"two": 512')
    assert "0 new, 1 changed, 0 as they were" in project(
        "--ascendtile-update", "-k", "two", passed=1, deselected=1
    )
    after = json.loads((project.pytester.path / FILE).read_text())
    changed = {t for t in before["tests"] if before["tests"][t] != after["tests"][t]}
    assert changed == {"test_it.py::test_time[two]"}


def test_figures_of_a_test_that_fails_are_not_taken(project):
    edit(project, "BLOCKS[name]))", "BLOCKS[name]))\n    assert name == 'one'")
    text = project("--ascendtile-update", passed=1, failed=1)
    assert "not taken, the test did not pass: test_it.py::test_time[two]" in text
    assert set(entries(project)) == {"test_it.py::test_time[one]"}


def test_entries_without_a_test_are_told_and_removed_by_an_update_that_looked_at_their_file(project):
    project("--ascendtile-update", passed=2)
    edit(project, '"one": 1024, ', "")
    assert "no test has it any more: test_it.py::test_time[one] [double]" in project(passed=1)
    one = ("--ascendtile-update", "test_it.py::test_time[two]")
    assert "removed," not in project(*one, passed=1)  # which says nothing about other tests
    assert len(entries(project)) == 2
    text = project("--ascendtile-update", "-k", "two", passed=1)
    assert "removed, no test has it any more: test_it.py::test_time[one] [double]" in text
    assert entries(project) == {"test_it.py::test_time[two]": {"double"}}


@pytest.mark.parametrize(
    "option",
    [
        "--collect-only",
        *(pytest.param(x, marks=pytest.mark.exhaustive) for x in ("--setup-only", "--setup-plan")),
    ],
)
def test_where_pytest_runs_no_test_an_update_writes_nothing(project, option):
    project("--ascendtile-update", passed=2)
    before = (project.pytester.path / FILE).read_bytes()
    edit(project, '"one": 1024, ', '"three": 512, ')
    project.pytester.runpytest_inprocess("-p", "no:cacheprovider", "--ascendtile-update", option)
    assert (project.pytester.path / FILE).read_bytes() == before


@pytest.mark.exhaustive
def test_entries_of_files_that_were_not_run_stay_until_the_file_is_gone(project):
    project.pytester.makepyfile(test_other=TESTS)
    project("--ascendtile-update", passed=4)
    assert "removed," not in project("--ascendtile-update", "test_it.py", passed=2)
    assert len(entries(project)) == 4
    (project.pytester.path / "test_other.py").unlink()
    assert project("--ascendtile-update", "test_it.py", passed=2).count("removed,") == 2
    assert len(entries(project)) == 2


@pytest.mark.exhaustive
def test_an_entry_goes_when_its_test_passes_without_it(project):
    edit(project, "BLOCKS[name]))", "BLOCKS[name]), baseline='first')")
    project("--ascendtile-update", passed=2)
    edit(project, "'first'", "'second'")
    assert f"{FILE} has no 'second' of test_it.py::test_time[one]; of this test it has 'first'" in project(
        failed=2
    )
    project("--ascendtile-update", passed=2)
    assert set.union(*entries(project).values()) == {"second"}


def test_one_kernel_asserted_twice_in_a_test_needs_labels(project):
    edit(project, "BLOCKS[name]))", "BLOCKS[name]))\n    assert_cycles(timed(256))")
    text = project("--ascendtile-update", failed=2)
    assert "asserts 'double' twice, with" in text
    assert "baseline='small'" in text
    edit(project, "timed(256)", "timed(256), baseline='small'")
    project("--ascendtile-update", passed=2)
    assert set(entries(project)["test_it.py::test_time[one]"]) == {"double", "small"}


def test_a_limit_alone_asks_for_no_baseline(project):
    edit(project, "BLOCKS[name]))", "BLOCKS[name]), max=1e6)")
    project(passed=2)
    project("--ascendtile-update", passed=2)
    assert not (project.pytester.path / FILE).exists()


def test_a_damaged_file_is_never_written_over(project):
    path = project.pytester.path / FILE
    path.write_text('{"format": "ascendtile-baseline", "version": 1')
    for arguments, outcomes in (((), {"failed": 2}), (("--ascendtile-update",), {})):
        text = project(*arguments, **outcomes)
        assert f"{FILE}: is damaged, it is not JSON" in text
        assert "reports/testing" not in text  # the trace ends where the test asks
    assert path.read_text().endswith('"version": 1')


def test_what_accepts_a_time_names_the_file_that_was_given_and_the_test_as_seen_from_here(
    project, monkeypatch
):
    pytester = project.pytester
    pytester.makeini("[pytest]")
    (pytester.path / "deep").mkdir()
    (pytester.path / "test_it.py").rename(pytester.path / "deep/test_it.py")
    monkeypatch.chdir(pytester.path / "deep")
    text = project("--ascendtile-baseline=a b.json", "-k", "one", failed=1)
    command = "pytest --ascendtile-update '--ascendtile-baseline=a b.json' 'test_it.py::test_time[one]'"
    assert f"to accept it: {command}" in text
    project(*shlex.split(command)[1:], passed=1)
    assert (pytester.path / "deep/a b.json").exists()


@pytest.mark.exhaustive
def test_the_file_is_where_the_option_or_the_configuration_says(project):
    project("--ascendtile-update", "--ascendtile-baseline=other.json", passed=2)
    project.pytester.makeini("[pytest]\nascendtile_baseline = kept/here.json")
    assert "kept does not exist; make it first" in project("--ascendtile-update")
    (project.pytester.path / "kept").mkdir()
    (project.pytester.path / "other.json").rename(project.pytester.path / "kept/here.json")
    project(passed=2)
    assert not (project.pytester.path / FILE).exists()


def test_launches_of_plain_triton_are_collected(project):
    plain = KERNEL.replace("ascendtile.simulator.language", "triton.language").replace(
        "sim.jit", "triton.jit"
    )
    project.pytester.makepyfile(kernel=f"import triton\n{plain}")
    project.pytester.makeini("[pytest]\nascendtile_triton = true")
    project.pytester.makepyfile(
        test_it="""
        from kernel import *
        import numpy as np

        def test_all(ascendtile_launches, assert_cycles, assert_no_faults):
            x = np.ones(10000, np.float16)
            for block in (1024, 512):
                double[(-(-10000 // block),)](x, 10000, BLOCK=block)
            assert len(ascendtile_launches) == 2
            assert_cycles(ascendtile_launches)
            assert_no_faults(ascendtile_launches)
        """
    )
    project("--ascendtile-update", passed=1)
    project(passed=1)
    (entry,) = read_baseline(project.pytester.path / FILE)["test_it.py::test_all"].values()
    assert (entry.launches, entry.settings["tiling BLOCK"]) == (2, "1024, 512")


def test_nothing_is_said_where_nothing_is_used(project):
    project.pytester.makepyfile(test_it="def test(): pass")
    (project.pytester.path / FILE).write_text("not even JSON")
    assert "ascendtile" not in project(passed=1).partition("\ncollected")[2]


@pytest.mark.exhaustive
@pytest.mark.parametrize("crash", [False, True])
def test_workers_report_to_the_process_that_writes(project, crash):
    """Processes of their own, as workers of xdist are. One that crashes loses the figures of its test, and no others."""
    project("--ascendtile-update", "-k", "one", passed=1, deselected=1)
    end = "\n    if name == 'two': import os; os._exit(1)" if crash else ""
    edit(project, '"two": 1024}', '"two": 1024, "three": 512}')
    edit(project, "BLOCKS[name]))", f"BLOCKS[name])){end}")
    done = project.pytester.runpytest_subprocess("-n2", "--ascendtile-update")
    done.assert_outcomes(**({"passed": 2, "failed": 1} if crash else {"passed": 3}))
    written = {"one", "three"} if crash else {"one", "two", "three"}
    assert set(entries(project)) == {f"test_it.py::test_time[{n}]" for n in written}
    edit(project, '"one": 1024, ', "")
    if not crash:
        done = project.pytester.runpytest_subprocess("-n2", "--ascendtile-update")
        assert "removed, no test has it any more: test_it.py::test_time[one] [double]" in done.stdout.str()
        assert len(entries(project)) == 2


def loaded_by(code):
    """Modules of ascendtile, and numpy, that a process has at its end; the plug-ins of others are left out."""
    end = (
        "import sys; print('loaded', *(n for n in sys.modules if n.split('.')[0] in ('ascendtile', 'numpy')))"
    )
    command, quiet = [sys.executable, "-c", f"{code}; {end}"], {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **quiet})
    return set(done.stdout.partition("loaded ")[2].split())


def test_a_run_of_pytest_that_does_not_use_the_plug_in_loads_nothing_of_it(tmp_path):
    (tmp_path / "test_it.py").write_text("def test(): pass")
    plugin = "ascendtile.reports.testing.plugin"
    code = (
        f"import os, pytest; os.chdir({str(tmp_path)!r}); assert pytest.main(['-q', '-p', {plugin!r}]) == 0"
    )
    names = ("ascendtile", "ascendtile._names", "ascendtile.reports", "ascendtile.reports.testing")
    assert loaded_by(code) == {
        *names,
        *(f"{names[-1]}.{n}" for n in ("baseline", "baseline.state", "plugin")),
    }
