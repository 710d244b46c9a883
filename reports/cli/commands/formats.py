"""`ascendtile formats`: the table of number formats, or one with its figures and codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..options import json_option

if TYPE_CHECKING:
    from ....simulator.precision.formats import Format


@click.command()
@click.argument("name", required=False)
@click.option(
    "--value",
    "values",
    type=float,
    multiple=True,
    help="Show what becomes of it, by each mode of rounding; may repeat.",
)
@json_option
def command(name: str | None, values: tuple[float, ...], as_json: bool) -> None:
    """List number formats, or show one.

    NAME is a format of the list, one line such as e4m3:bias=11,nan=zero,infinities=no, a TOML file of your own, or a block
    format: mxfp4, or ELEMENT/SCALE/BLOCK as int4/fp16/64.
    """
    if name is None and values:
        raise click.UsageError("--value needs the NAME of a format")
    from ....simulator.precision.block_formats import BLOCK_FORMATS, get_block_format
    from ....simulator.precision.formats import FORMATS
    from ...terminal.console import present
    from ...terminal.formats import page as view

    if name is None:
        every = list(FORMATS.values()), list(BLOCK_FORMATS.values())
        present(as_json, view.formats_json, view.formats_table, *every)
    elif is_block_format(name):
        if values:
            raise click.UsageError(
                "--value is for formats of single numbers; a block needs all of its values"
            )
        present(as_json, view.block_json, view.block_page, get_block_format(name))
    else:
        present(as_json, view.format_json, view.format_page, _number_format(name), values)


def _number_format(name: str) -> Format:
    """`get_format`; where nothing of either kind has such a name, the message names block formats, too."""
    from ....simulator.errors import UsageError
    from ....simulator.precision.block_formats import BLOCK_FORMATS
    from ....simulator.precision.formats import UnknownFormatError, get_format

    try:
        return get_format(name)
    except UnknownFormatError as e:
        blocks = ", ".join(BLOCK_FORMATS)
        raise UsageError(
            f"{e}; block formats are {blocks}, and ELEMENT/SCALE/BLOCK, as int4/fp16/64"
        ) from None


def is_block_format(name: str) -> bool:
    """Whether a name is that of a block format, or one line of one; a path ends in .toml."""
    from ....simulator.precision.block_formats import BLOCK_FORMATS

    known = {alias for b in BLOCK_FORMATS.values() for alias in (b.name, *b.aliases)}
    return name.lower() in known or (
        len(parts := name.split("/")) == 3 and all(parts) and not name.endswith(".toml")
    )
