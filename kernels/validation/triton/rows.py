"""What a row states, checked by name: sizes, types and numbers that its predictor needs."""

from __future__ import annotations

from ascendtile.simulator.errors import UsageError

from ..settings import Settings, dtypes_of
from ..table import Row


def block_of(row: Row, *others: tuple[int, int]) -> tuple[tuple[int, ...], ...]:
    """`block=` of the row as two numbers joined by x, or what to try."""
    s = Settings(row)
    return (_positive(row, "block", s.numbers("block", 2)),) if s.text("block") or not others else others


def number_of(row: Row, key: str) -> int:
    """The whole number of a key of the tiling, at least 1."""
    return _positive(row, key, (Settings(row).number(key),))[0]


def types_of(row: Row, inputs: int) -> tuple[str, ...]:
    """Types of so many inputs, then that of the output."""
    found, (output, *_) = dtypes_of(row)
    if len(found) != inputs:
        raise UsageError(f"{row.id}: dtypes must be those of {inputs} inputs, got {row.dtypes!r}")
    return (*found, output)


def _positive(row: Row, key: str, found: tuple[int, ...]) -> tuple[int, ...]:
    if min(found) < 1:
        raise UsageError(f"{row.id}: tiling {key}={Settings(row).text(key)} must be at least 1")
    return found
