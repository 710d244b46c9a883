"""What an interpreter asks of its backend: what operations on elements and accesses to memory mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ..errors import OutOfBoundsError
from ..ir.program import Op
from ..messages import Message
from .kernel_faults.outside import OutsideAccesses
from .state import InterpreterState
from .values import OPAQUE, Pointers


class Backend(ABC):
    """Elements and memory for one interpreter, which knows which programs run and which operation they are at."""

    interpreter: InterpreterState
    frees = True  # whether values are given back after their last use

    def attach(self, interpreter: InterpreterState) -> None:
        """Called once, by the interpreter that takes this backend."""
        self.interpreter = interpreter

    @abstractmethod
    def dense(self, op: Op, args: list[Any]) -> Any:
        """Result of an operation on elements."""

    @abstractmethod
    def load(self, op: Op, pointer: Pointers, mask: Any, other: Any) -> Any:
        """What a load gives; see `Pointers` for the addresses, `Box` and scalars for the mask."""

    @abstractmethod
    def store(self, op: Op, pointer: Pointers, value: Any, mask: Any) -> None:
        """A store, as above."""

    @abstractmethod
    def atomic(self, op: Op, pointer: Pointers, value: Any, mask: Any, expected: Any) -> Any:
        """The old values, if they are used; `expected` is what a compare-and-swap wants to find."""

    def synced(self, op: Op, event: Any) -> None:
        """A flag or a barrier between cores is reached; `event` is its number, or one for each program."""

    def gives_way(self) -> None:
        """The programs wait for what others write, which go on meanwhile."""

    def received(self, op: Op) -> None:
        """A tile of the other core has come."""

    def defined(self, op: Op, args: list[Any]) -> Any:
        """Which elements are defined, for programs that `checks/undefined` has written into."""
        return OPAQUE

    def float64(self, op: Op, given: list[Any]) -> Any:
        """What an operation gives without rounding, for programs that `execution/float64` has written into."""
        return OPAQUE

    def check_assert(self, op: Op, condition: Any) -> None:
        """An assertion is reached."""

    def show(self, op: Op, values: list[Any]) -> None:
        """A print is reached."""

    def left_out(self, op: Op, error: OutOfBoundsError) -> None:
        """The time of an access that leaves its tensor is asked: raises its error, unless such accesses are only told."""
        raise error

    def finished(self) -> None:
        """All programs of this run have ended."""

    def found(self) -> tuple[Message, ...]:
        """What the values showed."""
        return ()


class AddressBackend(Backend):
    """Knows no element: for those who ask only where memory is accessed, which flags are passed, or how long it takes.

    outside: notes accesses outside of their tensors; None if they are errors.
    """

    frees = False  # nothing here is large enough

    def __init__(self, outside: OutsideAccesses | None = None) -> None:
        self.outside = outside

    def left_out(self, op: Op, error: OutOfBoundsError) -> None:
        if self.outside is None:
            raise error
        self.outside.note(op, error)

    def found(self) -> tuple[Message, ...]:
        return () if self.outside is None else self.outside.messages()

    def dense(self, op: Op, args: list[Any]) -> Any:
        return OPAQUE

    def load(self, op: Op, pointer: Pointers, mask: Any, other: Any) -> Any:
        self.access(op, pointer, mask)
        return OPAQUE

    def store(self, op: Op, pointer: Pointers, value: Any, mask: Any) -> None:
        self.access(op, pointer, mask)

    def atomic(self, op: Op, pointer: Pointers, value: Any, mask: Any, expected: Any) -> Any:
        self.access(op, pointer, mask)
        return OPAQUE

    def access(self, op: Op, pointer: Pointers, mask: Any) -> None:
        """Memory is read or written."""
