"""`ascendtile ci`: what kernels take in two commits, as a table for a pull request."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from ....testing.baseline.state import FILE
from ...options import at_most_one, json_option

if TYPE_CHECKING:
    from ....testing.ci.changes import BaselineChanges
    from ....testing.ci.commits import CommitFigures

REGRESSION = 1  # exit status


def read_percent(ctx: click.Context, option: click.Parameter, text: str) -> float:
    """ "5%" or "5" as 0.05."""
    number = text.strip().removesuffix("%").strip()
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e6:
        raise click.BadParameter(f"{text!r} is no percentage of 0 or more; write 5%", ctx, option)
    return value / 100


@click.command()
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- PYTEST ARGUMENT...]")
@click.option(
    "--baseline", default=FILE, show_default=True, metavar="FILE", help="The file that pytest keeps."
)
@click.option(
    "--against", default="HEAD", show_default=True, metavar="REV", help="The commit to compare with."
)
@click.option(
    "--of", "revision", metavar="REV", help="The commit that is compared; without, the working tree."
)
@click.option(
    "--run",
    "run",
    is_flag=True,
    help="Run the tests of both in checkouts of their own, whatever the files say.",
)
@click.option(
    "--fail-above",
    default="5%",
    show_default=True,
    metavar="P%",
    callback=read_percent,
    help="Exit status 1 where a kernel takes more than P % more cycles, or has new faults.",
)
@click.option("--markdown", is_flag=True, help="Print a table for a pull request.")
@click.option(
    "--example",
    metavar="FOLDER",
    help="Only write an example project into a new folder: kernel, tests, workflow.",
)
@json_option
def command(**options: Any) -> None:
    """Compare the kernels of two commits by their baselines.

    A baseline is what `pytest --ascendtile-update` writes and a project commits. Without a commit of its own (--of) the
    working tree is compared with the last commit, as `git diff` does. Arguments after -- are for pytest, with --run.

    Exit status: 0 no regression, 1 a regression (or every kernel is gone, or, with --run, tests failed), 2 wrong usage or
    input.

    Example: ascendtile ci --against main --markdown
    """
    asked = SimpleNamespace(**options)
    at_most_one({"--markdown": asked.markdown, "--json": asked.as_json}, "are forms of their own")
    if asked.example is not None:
        _write_example(asked.example, asked.as_json)
        return
    if Path(asked.baseline).is_dir():
        raise click.UsageError(
            f"--baseline {asked.baseline!r} is a folder; a baseline is a file such as {FILE}"
        )
    if asked.arguments and not asked.run:
        raise click.UsageError(f"{asked.arguments[0]} is an argument of pytest, which only --run starts")
    before, after = _tested(asked) if asked.run else _kept(asked)
    measured = any(after.tests.values())
    if not (measured or after.failed or any(before.tests.values())):
        raise click.UsageError(_nothing(asked, before, after))
    from ....terminal.console import note
    from ....testing.ci.changes import compare_baselines

    found = compare_baselines(before.tests, after.tests, asked.fail_above, (before.name, after.name))
    _show(asked, found)
    if not (measured or after.failed):
        note(f"{after.name} has none of these kernels: nothing was compared")
    if found.regressions or after.failed or not measured:
        sys.exit(REGRESSION)


def _nothing(asked: SimpleNamespace, before: CommitFigures, after: CommitFigures) -> str:
    """Why there is nothing to compare."""
    if asked.run:
        what = "did a test pass that calls assert_cycles without max="
        return f"--run: in neither {before.name} nor {after.name} {what}: there is nothing to compare"
    return f"{asked.baseline} has no kernel, neither in {before.name} nor in {after.name}: there is nothing to compare"


def _tested(asked: SimpleNamespace) -> tuple[CommitFigures, CommitFigures]:
    from ....testing.ci.commits import run_tests
    from ...progress import stopped_by_signals

    folder = Path(asked.baseline).absolute().parent
    with stopped_by_signals():
        before, after = (run_tests(folder, rev, asked.arguments) for rev in (asked.against, asked.revision))
    return before, after


def _kept(asked: SimpleNamespace) -> tuple[CommitFigures, CommitFigures]:
    """The baselines that are committed. That of a commit from before there was one is empty; not both."""
    from .....simulator.errors import UsageError
    from ....terminal.console import note
    from ....testing.ci.commits import HERE, CommitFigures, committed, of_working_tree

    file = Path(asked.baseline).absolute()
    before = committed(file, asked.against)
    after = of_working_tree(file) if asked.revision is None else committed(file, asked.revision)
    if after is None:
        where = HERE if asked.revision is None else asked.revision
        raise UsageError(
            f"{asked.baseline}: {where} has no such file in {file.parent}; `pytest --ascendtile-update` writes it, commit "
            "it then, or say where it is: --baseline FILE"
        )
    if before is None:
        note(f"{asked.against} has no {asked.baseline}: every kernel is new")
    return before or CommitFigures(asked.against, {}), after


def _show(asked: SimpleNamespace, found: BaselineChanges) -> None:
    from ....terminal.console import present

    if asked.markdown:
        from ....testing.ci.markdown import changes_markdown

        sys.stdout.write(changes_markdown(found))
        return
    from ....testing.ci.views import changes_json, changes_page

    present(asked.as_json, changes_json, changes_page, found)


def _write_example(folder: str, as_json: bool) -> None:
    from ....terminal.console import note, show_json
    from ....testing.ci.example_project import write_example

    if not folder:
        raise click.UsageError("--example: the name of the folder is empty")
    written = write_example(Path(folder))
    note(f"wrote {folder}: cd there and run pytest")
    if as_json:
        show_json({"written": [str(path) for path in written]})
