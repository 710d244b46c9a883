"""`ascendtile report`: a record as a page in the terminal, as an HTML file, or as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..options import json_option

PICTURES = (
    "roofline, timeline, occupancy, errors, magnitude, blame (runs), pareto, heatmap (explorations), "
    "precision, front, sweep, magnitude, lost (studies), difference (two runs)"
)


@click.command()
@click.argument("files", metavar="FILE [OTHER.run]", nargs=-1, required=True)
@click.option(
    "-o", "--output", metavar="FILE", help="Write a page (.html), or with --picture a .png, .svg or .pdf."
)
@click.option("--picture", metavar="NAME", help=f"One picture: {PICTURES}.")
@json_option
def command(files: tuple[str, ...], output: str | None, picture: str | None, as_json: bool) -> None:
    """Show what a record holds.

    FILE is a run (`ascendtile run --save`, `ascendtile demo`, run.save), a store (`ascendtile explore --store`), or the
    JSON of `ascendtile explore` or `ascendtile precision`; two runs are compared. With -o it becomes one HTML file that
    opens offline.

    Example: ascendtile report x.run -o x.html
    """
    _check(files, output, picture, as_json)
    from ...facts.reading import read_record

    records = [read_record(f) for f in files]
    if output is None:
        from ...terminal import record_view
        from ...terminal.console import present

        present(as_json, record_view.plain, record_view.page, records, files)
    elif picture is not None:
        _draw(records, picture, output)
    else:
        _write(records, files, output)


def _check(files: tuple[str, ...], output: str | None, picture: str | None, as_json: bool) -> None:
    """Refuse what contradicts itself before anything is read."""
    if len(files) > 2:
        raise click.UsageError(
            f"a report is of one file, or of two runs side by side; {len(files)} are given"
        )
    if picture is not None and output is None:
        raise click.UsageError("--picture writes a file: give it with -o FILE.png, .svg or .pdf")
    if as_json and output is not None:
        raise click.UsageError("--json prints data and -o writes a file; give one of them")
    if output is not None:
        from ....simulator.record.files import check_target

        check_target(output)
        if picture is None and Path(output).suffix.lower() not in (".html", ".htm"):
            raise click.UsageError(
                f"-o {output}: a page ends in .html; for .png, .svg or .pdf say which --picture"
            )


def _write(records: list[Any], files: tuple[str, ...], output: str) -> None:
    from ....simulator.errors import UsageError
    from ...html import write_page
    from ...terminal.console import note

    try:
        write_page(records[0], output, *records[1:])
    except UsageError as error:
        named = str(error).startswith(str(output))
        raise (error if named else UsageError(f"{' and '.join(files)}: {error}")) from None
    note(f"wrote {output}")


def _draw(records: list[Any], picture: str, output: str) -> None:
    from ....simulator.record.run import Run
    from ...pictures import PAIRS, PICTURES, save
    from ...terminal.console import note

    first = records[0]
    kind = "run" if isinstance(first, Run) else "exploration" if isinstance(first, tuple) else "study"
    if len(records) == 2:
        kind = "pair"
        if not all(isinstance(r, Run) for r in records):
            raise click.UsageError("a picture of two files is of two runs")
    known: dict[str, Any] = PAIRS if kind == "pair" else PICTURES[kind]
    draw = known.get(picture)
    if draw is None:
        raise click.UsageError(_no_picture(picture, kind, known))
    if kind == "exploration" and not first:
        raise click.UsageError("the store has no exploration to draw")
    save(draw(*(first[:1] if kind == "exploration" else records)), output)
    note(f"wrote {output}")


def _no_picture(picture: str, kind: str, known: dict[str, Any]) -> str:
    from ...facts.texts import clean
    from ...pictures import PAIRS

    if picture in PAIRS:
        return f"the picture {picture} is of two runs: give both files"
    of = "of two runs" if kind == "pair" else f"of {'an' if kind == 'exploration' else 'a'} {kind}"
    return f"no picture {clean(picture, 60)!r} {of}; there {'is' if len(known) == 1 else 'are'} {', '.join(known)}"
