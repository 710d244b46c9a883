"""Arguments of the Python faces that several operators have: flags and element types.

A flag is True or False, 1 or 0, or the text "true" or "false"; anything else is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .parameter import Argument
from .refusing import refuse
from .tensors import DTYPE_NAMES

NULLPTR = 161001


def flag(op: str, name: str, given: Any) -> bool:
    """The flag; `RefusedError` (161002) for what is none: any text but "" would be true for Python."""
    if isinstance(given, str):
        number = {"true": 1.0, "false": 0.0}.get(given.lower())
    else:
        try:
            number = float(given)
        except (TypeError, ValueError):
            number = None
    if number not in (0.0, 1.0):
        raise refuse(f"{op}: {name} is {given!r}; it must be True or False")
    return bool(number)


def flag_argument(op: str, name: str) -> Argument:
    """An argument that is a flag, for an option that is 1 or 0."""
    return Argument(name, "bool", True, lambda given, inputs: {name: int(flag(op, name, given))})


def dtype_argument(name: str) -> Argument:
    """An argument, by name only: the element type of an output, "auto" or a name, also a short one."""
    return Argument(
        name, "str", "auto", lambda given, inputs: {name: DTYPE_NAMES.get(given, given)}, keyword=True
    )


def flags(op: str, name: str, given: Any) -> tuple[int, ...]:
    """A mask as ones and zeros; `RefusedError`, 161001 for None and 161002 for what holds no flags."""
    if given is None:
        raise refuse(f"{op}: {name} is null; it must be given", NULLPTR)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise refuse(f"{op}: {name} is {given!r}; it must be a sequence of True and False")
    return tuple(int(flag(op, f"{name}[{k}]", x)) for k, x in enumerate(given))
