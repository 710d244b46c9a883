"""Number formats beside the vendor's element types, in which operators take their inputs as a what-if."""

from __future__ import annotations

from ...simulator.precision import dtypes as ty
from ...simulator.precision.formats import FORMATS, Format, UnknownFormatError, get_format


def number_format(name: str) -> Format | None:
    """The format of that name, description or file; None for a name of nothing.

    Raises `UsageError` for a description or a file that makes no format, such as e0m0.
    """
    try:
        return get_format(name)
    except UnknownFormatError:
        if ":" in name or name.endswith(".toml"):
            raise
        return None


def is_other(fmt: Format) -> bool:
    """Whether operands are stored in it as a what-if: signed, at most 16 bits, and not a type of memory here."""
    return fmt.is_float and fmt.signed and fmt.bits <= 16 and fmt.name not in {t.format.name for t in ty.ALL}


def other_formats() -> tuple[str, ...]:
    """Names of those that the catalogue has."""
    return tuple(n for n, f in FORMATS.items() if is_other(f))
