"""`ascendtile report`: the page of a run that was saved."""

from __future__ import annotations

import click

from ascendtile.reports.options import json_option


@click.command()
@click.argument("file", metavar="FILE.run")
@json_option()
def command(file: str, as_json: bool) -> None:
    """Show the page of a saved run.

    FILE.run is written by `ascendtile run --save`, `ascendtile demo` or run.save(...).
    """
    from ascendtile.reports.console import show, show_json
    from ascendtile.simulator import load_run

    run = load_run(file)
    if as_json:
        from ascendtile.reports.json_view import run_json

        show_json(run_json(run, file))
    else:
        from ascendtile.reports.terminal import run_report

        show(run_report(run, file))
