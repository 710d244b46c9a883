"""Dataclasses as JSON data plus numpy arrays, and back, led by the annotations of their fields.

What comes back is checked against the same annotations, field by field: the data may be anybody's. JSON has no NaN and
no infinity: in a field of type float they are the texts "NaN", "Infinity", "-Infinity"; in a field of type Any, where a
text would be a text, they are {"$float": "NaN"}, and a tuple is {"$tuple": [...]}. An array is {"$array": name}.
A message is {"text", "kind", "place", "programs"}; in records of earlier versions it is a text.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from typing import Any, NoReturn, Union, get_args, get_origin, get_type_hints

import numpy as np

from ..errors import UsageError
from ..messages import KINDS, Message, as_message
from ..products.quantity import show

MAX_DEPTH = 32
LARGEST = {int: 2**63, float: 2**100, bool: 2}  # what views can calculate with
NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
OF_MESSAGE = {"kind": str, "place": str, "programs": tuple[int, ...]}
SCALARS: dict[Any, Any] = {bool: bool, int: int, float: int | float, str: str, type(None): type(None)}

# ---- to JSON ----


class Encoder:
    """`encode(run, Run)` gives JSON data; the arrays it meets are put into `arrays` under the path of their field."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = names  # of annotations that are imported for type checkers only
        self.arrays: dict[str, np.ndarray] = {}

    def encode(self, value: Any, hint: Any, where: str = "") -> Any:
        """`value`, whose annotation is `hint`, as JSON data."""
        if isinstance(value, np.ndarray):
            self.arrays[where] = value
            return {"$array": where}
        if hint is Any:
            return encode_any(value)
        if hint is Message:
            return encode_message(as_message(value))
        if is_dataclass(hint):
            return self._dataclass(value, hint, where)
        if get_origin(hint) is tuple:
            pairs = zip(value, _tuple_hints(hint, len(value)), strict=True)
            return [self.encode(x, h, f"{where}.{k}") for k, (x, h) in enumerate(pairs)]
        if get_origin(hint) is dict:
            inner = get_args(hint)[1]
            return {str(k): self.encode(x, inner, f"{where}.{k}") for k, x in value.items()}
        if _is_optional(hint):
            return None if value is None else self.encode(value, _without_none(hint), where)
        return _scalar(value)

    def _dataclass(self, value: Any, hint: Any, where: str) -> dict[str, Any]:
        hints = type_hints(hint, self.names)
        prefix = f"{where}." if where else ""
        return {n: self.encode(getattr(value, n), h, prefix + n) for n, h in hints.items()}


def encode_message(message: Message) -> dict[str, Any]:
    """A message as JSON data."""
    return {"text": str(message), **{n: getattr(message, n) for n in OF_MESSAGE}}


