"""Fields of a record that are made when they are first read: most of what a launch tells is never asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")
C = TypeVar("C", bound=type)


class Later:
    """A value that is made once, when it is first asked for; what it is made from is kept until then."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make: Callable[[], Any] | None = make
        self.value: Any = None

    def __call__(self) -> Any:
        make = self.make
        if make is not None:
            self.value = make()
            self.make = None
        return self.value


def later(make: Callable[[], T]) -> T:
    """For a field of a record with `made_when_read`."""
    found: Any = Later(make)
    return found  # type: ignore[no-any-return]


class _Field:
    """A field of a record, of which copies share what is made later."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, record: Any, owner: type) -> Any:
        if record is None:
            raise AttributeError(self.name)
        value = vars(record)[self.name]
        if isinstance(value, Later):
            value = vars(record)[self.name] = value()
        return value

    def __set__(self, record: Any, value: Any) -> None:
        vars(record)[self.name] = value


def made_when_read(cls: C) -> C:
    """Of a dataclass: each field may be given as `later`. Equality, pickling and `dataclasses.replace` read all fields."""
    for f in fields(cls):
        setattr(cls, f.name, _Field(f.name))
    setattr(cls, "__getstate__", _state)  # noqa: B010
    return cls


def _state(record: Any) -> dict[str, Any]:
    return dict(vars(whole(record)))


def whole(record: T) -> T:
    """The record, with nothing left to be made: for who keeps many of them."""
    for name in vars(record):
        getattr(record, name)
    return record


def but(record: T, **changes: Any) -> T:
    """As `dataclasses.replace`; what is made later stays so."""
    return type(record)(**{**vars(record), **changes})
