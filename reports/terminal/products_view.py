"""Views of product files: the table of all products, the page of one.

Cores: C Cube units, V Vector units. The last column counts figures that nobody published (grade D).
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...simulator.products import Figure, Product
from ...simulator.record.files import picked
from .tables import folding

COLUMNS = ("name", "product", "cores", "MHz", "UB/L1\nKiB", "HBM\nTB/s", "fp16\nTFLOPS", "assumed")


def cube_fp16_tflops(product: Product) -> float:
    """Peak of all Cube units of one die, fp16 inputs, a multiply-add counted as two."""
    macs = product.number("cube.m") * product.number("cube.n") * product.number("cube.k_per_cycle.fp16")
    return 2 * macs * product.cube_cores * product.aicore_mhz / 1e6


def products_json(products: Iterable[Product]) -> dict[str, object]:
    """The table as plain data, one entry per product, with the unit in each name."""
    return {"products": [_summary(product) for product in products]}


def product_json(product: Product, assumed_only: bool = False) -> dict[str, object]:
    """One product as plain data: title, fingerprint, source ids and its figures, or only the assumed ones."""
    figures = {figure.key: figure.to_dict() for figure in _chosen(product, assumed_only)}
    head = {**picked(product, "name title fingerprint"), "assumed": len(product.assumed())}
    return {**head, "sources": dict(product.sources), "figures": figures}


def products_table(products: Iterable[Product]) -> RenderableType:
    """All products, a line each."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in COLUMNS:
        table.add_column(name, overflow="fold", no_wrap=name == "name")
    for product in products:
        table.add_row(*(Text(cell) for cell in _row(product)))
    return table


def product_page(product: Product, assumed_only: bool = False) -> RenderableType:
    """One product: its figures by section, then the meaning of the source ids. An asterisk marks assumed."""
    figures = _chosen(product, assumed_only)
    sections: dict[str, list[Figure]] = {}
    for figure in figures:
        sections.setdefault(_section_name(figure), []).append(figure)
    tables = [_section(name, members) for name, members in sections.items()]
    return Group(*_heading(product), *tables, _legend(product))


def _summary(product: Product) -> dict[str, object]:
    return {
        **picked(product, "name title core_model cube_cores vector_cores"),
        "extra_vector_cores": _extra_vector_cores(product),
        **picked(product, "aicore_mhz ub_bytes l1_bytes"),
        "memory_tb_per_s": product.number("memory.bandwidth_tb_per_s"),
        "cube_fp16_tflops": cube_fp16_tflops(product),
        "figures": len(product.keys()),
        "assumed": len(product.assumed()),
    }


def _extra_vector_cores(product: Product) -> int:
    key = "cores.extra_vector_cores"
    return product.integer(key) if product.has(key) else 0


def _row(product: Product) -> tuple[str, ...]:
    extra = _extra_vector_cores(product)
    cores = f"{product.cube_cores}C+{product.vector_cores}V" + (f"+{extra}V" if extra else "")
    return (
        product.name,
        product.title,
        cores,
        f"{product.aicore_mhz:g}",
        f"{product.ub_bytes / 1024:g}/{product.l1_bytes / 1024:g}",
        f"{product.number('memory.bandwidth_tb_per_s'):.4g}",
        f"{cube_fp16_tflops(product):.1f}",
        str(len(product.assumed())),
    )


def _chosen(product: Product, assumed_only: bool) -> tuple[Figure, ...]:
    return product.assumed() if assumed_only else product.figures()


def _section_name(figure: Figure) -> str:
    """The table of the file that the figure stands in: "buffers", "path.gm_to_ub", "vector.op.add"."""
    parts = figure.key.split(".")
    depth = 3 if parts[:2] == ["vector", "op"] else 2 if parts[0] == "path" else 1
    return ".".join(parts[:depth])


def _heading(product: Product) -> tuple[Text, Text]:
    total, assumed = len(product.keys()), len(product.assumed())
    title = Text(f"{product.title} ({product.name})", style="bold")
    return title, Text(f"{total} figures, {assumed} assumed (D*: nobody published it)")


def _section(name: str, figures: list[Figure]) -> Table:
    table = folding(("figure", 30), ("value and unit", 18), ("grade", 2), ("source", 27), heads=False)
    table.title, table.title_justify = Text(f"\n[{name}]", style="bold"), "left"
    for figure in figures:
        cells = (figure.key.removeprefix(f"{name}."), _value(figure), _grade(figure), _source(figure))
        table.add_row(*(Text(cell) for cell in cells), style="yellow" if figure.assumed else "")
    return table


def _value(figure: Figure) -> str:
    if isinstance(figure.value, tuple):
        return ", ".join(str(item) for item in figure.value)
    if isinstance(figure.value, str):
        return figure.value
    text = f"{figure.value:.12g} {figure.unit}".removesuffix(" count")
    if figure.low is None and figure.high is None:
        return text
    low, high = (figure.value if end is None else end for end in (figure.low, figure.high))
    return f"{text} ({low:.12g} to {high:.12g})"


def _grade(figure: Figure) -> str:
    return figure.grade + ("*" if figure.assumed else "")


def _source(figure: Figure) -> str:
    return f"{figure.source}; {figure.note}" if figure.note else figure.source


def _legend(product: Product) -> Table:
    table = folding(("id", 6), ("what it is", 0), heads=False)
    table.title, table.title_justify = Text("\nsources", style="bold"), "left"
    for name, text in product.sources.items():
        table.add_row(Text(name), Text(text))
    return table