def encode_any(value: Any) -> Any:
    """A value of no declared type; what is no number, text, list, tuple or dict is kept as its text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": _name_of(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple):
        return {"$tuple": [encode_any(x) for x in value]}
    if isinstance(value, list):
        return [encode_any(x) for x in value]
    if isinstance(value, Mapping):
        return _encode_mapping(value)
    return str(value)


def _encode_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    plain = {str(k): encode_any(x) for k, x in value.items()}
    clash = any(k.startswith("$") for k in plain)
    return {"$dict": [[k, x] for k, x in plain.items()]} if clash else plain


def _scalar(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return _name_of(value)
    return value


def _name_of(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


# ---- from JSON ----


class Decoder:
    """`decode(data, Run)` gives the Run back; `UsageError` names the field that does not fit its annotation."""

    def __init__(self, names: Mapping[str, Any], array: Callable[[str], np.ndarray]) -> None:
        self.names = names
        self.array = array

    def decode(self, data: Any, hint: Any, where: str = "") -> Any:
        """`data` as a value whose annotation is `hint`."""
        if hint is Any:
            return decode_any(data, where)
        if hint is Message:
            return self._message(data, where)
        if hint in SCALARS:
            return _checked_scalar(data, hint, where)
        if is_dataclass(hint):
            return self._dataclass(data, hint, where)
        if hint is np.ndarray:
            return self.array(_reference(data, where))
        if _is_optional(hint):
            return None if data is None else self.decode(data, _without_none(hint), where)
        return self._container(data, hint, where)

    def _container(self, data: Any, hint: Any, where: str) -> Any:
        if get_origin(hint) in (dict, Mapping):
            inner = get_args(hint)[1]
            return {k: self.decode(x, inner, f"{where}.{k}") for k, x in _typed(data, dict, where).items()}
        items = _typed(data, list, where)
        inner = _tuple_hints(hint, len(items))
        if len(inner) != len(items):
            raise UsageError(f"{where} must have {len(inner)} items, it has {len(items)}")
        pairs = zip(items, inner, strict=True)
        return tuple(self.decode(x, h, f"{where}.{k}") for k, (x, h) in enumerate(pairs))

    def _message(self, data: Any, where: str) -> Message:
        """Of an earlier version, which had no kinds, a note."""
        if isinstance(data, str):
            return Message(data)
        _fields(data, {"text": str, **OF_MESSAGE}, {"text", *OF_MESSAGE}, where)
        read = {n: self.decode(data[n], h, f"{where}.{n}") for n, h in OF_MESSAGE.items()}
        if read["kind"] not in KINDS:
            raise UsageError(
                f"{where[:60]}.kind is {show(read['kind'])}; it must be one of {', '.join(KINDS)}"
            )
        for k, number in enumerate(read["programs"]):
            if number < 0:
                raise UsageError(f"{where[:60]}.programs.{k} is {number}; it must be 0 or more")
        return Message(self.decode(data["text"], str, f"{where}.text"), **read)

    def _dataclass(self, data: Any, hint: Any, where: str) -> Any:
        hints = type_hints(hint, self.names)
        required = {f.name for f in fields(hint) if f.default is MISSING and f.default_factory is MISSING}
        _fields(data, hints, required, where or hint.__name__)
        prefix = f"{where}." if where else ""
        return hint(**{n: self.decode(x, hints[n], prefix + n) for n, x in data.items()})


def decode_plain(data: Any, hint: Any, where: str) -> Any:
    """JSON data that names no arrays, such as that of explorations and studies, as a value whose annotation is `hint`."""
    return Decoder({}, _no_arrays).decode(data, hint, where)


def _no_arrays(name: str) -> NoReturn:
    raise UsageError(f"names an array {show(name)}, which only records of runs have")


def decode_any(data: Any, where: str, depth: int = 0) -> Any:
    """What `encode_any` wrote."""
    if depth > MAX_DEPTH:
        raise UsageError(f"{where[:60]} is nested deeper than {MAX_DEPTH} levels")
    if isinstance(data, list):
        return [decode_any(x, where, depth + 1) for x in data]
    if not isinstance(data, dict):
        return data
    tag = next((k for k in data if k.startswith("$")), None)
    if tag is None:
        return {k: decode_any(x, where, depth + 1) for k, x in data.items()}
    return _decode_tagged(tag, data[tag], where, depth) if len(data) == 1 else _bad_tag(tag, where)


def _decode_tagged(tag: str, data: Any, where: str, depth: int) -> Any:
    if tag == "$float" and isinstance(data, str) and data in NOT_FINITE:
        return NOT_FINITE[data]
    if tag == "$tuple" and isinstance(data, list):
        return tuple(decode_any(x, where, depth + 1) for x in data)
    if tag == "$dict" and isinstance(data, list) and all(map(_is_pair, data)):
        return {k: decode_any(x, where, depth + 1) for k, x in data}
    return _bad_tag(tag, where)


def _is_pair(item: Any) -> bool:
    return isinstance(item, list) and len(item) == 2 and isinstance(item[0], str)


def _bad_tag(tag: str, where: str) -> Any:
    raise UsageError(f"{where[:60]} has a {show(tag)} that makes no sense")


def _checked_scalar(data: Any, hint: Any, where: str) -> Any:
    if hint is float and isinstance(data, str) and data in NOT_FINITE:
        return NOT_FINITE[data]
    if not isinstance(data, SCALARS[hint]) or (isinstance(data, bool) and hint is not bool):
        raise UsageError(f"{where[:60]} must be {hint.__name__}, got {show(data)}")
    if isinstance(data, int) and abs(data) >= LARGEST[hint]:
        raise UsageError(f"{where[:60]} is {show(data)}, which no {hint.__name__} of a run is")
    return data


def _typed(data: Any, kind: type, where: str) -> Any:
    if not isinstance(data, kind):
        raise UsageError(
            f"{where[:60]} must be a JSON {'object' if kind is dict else 'array'}, got {show(data)}"
        )
    return data


def _fields(data: Any, known: Mapping[str, Any], required: set[str], where: str) -> None:
    """`data` must be an object with the fields that it needs and no other than the known ones."""
    _typed(data, dict, where)
    odd = sorted((required - data.keys()) | (data.keys() - known.keys()))
    if odd:
        verb = "lacks" if odd[0] in required else "has unknown"
        raise UsageError(f"{where} {verb} field {show(odd[0])}")


def _reference(data: Any, where: str) -> str:
    name = data.get("$array") if isinstance(data, dict) and len(data) == 1 else None
    if not isinstance(name, str):
        raise UsageError(f"{where[:60]} must name an array, got {show(data)}")
    return name


# ---- annotations ----


def type_hints(cls: Any, names: Mapping[str, Any]) -> dict[str, Any]:
    """Field name -> type of a dataclass."""
    return _hints(cls, tuple(names.items()))


@lru_cache
def _hints(cls: Any, names: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    found = get_type_hints(cls, localns=dict(names))
    return {f.name: found[f.name] for f in fields(cls)}


def _is_optional(hint: Any) -> bool:
    return get_origin(hint) in (types.UnionType, Union) and type(None) in get_args(hint)


def _without_none(hint: Any) -> Any:
    (inner,) = (h for h in get_args(hint) if h is not type(None))
    return inner


def _tuple_hints(hint: Any, length: int) -> tuple[Any, ...]:
    inner = get_args(hint)
    return (inner[0],) * length if inner[1:] == (Ellipsis,) else inner
