"""The two walks that lowering takes: without values, and over values where control flow or addresses need them."""

from __future__ import annotations

from typing import Any

from ...execution.numpy_backend import ValueRun
from ...interpreter.values import OPAQUE, Pointers
from ...ir.program import Op
from ..operations.table import NAMED, require
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


class TimeWithValues(Lowering, ValueRun):
    """A walk that computes elements and records their instructions."""

    def dense(self, op: Op, args: list[Any]) -> Any:
        self.record_dense(op)
        return ValueRun.dense(self, op, args)

    def show(self, op: Op, values: list[Any]) -> None:
        self.record_print(op)
        ValueRun.show(self, op, values)

    def load(self, op: Op, pointer: Pointers, mask: Any, other: Any) -> Any:
        self.record_load(op, pointer, mask)
        return ValueRun.load(self, op, pointer, mask, other)

    def store(self, op: Op, pointer: Pointers, value: Any, mask: Any) -> None:
        self.record_store(op, pointer, mask)
        ValueRun.store(self, op, pointer, value, mask)

    def atomic(self, op: Op, pointer: Pointers, value: Any, mask: Any, expected: Any) -> Any:
        self.record_atomic(op, pointer, mask)
        return ValueRun.atomic(self, op, pointer, value, mask, expected)


require(
    {name.removeprefix("op_") for name in dir(TimeOnly) if name.startswith("op_")} - set(NAMED),
    "the interpreter (simulator/interpreter)",
)
