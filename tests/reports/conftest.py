"""The command line, called in this process."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ascendtile.reports.cli.main import status_of


@dataclass(frozen=True)
class Answer:
    """Exit status, standard output, standard error."""

    status: int
    out: str
    err: str


@pytest.fixture
def ascendtile(capsys, monkeypatch):
    """`ascendtile("run", "OP")` gives the Answer; no answer may hold a stack trace."""
    monkeypatch.delenv("ASCENDTILE_DEBUG", raising=False)

    def call(*arguments):
        capsys.readouterr()
        status = status_of([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err + out
        return Answer(status, out, err)

    return call


@pytest.fixture
def refused(ascendtile):
    """`refused("run", "OP")` gives the message of wrong usage: one `error: ...`, status 2, nothing on stdout."""

    def call(*arguments, status=2):
        answer = ascendtile(*arguments)
        assert (answer.status, answer.out) == (status, ""), answer
        message = answer.err.strip()
        assert message.startswith("error: "), answer.err
        return message.removeprefix("error: ")

    return call
