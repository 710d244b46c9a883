"""Elements as numpy arrays, and accesses to the tensors of a launch, for one chunk of programs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..checks.access import Access, Watcher
from ..checks.asked import NONE_ASKED, Checks
from ..checks.undefined.watch import UndefinedElements
from ..errors import DeviceAssertionError, OutOfBoundsError
from ..interpreter import regions
from ..interpreter.backend import Backend
from ..interpreter.faults import Site
from ..interpreter.flat_pointers import FlatMemory, Known
from ..interpreter.kernel_faults.outside import OutsideAccesses
from ..interpreter.state import InterpreterState
from ..interpreter.tensors import Tensor
from ..interpreter.values import Affine, Box, Pointers, take
from ..ir.index_arithmetic import index_arithmetic
from ..ir.operations import operation, result_type
from ..ir.program import Op, Program, Value
from ..messages import Message
from ..precision.dtypes import DType, poison
from ..units import vector
from ..units._elementwise import has_subnormals
from ..units.vector import Numerics
from . import copies as copy
from . import gather_scatter as discrete
from .copies import WaitingWrites
from .printing import print_values


class WithoutRounding(Protocol):
    """Writes operations into a program, beside those that are there, and carries them out: see `execution/float64`."""

    def written(self, program: Program) -> Program: ...
    def carry_out(self, backend: NumpyBackend, op: Op, given: list[Any]) -> Any: ...


class ValueContext(NamedTuple):
    """transposed: permutations (by id) that need no copy, see `transposed_operands`."""

    interpreter: InterpreterState
    numerics: Numerics
    transposed: frozenset[int]


def transposed_operands(program: Program) -> frozenset[int]:
    """Permutations (by id) whose tiles are operands of products and nothing else."""
    uses: dict[int, set[bool]] = {}
    yields = {v.id for op in program.walk() for r in op.regions for v in r.yields}
    for op in program.walk():
        for i, v in enumerate(op.args):
            if v is not None:
                uses.setdefault(v.id, set()).add(op.kind == "dot" and i < 2)
    tiles = [(op.id, op.results[0].id) for op in program.of_kind("permute")]
    return frozenset(number for number, v in tiles if uses.get(v) == {True} and v not in yields)


class NumpyBackend(Backend):
    """Computes the elements of every tile; reads and writes the tensors it is given.

    waiting: atomics and stores (by id) whose writes are made when all programs have been interpreted. checks: of accesses,
    as asked. watchers: are shown every access; those of a launch are the same for the parts of both cores. quiet: nothing is
    printed. exact: of a program with its float64 twin.
    """

    def __init__(
        self,
        program: Program,
        grid: tuple[int, int, int],
        numerics: vector.Numerics,
        waiting: frozenset[int] = frozenset(),
        checks: Checks = NONE_ASKED,
        watchers: tuple[Watcher, ...] = (),
        quiet: bool = False,
        exact: WithoutRounding | None = None,
    ) -> None:
        self.exact = exact
        self.quiet = quiet
        self.checks = checks
        self.waiting = waiting
        self.writes = WaitingWrites()
        self.numerics = numerics
        self.index_arithmetic = index_arithmetic(program)
        self.transposed = transposed_operands(program) if numerics.cube.accumulate == "blas" else frozenset()
        self.subnormals_seen = False
        self.watchers = watchers
        self.undefined = next((w for w in watchers if isinstance(w, UndefinedElements)), None)
        self.crossing = frozenset(number for w in self.watchers for number in w.crossing)
        self.known: Known | None = None
        self.outside = OutsideAccesses() if checks.warn_outside else None
        self.lost: np.ndarray | None = None  # see `lose`
        self.printed: dict[int, int] = {}

    def attach(self, interpreter: InterpreterState) -> None:
        super().attach(interpreter)
        self.context = ValueContext(interpreter, self.numerics, self.transposed)

    def finished(self) -> None:
        self.writes.make(self.interpreter.active)

    def synced(self, op: Op, event: Any) -> None:
        for watcher in self.watchers:
            watcher.synced(op, event, self.interpreter.programs, self.interpreter.core)

    def gives_way(self) -> None:
        for watcher in self.watchers:
            watcher.gives_way(self.interpreter.programs)

    def received(self, op: Op) -> None:
        for watcher in self.watchers:
            watcher.handed_over(op, self.interpreter.programs, self.interpreter.core)

    # -- elements ----------------------------------------------------------------------------------------------------

    def dense(self, op: Op, args: list[Any]) -> Any:
        if op.id in self.crossing and not self.interpreter.core:
            self.received(op)
        if op.kind == "select" and isinstance(args[0], Box) and regions.covers(args[0]):
            return self.element_array(args[1], op.args[1])  # type: ignore[arg-type]
        real = [self.element_array(x, v) for x, v in zip(args, op.args, strict=True) if v is not None]
        entry = operation(op)
        if self.subnormals_seen and entry.flushes:
            real = [
                self.flushed(x, v) for x, v in zip(real, (v for v in op.args if v is not None), strict=True)
            ]
        assert entry.value is not None
        out = entry.value(self.context, op, *real)
        if op.id in self.index_arithmetic:
            self.interpreter.overflows.elements(op, args, real, out, self.interpreter.programs)
        return out

    def flushed(self, x: np.ndarray, v: Value) -> np.ndarray:
        return vector.flushed(x, v.dtype, self.numerics) if isinstance(v.dtype, DType) else x

    def noticed(self, x: np.ndarray, dtype: DType) -> np.ndarray:
        """Look for subnormal values among what comes from memory: results never are, so operands need a look only then.

        Where results stay subnormal and operands do not, every operand needs one.
        """
        if self.subnormals_seen or not self.numerics.flushes_operands(dtype) or x.dtype != np.float32:
            return x
        if not self.numerics.flushes(dtype):
            self.subnormals_seen = True
        else:
            self.subnormals_seen = has_subnormals(np.ascontiguousarray(x).reshape(-1))
        return x

    def element_array(self, x: Any, v: Value) -> np.ndarray:
        """Any runtime value as an array (P or 1, *shape) in the host dtype."""
        if isinstance(x, Affine | Box):
            return np.asarray(self.interpreter.real(x, v))
        if isinstance(x, np.ndarray) and (v.shape or x.dtype == v.dtype.host_dtype):  # type: ignore[union-attr]
            return x
        return np.atleast_1d(np.asarray(x)).astype(v.dtype.host_dtype)  # type: ignore[union-attr]

    def defined(self, op: Op, args: list[Any]) -> Any:
        assert self.undefined is not None
        return self.undefined.evaluate(self.interpreter, op, args)

    def float64(self, op: Op, given: list[Any]) -> Any:
        assert self.exact is not None
        return self.exact.carry_out(self, op, given)

    def check_assert(self, op: Op, condition: Any) -> None:
        v = op.args[0]
        assert v is not None
        truth = self.element_array(condition, v)
        if not truth.all():
            where = np.argwhere(~truth)[0]
            site = self.interpreter.site(op)
            number = int(self.interpreter.programs[where[0] if truth.shape[0] > 1 else 0])
            program = site.program(number)
            element = f", element {[int(k) for k in where[1:]]}" if v.shape else ""
            wrong = f"({int((~truth[where[0]]).sum())} of {v.numel} elements fail)" if v.shape else ""
            why = self.undefined.behind(op, "condition", number) if self.undefined is not None else ""
            why = f"(what it decides by has no value: {why})" if why else ""
            text = " ".join(part for part in (op.attrs["text"], wrong, why) if part)
            raise site.error(f"assertion failed in {program}{element}: {text}", DeviceAssertionError)

    def show(self, op: Op, values: list[Any]) -> None:
        if self.quiet:
            return
        tiles = [self.element_array(x, v) for x, v in zip(values, op.args, strict=True) if v is not None]
        print_values(op, tiles, self.interpreter.programs, self.interpreter.grid, self.printed)

    # -- memory ------------------------------------------------------------------------------------------------------

    def load(self, op: Op, pointer: Pointers, mask: Any, other: Any) -> np.ndarray:
        if isinstance(pointer.tensor, FlatMemory):
            return np.asarray(self.load_flat(op, pointer, mask, other))
        r = op.results[0]
        fill = self.filler(op, mask) if other is None else self.element_array(other, op.args[2])  # type: ignore[arg-type]
        if (isinstance(pointer.offsets, np.ndarray) and r.shape) or (
            isinstance(mask, np.ndarray) and r.shape
        ):
            return self.noticed(self.gather(op, pointer, mask, fill), result_type(op))
        count = self.programs_of(pointer.offsets, mask, fill)
        region = regions.AccessRegion(pointer.tensor, pointer.offsets, mask, count)
        if not self.inside(op, pointer.tensor, region, "load"):
            return self.noticed(self.gather(op, pointer, mask, fill), result_type(op))
        self.watched(op, "load", pointer, mask, region)
        return self.noticed(copy.read(pointer.tensor, region, fill, r.shape), result_type(op))

    def filler(self, op: Op, mask: Any) -> Any:
        """What masked-out lanes without `other` hold: None for the 0 that Triton-Ascend gives them."""
        unknown = self.checks.poison and mask is not None and op.attrs.get("padding") != "zero"
        return poison(result_type(op)) if unknown else None

    def inside(self, op: Op, tensor: Tensor, region: regions.AccessRegion, what: str) -> bool:
        """Whether boxes lie in their tensor; where they do not that is an error, unless such accesses are only told."""
        try:
            regions.check(tensor, region, self.interpreter.programs, what, self.site(op))
        except OutOfBoundsError:
            if self.outside is None:
                raise
            return False
        return True

    def site(self, op: Op) -> Site:
        """Where an access stands, with why its address is wrong."""
        site, undefined = self.interpreter.site(op), self.undefined
        if undefined is None:
            return site
        overflow = site.reason
        return site._replace(
            reason=lambda n: undefined.behind(op, "address", n) or (overflow(n) if overflow else "")
        )

    def left_out(self, op: Op, error: OutOfBoundsError) -> None:
        if self.outside is None:
            raise error

    def programs_of(self, *values: Any) -> int:
        """1 if an access is the same for all programs, else their number."""
        return 1 if all(_uniform(x) for x in values) else len(self.interpreter.active)

    def pieces(
        self, op: Op, pointer: Pointers, mask: Any, what: str
    ) -> Iterator[tuple[np.ndarray, Pointers, Any]]:
        """An access through addresses, tensor by tensor; `interpreter.active` holds the programs of each piece meanwhile."""
        before, site = self.interpreter.active, self.interpreter.site(op)
        self.lost = None
        tell = None if self.outside is None else partial(self.lose, op)
        for index, p, m in self.interpreter.known.pieces(pointer, mask, before, what, site, tell):
            index = np.arange(len(before)) if index is None else index
            self.interpreter.active = before[index]
            try:
                yield index, p, m
            finally:
                self.interpreter.active = before

    def lose(self, op: Op, error: OutOfBoundsError, lost: np.ndarray) -> None:
        """Elements of an access through addresses that lie in no tensor."""
        assert self.outside is not None
        self.outside.note(op, error, int(lost.sum()))
        self.lost = lost

    def load_flat(self, op: Op, pointer: Pointers, mask: Any, other: Any) -> Any:
        shape, dtype = op.results[0].shape, result_type(op).host_dtype
        out = np.zeros((len(self.interpreter.active), *shape), dtype)
        fill = self.filler(op, mask) if other is None else self.element_array(other, op.args[2])  # type: ignore[arg-type]
        out[...] = 0 if fill is None else fill
        for index, p, m in self.pieces(op, pointer, mask, "load"):
            got = self.load(op, p, m, take(other, index))
            if not isinstance(m, np.ndarray):
                out[index] = got
            else:
                chosen = np.broadcast_to(m.reshape(m.shape + (1,) * (out.ndim - m.ndim)), out[index].shape)
                out[index] = np.where(chosen, got, out[index])
        if self.lost is not None:
            out[np.broadcast_to(self.lost, out.shape)] = 0
        return out

    def store(self, op: Op, pointer: Pointers, value: Any, mask: Any) -> None:
        if isinstance(pointer.tensor, FlatMemory):
            for index, p, m in self.pieces(op, pointer, mask, "store"):
                self.store(op, p, take(value, index), m)
            return
        self.write(op, pointer, value, mask, "store", adding=False)

    def write(self, op: Op, pointer: Pointers, value: Any, mask: Any, what: str, adding: bool) -> None:
        tensor = pointer.tensor
        self.check_writable(op, tensor, what)
        v = op.args[1]
        assert v is not None
        tile = self.element_array(value, v)
        if v.shape and (isinstance(pointer.offsets, np.ndarray) or isinstance(mask, np.ndarray)):
            where = self.addresses(op, pointer, mask, what, tile)
            discrete.scatter(tensor, where, tile)
            return
        region = regions.AccessRegion(tensor, pointer.offsets, mask, len(self.interpreter.active))
        if not self.inside(op, tensor, region, what):
            self.writes.make(self.interpreter.active)  # what each program wrote before comes before
            where = self.addresses(op, pointer, mask, what, tile)
            if adding:
                discrete.atomic(tensor, "add", where, tile, None)
            else:
                discrete.scatter(tensor, where, tile)
            return
        self.watched(op, what, pointer, mask, region, value=tile)
        if op.id in self.waiting:
            self.writes.keep(tensor, region, tile, self.interpreter.programs, adding)
        else:
            copy.write(tensor, region, tile, adding)

    def check_writable(self, op: Op, tensor: Tensor, what: str) -> None:
        if not tensor.writable:
            raise self.interpreter.site(op).error(
                f"{what} to {tensor.name!r}, which is a read-only array; pass a copy of it"
            )

    def atomic(self, op: Op, pointer: Pointers, value: Any, mask: Any, expected: Any) -> Any:
        """Old values if they are used. Boxes that only add are written as stores are."""
        if isinstance(pointer.tensor, FlatMemory):
            return self.atomic_flat(op, pointer, value, mask, expected)
        tensor, what, v = pointer.tensor, f"atomic_{op.name}", op.args[1]
        assert v is not None
        boxes = not v.shape or not (isinstance(pointer.offsets, np.ndarray) or isinstance(mask, np.ndarray))
        if op.name == "add" and boxes and not op.attrs.get("result_used", True) and regions.can_add(tensor):
            self.write(op, pointer, value, mask, what, adding=True)
            return None
        self.check_writable(op, tensor, what)
        where = self.addresses(op, pointer, mask, what)
        want = None if expected is None else self.element_array(expected, op.args[3])  # type: ignore[arg-type]
        old = discrete.atomic(tensor, op.name, where, self.element_array(value, v), want)
        return self.interpreter.scalar_result(op, old)

    def atomic_flat(self, op: Op, pointer: Pointers, value: Any, mask: Any, expected: Any) -> Any:
        r = op.results[0]
        out = np.zeros((len(self.interpreter.active), *r.shape), result_type(op).host_dtype)
        for index, p, m in self.pieces(op, pointer, mask, f"atomic_{op.name}"):
            old = self.atomic(op, p, take(value, index), m, take(expected, index))
            if old is not None:  # elements of other pieces are 0
                out[index] = out[index] + old if r.shape else old
        return self.interpreter.scalar_result(op, out)

    # -- discrete access ---------------------------------------------------------------------------------------------

    def addresses(
        self, op: Op, pointer: Pointers, mask: Any, what: str, value: np.ndarray | None = None
    ) -> regions.ElementAddresses:
        """Window indices (P or 1, *shape) of a discrete access, checked; for a write P of them."""
        tensor = pointer.tensor
        v = op.args[0]
        assert v is not None
        offsets = pointer.offsets
        if not isinstance(offsets, Affine) and not v.shape:
            offsets = np.atleast_1d(np.asarray(offsets))
        at = np.asarray(self.interpreter.real(offsets, None)) + tensor.origin
        chosen = None if mask is None else np.atleast_1d(np.asarray(self.interpreter.real(mask, None)))
        if what != "load":
            at = np.broadcast_to(at, (len(self.interpreter.active), *v.shape))
        where = regions.ElementAddresses(at, chosen)
        bad = where.outside(tensor)
        if bad >= 0:
            error = self.outside_error(tensor, where, bad, what, self.site(op))
            if self.outside is None:
                raise error
            lost = where.all_outside(tensor)
            self.outside.note(op, error, int(lost.sum()))
            where = where.without(lost)
        self.watched(op, what, pointer, mask, None, where, value)
        return where

    def watched(
        self,
        op: Op,
        what: str,
        pointer: Pointers,
        mask: Any,
        region: regions.AccessRegion | None,
        where: regions.ElementAddresses | None = None,
        value: np.ndarray | None = None,
    ) -> None:
        """Show an access to the watchers: every access of a launch passes here."""
        interpreter = self.interpreter
        rest = region, where, interpreter.programs, interpreter.site(op), value, interpreter.vector_cores
        access = Access(op, what, pointer.tensor, pointer.offsets, mask, *rest)
        if self.known is not interpreter.known:
            self.known = interpreter.known
            for watcher in self.watchers:
                watcher.tensors(self.known.given)
                watcher.begins(interpreter.lanes_begun // interpreter.subs)
        for watcher in self.watchers:
            watcher.access(access)

    def found(self) -> tuple[Message, ...]:
        """What the values showed, as messages."""
        told = () if self.outside is None else self.outside.messages()
        return (*told, *(message for watcher in self.watchers for message in watcher.found()))

    def outside_error(
        self, tensor: Tensor, where: regions.ElementAddresses, bad: int, what: str, site: Site
    ) -> OutOfBoundsError:
        size = max(1, len(where.at) // where.shape[0])
        row, inner = divmod(bad, size)
        element = tuple(int(k) for k in np.unravel_index(inner, where.shape[1:]))
        count = int(where.all_outside(tensor)[row * size : (row + 1) * size].sum())
        index = int(where.at[bad]) - tensor.origin
        number = int(self.interpreter.programs[row if where.shape[0] > 1 else 0])
        return regions.out_of_bounds(tensor, index, number, what, site, element, count)

    def gather(self, op: Op, pointer: Pointers, mask: Any, fill: np.ndarray | None) -> np.ndarray:
        where = self.addresses(op, pointer, mask, "load")
        out = discrete.gather(pointer.tensor, where, fill)
        if where.lost is not None:
            out.reshape(-1)[where.lost] = 0
        return out


def _uniform(x: Any) -> bool:
    if isinstance(x, Affine):
        return isinstance(x.base, int) and all(isinstance(s, int) for s in x.strides)
    if isinstance(x, Box):
        return all(isinstance(b, int) for b in (*x.lows, *x.highs))
    return not isinstance(x, np.ndarray) or x.shape[0] == 1
