"""Names of data types and number formats of a study, which may be anybody's."""

from __future__ import annotations

from ....simulator.errors import UsageError
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


def short_name(kind: str) -> str:
    """ "fp16" of "float16"."""
    found = number_format(kind)
    return clean(kind if found is None else found.name, 60)


def memory_bits(kind: str) -> str:
    """ "8 b": the bits of an element in memory, "-" where they are not known."""
    found = number_format(kind)
    return "-" if found is None else f"{found.storage_bits} b"
