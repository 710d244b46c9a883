"""Carries out the operations that `writing.py` puts into a program, for the numpy backend that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import OutOfBoundsError, UsageError
from ...interpreter import regions
from ...interpreter.flat_pointers import FlatMemory
from ...interpreter.tensors import Tensor
from ...interpreter.values import OPAQUE, Affine, Pointers, take
from ...ir.program import Op, Value
from .. import copies, gather_scatter
from .memory import Twins
from .rules import EXACT, NotFollowedError, evaluate, in_float64
from .sharing import Roundings
from .writing import is_followed, with_float64

if TYPE_CHECKING:
    from ...ir.program import Program
    from ..numpy_backend import NumpyBackend


class Float64Evaluation:
    """Of one launch; the backends of both cores' parts share it.

    roundings: which lines round as in the run. not_followed: lines whose results were taken from the run, with what they do.
    """

    def __init__(self, twins: Twins, roundings: Roundings | None = None) -> None:
        self.twins = twins
        self.roundings = roundings
        self.not_followed: dict[str, str] = {}
        self.wide: dict[int, Op] = {}

    def written(self, program: Program) -> Program:
        """The program, or the part of one core, with what is to be carried out."""
        return with_float64(program)

    def carry_out(self, backend: NumpyBackend, op: Op, given: list[Any]) -> Any:
        """given: operands, their twins, and the result of the run."""
        of, count = op.attrs["of"], (len(given) - 1) // 2
        args, twins, made = given[:count], given[count:-1], given[-1]
        if of.kind in ("load", "store", "atomic"):
            return TwinAccess(self.twins, backend, of, self.roundings).carry_out(args, twins, made)
        return self._elements(backend, op, args, twins, made)

    def _elements(self, backend: NumpyBackend, op: Op, args: list[Any], twins: list[Any], made: Any) -> Any:
        of = op.attrs["of"]
        real = np.asarray(made, np.float64)
        context = backend.context._replace(numerics=EXACT, transposed=frozenset())
        wide = self.wide.setdefault(id(of), in_float64(of))
        try:
            exact = evaluate(context, of, wide, self._operands(backend, of, args, twins))
        except (NotFollowedError, UsageError):
            if of.kind != "const":
                self.not_followed[f"{of.loc.file}:{of.loc.line}"] = of.name or of.kind
            return real
        if self.roundings is None:
            return exact
        plain = self._operands(backend, of, args, [None] * len(args))
        return self.roundings.applied(of.loc, exact, real, lambda: evaluate(context, of, wide, plain))

    def _operands(self, backend: NumpyBackend, of: Op, args: list[Any], twins: list[Any]) -> list[np.ndarray]:
        pairs = [(x, v, t) for x, v, t in zip(args, of.args, twins, strict=True) if v is not None]
        return [t if t is not None else plain(backend, x, v) for x, v, t in pairs]


def plain(backend: NumpyBackend, x: Any, v: Value) -> np.ndarray:
    """A value of the run as elements: float64 if they are floating-point numbers."""
    out = backend.element_array(x, v)
    return out.astype(np.float64) if is_followed(v) else out


class TwinAccess:
    """One access to memory, made once more in the twins of its tensors."""

    def __init__(
        self, twins: Twins, backend: NumpyBackend, op: Op, roundings: Roundings | None = None
    ) -> None:
        self.twins = twins
        self.roundings = roundings
        self.backend = backend
        self.op = op

    def elements(self, x: Any, v: Value) -> np.ndarray:
        """A value of the run as elements of a twin."""
        return plain(self.backend, x, v)

    def carry_out(self, args: list[Any], twins: list[Any], made: Any) -> Any:
        """Operands as `Backend.load`, `store` and `atomic` have them; gives what a load or an atomic finds."""
        pointer, mask = args[0], args[1 if self.op.kind == "load" else 2]
        count = len(self.backend.interpreter.active)
        out = None if made is None or made is OPAQUE else self.elements(made, self.op.results[0])
        if isinstance(pointer.tensor, FlatMemory):
            return self._through_addresses(pointer, mask, args, twins, out, count)
        return self._one(pointer, mask, args, twins, out)

    def _through_addresses(
        self, pointer: Pointers, mask: Any, args: list[Any], twins: list[Any], out: Any, count: int
    ) -> Any:
        if out is not None:
            out = np.array(np.broadcast_to(out, (count, *out.shape[1:])))
        interpreter = self.backend.interpreter
        before, site = interpreter.active, interpreter.site(self.op)
        pieces = interpreter.known.pieces(pointer, mask, before, self.op.kind, site, lambda error, lost: None)
        for index, p, m in pieces:
            index = np.arange(count) if index is None else index
            interpreter.active = before[index]
            part = None if out is None else out[index]
            some = [take(x, index) for x in args], [take(x, index) for x in twins]
            found = self._one(p, m, *some, part)
            interpreter.active = before
            if out is not None:
                out[index] = found
        return out

    def _one(self, pointer: Pointers, mask: Any, args: list[Any], twins: list[Any], made: Any) -> Any:
        twin = self.twins.of(pointer.tensor)
        if twin is None:
            return self.without_twin(pointer, mask, made)
        if self.op.kind == "load":
            return self._load(twin, pointer, mask, args[2], twins[2], made)
        value = self._value(1, args, twins)
        if self.op.kind == "store":
            return self._store(twin, pointer, mask, value)
        return self.atomic(twin, pointer, mask, value, args[3] if len(args) > 3 else None, made)

    def without_twin(self, pointer: Pointers, mask: Any, made: Any) -> Any:
        """An access to memory that has no twin of this type."""
        if self.op.kind != "load":
            where = self._where(pointer.tensor, pointer, mask)
            self.twins.written_as(pointer.tensor, where.at[chosen_of(where)])
        return made

    def _value(self, k: int, args: list[Any], twins: list[Any]) -> np.ndarray:
        return twins[k] if twins[k] is not None else self.elements(args[k], self.op.operand(k))

    def _load(self, twin: Tensor, pointer: Pointers, mask: Any, other: Any, wide: Any, made: Any) -> Any:
        """Where nothing is loaded it is what the run has there, or what `other` would be."""
        fill = made
        if other is not None:
            fill = wide if wide is not None else self.elements(other, self.op.operand(2))
        region = self._box(twin, pointer, mask, len(made))
        if region is not None:
            return copies.read(twin, region, fill, self.op.results[0].shape)
        where = self._where(twin, pointer, mask)
        out = np.array(np.broadcast_to(fill, (max(where.shape[0], len(fill)), *made.shape[1:])))
        shape = out.shape
        chosen = chosen_of(where)
        assert twin.window is not None
        found = twin.window[np.where(chosen, where.at, 0)]
        out = np.where(np.broadcast_to(chosen.reshape(where.shape), shape), found.reshape(where.shape), out)
        if where.lost is not None:
            out[np.broadcast_to(where.lost.reshape(where.shape), shape)] = 0
        return out

    def _store(self, twin: Tensor, pointer: Pointers, mask: Any, value: np.ndarray) -> None:
        region = self._box(twin, pointer, mask, len(self.backend.interpreter.active))
        if region is not None:
            copies.write(twin, region, value)
        else:
            gather_scatter.scatter(twin, self._where(twin, pointer, mask), value)

    def atomic(
        self, twin: Tensor, pointer: Pointers, mask: Any, value: np.ndarray, expected: Any, made: Any
    ) -> Any:
        where = self._where(twin, pointer, mask)
        if self.op.name != "cas":
            found = gather_scatter.atomic(twin, self.op.name, where, value, None)
            if self.roundings is not None:
                self.roundings.in_memory(self.op.loc)
            return found
        want = self.backend.element_array(expected, self.op.operand(3))
        hit = np.broadcast_to(np.asarray(made) == want, where.shape).reshape(-1)
        return _swapped(twin, where, np.broadcast_to(value, where.shape).reshape(-1), hit).reshape(
            where.shape
        )

    def _box(self, twin: Tensor, pointer: Pointers, mask: Any, count: int) -> regions.AccessRegion | None:
        """The access as boxes; None where it is none, or where it leaves its tensor."""
        tile = bool(self.op.operand(0).shape)
        if tile and (isinstance(pointer.offsets, np.ndarray) or isinstance(mask, np.ndarray)):
            return None
        region = regions.AccessRegion(twin, pointer.offsets, mask, count)
        numbers, site = self.backend.interpreter.programs, self.backend.site(self.op)
        try:
            regions.check(twin, region, numbers, self.op.kind, site)
        except OutOfBoundsError:
            return None  # the run has told
        return region

    def _where(self, tensor: Tensor, pointer: Pointers, mask: Any) -> regions.ElementAddresses:
        """As `NumpyBackend.addresses`; what lies outside was told in the run and is left out."""
        v, offsets, interpreter = self.op.operand(0), pointer.offsets, self.backend.interpreter
        if not isinstance(offsets, Affine) and not v.shape:
            offsets = np.atleast_1d(np.asarray(offsets))
        at = np.asarray(interpreter.real(offsets, None)) + tensor.origin
        chosen = None if mask is None else np.atleast_1d(np.asarray(interpreter.real(mask, None)))
        if self.op.kind != "load":
            at = np.broadcast_to(at, (len(interpreter.active), *v.shape))
        where = regions.ElementAddresses(at, chosen)
        return where.without(where.all_outside(tensor)) if where.outside(tensor) >= 0 else where


def chosen_of(where: regions.ElementAddresses) -> np.ndarray:
    """Which elements are accessed, flat."""
    return where.chosen.view(bool) if len(where.chosen) else np.ones(len(where.at), bool)


def _swapped(twin: Tensor, where: regions.ElementAddresses, value: np.ndarray, hit: np.ndarray) -> np.ndarray:
    """A compare-and-swap, element after element; which of them swap is as in the run."""
    out, window = np.zeros(len(where.at)), twin.window
    assert window is not None
    for k, at in enumerate(where.at):
        if not len(where.chosen) or where.chosen[k]:
            out[k] = window[at]
            window[at] = value[k] if hit[k] else window[at]
    return out
