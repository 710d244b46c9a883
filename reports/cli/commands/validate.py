"""`ascendtile validate`: predictions beside public board measurements."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ..options import json_option

if TYPE_CHECKING:
    from ....kernels.validation import Row

PICTURES = (".png", ".svg")


@click.command()
@click.option(
    "--group",
    "groups",
    metavar="G",
    multiple=True,
    help="Only rows of this group or table (micro, kernels). May repeat.",
)
@click.option("--plot", metavar="FILE.png|.svg", help="Measured against predicted, on logarithmic axes.")
@click.option("--table", metavar="FILE.csv", help="Measurements of your own instead of the project's.")
@click.option(
    "--cross",
    is_flag=True,
    help="Leave out each source of kernel rows once, fit figures on the others, and predict it with them (minutes).",
)
@json_option
def command(groups: tuple[str, ...], plot: str | None, table: str | None, cross: bool, as_json: bool) -> None:
    """Simulate what others measured on boards, and tell the error.

    Shows median and 90th percentile of the absolute error and the rank correlation of every group, rows that
    figures were fitted on and others apart, and which rows are not judged and why; then measured, predicted and
    roofline figures of every row. The columns, ops and tiling keys of a table of your own are in
    kernels/validation/TABLES.md of the sources.

    Example: ascendtile validate --group micro --plot micro.svg
    """
    _check(plot)
    from ....kernels.validation import read_table, validate
    from ..progress import shown

    rows = read_table(table) if table is not None else None
    if cross:
        if plot is not None:
            raise click.UsageError(
                "--plot is of the product's own figures, --cross of others; give one of them"
            )
        _cross(rows, groups, as_json)
        return
    with shown("rows") as progress:
        found = validate(rows, groups, progress=progress)
    if plot is not None:
        from ...pictures.validation import save_plot

        save_plot(found, plot)
    _show(found, as_json)
    if found.failed:
        raise SystemExit(1)


def _cross(rows: Sequence[Row] | None, groups: tuple[str, ...], as_json: bool) -> None:
    from ....kernels.validation import read_tables, rows_of
    from ....kernels.validation.calibration import cross_validate
    from ...terminal.calibration_view import cross_json, cross_page
    from ...terminal.console import present
    from ..progress import shown

    with shown("rows") as progress:
        found = cross_validate(rows_of(read_tables() if rows is None else rows, groups), progress)
    present(as_json, cross_json, cross_page, found)


def _check(plot: str | None) -> None:
    """Before anything is simulated: a picture that can be written."""
    if plot is None:
        return
    if os.path.splitext(plot)[1].lower() not in PICTURES:
        raise click.UsageError(f"--plot {plot!r} must end in {' or '.join(PICTURES)}")
    folder = os.path.dirname(plot) or "."
    if not os.path.isdir(folder):
        raise click.UsageError(f"--plot {plot!r}: there is no folder {folder!r}")


def _show(found: object, as_json: bool) -> None:
    from ....kernels.validation import Validation
    from ...terminal import validation_view as view
    from ...terminal.console import note, show, show_json

    assert isinstance(found, Validation)
    if not as_json:
        show(view.page(found))
        return
    for text in view.remarks(found):
        note(text)
    show_json(view.validation_json(found))
