"""What a run of pytest knows of its baseline. Loaded with the plug-in, so it imports nothing that is not Python's own.

Each process that runs tests has a `BaselineState` for what its tests assert. Figures travel to the process that writes
(under xdist the controller) as plain data in the reports of tests, so a worker that crashes loses those of one test.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .entry import BaselineEntry
    from .file import Baseline

__tracebackhide__ = True
FILE = "ascendtile-baseline.json"
UPDATE = "--ascendtile-update"


@dataclass
class AssertedTest:
    """What one test asserted, by key. shown: its id as pytest, started where it was, takes it. failed: whether any of its
    phases did not pass."""

    nodeid: str
    shown: str
    entries: dict[str, BaselineEntry] = field(default_factory=dict)
    failed: bool = False


@dataclass
class BaselineState:
    """path: the file; shown: as messages have it. update: whether figures are written instead of compared. options: of
    pytest, that name the file. test: the one that runs.

    taken: id of a test that passed -> key -> entry as JSON data. untaken: tests with figures that did not pass. twice: tests
    that ran twice with different figures. known: ids of all tests that were collected, also of those that were deselected
    then; files: those that were collected whole. told: what the end of the run has to say.
    """

    path: Path
    shown: str
    update: bool = False
    options: tuple[str, ...] = ()
    test: AssertedTest | None = None
    taken: dict[str, dict[str, Any]] = field(default_factory=dict)
    untaken: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    told: list[str] = field(default_factory=list)
    _read: Baseline | None = None

    @property
    def entries(self) -> Baseline:
        """What the file has; nothing where there is none. `UsageError` if it is damaged."""
        if self._read is None:
            from .file import read_baseline

            self._read = read_baseline(self.path) if self.path.exists() else {}
        return self._read

    def update_command(self, *tests: str) -> str:
        """What to type so that this file has the figures of today."""
        return shlex.join(["pytest", UPDATE, *self.options, *tests])

    def take(self, nodeid: str, entries: dict[str, Any], passed: bool) -> None:
        """What a test asserted, from its report."""
        if not passed:
            self.untaken += [nodeid] if entries else []
        elif self.taken.setdefault(nodeid, entries) != entries:
            self.twice.append(nodeid)

    def collected(self, known: Iterable[str], files: Iterable[str]) -> None:
        """What was collected in this process, or in a worker."""
        self.known.update(known)
        self.files.update(files)

    def finish(self, root: Path) -> bool:
        """The end of the run, in the process that writes; fills `told`. False if figures were lost.

        Nothing is loaded where no test asked for the baseline.
        """
        if not self.update and not any(self.taken.values()):
            return True
        from ....simulator.errors import UsageError

        try:
            self.told = self._write(root) if self.update else self._out_of_date(root)
        except UsageError as error:
            self.told = [f"error: {error}"]
            return False
        return not (self.update and self.twice)

    def gone(self, root: Path) -> list[tuple[str, str]]:
        """(test, key) of entries that no test has any more, as far as this run can tell.

        A test is gone if its file is, or was collected whole without it; an entry also if its test passed without it.
        """
        tests = {t for t in self.entries if t not in self.known and self._looked_at(t, root)}
        keys = ((t, k) for t, entries in self.entries.items() for k in entries)
        return [(t, k) for t, k in keys if t in tests or (t in self.taken and k not in self.taken[t])]

    def _looked_at(self, test: str, root: Path) -> bool:
        file = test.partition("::")[0]
        return file in self.files or (self.path.is_relative_to(root) and not (root / file).exists())

    def _out_of_date(self, root: Path) -> list[str]:
        """Entries without a test."""
        lines = [f"no test has it any more: {test} [{key}]" for test, key in self.gone(root)]
        return [f"{self.shown} is out of date; {self.update_command()} removes:", *lines] if lines else []

    def _write(self, root: Path) -> list[str]:
        """Put what was taken into the file, as it is by now: another run may have written it; what to tell."""
        from .entry import BaselineEntry, same_figures
        from .file import write_baseline

        self._read = None
        before = {(t, k): e for t, entries in self.entries.items() for k, e in entries.items()}
        taken = (
            (t, k, x) for t, entries in self.taken.items() if t not in self.twice for k, x in entries.items()
        )
        read = {(t, k): BaselineEntry.from_json(x, k) for t, k, x in taken}
        gone = self.gone(root)
        changed = {at: e for at, e in read.items() if at not in before or not same_figures(before[at], e)}
        if changed or gone:
            after: dict[str, dict[str, BaselineEntry]] = {}
            for at, entry in {**before, **changed}.items():
                if at not in gone:
                    after.setdefault(at[0], {})[at[1]] = entry
            write_baseline(self.path, after)
        new = sum(at not in before for at in changed)
        counts = (
            f"{self.shown}: {new} new, {len(changed) - new} changed, {len(read) - len(changed)} as they were"
        )
        return [counts, *self._left_out(gone)]

    def _left_out(self, gone: list[tuple[str, str]]) -> list[str]:
        twice = "not taken, the test ran twice with different figures"
        return [
            *(f"removed, no test has it any more: {test} [{key}]" for test, key in gone),
            *(f"not taken, the test did not pass: {test}" for test in self.untaken),
            *(f"{twice}: {test}" for test in self.twice),
        ]


_states: list[BaselineState] = []  # of runs of pytest, one inside of the other: tests of plug-ins do that


def begin(state: BaselineState) -> None:
    """From here on asserts are for this state."""
    _states.append(state)


def end(state: BaselineState) -> None:
    """Take back what `begin` did."""
    if state in _states:
        _states.remove(state)


def current() -> BaselineState | None:
    """That of the run of pytest that is going on."""
    return _states[-1] if _states else None
