"""The command line: `ascendtile run | explore | precision | validate | ...`, one file of `commands/` each.

Exit status: 0 success; 2 wrong usage or input; 1 a run that failed (overflow, out of bounds, hang), or a fault of
ascendtile itself; 130 interrupted. Errors are one message on standard error and never a stack trace, unless
ASCENDTILE_DEBUG=1 asks for it.
"""

from __future__ import annotations

import io
import os
import pkgutil
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click

import ascendtile

DEBUG = "ASCENDTILE_DEBUG"
FAILED, USAGE, INTERRUPTED = 1, 2, 130
COMMANDS = "ascendtile.reports.cli.commands"


class Commands(click.Group):
    """The commands are the modules of `commands/` and of the folders in it, with - for _; one is imported when asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(command_modules())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = command_modules().get(cmd_name)
        if module is None:
            return None
        command: click.Command = import_module(module).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and name not in self.list_commands(ctx):
            raise click.UsageError(
                f"no command {name!r}; there are {', '.join(self.list_commands(ctx))}", ctx
            )
        return super().resolve_command(ctx, args)


def command_modules() -> dict[str, str]:
    """Command -> the module that has it."""
    folder = str(Path(__file__).with_name("commands"))
    found = {}
    for module in pkgutil.walk_packages([folder], f"{COMMANDS}."):
        if not module.ispkg:
            found[module.name.rpartition(".")[2].replace("_", "-")] = module.name
    return found


def _show_version(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        click.echo(f"ascendtile {ascendtile.__version__}")
        ctx.exit()


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show it."
)
def cli() -> None:
    """Simulate tiled kernels on the Ascend AI Core: values, errors, cycles and buffer fit, without an NPU.

    Start with `ascendtile demo`, or `ascendtile ops` for what there is to run.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif isinstance(
            stream, io.TextIOWrapper
        ):  # a name that the terminal cannot show is no reason to stop
            stream.reconfigure(errors="replace")
    sys.exit(status_of(arguments))


def status_of(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status, with the message of an error already on standard error."""
    try:
        began = time.perf_counter()  # before what a command imports: a budget of time counts from here on
        cli.main(arguments, prog_name="ascendtile", standalone_mode=False, obj=began)
        sys.stdout.flush()
    except BaseException as error:
        if os.environ.get(DEBUG) == "1" and not isinstance(error, SystemExit):
            raise
        status, message = explain(error)
        _give_up_output()
        if message:
            _complain(message)
        return status
    return 0


def explain(error: BaseException) -> tuple[int, str | None]:
    """Exit status and message of what went wrong."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 0, None
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code, None
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        sys.stderr.write(f"{error.format_message()}\n")
        return USAGE, None
    if isinstance(error, click.ClickException):
        return USAGE, _click_message(error)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED, "interrupted"
    if isinstance(error, BrokenPipeError):  # the reader has seen enough, as `head` has
        return 0, None
    return _explain_fault(error)


def _explain_fault(error: BaseException) -> tuple[int, str]:
    from ...simulator.errors import AscendtileError, RefusedError, UsageError

    if isinstance(error, RefusedError) and str(error.status) not in str(error):
        return USAGE, f"{error} [status {error.status}]"
    if isinstance(error, AscendtileError):
        return (USAGE if isinstance(error, UsageError) else FAILED), str(error)
    if isinstance(error, MemoryError):
        return FAILED, "not enough memory for this run; take a smaller case, or --no-values for time only"
    if isinstance(error, OSError):
        return USAGE, f"{error.filename or 'output'}: {error.strerror or error}"
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return FAILED, f"{what[:300]} (a fault of ascendtile; {DEBUG}=1 shows where, please report it)"


def _click_message(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    hint = f"; see `{context.command_path} --help`" if context is not None else ""
    return f"{error.format_message().removesuffix('.')}{hint}"


def _complain(message: str) -> None:
    from ..facts.texts import clean

    lines = [clean(line) for line in message.splitlines()] or [""]
    try:
        sys.stderr.write("\n".join([f"error: {lines[0]}", *lines[1:]]) + "\n")
        sys.stderr.flush()
    except OSError:
        return


def _give_up_output() -> None:
    """Write out what is left; if that is what failed, Python's own flush at exit must not complain again."""
    try:
        sys.stdout.flush()
    except OSError:
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, sys.stdout.fileno())
        os.close(sink)
