"""The plug-in of pytest: options, fixtures, and the baseline of a run. Entry point `ascendtile` of the group pytest11.

pytest imports this module in every run of every project of an environment, so it imports pytest and nothing else: neither
numpy nor a part of ascendtile is loaded before a fixture or an option of it is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .baseline.state import FILE, UPDATE, AssertedTest, BaselineState, begin, current, end

if TYPE_CHECKING:
    from ...simulator.record.run import Run

STATE = pytest.StashKey[BaselineState]()
TRITON = pytest.StashKey[bool]()
LOOKS = ("collectonly", "setuponly", "setupplan")  # options of pytest under which no test is run
WHOLE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ascendtile", "simulated Ascend kernels")
    group.addoption(
        UPDATE,
        action="store_true",
        help=f"Write what assert_cycles finds into the baseline ({FILE}) instead of comparing with it.",
    )
    group.addoption(
        "--ascendtile-baseline", metavar="FILE", help="The baseline, instead of that of the configuration."
    )
    parser.addini("ascendtile_baseline", f"Baseline of assert_cycles, below the root: {FILE}.", default=FILE)
    parser.addini("ascendtile_triton", "Let `import triton` find the simulator.", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    given = config.getoption("--ascendtile-baseline")
    shown = given or config.getini("ascendtile_baseline")
    path = Path(given).absolute() if given else config.rootpath / shown
    options = (f"--ascendtile-baseline={given}",) if given else ()
    runs = not any(getattr(config.option, name, False) for name in LOOKS)
    state = BaselineState(path, shown, runs and config.getoption(UPDATE), options)
    config.stash[STATE] = state
    begin(state)
    config.stash[TRITON] = config.getini("ascendtile_triton")
    if config.stash[TRITON]:
        _install_triton()


def pytest_unconfigure(config: pytest.Config) -> None:
    if STATE in config.stash:
        end(config.stash[STATE])
    if config.stash.get(TRITON, False):
        from ...simulator import triton_shim

        triton_shim.uninstall()


def _install_triton() -> None:
    from ...simulator import triton_shim
    from ...simulator.errors import UsageError

    try:
        triton_shim.install(triton_shim.DEVICES)
    except UsageError as error:
        raise pytest.UsageError(f"ascendtile_triton: {error}") from None


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs tests for another one, by xdist."""
    return hasattr(config, "workerinput")


# ---- what tests assert ----


def pytest_sessionstart(session: pytest.Session) -> None:
    """A file that cannot be read is told before the tests run, where it is to be written after them."""
    state = session.config.stash[STATE]
    if state.update and not is_worker(session.config):
        from ...simulator.errors import UsageError
        from ...simulator.record.files import check_target

        try:
            check_target(state.path)
            _ = state.entries
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    state = item.config.stash[STATE]
    state.test = AssertedTest(item.nodeid, _from_here(item))
    try:
        return (yield)
    finally:
        state.test = None


def _from_here(item: pytest.Item) -> str:
    """The id of a test, which is relative to the root, as pytest takes it in the folder that it was started in."""
    file, *names = item.nodeid.split("::")
    path = os.path.relpath(item.config.rootpath / file, item.config.invocation_params.dir)
    return "::".join([path, *names])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The report of the last phase carries what the test asserted to the process that writes."""
    report = yield
    test = item.config.stash[STATE].test
    if test is not None:
        test.failed = test.failed or not report.passed
        if report.when == "teardown":
            entries = {key: entry.to_json() for key, entry in test.entries.items()}
            # A report carries attributes of its own to the controller of xdist.
            report.ascendtile = {"entries": entries, "passed": not test.failed}  # type: ignore[attr-defined]
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    state = current()
    found = getattr(report, "ascendtile", None)
    if found is not None and state is not None:
        state.take(report.nodeid, found["entries"], found["passed"])


# ---- what was collected ----


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Of a file that was collected, not of a test."""
    state = current()
    if state is not None and report.passed and "::" not in report.nodeid:
        state.files.add(report.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before any is deselected. A file of which single tests were asked for was not collected whole."""
    state = config.stash[STATE]
    state.known.update(item.nodeid for item in items)
    if any("::" in arg for arg in config.args) or getattr(config.option, "lf", False):
        state.files.clear()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """xdist: a worker is done; all of them collect the same."""
    found = getattr(node, "workeroutput", {}).get("ascendtile")
    if found is not None:
        node.config.stash[STATE].collected(found["known"], found["files"])


# ---- the end ----


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    state = session.config.stash[STATE]
    if exitstatus not in WHOLE:  # interrupted: who knows what was not collected
        state.files.clear()
    if is_worker(session.config):
        output: dict[str, Any] = session.config.workeroutput  # type: ignore[attr-defined]
        output["ascendtile"] = {"known": sorted(state.known), "files": sorted(state.files)}
    elif not state.finish(session.config.rootpath):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = config.stash[STATE].told
    if lines:
        terminalreporter.section("ascendtile")
        for line in lines:
            terminalreporter.write_line(line)


# ---- fixtures ----


def _as_fixture(name: str) -> Any:
    """The function of the package as a fixture: `def test(assert_cycles)`."""

    def found() -> Callable[..., None]:
        from ascendtile.reports import testing

        function: Callable[..., None] = getattr(testing, name)
        return function

    found.__doc__ = f"The function ascendtile.reports.testing.{name}."
    return pytest.fixture(found, name=name)


cycles = _as_fixture("assert_cycles")
fits = _as_fixture("assert_fits")
no_faults = _as_fixture("assert_no_faults")
ulp = _as_fixture("assert_ulp")


@pytest.fixture
def ascendtile_launches() -> Iterator[list[Run]]:
    """The run of each kernel that the test launches, in order, also where plain Triton code launches it."""
    from ...simulator.observers import watch

    runs: list[Run] = []
    with watch(runs.append):
        yield runs
