"""`ascendtile ops`: what there is to run, with its cases and knobs."""

from __future__ import annotations

import click

from ..options import find_operator, json_option


@click.command()
@click.argument("op", required=False)
@json_option()
def command(op: str | None, as_json: bool) -> None:
    """List operators, or the cases and tiling of one."""
    from ....kernels import operators
    from ...terminal import ops_view as view
    from ...terminal.console import show, show_json

    chosen = [find_operator(op)] if op else list(operators().values())
    if as_json:
        show_json(view.ops_json(chosen))
    else:
        show(view.op_page(chosen[0]) if op else view.ops_table(chosen))
