"""Block formats by name, and from one line."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import tomli

from ...errors import UsageError
from ..formats import get_format
from .block_format import BlockFormat


def _load() -> dict[str, BlockFormat]:
    rows = tomli.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))
    made = {}
    for name, row in rows.items():
        element, scale = get_format(row.pop("element")), get_format(row.pop("scale"))
        aliases = tuple(row.pop("aliases", ()))
        made[name] = BlockFormat(element, scale, **row, name=name, aliases=aliases)
    return made


BLOCK_FORMATS: dict[str, BlockFormat] = _load()
_BY_NAME = {alias: f for f in BLOCK_FORMATS.values() for alias in (f.name, *f.aliases)}


def get_block_format(which: str | BlockFormat) -> BlockFormat:
    """A BlockFormat from itself, its name (mxfp8, nvfp4), or one line.

    The line is ELEMENT/SCALE/BLOCK: two formats as `get_format` takes them, and elements that share a scale, or "axis" for
    all along the axis that is quantised: "e4m3/e8m0/32", "int4/fp16/64", "int8/fp32/axis".
    """
    if isinstance(which, BlockFormat):
        return which
    text = str(which)
    return _BY_NAME.get(text.lower()) or _of_line(text)


@lru_cache(maxsize=256)
def _of_line(text: str) -> BlockFormat:
    parts = text.split("/")
    if len(parts) != 3:
        raise UsageError(
            f"unknown block format {text!r}: known are {', '.join(BLOCK_FORMATS)}; one line is ELEMENT/SCALE/BLOCK, "
            "as int4/fp16/64"
        )
    element, scale, block = parts
    if block != "axis" and not (block.isascii() and block.isdigit() and len(block) < 10):
        raise UsageError(f"block format {text!r}: block {block!r}: elements that share a scale, or axis")
    size = None if block == "axis" else int(block)
    return BlockFormat(get_format(element), get_format(scale), size, name=text)
