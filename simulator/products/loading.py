"""`load_product`: a shipped product by name, a user's file by path, with what it inherits and overrides."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

import tomli

from ..errors import ProductError
from .figure import Figure
from .product import Product
from .quantity import show
from .reading import override, read_figures, read_sources
from .spec import ASSUMED_GRADE

Figures = Mapping[str, Figure]
REUSED = ("grade", "words", "but")


def inherit(base: Figures, without: object, reused: object, where: str) -> dict[str, Figure]:
    """The figures of `base` for a file that has these two entries.

    without: keys that the product does not have. reused: `{ grade, words, but }`: figures of that grade were found on the
    base alone, so they have grade D here and `words` in their source, except those that `but` lists. A key that ends
    above the data types stands for all of them.
    """
    gone = _keys(base, without, f"{where}: without")
    kept = {key: figure for key, figure in base.items() if key not in gone}
    if reused is None:
        return kept
    grade, words, but = _read_reused(reused, where)
    same = _keys(base, but, f"{where}: reused.but")
    return {
        key: replace(figure, source=f"{figure.source} ({words})", grade=ASSUMED_GRADE)
        if figure.grade == grade and key not in same
        else figure
        for key, figure in kept.items()
    }


def _read_reused(reused: object, where: str) -> tuple[str, str, object]:
    if not isinstance(reused, Mapping) or not {"grade", "words"} <= set(reused) <= set(REUSED):
        raise ProductError(f"{where}: reused must be a table with {', '.join(REUSED)}, got {show(reused)}")
    return str(reused["grade"]), str(reused["words"]), reused.get("but", ())


def _keys(base: Figures, names: object, where: str) -> set[str]:
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ProductError(f"{where} must be a list of keys, got {show(names)}")
    found: set[str] = set()
    for name in names:
        keys = {key for key in base if key == name or key.startswith(f"{name}.")}
        if not keys:
            raise ProductError(f"{where}: the base has no figure {show(name)}")
        found |= keys
    return found


def in_sections(figures: Figures) -> dict[str, Figure]:
    """The same figures, those that the base lacks at the end of their section."""
    sections = list(dict.fromkeys(key.split(".")[0] for key in figures))
    return dict(sorted(figures.items(), key=lambda item: sections.index(item[0].split(".")[0])))


def named_sources(sources: Mapping[str, str], figures: Figures) -> dict[str, str]:
    """Those of the source ids that a figure names."""
    text = " ".join(f"{figure.source} {figure.note or ''}" for figure in figures.values())
    named = set(re.findall(r"\w+", text))
    return {name: what for name, what in sources.items() if name in named}


FOLDER = Path(__file__).resolve().parent
LARGEST_FILE = 2**20


@lru_cache(maxsize=1)
def product_names() -> tuple[str, ...]:
    """Names of the shipped products, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def load_product(
    product: str | os.PathLike[str] | Product, overrides: Mapping[str, object] | None = None
) -> Product:
    """The product of a shipped name, of a path to a TOML file, or a Product itself, with `overrides` applied.

    overrides: key to value, as typed ({"buffers.ub": "256KiB"}) or as a number in the unit of the figure.
    Raises ProductError, with file, key, rule, what was got and the way out.
    """
    found = product if isinstance(product, Product) else _load(product)
    return _with_overrides(found, overrides) if overrides else found


def _load(product: object) -> Product:
    if not isinstance(product, str | os.PathLike):
        raise ProductError(f"a product is a name, a path to a .toml file or a Product, got {show(product)}")
    name = os.fspath(product)
    if not isinstance(name, str):
        raise ProductError(f"a path to a product file must be text, got {show(name)}")
    if isinstance(product, os.PathLike) or name.endswith(".toml") or "/" in name or os.sep in name:
        return _user_product(name)
    return _shipped(name)


@lru_cache(maxsize=32)
def _shipped(name: str) -> Product:
    if name not in product_names():
        raise ProductError(_unknown(name))
    return _build(name, FOLDER / f"{name}.toml", None)


def _unknown(name: str) -> str:
    near = [known for known in product_names() if name and known.startswith(name)]
    near = near or get_close_matches(name.lower(), product_names(), n=3, cutoff=0.5)
    way_out = "; a path to a file of your own must end in .toml;"
    hint = f": did you mean {', '.join(near)}?" if near else way_out
    return f"unknown product {show(name)}{hint} `ascendtile products` lists them"


def _user_product(name: str) -> Product:
    path = Path(name)
    return _build(path.stem, path, f"user file {path.name}")


def _build(name: str, path: Path, bare_source: str | None) -> Product:
    where = path.name or str(path)
    data = _parse(path)
    base = _base(data.pop("base", None), where)
    sources = read_sources(data.pop("sources", {}), where)
    if base is None:
        return _checked_product(name, read_figures(data, where, bare_source), sources, where)
    inherited = inherit(base.figures_by_key, data.pop("without", ()), data.pop("reused", None), where)
    own = read_figures(data, where, bare_source, base.figures_by_key)
    figures = in_sections({**inherited, **own})
    return _checked_product(name, figures, {**named_sources(base.sources, figures), **sources}, where)


def _checked_product(name: str, figures: dict[str, Figure], sources: dict[str, str], where: str) -> Product:
    try:
        return Product(name, figures, sources)
    except ProductError as error:
        raise ProductError(f"{where}: {str(error).removeprefix(f'{name}: ')}") from None


def _base(base: object, where: str) -> Product | None:
    if base is None:
        return None
    if not isinstance(base, str) or base not in product_names():
        names = ", ".join(product_names())
        raise ProductError(f"{where}: base must name a shipped product ({names}), got {show(base)}")
    return _shipped(base)


def _parse(path: Path) -> dict[str, object]:
    text = _text(path)
    try:
        return dict(tomli.loads(text))
    except (ValueError, RecursionError) as error:
        raise ProductError(f"{path.name}: not valid TOML: {error}") from None


def _text(path: Path) -> str:
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise ProductError(f"{path}: a product must be a regular file")
        if (size := status.st_size) > LARGEST_FILE:
            raise ProductError(f"{path}: a product file has at most {LARGEST_FILE} bytes, got {size}")
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProductError(f"{path.name}: must be UTF-8 text, byte {error.start} is not") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ProductError(f"cannot read product file {show(str(path))}: {reason}") from None


def _with_overrides(product: Product, overrides: Mapping[str, object]) -> Product:
    figures = dict(product.figures_by_key)
    for key, raw in overrides.items():
        figures[key] = override(figures.get(key), key, raw, product.name)
    return _checked_product(product.name, figures, dict(product.sources), f"override of {product.name}")
