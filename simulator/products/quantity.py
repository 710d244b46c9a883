"""Text and numbers from a user to a value in the unit of the schema: the only place that converts units.

convert("256KiB", rule of buffers.ub)  -> 262144
convert("1.8GHz", rule of clock.aicore_mhz) -> 1800.0
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from .figure import Value
from .spec import FigureRule

# Factor from a suffix to the unit of the schema. KiB is 1024 bytes; TB/s is 1e12 bytes a second.
SUFFIXES: dict[str, dict[str, float]] = {
    "bytes": {"bytes": 1, "byte": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30},
    "MHz": {"MHz": 1, "GHz": 1e3, "kHz": 1e-3, "Hz": 1e-6},
    "us": {"us": 1, "ns": 1e-3, "ms": 1e3, "s": 1e6},
    "TB/s": {"TB/s": 1, "GB/s": 1e-3},
    "cycles": {"cycles": 1, "cycle": 1},
    "bytes/cycle": {"bytes/cycle": 1, "B/cycle": 1},
    "cycles/repeat": {"cycles/repeat": 1},
    "elements/cycle": {"elements/cycle": 1},
    "elements": {"elements": 1},
    "ratio": {"ratio": 1},
    "peak share": {"peak share": 1},
    "count": {"count": 1},
    "text": {"text": 1},
}
AMBIGUOUS = {"KB": "KiB", "kB": "KiB", "MB": "MiB", "GB": "GiB"}
LARGEST = 2.0**62

_NUMBER = re.compile(r"\s*([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S*)\s*", re.ASCII)
_WORDS = re.compile(r"\s*[+-]?(?:nan|inf|infinity)\s*", re.IGNORECASE)


class BadQuantityError(ValueError):
    """A value that does not fit its rule; the text says why, the caller adds file and key."""


def convert(raw: object, rule: FigureRule, unit: str | None = None) -> Value:
    """`raw` (text, number, or a sequence for tuples) as a value of `rule`; `unit` is that of bare numbers."""
    if rule.kind in ("text", "texts"):
        return _texts(raw, rule)
    if rule.kind == "ints":
        return tuple(int(number(item, rule, unit)) for item in _items(raw))
    value = number(raw, rule, unit)
    return int(value) if rule.kind == "int" else value


def number(raw: object, rule: FigureRule, unit: str | None = None) -> float:
    """`raw` in the unit of the rule, checked against its range."""
    if isinstance(raw, str):
        value, unit = _split(raw, rule, unit)
    elif isinstance(raw, int | float) and not isinstance(raw, bool):
        value = float(raw) if abs(raw) < LARGEST else math.inf
    else:
        raise BadQuantityError(f"must be a number in {rule.unit}, got {show(raw)}")
    scaled = value * factor(rule, unit)
    broken = _broken_rule(scaled, rule)
    if broken:
        raise BadQuantityError(f"{broken}, got {show(raw)}")
    return scaled


def factor(rule: FigureRule, unit: str | None) -> float:
    """What a number in `unit` is multiplied by to be in the unit of the rule."""
    table = SUFFIXES[rule.unit]
    if not unit:
        return 1
    if unit in AMBIGUOUS and rule.unit == "bytes":
        raise BadQuantityError(f"{unit} may mean 1000 or 1024: write {AMBIGUOUS[unit]} (1024) or plain bytes")
    if unit not in table:
        raise BadQuantityError(f"is in {rule.unit}, got the unit {show(unit)}; allowed: {', '.join(table)}")
    return table[unit]


def show(raw: object) -> str:
    """What the user gave, short enough for an error text."""
    if isinstance(raw, int) and abs(raw) >= LARGEST:
        return "an integer of 2^62 or more"
    text = repr(raw)
    return text if len(text) <= 60 else text[:57] + "..."


def _split(raw: str, rule: FigureRule, unit: str | None) -> tuple[float, str | None]:
    if _WORDS.fullmatch(raw):
        return math.nan, unit
    match = _NUMBER.fullmatch(raw) if len(raw) <= 100 else None
    if match is None:
        raise BadQuantityError(f"must be a number in {rule.unit}, got {show(raw)}")
    return float(match[1].replace("_", "")), match[2] or unit


def _broken_rule(value: float, rule: FigureRule) -> str | None:
    if not math.isfinite(value) or abs(value) >= LARGEST:
        return "must be finite and less than 2^62"
    if value < 0:
        return "must not be negative"
    if value == 0 and rule.bounds in ("positive", "power of two", "multiple of 16"):
        return "must be greater than zero"
    if rule.kind in ("int", "ints") and value != int(value):
        return f"must be a whole number of {rule.unit}"
    if rule.bounds == "power of two" and int(value) & (int(value) - 1):
        return "must be a power of two"
    if rule.bounds == "multiple of 16" and int(value) % 16:
        return "must be a multiple of 16, the side of a fractal"
    return None


def _items(raw: object) -> Sequence[object]:
    if isinstance(raw, str):
        return [item.strip() for item in raw.split(",")]
    if isinstance(raw, list | tuple):
        return raw
    raise BadQuantityError(f"must be a list, got {show(raw)}")


def _texts(raw: object, rule: FigureRule) -> Value:
    items = _items(raw) if rule.kind == "texts" else [raw]
    texts = tuple(_text(item, rule) for item in items)
    if len(set(texts)) < len(texts):
        raise BadQuantityError(f"must not name anything twice, got {show(raw)}")
    return texts if rule.kind == "texts" else texts[0]


def _text(raw: object, rule: FigureRule) -> str:
    if not is_text(raw):
        raise BadQuantityError(f"must be text that can be printed, got {show(raw)}")
    if rule.choices and raw not in rule.choices:
        raise BadQuantityError(f"must be one of {', '.join(rule.choices)}, got {show(raw)}")
    return str(raw)


def is_text(raw: object) -> bool:
    """Whether it is a text with a word, and without control characters: terminals show it as it is."""
    return isinstance(raw, str) and bool(raw.strip()) and all(c.isprintable() or c in "\n\t" for c in raw)
