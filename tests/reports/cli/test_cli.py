"""The command line as a whole: help, exit status, messages, streams, start-up."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import click
import pytest

from ascendtile.reports.cli import main as cli
from ascendtile.simulator.errors import BufferOverflowError, RefusedError, RunError, UsageError

COMMANDS = ["calibrate", "demo", "ops", "products", "report", "run"]


def process(*arguments, **options):
    """The real thing, in a process of its own."""
    code = "from ascendtile.reports.cli.main import main; main()"
    given = {"capture_output": True, "text": True, "timeout": 60, **options}
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], **given)


@pytest.fixture
def failing(monkeypatch, refused):
    """The message when a command raises the given error."""

    def message(error, status):
        @click.command()
        def command():
            raise error

        monkeypatch.setattr(cli.Commands, "get_command", lambda *_: command)
        return refused("products", status=status)

    return message


def test_help_names_every_command(ascendtile):
    answer = ascendtile("--help")
    assert (answer.status, answer.err) == (0, "")
    listed = [line.split()[0] for line in answer.out.partition("Commands:\n")[2].splitlines()]
    assert set(COMMANDS) <= set(listed)
    assert "..." not in answer.out.partition("Commands:")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command(ascendtile, name):
    answer = ascendtile(name, "--help")
    assert answer.status == 0
    assert answer.out.startswith(f"Usage: ascendtile {name} ")
    assert all(len(line) <= 80 for line in answer.out.splitlines())


def test_version(ascendtile):
    assert ascendtile("--version").out.startswith("ascendtile ")


def test_nothing_to_do_is_wrong_usage(ascendtile):
    answer = ascendtile()
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith("Usage: ascendtile")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fly"], "no command 'fly'; there are calibrate, chain, check, ci, compare, demo, explore"),
        (["--loud"], "No such option '--loud'; see `ascendtile --help`"),
        (["run"], "Missing argument 'OP | SCRIPT.py'; see `ascendtile run --help`"),
        (["report"], "Missing argument 'FILE [OTHER.run]'"),
        (["run", "x", "--seed", "-1"], "'--seed': -1 is not in the range"),
    ],
)
def test_wrong_usage(refused, arguments, message):
    told = refused(*arguments).replace("option: --loud", "option '--loud'")  # the oldest click has no quotes
    assert message in told


def test_a_status_is_told_once(failing):
    assert failing(RefusedError("x is null, status 161001", 161001, ""), 2).count("161001") == 1


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (UsageError("x must be 7, got 8"), 2, "x must be 7, got 8"),
        (RefusedError("C is 5, group is 2", 161002, ""), 2, "C is 5, group is 2 [status 161002]"),
        (RunError("hang: core 3"), 1, "hang: core 3"),
        (BufferOverflowError("ub overflow\n  16 B  x"), 1, "ub overflow\n  16 B  x"),
        (MemoryError(), 1, "not enough memory for this run; take a smaller case"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (FileNotFoundError(2, "No such file", "a.toml"), 2, "a.toml: No such file"),
        (OSError(28, "No space left on device"), 2, "output: No space left on device"),
        (
            ZeroDivisionError("by\nzero"),
            1,
            "ZeroDivisionError: by zero (a fault of ascendtile; ASCENDTILE_DEBUG=1",
        ),
        (RunError("\x1b[31mred\x07"), 1, "\\x1b[31mred\\x07"),
    ],
)
def test_errors_are_one_message(failing, error, status, message):
    assert message in failing(error, status).removeprefix("error: ")


def test_the_trace_of_a_fault_is_for_those_who_ask(monkeypatch, failing):
    failing(ZeroDivisionError(), 1)
    monkeypatch.setenv("ASCENDTILE_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        cli.status_of(["products"])


# ---- in a process of its own ----


@pytest.mark.parametrize(
    ("arguments", "absent"),
    [
        (["--help"], ["numpy", "rich", "ascendtile.simulator"]),
        (["products"], ["numpy", "matplotlib", "click.testing"]),
    ],
)
def test_start_up_imports_only_what_is_needed(arguments, absent):
    code = (
        "import sys; from ascendtile.reports.cli.main import status_of\n"
        f"assert status_of({arguments!r}) == 0\n"
        f"print([m for m in {absent!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.exhaustive
def test_a_run_kept_and_reported(tmp_path):
    record = tmp_path / "x.run"
    ran = process("run", "rms_norm_grad", "--case", "tiny", "--save", record, "--json")
    assert (ran.returncode, ran.stderr) == (0, "")
    reported = process("report", record, "--json")
    assert json.loads(reported.stdout) == json.loads(ran.stdout)


@pytest.mark.drawn(1)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "/none.run"], "error: /none.run: cannot read it: No such file"),
        (["products", "ascend910"], "error: unknown product 'ascend910': did you mean"),
        (["ops", "fly"], "error: unknown operator 'fly'"),
        (["demo", "--out", os.devnull], "error: /dev/null: cannot write to it"),
    ],
)
def test_errors_of_a_real_process(arguments, message):
    done = process(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(message)
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away():
    reading, writing = os.pipe()
    os.close(reading)
    done = process("products", "ascend910b3", capture_output=False, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_output_that_is_full():
    with open("/dev/full", "w") as full:
        done = process("products", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, "error: output: No space left on device\n")


@pytest.mark.exhaustive
def test_a_terminal_that_knows_ascii_only(tmp_path):
    record = tmp_path / "x.run"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = process("run", "rms_norm_grad", "--case", "tiny", "--no-values", "--save", record, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert "##" in done.stdout
