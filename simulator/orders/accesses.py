"""What memory holds as expressions, from launch to launch, and the accesses to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..execution.float64.evaluation import TwinAccess, chosen_of
from ..execution.float64.memory import Float64Memory, MemoryLeft, Twins
from ..interpreter import regions
from ..interpreter.tensors import Tensor, as_array
from ..interpreter.values import OPAQUE, Pointers
from ..ir.program import Op, Value
from ..precision import dtypes as ty
from ..precision.dtypes import DType
from ..units.vector import decode
from .elementwise import WHOLE_SETS, Elementwise
from .expressions import FINITE, ZERO, ExpressionKind, ExpressionTable, VectorRounding
from .sharing import Sharing

if TYPE_CHECKING:
    from ..execution.numpy_backend import NumpyBackend


class Follower(Protocol):
    """Who follows a launch; see `following.py`."""

    twins: Twins
    elementwise: Elementwise
    sharing: Sharing

    def constants(self, backend: NumpyBackend, x: Any, v: Value) -> np.ndarray: ...
    def unknown(self, op: Op, why: str) -> None: ...
    def twin_of(self, v: Value) -> Any: ...


ANOTHER_TYPE = "memory is read or written as another type than its own"


class ExpressionMemory(Float64Memory):
    """Of each element of memory the number of its expression.

    inputs: arrays by name, whose elements are unknowns; all else that is in memory at first is constant. finite: whether
    the unknowns are neither infinite nor NaN.
    """

    dtype = ty.int64

    def __init__(
        self, expressions: ExpressionTable, inputs: Mapping[str, np.ndarray], finite: bool = True
    ) -> None:
        super().__init__()
        self.expressions = expressions
        self.traits = FINITE * finite
        self.places = {name: addresses_of(x) for name, x in inputs.items() if x.size}
        self.shapes = {name: x.shape for name, x in inputs.items()}

    def follows(self, dtype: DType) -> bool:
        return True

    def begun(self, dtype: DType, address: int, window: np.ndarray) -> np.ndarray:
        out = np.full(len(window), -1, np.int64)
        for name, places in self.places.items():
            at, off = np.divmod(places - address, dtype.itemsize)
            inside = (at >= 0) & (at < len(window)) & (off == 0)
            if inside.any():
                out[at[inside]] = self._inputs(name, dtype)[inside]
        left = out < 0
        if left.any():
            with np.errstate(invalid="ignore"):  # nobody may have written there
                out[left] = self.expressions.constants(decode(window[left], dtype))
        return out

    def _inputs(self, name: str, dtype: DType) -> np.ndarray:
        traits = self.traits if dtype.is_floating() else FINITE
        return self.expressions.inputs(
            name, self.shapes[name], VectorRounding(dtype.name, False, False), traits
        )

    def keep(self, made: Iterable[MemoryLeft]) -> None:
        """Whatever its size: what would be forgotten would count as constant."""
        for new in made:
            self.kept = [o for o in self.kept if o.end <= new.address or o.address >= new.end]
            self.kept.append(new)

    def numbers_of(self, array: np.ndarray) -> np.ndarray:
        """Of the elements of an array that launches wrote; -1 where none did."""
        places, out = addresses_of(array), np.full(array.size, -1, np.int64)
        for left in self.kept:
            at, off = np.divmod(places - left.address, left.dtype.itemsize)
            inside = (at >= 0) & (at < len(left.exact)) & (off == 0) & (left.dtype.itemsize == array.itemsize)
            out[inside] = left.exact[at[inside]]
        return out.reshape(array.shape)


def addresses_of(x: Any) -> np.ndarray:
    """The address of each element, flat, in the order of its indices."""
    array = as_array("", x)
    assert array is not None
    out = np.full(array.shape, array.ctypes.data, np.int64)
    for axis, (n, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        out += (np.arange(n) * stride).reshape(n, *(1,) * (array.ndim - axis - 1))
    return out.reshape(-1)


class ExpressionAccess(TwinAccess):
    """One access, whose values are numbers of expressions."""

    def __init__(self, following: Follower, backend: NumpyBackend, op: Op) -> None:
        super().__init__(following.twins, backend, op)
        self.following = following
        self.arithmetic = following.elementwise.arithmetic

    def elements(self, x: Any, v: Value) -> np.ndarray:
        if self.op.results and v is self.op.results[0]:  # what the run has where nothing is loaded is 0
            return np.zeros(np.atleast_1d(np.asarray(x)).shape, np.int64)
        return self.following.constants(self.backend, x, v)

    def _one(self, pointer: Pointers, mask: Any, args: list[Any], twins: list[Any], made: Any) -> Any:
        twin = self.twins.of(pointer.tensor)
        if twin is not None and twin.window is not None:
            where = self._where(twin, pointer, mask)
            numbers = np.unique(self.backend.interpreter.programs)
            self.following.sharing.met |= len(numbers) > 1
            self.following.sharing.access(
                twin.window, where.at[chosen_of(where)], int(numbers[0]), self.op.kind != "load"
            )
        return super()._one(pointer, mask, args, twins, made)

    def without_twin(self, pointer: Pointers, mask: Any, made: Any) -> Any:
        self.following.unknown(self.op, ANOTHER_TYPE)
        return made

    def atomic(
        self, twin: Tensor, pointer: Pointers, mask: Any, value: np.ndarray, expected: Any, made: Any
    ) -> Any:
        where = self._where(twin, pointer, mask)
        every = np.broadcast_to(value, where.shape).reshape(-1).tolist()
        wanted = self._expected(expected, where)
        out, window = np.full(len(where.at), ZERO, np.int64), twin.window
        assert window is not None
        for k in np.flatnonzero(chosen_of(where)).tolist():
            at = where.at[k]
            out[k] = window[at]
            window[at] = self._combined(int(out[k]), every[k], None if wanted is None else wanted[k])
        return OPAQUE if made is None else out.reshape(where.shape)

    def _expected(self, expected: Any, where: regions.ElementAddresses) -> list[int] | None:
        if expected is None:
            return None
        twin = self.following.twin_of(self.op.operand(3))
        found = self.elements(expected, self.op.operand(3)) if twin is None else twin
        numbers: list[int] = np.broadcast_to(found, where.shape).reshape(-1).tolist()
        return numbers

    def _combined(self, old: int, x: int, expected: int | None) -> int:
        """What memory holds afterwards: rounded to its type without the rules of the Vector unit."""
        name, t = self.op.name, self.op.operand(1).dtype
        assert isinstance(t, DType)
        if name == "xchg":
            return x
        if expected is not None:
            return self.arithmetic.of.number(ExpressionKind("swapped", (str(t),)), (old, expected, x))
        if t.is_floating():
            r = VectorRounding(t.name, saturates=False, flushes=False)
            if name == "add":
                return self.arithmetic.add(r, old, x)
            return self.arithmetic.extreme(name, r, (old, x), ("in memory",))
        if name in WHOLE_SETS:
            return self.arithmetic.whole.combined(name, t.bits, t.is_int_signed(), (old, x))
        return self.arithmetic.whole.sum(t.bits, t.is_int_signed(), (old, x))
