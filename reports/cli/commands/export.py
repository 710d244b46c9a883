"""`ascendtile export`: a saved run in the formats of other people's tools."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from ..options import json_option

MEANS = ["volumes in Memory.csv are means over the cores in use: the record does not tell more"]
KINDS = ("perfetto", "insight", "vendor")


@click.command()
@click.argument("file", metavar="FILE.run")
@click.argument("other", metavar="[OTHER.run]", required=False)
@click.option(
    "--as",
    "kind",
    type=click.Choice(KINDS),
    default="perfetto",
    show_default=True,
    help="perfetto, insight: a trace (JSON). vendor: the tables of msprof op (CSV) in a folder.",
)
@click.option("-o", "--output", required=True, metavar="PATH", help="The file, or for vendor the folder.")
@click.option("--window", metavar="FROM:TO", help="Of a trace: only what runs between these times, in us.")
@click.option("--limit", type=int, help="Of a trace: at most so many instructions, the first ones [100000].")
@json_option
def command(
    file: str, other: str | None, kind: str, output: str, window: str | None, limit: int | None, as_json: bool
) -> None:
    """Write a saved run as a trace, or as the vendor's tables.

    perfetto is for ui.perfetto.dev and chrome://tracing, insight for MindStudio Insight. A trace has a track per pipe and
    core, the reason of every wait, arrows from what was waited for, and counters of buffers and transfers. Two runs are put
    on one axis of time (perfetto). Tables:
    PipeUtilization.csv, Memory.csv, ResourceConflictRatio.csv, OpBasicInfo.csv for each launch, and op_summary.csv.
    """
    from ....simulator import load_run
    from ...terminal.console import note, show_json

    run = load_run(file)
    _check_target(output, kind)
    if kind == "vendor":
        if window or limit is not None:
            raise click.UsageError("--window and --limit are for traces; tables are of the whole run")
        if other is not None:
            raise click.UsageError(
                "the vendor's tables are of one run; `ascendtile compare A.run B.run -o FILE.csv` writes what differs"
            )
        from ...vendor.writing import write_tables

        files = [str(path) for path in write_tables(run, output)]
        told: dict[str, object] = {"files": files}
        means = [] if all(x.core_bytes for x in run.launches) else MEANS
        message = "; ".join([f"{len(files)} tables in {output}", *means])
    else:
        from ....simulator.record.files import picked
        from ...facts.texts import RECORDS
        from ...traces.selection import LIMIT
        from ...traces.writing import write_trace

        second = None if other is None else load_run(other)
        done = write_trace(run, output, kind, _window(window), LIMIT if limit is None else limit, second)
        all_of_them = sum(x.instructions for r in (run, second) if r is not None for x in r.launches)
        told = {"files": [output], **picked(done, "instructions recorded")}
        told |= {"instructions_of_the_run": all_of_them, "complete": done.complete}
        left_out = _left_out(done.instructions, done.recorded, done.complete)
        counts = (
            f"{RECORDS}; {'the run has' if second is None else 'the runs have'} {all_of_them:,} instructions"
        )
        message = f"{done.instructions:,} records of instructions in {output}{left_out} ({counts})"
    if as_json:
        show_json(told)
    else:
        note(message)


def _check_target(output: str, kind: str) -> None:
    """A record is not overwritten by a trace."""
    from ....simulator.errors import UsageError

    if kind != "vendor" and Path(output).suffix != ".json":
        raise UsageError(f"{output}: a trace is written to a file that ends in .json")


def _left_out(shown: int, recorded: int, complete: bool) -> str:
    if shown < recorded:
        return f"; {recorded - shown:,} more are recorded, --window and --limit choose others"
    return "" if complete else "; the run has more, which its timeline does not keep (device option timeline)"


def _window(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    low, colon, high = text.partition(":")
    with contextlib.suppress(ValueError):
        if colon:
            return float(low or 0), float(high or "inf")
    raise click.UsageError(f"--window {text!r} is not FROM:TO in us, such as 10:20.5 or 10:")
