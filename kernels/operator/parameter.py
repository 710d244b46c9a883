"""Knobs of a tiling, options and arguments of an operator: what they may be, and how a given value is read."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...simulator.errors import UsageError
from .messages import listed, near, refuse
from .tensors import DTYPE_NAMES

AUTO = "auto"
NULLPTR = 161001  # status of the vendor's library
REQUIRED = object()  # the default of an argument that must be given


@dataclass(frozen=True)
class Parameter:
    """One knob.

    kind: "choice" (one of `choices`), "int" (from `low` to `high`; None: no limit of its own), "ints" (a tuple of them,
    in a text "1,2" or "1x2") or "float" (any finite number). default None: the operator chooses by a documented rule; `None`
    and "auto" ask for that. multiple: what an "int" has to be a multiple of.
    """

    name: str
    kind: str
    default: Any
    choices: tuple[str, ...] | None = None
    low: int | None = None
    high: int | None = None
    help: str = ""
    multiple: int = 1
    numbered: bool = False

    def read(self, what: str, value: Any) -> Any:
        """The value, checked; texts from a command line are converted. `what` names the knob's family."""
        if value is None or (value == AUTO and self.default is None):
            return self.default
        here = f"{what} {self.name!r}"
        if self.kind == "ints":
            return tuple(self._integer(here, x) for x in _listed(here, value))
        if self.kind == "float":
            return _number(here, value)
        return self._choice(here, value) if self.kind == "choice" else self._integer(here, value)

    def _choice(self, here: str, value: Any) -> str:
        number = whole(value) if self.numbered else None
        if self.choices and number is not None and 0 <= number < len(self.choices):
            return self.choices[number]
        if value not in (self.choices or ()):
            raise UsageError(f"{here} must be one of {listed(self.choices or (), 'or')}, got {value!r}")
        return str(value)

    def _integer(self, here: str, value: Any) -> int:
        n = whole(value)
        if n is None:
            raise UsageError(f"{here} must be an integer, got {value!r}")
        if self.low is not None and n < self.low:
            raise UsageError(f"{here} must be at least {self.low}, got {n}")
        if self.high is not None and n > self.high:
            raise UsageError(f"{here} must be at most {self.high}, got {n}")
        if n % self.multiple:
            near = [
                x
                for x in (n // self.multiple * self.multiple, -(-n // self.multiple) * self.multiple)
                if x > 0
            ]
            raise UsageError(
                f"{here} must be a multiple of {self.multiple}, got {n}; take {listed(near, 'or')}"
            )
        return n


@dataclass(frozen=True)
class Argument:
    """An argument of an operator's Python face that is no input.

    annotation: its type, as help shows it. default: `REQUIRED` for one that must be given. read: the options that the value
    stands for, with the inputs by name; without it the value is the option of that name. keyword: given by name only.
    """

    name: str
    annotation: str
    default: Any = REQUIRED
    read: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]] | None = None
    keyword: bool = False

    def options(self, value: Any, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The options of the operator that this value stands for."""
        return {self.name: value} if self.read is None else self.read(value, inputs)


def choice(name: str, default: Any, choices: tuple[str, ...], help: str, numbered: bool = False) -> Parameter:
    """A knob with named settings; numbered: the numbers from 0 in their order stand for them, too."""
    return Parameter(name, "choice", default, choices, None, None, help, numbered=numbered)


def integer(
    name: str, default: int | None, low: int | None, high: int | None, help: str, multiple: int = 1
) -> Parameter:
    """A knob that counts."""
    return Parameter(name, "int", default, None, low, high, help, multiple)


def integers(name: str, default: tuple[int, ...] | None, low: int | None, help: str) -> Parameter:
    """An argument with a number for each axis."""
    return Parameter(name, "ints", default, None, low, None, help)


def _listed(here: str, value: Any) -> list[Any]:
    """(1, 2), [1, 2], 3, "1,2" and "1x2" as lists."""
    if isinstance(value, str):
        return [x.strip() for x in value.strip("()[] ").replace("x", ",").split(",") if x.strip()]
    if isinstance(value, tuple | list | np.ndarray):
        return list(value)
    if whole(value) is None:
        raise UsageError(f"{here} must be integers, got {value!r}")
    return [value]


def _number(here: str, value: Any) -> float:
    try:
        found = float("nan") if isinstance(value, bool | np.bool_) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = float("nan")
    if not np.isfinite(found):
        raise UsageError(f"{here} must be a finite number, got {value!r}")
    return found


def whole(value: Any) -> int | None:
    """The integer that `value` is (4, 4.0, "4"), or None."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return int(value) if not isinstance(value, float | np.floating) or value == int(value) else None
    except (TypeError, ValueError, OverflowError):
        return None


def as_mapping(what: str, given: Any, holds: str) -> Mapping[str, Any]:
    """What was given by name; nothing for None. Raises `UsageError` for what is no mapping. holds: "knob to value"."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        short = isinstance(given, str | int | float)
        shown = reprlib.repr(given) if short else f"a {type(given).__name__}"
        raise UsageError(f"{what} must be a mapping of {holds}, got {shown}")
    return given


def read_all(
    op: str, family: str, parameters: tuple[Parameter, ...], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Every parameter by name: the given value, checked, or the default. family: "tiling parameter" or "option"."""
    known = {p.name: p for p in parameters}
    for name in given:
        if name not in known:
            raise UsageError(f"{op} has no {family} {name!r}{near(name, known)}")
    return {n: p.read(f"{op}: {family}", given.get(n)) for n, p in known.items()}


def flag(op: str, name: str, given: Any) -> bool:
    """True or False, 1 or 0, or the text "true" or "false"; `RefusedError` (161002) for anything else."""
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


def flag_argument(op: str, name: str, default: bool = True) -> Argument:
    """An argument that is a flag, for an option that is 1 or 0."""
    return Argument(name, "bool", default, lambda given, inputs: {name: int(flag(op, name, given))})


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
