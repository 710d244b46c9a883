"""The two walks that lowering takes: without values, and over values where control flow or addresses need them."""

from __future__ import annotations

from typing import Any

from ...interpreter.backend import Backend
from ...interpreter.values import OPAQUE, Pointers
from ...ir.program import Op, Program
from .loops import Turns
from .vector_core import Lowering


class TimeOnly(Turns):
    """A walk that knows no element."""

    frees = False  # nothing here is large enough

    def dense(self, op: Op, args: list[Any]) -> Any:
        self.record_dense(op)
        return OPAQUE

    def show(self, op: Op, values: list[Any]) -> None:
        self.record_print(op)

    def load(self, op: Op, pointer: Pointers, mask: Any, other: Any) -> Any:
        self.record_load(op, pointer, mask)
        return OPAQUE

    def store(self, op: Op, pointer: Pointers, value: Any, mask: Any) -> None:
        self.record_store(op, pointer, mask)

    def atomic(self, op: Op, pointer: Pointers, value: Any, mask: Any, expected: Any) -> Any:
        self.record_atomic(op, pointer, mask)
        return OPAQUE


class TimeWithValues(Lowering):
    """A walk that records the instructions of what a backend computes."""

    def __init__(
        self, program: Program, grid: tuple[int, int, int], backend: Backend, step_limit: int
    ) -> None:
        super().__init__(program, grid, step_limit)
        self.backend = backend
        backend.attach(self)

    def found(self) -> tuple[str, ...]:
        """What the values showed, in words."""
        return self.backend.found()

    def dense(self, op: Op, args: list[Any]) -> Any:
        self.record_dense(op)
        return self.backend.dense(op, args)

    def check_assert(self, op: Op, condition: Any) -> None:
        self.backend.check_assert(op, condition)

    def show(self, op: Op, values: list[Any]) -> None:
        self.record_print(op)
        self.backend.show(op, values)

    def load(self, op: Op, pointer: Pointers, mask: Any, other: Any) -> Any:
        self.record_load(op, pointer, mask)
        return self.backend.load(op, pointer, mask, other)

    def store(self, op: Op, pointer: Pointers, value: Any, mask: Any) -> None:
        self.record_store(op, pointer, mask)
        self.backend.store(op, pointer, value, mask)

    def atomic(self, op: Op, pointer: Pointers, value: Any, mask: Any, expected: Any) -> Any:
        self.record_atomic(op, pointer, mask)
        return self.backend.atomic(op, pointer, value, mask, expected)
