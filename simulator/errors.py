"""Errors that a user can cause. Each names the object, the rule, the numbers on both sides and the way out.

The command line turns `UsageError` into exit status 2 and `RunError` into exit status 1; neither prints a stack trace.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class AscendtileError(Exception):
    """Base of every error that ascendtile raises on purpose."""


class UsageError(AscendtileError, ValueError):
    """Wrong usage or input: unknown product, bad shape, unsupported dtype, malformed file."""


class TooLargeError(UsageError, OverflowError):
    """An integer argument that does not fit into 64 bits."""


class NeedsDataError(UsageError):
    """Time without values was asked for, of a kernel whose time depends on its data."""


class RefusedError(UsageError):
    """A call that the vendor's library refuses, with its status (161002: parameter invalid) and the reason."""

    def __init__(self, message: str, status: int, reason: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason

    def __reduce__(self) -> tuple[type[RefusedError], tuple[str, int, str]]:
        return type(self), (
            str(self),
            self.status,
            self.reason,
        )  # a pool of processes hangs over one it cannot rebuild


class ProductError(UsageError):
    """A product file, or an override of one, breaks a rule; the text names file, key and rule."""


class CompileError(UsageError):
    """A kernel's source says something the language lacks; the text has file, line and a caret.

    error_message: what is said, without place and source line.
    places: where, as Triton writes it ("at 2:4:" from `def` on, the source down to there); a helper's before its call's.
    """

    def __init__(self, text: str, error_message: str = "", places: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.error_message = error_message or text
        self.places = places


class EmptyGridError(UsageError):
    """A launch of no programs: an error where somebody wrote the grid, nothing to do where Triton's rules hold."""


class RunError(AscendtileError, RuntimeError):
    """A kernel that would fail on the device: buffer overflow, out of bounds, hang."""


class BufferOverflowError(RunError):
    """The tiles alive at one point need more bytes than the buffer has.

    space: the buffer. need_bytes, have_bytes: what they take and what there is. Empty and 0 where nobody asks for them.
    advice: the way out, which takes trials: found once somebody reads the message, as a search over tilings does not.
    """

    def __init__(
        self,
        text: str,
        space: str = "",
        need_bytes: int = 0,
        have_bytes: int = 0,
        advice: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(text)
        self.space, self.need_bytes, self.have_bytes = space, need_bytes, have_bytes
        self._advice = advice

    @functools.cached_property
    def _text(self) -> str:
        return self.words if self._advice is None else f"{self.words}\n{self._advice()}"

    def __str__(self) -> str:
        return self._text

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.space, self.need_bytes, self.have_bytes)

    @property
    def words(self) -> str:
        """What does not fit, without sizes to take instead: those of a kernel are no knobs of an operator around it."""
        return str(self.args[0])


class OutOfBoundsError(RunError):
    """A load, store or atomic touches memory outside its tensor.

    what: the message without place and source line. program: the number of the program.
    """

    what: str = ""
    program: int = 0


class DeviceAssertionError(RunError):
    """An assertion inside a kernel failed."""


def in_triton(words: str) -> str:
    """Ending of a message: how Triton words the rule, for whoever searches for that or matches it."""
    return f" (Triton: {words})"
