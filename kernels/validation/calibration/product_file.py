"""A calibrated product as a TOML file: the nearest shipped product as `base`, and every figure that differs from it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.products import Figure, Product, load_product, product_names
from ascendtile.simulator.record.files import check_target, write_whole

LONGEST_NAME = 80


def write_product(path: str | Path, text: str, force: bool) -> None:
    """Write it whole or not at all, and never over a file without `force`."""
    check_output(path, force)
    write_whole(path, text.encode())


def check_output(path: str | Path, force: bool) -> None:
    """Before anything is fitted: whether the file can be written, and is not there yet. UsageError if not."""
    target = check_target(path)
    if target.suffix != ".toml":
        raise UsageError(f"{path}: a product file must end in .toml")
    if target.exists() and not force:
        raise UsageError(f"{path} exists; take another name, or --force to replace it")


def product_toml(product: Product, fitted: Sequence[Figure], title: str) -> str:
    """The text of the file. fitted: what replaces figures of the product; title: what the first line says it comes from."""
    base, known = nearest(product), product.figures_by_key
    own = {k: f for k, f in known.items() if base.figures_by_key.get(k) != f} | {f.key: f for f in fitted}
    without = [k for k in base.figures_by_key if k not in known]
    lines = [
        f"# {printable(title)}: what differs from {base.name}, whose file says what the fields mean.",
        "",
        f"base = {json.dumps(base.name)}",
        *([f"without = {json.dumps(without)}"] if without else []),
        *_sections(own),
    ]
    return "\n".join(lines) + "\n"


def nearest(product: Product) -> Product:
    """The shipped product that differs from it in the fewest figures."""

    def differing(name: str) -> int:
        keys = {*product.keys(), *load_product(name).keys()}
        theirs = load_product(name).figures_by_key
        return sum(product.figures_by_key.get(k) != theirs.get(k) for k in keys)

    return load_product(min(product_names(), key=lambda n: (n != product.name, differing(n))))


def printable(name: str) -> str:
    """A file's name as text of a TOML file."""
    return "".join(c if c.isprintable() else "?" for c in name)[:LONGEST_NAME]


def _sections(figures: dict[str, Figure]) -> Iterator[str]:
    """Keys under the table that their dots name, as the shipped files have them."""
    tables: dict[str, list[str]] = {}
    for key, figure in figures.items():
        table, _, name = key.rpartition(".")
        tables.setdefault(table, []).append(f"{name} = {_entry(figure)}")
    for table, lines in tables.items():
        yield from ("", f"[{table}]", *lines)


def _entry(figure: Figure) -> str:
    parts = (f"{name} = {_toml(value)}" for name, value in figure.to_dict().items())
    return f"{{ {', '.join(parts)} }}"


def _toml(value: object) -> str:
    """JSON's texts, numbers, lists and truths are TOML's."""
    return json.dumps(value, ensure_ascii=False)
