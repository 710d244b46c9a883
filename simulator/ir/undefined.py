"""A name that has no value where it is used, and why."""

from __future__ import annotations


class Undefined:
    """A name that exists on one path only; using it is an error that says why."""

    def __init__(self, why: str) -> None:
        self.why = why
