"""What every part of the interpreter has: the programs that run, the values they know, and where an operation stands."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .. import progress as at_work
from ..errors import AscendtileError, RunError
from ..ir.passes.split_cores import CUBE, SUB_VECTOR_CORES, Cores, has_sub_vectors
from ..ir.program import Op, Program, Region, Value
from ..precision import dtypes as ty
from ..precision.dtypes import DType
from .faults import Site
from .flat_pointers import Known
from .kernel_faults.overflow import IndexOverflows
from .kernel_faults.zero_divisors import ZeroDivisors
from .two_cores.condition import Condition
from .two_cores.exchange import Exchange
from .two_cores.turns import Turns
from .values import Affine, Box, Pointers, take

DEFAULT_STEP_LIMIT = 1_000_000


class DataDependentError(AscendtileError):
    """Control flow or an address depends on data that this run does not have."""


class Frame:
    """Values by number; a frame for a subset of the programs finds outer values through its parent."""

    __slots__ = ("index", "parent", "values")

    def __init__(self, parent: Frame | None = None, index: np.ndarray | None = None) -> None:
        self.values: dict[int, Any] = {}
        self.parent = parent
        self.index = index

    def get(self, v: Value) -> Any:
        x = self.values.get(v.id, _MISSING)
        if x is _MISSING:
            assert self.parent is not None, v
            x = self.parent.get(v)
            x = x if self.index is None else take(x, self.index)
            self.values[v.id] = x
        return x


_MISSING = object()


@functools.cache
def _handlers(interpreter: type) -> tuple[str, ...]:
    """Names of the methods that carry out operations."""
    return tuple(name for name in dir(interpreter) if name.startswith("op_"))


class InterpreterState(ABC):
    """State of the interpreter for some programs of a grid, and the methods that its parts and lowering override."""

    def __init__(
        self, program: Program, grid: tuple[int, int, int], step_limit: int = DEFAULT_STEP_LIMIT
    ) -> None:
        self.program = program
        self.grid = grid
        self.last_uses: dict[
            int, tuple[int, ...]
        ] = {}  # values (by id) given back after an operation (by id)
        self.total = grid[0] * grid[1] * grid[2]
        self.begun = self.lanes_begun = 0  # lanes that have begun so far, and those of them that run now
        self.subs = SUB_VECTOR_CORES if has_sub_vectors(program) else 1
        self.cube_once = _written_once(program) if self.subs > 1 else frozenset()
        self.conditions: dict[int, Condition] = {}  # of each `while` (by id) that was looked at
        self.exchange: Exchange | None = None  # with the interpreter of the other core's part
        self.core = ""  # whose part it is, if the parts run apart
        self.turns: Turns | None = None  # with the other programs and parts of a launch that computes values
        self.active = np.empty(0, np.int64)
        self.known = Known(())
        self.steps_left = step_limit
        self.step_limit = step_limit
        # kind -> method; what has none of its own is an operation on elements
        self.plain_handlers: defaultdict[str, Callable[[Op, Frame], None]] = defaultdict(
            lambda: self.dense_op, {name[3:]: getattr(self, name) for name in _handlers(type(self))}
        )
        self.handlers = self.plain_handlers
        self.overflows = IndexOverflows(program, grid)
        self.zeros: np.ndarray | None = None  # divisors of the operation at hand that are 0

    def run(self, numbers: np.ndarray, arguments: dict[str, Any]) -> None:
        """Run the programs `numbers` with the runtime values of the parameters."""
        self.active = numbers
        self.lanes_begun = len(numbers)
        self.begun += len(numbers)
        self.steps_left = self.step_limit
        self.handlers = self.plain_handlers
        at_work.interpreting(self)
        given = [p.tensor for p in arguments.values() if isinstance(p, Pointers)]
        if given != self.known.given:
            self.known = Known(given)
        frame = Frame()
        for name, v in self.program.params.items():
            frame.values[v.id] = arguments[name]
        self.region(self.program.body, frame)

    @property
    def programs(self) -> np.ndarray:
        """Numbers of the programs that run, one for each lane (see `run.lanes`)."""
        return self.active if self.subs == 1 else self.active % self.total

    @property
    def vector_cores(self) -> np.ndarray | None:
        """Which Vector core of its program each lane is, where a kernel asks for it."""
        return None if self.subs == 1 else self.active // self.total

    def site(self, op: Op) -> Site:
        """Where an operation stands, for errors."""
        return Site(op.loc, self.grid, partial(self.overflows.behind, op) if self.overflows.worst else None)

    def first_program(self, hit: np.ndarray) -> int:
        """Number of the first program in which an element of `hit`, (P or 1, *shape), is true."""
        row = int(np.argmax(hit.reshape(hit.shape[0], -1).any(axis=1)))
        return int(self.programs[row])

    def found_zeros(self, op: Op, zeros: np.ndarray) -> None:
        """An integer division whose right side is 0 where `zeros`, (P or 1, *shape), is true; see `ZeroDivisors`."""
        self.zeros = zeros

    def follow_zeros(self, op: Op, frame: Frame) -> None:
        """Follow the result of a division that has just found zeros."""
        zeros, self.zeros = self.zeros, None
        assert zeros is not None
        if self.handlers is self.plain_handlers:
            self.followed = ZeroDivisors(self)
            self.handlers = self.followed.handlers(self.plain_handlers)
        self.followed.begin(op, zeros, frame)

    def divided_by_zero(self, op: Op, zeros: np.ndarray) -> RunError:
        """The error of an integer division whose result is used where its right side is 0."""
        site, v = self.site(op), op.operand(1)
        row = zeros[int(np.argmax(zeros.reshape(len(zeros), -1).any(axis=1)))]
        element = f", element {[int(k) for k in np.argwhere(row)[0]]}" if row.ndim else ""
        element += f" ({int(row.sum())} of {row.size} are 0)" if row.ndim else ""
        name = f" ({v.name} is 0)" if v.name and not v.shape else ""
        return site.error(
            f"integer division by zero in {site.program(self.first_program(zeros))}{element}{name}, and the result is "
            "used; mask what is made of it, or give these elements another divisor (other=1, or tl.where)"
        )

    def region(self, region: Region, frame: Frame) -> None:
        values = frame.values
        for op in region.ops:
            self.handlers[op.kind](op, frame)
            for vid in self.last_uses.get(op.id, ()):
                if not self.overflows.begun:  # then the trail of an overflow asks for them again
                    values.pop(vid, None)

    # -- what others define ------------------------------------------------------------------------------------------

    @abstractmethod
    def dense(self, op: Op, args: list[Any]) -> Any:
        """Result of an operation on elements."""

    def gives_way(self) -> None:
        """The programs wait for what others write, which go on meanwhile."""

    def symbolic_done(self, op: Op) -> None:
        """An operation on scalars or index tiles was done."""

    def iteration_begins(self, op: Op, number: int) -> None:
        """An iteration of a loop begins."""

    def iteration_ends(self, op: Op) -> None:
        """An iteration of a loop ends."""

    def branch_ends(self, op: Op, region: Region) -> None:
        """A branch of an `if` is done."""

    def loop_done(self, op: Op) -> None:
        """A loop is left by all programs that entered it."""

    def loop_begins(self, op: Op) -> None:
        """A loop is entered."""

    def dense_op(self, op: Op, frame: Frame) -> None:
        args = self.operands(op, frame)
        frame.values[op.results[0].id] = self.scalar_result(op, self.dense(op, args))

    @staticmethod
    def operands(op: Op, frame: Frame) -> list[Any]:
        """What the operands are, None for one that is absent."""
        return [None if v is None else frame.get(v) for v in op.args]

    def scalar_result(self, op: Op, out: Any) -> Any:
        """Elements of an integer or boolean scalar as the interpreter has scalars; anything else as it is."""
        r = op.results[0]
        if not r.shape and r.dtype.is_int() and isinstance(out, np.ndarray):
            return scalar_from_dense(out, r.dtype.is_bool())
        return out

    def real(self, x: Any, v: Value | None) -> Any:
        """Elements of a symbolic tile; scalars and dense tiles as they are."""
        if isinstance(x, Affine):
            return x.dense(v.dtype if v is not None and isinstance(v.dtype, DType) else ty.int64)
        return x.dense() if isinstance(x, Box) else x


def _written_once(program: Program) -> frozenset[int]:
    """Stores and atomics (by id) of the Cube's core, which both Vector cores' lanes reach but which happen once."""
    cores = Cores(program)
    return frozenset(
        op.id for op in program.walk() if op.kind in ("store", "atomic") and cores.of(op) == CUBE
    )


def scalar_from_dense(x: np.ndarray, boolean: bool) -> Any:
    """An integer or boolean scalar from elements of shape (P,) or (1,)."""
    if x.shape == (1,):
        return bool(x[0]) if boolean else int(x.astype(np.int64)[0])
    return x if boolean else x.astype(np.int64)
