"""`ascendtile ops`: what there is to run, with its cases and knobs."""

from __future__ import annotations

import click

from ..options import find_operator, json_option


@click.command()
@click.argument("op", required=False)
@json_option
def command(op: str | None, as_json: bool) -> None:
    """List operators, or the cases and tiling of one."""
    from ....kernels import operators
    from ...terminal import ops_view as view
    from ...terminal.console import present

    chosen = [find_operator(op)] if op else list(operators().values())
    present(as_json, view.ops_json, view.op_page if op else view.ops_table, chosen)
