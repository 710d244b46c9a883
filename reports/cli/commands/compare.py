"""`ascendtile compare`: a run beside another one, or beside what a profiler measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..options import json_option

if TYPE_CHECKING:
    from ...facts.differences import RunDifference

ENDINGS = (".html", ".htm", ".csv", ".png", ".svg", ".pdf")


@click.command()
@click.argument("first", metavar="A.run")
@click.argument("second", metavar="B.run|PipeUtilization.csv")
@click.option(
    "--launch", type=int, help="Which launch of the run was profiled, from 0 (a profile is of one kernel)."
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Of two runs: write a page (.html), a table (.csv) or a picture (.png, .svg, .pdf).",
)
@json_option
def command(first: str, second: str, launch: int | None, output: str | None, as_json: bool) -> None:
    """Set a run beside another run, or beside a measured profile.

    Two runs: which lines, pipes and waits won or lost the time. A profile: the PipeUtilization.csv that `msprof op` writes
    on a board, measured against predicted for each pipe. Both runs on one time axis: `ascendtile export A.run B.run`.
    """
    _check_output(output, as_json)
    from ....simulator import load_run
    from ...terminal.console import present

    run = load_run(first)
    if _is_table(second):
        if output is not None:
            raise click.UsageError(
                "-o is of two runs; a comparison with a profile is shown, or printed with --json"
            )
        from ...comparing.profile import compare_profile, profile_json, profile_page
        from ...vendor.reading import read_utilization

        profile = compare_profile(run, read_utilization(second), launch)
        present(as_json, profile_json, profile_page, profile)
        return
    if launch is not None:
        raise click.UsageError("--launch is for a PipeUtilization.csv; two runs are compared whole")
    from ...facts.differences import RunDifference
    from ...terminal.difference_view import difference_json, difference_page

    difference = RunDifference.of(run, load_run(second))
    if output is not None:
        _write(difference, output)
    else:
        present(as_json, difference_json, difference_page, difference)


def _check_output(output: str | None, as_json: bool) -> None:
    """Refuse what cannot be written before anything is read."""
    from ....simulator.record.files import check_target

    if output is None:
        return
    if as_json:
        raise click.UsageError("--json prints data and -o writes a file; give one of them")
    check_target(output)
    if Path(output).suffix.lower() not in ENDINGS:
        raise click.UsageError(f"-o {output}: the name must end in one of {', '.join(ENDINGS)}")


def _write(difference: RunDifference, output: str) -> None:
    from ...terminal.console import note

    ending = Path(output).suffix.lower()
    if ending == ".csv":
        difference.csv(output)
    elif ending in (".html", ".htm"):
        difference.html(output)
    else:
        from ...pictures import difference as draw
        from ...pictures import save

        save(draw(difference.first, difference.second), output)
    note(f"wrote {output}")


def _is_table(name: str) -> bool:
    """Records are zip files; whatever does not begin like one and is not called .run is read as a table."""
    path = Path(name)
    if path.suffix.lower() == ".csv":
        return True
    try:
        with open(path, "rb") as file:
            return file.read(2) != b"PK" and path.suffix != ".run"
    except OSError:
        return False  # load_run says what is wrong
