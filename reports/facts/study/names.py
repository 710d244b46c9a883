"""Names of data types and number formats of a study, which may be anybody's."""

from __future__ import annotations

from ....simulator.errors import UsageError
from ....simulator.precision.block_formats import BlockFormat, get_block_format
from ....simulator.precision.formats import Format, get_format
from ..texts import clean


def number_format(name: str) -> Format | None:
    """That of a name or of a description in one line; None for what this process does not know. Opens no file."""
    if name.endswith(".toml"):
        return None
    try:
        return get_format(name)
    except UsageError:
        return None


def block_format(name: str) -> BlockFormat | None:
    """The block format of that name or description; None for any other name. Opens no file."""
    if ".toml" in name:
        return None
    try:
        return get_block_format(name)
    except UsageError:
        return None


def element_bits(name: str) -> int | None:
    """Bits of an element, without its part of a scale; None for what is not known."""
    blocks = block_format(name)
    found = blocks.element if blocks else number_format(name)
    return None if found is None else found.bits


def short_name(kind: str) -> str:
    """ "fp16" of "float16"."""
    found = number_format(kind)
    return clean(kind if found is None else found.name, 60)


def memory_bits(kind: str) -> str:
    """ "8b": the bits of an element in memory with its part of a scale, "-" where they are not known."""
    blocks, found = block_format(kind), number_format(kind)
    if blocks is not None:
        scale = blocks.bits_per_element - blocks.element.bits
        return f"{(4 if blocks.element.bits == 4 else blocks.element.storage_bits) + scale:g}b"
    return "-" if found is None else f"{found.storage_bits}b"
