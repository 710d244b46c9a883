"""`ascendtile products`: the table of products, or the figures of one with their sources."""

from __future__ import annotations

import click

from ..options import AssignmentCommand, json_option, set_option


@click.command(cls=AssignmentCommand)
@click.argument("name", required=False)
@click.option("--assumed", is_flag=True, help="Only the figures that nobody published.")
@set_option()
@json_option()
def command(name: str | None, assumed: bool, overrides: dict[str, str], as_json: bool) -> None:
    """List products, or the figures of one.

    Every figure has its unit, source and grade beside it; NAME is a product's name or a path to a TOML file of your own.
    """
    if name is None and (assumed or overrides):
        raise click.UsageError(f"{'--assumed' if assumed else '--set'} needs the NAME of a product")
    if name is None:
        _show_table(as_json)
    else:
        _show_product(name, assumed, overrides, as_json)


def _show_table(as_json: bool) -> None:
    from ....simulator.products import load_product, product_names
    from ...terminal import products_view as view
    from ...terminal.console import show, show_json

    products = [load_product(name) for name in product_names()]
    if as_json:
        show_json(view.products_json(products))
    else:
        show(view.products_table(products))


def _show_product(name: str, assumed: bool, overrides: dict[str, str], as_json: bool) -> None:
    from ....simulator.products import load_product
    from ...terminal import products_view as view
    from ...terminal.console import show, show_json

    product = load_product(name, overrides)
    if as_json:
        show_json(view.product_json(product, assumed))
    else:
        show(view.product_page(product, assumed))
