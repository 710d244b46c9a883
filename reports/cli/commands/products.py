"""`ascendtile products`: the table of products, or the figures of one with their sources."""

from __future__ import annotations

import click

from ..options import AssignmentCommand, json_option, set_option


@click.command(cls=AssignmentCommand)
@click.argument("name", required=False)
@click.option("--assumed", is_flag=True, help="Only the figures that nobody published.")
@set_option
@json_option
def command(name: str | None, assumed: bool, overrides: dict[str, str], as_json: bool) -> None:
    """List products, or the figures of one.

    Every figure has its unit, source and grade beside it; NAME is a product's name or a path to a TOML file of your own.
    """
    if name is None and (assumed or overrides):
        raise click.UsageError(f"{'--assumed' if assumed else '--set'} needs the NAME of a product")
    from ....simulator.products import load_product, product_names
    from ...terminal import products_view as view
    from ...terminal.console import present

    if name is None:
        products = [load_product(n) for n in product_names()]
        present(as_json, view.products_json, view.products_table, products)
    else:
        product = load_product(name, overrides)
        present(as_json, view.product_json, view.product_page, product, assumed)
