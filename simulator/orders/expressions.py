"""Expressions by number: two elements have one number exactly if they are made by the same operations of the same operands.

An expression is what makes it (`ExpressionKind`) and the numbers of its operands. A dictionary has each once, so that equal
numbers are a proof and no matter of luck, as equal hashes would be.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..precision.formats import get_format

ZERO = 0  # the number of the constant +0, of any type
CONSTANT, INPUT, PART = "constant", "input", "part"
HALF_WORD = np.int64(1) << 32

# What is known of the value of an expression, whatever the inputs are.
FINITE = 1  # neither infinite nor NaN
NO_MINUS_ZERO = 2
NOT_NEGATIVE = 4  # nor -0; NaN is not excluded
INTEGER = FINITE | NO_MINUS_ZERO


EXACT_INTEGERS = {"fp16": 1 << 11, "bf16": 1 << 8, "fp32": 1 << 24, "fp64": 1 << 53}
# Of each type the largest finite value, and how much larger rounding may make one.
LARGEST = {name: float(get_format(name).max) for name in ("fp16", "bf16", "fp32", "fp64")}
SLACK = {"fp16": 1 + 2.0**-10, "bf16": 1 + 2.0**-7, "fp32": 1 + 2.0**-22, "fp64": 1 + 2.0**-50}


class VectorRounding(NamedTuple):
    """How the Vector unit brings a result to its type; see `units/vector.py`.

    flushes, reads_zeros: whether subnormal results become zeros, and subnormal operands are read as such. signed: whether
    the sign of a zero counts. place: where the unit has rules of its own.
    """

    dtype: str
    saturates: bool
    flushes: bool
    reads_zeros: bool = False
    signed: bool = True
    place: str = ""

    @property
    def plain(self) -> bool:
        """Whether a value of the type is always left as it is."""
        return not (self.saturates or self.no_subnormals)

    @property
    def no_subnormals(self) -> bool:
        """Whether a subnormal value may become another one."""
        return self.flushes or self.reads_zeros


class ExpressionKind(NamedTuple):
    """What makes an expression: the name of an operation, and all else that its value depends on besides the operands."""

    name: str
    detail: tuple[Any, ...] = ()


class ExpressionTable:
    """All expressions of several runs.

    traits: of each, a sum of FINITE, NO_MINUS_ZERO and NOT_NEGATIVE. settled: the roundings that leave its value as it is.
    """

    def __init__(self) -> None:
        self.made: list[ExpressionKind] = []
        self.operands: list[tuple[int, ...]] = []
        self.traits: list[int] = []
        self.settled: list[Any] = []
        self._numbers: dict[tuple[ExpressionKind, tuple[int, ...]], int] = {}
        self._inputs: dict[tuple[Any, ...], np.ndarray] = {}
        self._constants = np.zeros(1024, bool)
        assert self.constant(0.0) == ZERO

    def __len__(self) -> int:
        return len(self.made)

    def number(
        self, made: ExpressionKind, operands: tuple[int, ...] = (), traits: int = 0, settled: Any = None
    ) -> int:
        """The number of an expression; traits and settled count where it is new."""
        key = made, operands
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.made)
            self.made.append(made)
            self.operands.append(operands)
            self.traits.append(traits)
            self.settled.append(settled)
            if found == len(self._constants):
                self._constants = np.concatenate([self._constants, np.zeros(found, bool)])
            self._constants[found] = made.name == CONSTANT
        return found

    def has(self, number: int, trait: int) -> bool:
        """Whether that is known of an expression."""
        return bool(self.traits[number] & trait)

    # -- constants and inputs ----------------------------------------------------------------------------------------

    def constant(self, value: float) -> int:
        """The number of a constant; an integer has that of the equal floating-point number, and all NaN have one."""
        if math.isnan(value):
            return self.number(ExpressionKind(CONSTANT, (math.nan, "nan")), (), NO_MINUS_ZERO | NOT_NEGATIVE)
        whole = math.isfinite(value) and value == int(value)
        minus_zero = value == 0 and math.copysign(1.0, value) < 0
        traits = FINITE * math.isfinite(value) | NO_MINUS_ZERO * (not minus_zero)
        traits |= NOT_NEGATIVE * (value >= 0 and not minus_zero)
        exact = -0.0 if minus_zero else int(value) if whole else float(value)
        return self.number(ExpressionKind(CONSTANT, (exact, "-" if minus_zero else "")), (), traits)

    def is_constant(self, number: int) -> bool:
        """Whether it is one."""
        return self.made[number].name == CONSTANT

    def value(self, number: int) -> Any:
        """What a constant is."""
        return self.made[number].detail[0]

    def which_constant(self, numbers: np.ndarray) -> np.ndarray:
        """Of an array, which elements are constants."""
        return np.asarray(self._constants[numbers])

    def constants(self, values: np.ndarray) -> np.ndarray:
        """The numbers of constants, in the shape of the array."""
        flat = np.ascontiguousarray(values).reshape(-1)
        words = flat.view(f"u{flat.itemsize}")  # so that -0 and 0 are two
        _, first, where = np.unique(words, return_index=True, return_inverse=True)
        found = np.array([self.constant(x) for x in flat[first].tolist()], np.int64)
        return np.asarray(found[where].reshape(values.shape))

    def input(self, name: str, index: tuple[int, ...], settled: Any = None, traits: int = FINITE) -> int:
        """The number of an element of an input."""
        return self.number(ExpressionKind(INPUT, (name, index)), (), traits, settled)

    def inputs(
        self, name: str, shape: tuple[int, ...], settled: Any = None, traits: int = FINITE
    ) -> np.ndarray:
        """The numbers of the elements of an input, flat."""
        key = name, shape, settled, traits
        if key not in self._inputs:
            every = [self.input(name, index, settled, traits) for index in np.ndindex(*shape)]
            self._inputs[key] = np.array(every, np.int64)
        return self._inputs[key]

    # -- arrays ------------------------------------------------------------------------------------------------------

    def each(self, make: Callable[..., int], *operands: np.ndarray) -> np.ndarray:
        """What `make` gives for the numbers at each place of arrays that are broadcast together; once for equal ones."""
        arrays = np.broadcast_arrays(*operands)
        flat = [np.ascontiguousarray(a).reshape(-1) for a in arrays]
        words, pairs = flat[0], []
        for column in flat[1:]:
            known, words = np.unique(words, return_inverse=True)
            pairs.append(known)
            words = words * HALF_WORD + column
        _, first, where = np.unique(words, return_index=True, return_inverse=True)
        columns = [a[first].tolist() for a in flat]
        found = np.array([make(*row) for row in zip(*columns, strict=True)], np.int64)
        return np.asarray(found[where].reshape(arrays[0].shape))

    def parts(self, made: ExpressionKind, operands: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """The elements of a result (of that shape) of which nothing is known but that all operands make them."""
        whole = self.number(made, tuple(operands.reshape(-1).tolist()))
        count = math.prod(shape)
        found = [self.number(ExpressionKind(PART, (k,)), (whole,)) for k in range(count)]
        return np.array(found, np.int64).reshape(shape)
