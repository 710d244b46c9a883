"""What a precision study computes on: one set of numbers, rounded for each data type and for what the Cube reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...simulator.errors import UsageError
from ...simulator.interpreter.tensors import Shape
from ...simulator.precision.block_formats import Blocks
from ...simulator.precision.cube_math import Resolution
from ...simulator.precision.rounding import decode, encode, round_to
from ...simulator.precision.splits.slices import slice_sums
from ...simulator.products import Product
from ...simulator.units.cube_rules import CubeRules
from ..operator.blocks import as_shapes, as_tensors, quantised
from ..operator.draw import Draw
from ..operator.messages import listed
from ..operator.operator import Case, Operator
from ..operator.tensors import Arrays, Options, dtype_name, element_type
from ..running.problem import SMALLER, problem_of_inputs, require_memory

FLOATS = (np.float32, np.float64)


@dataclass(frozen=True)
class Data:
    """Inputs of one point of a study.

    exact: float32 or float64, before any rounding. shapes: of the whole problem, whose time counts; `exact` may be a
    block of it (`sample`: a note). given: the data types in which a user gave them. kinds: data type of a run -> those of
    the inputs that keep their own. rounding: how inputs are stored, a mode of `round_to`; None is each format's own.
    """

    exact: Arrays
    shapes: Mapping[str, tuple[int, ...]]
    options: Options
    sample: str | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    rounding: str | None = None

    def stored(self, op: Operator, dtype: str) -> Arrays:
        """The inputs as tensors of a data type, each value rounded once; whole numbers are what they are."""
        blocks = self.blocks(op, dtype)
        if blocks:
            return as_tensors(blocks)
        kinds = self._kinds(op, dtype)
        return {
            n: x
            if _is_whole(x)
            else encode(x, element_type(kinds[n]).name, self.rounding, seed=self._seed(k))
            for k, (n, x) in enumerate(self.exact.items())
        }

    def whole(self, op: Operator, dtype: str) -> dict[str, Shape]:
        """The whole problem as shapes, for its time."""
        fmt = op.blocks(dtype)
        if fmt is not None:
            return as_shapes(self.shapes, fmt, op.sum_axes)
        kinds = self._kinds(op, dtype)
        return {n: _shape(dims, kinds[n]) for n, dims in self.shapes.items()}

    def blocks(self, op: Operator, dtype: str) -> dict[str, Blocks]:
        """The inputs in a block format; empty for any other data type."""
        fmt = op.blocks(dtype)
        return {} if fmt is None else quantised(self.exact, fmt, op.sum_axes, self.rounding, self._seed(0))

    def _seed(self, number: int) -> int | None:
        """Of the random bits with which an input is stored, each by others."""
        return self.origin.get("seed", 0) + number if self.rounding == "STOCHASTIC" else None

    def _kinds(self, op: Operator, dtype: str) -> dict[str, str]:
        own = self.kinds.get(dtype, {})
        return {n: own[n] if n in own else op.input_dtype(n, dtype) for n in self.shapes}

    def scaled(self, op: Operator, factor: float) -> Data:
        """The same with one input times a power of two."""
        name = op.scaled or op.main
        with np.errstate(over="ignore"):
            scaled = self.exact[name] * np.float32(factor)
        if not np.isfinite(scaled).all() and np.isfinite(self.exact[name]).all():
            raise UsageError(
                f"{op.name}: {name!r} times {factor:g} does not fit float32; sweep smaller exponents"
            )
        return replace(self, exact={**self.exact, name: scaled})

    def remarks(self) -> list[str]:
        """What a reader of the errors must know of the inputs: values that are no numbers, and types that were mixed."""
        out = []
        for n, x in self.exact.items():
            nans, infinite = int(np.isnan(x).sum()), int(np.isinf(x).sum())
            if nans or infinite:
                out.append(
                    f"{n} has {nans} NaN and {infinite} infinite elements: errors are of outputs finite on both sides"
                )
        if len(set(self.given.values())) > 1:
            parts = listed([f"{n} {dtype}" for n, dtype in self.given.items()])
            how = "each row converts all of them to its own type; for a mixture see --dtypes"
            how = "every row keeps those types, and what it computes follows them" if self.kinds else how
            out.append(f"the inputs were {parts}: {how}")
        return out


def drawn(op: Operator, case: Case, seed: int, distribution: str, edge: int | None) -> Data:
    """Random inputs of a case, in float32; only those of the block that is computed."""
    numbers = Draw(seed, distribution)
    whole = op.describe(case.sizes, _widest(op))
    part = slices(op, whole, edge)
    shapes = {n: _cut_shape(x, part.get(n)) for n, x in whole.items()}
    require_memory(op, shapes, SMALLER)
    origin = {"seed": seed, "distribution": distribution}
    dims = {n: x.shape for n, x in whole.items()}
    kinds = {d: _own_kinds(op, op.describe(case.sizes, d)) for d in op.dtypes} if op.own_dtypes else {}
    found = op.draw(shapes, numbers)
    return Data(found, dims, case.options, _sample_note(shapes, part), origin, kinds=kinds)


def _own_kinds(op: Operator, tensors: Mapping[str, Any]) -> dict[str, str]:
    """Data types of the inputs that keep theirs."""
    return {n: dtype_name(x) for n, x in tensors.items() if n in op.own_dtypes}


def _is_whole(x: np.ndarray) -> bool:
    return x.dtype.kind in "iu"


def given(op: Operator, inputs: Mapping[str, Any], options: Options, edge: int | None) -> Data:
    """Inputs of the user: float64 and float32 stay as they are, narrower types become float32."""
    if not isinstance(inputs, Mapping):
        raise UsageError(f"{op.name}: inputs must be arrays by name, got {type(inputs).__name__}")
    arrays = {n: _wide(op, n, x) for n, x in inputs.items() if x is not None}
    kinds = {
        n: np.asarray(inputs[n]).dtype.newbyteorder("=").name for n in arrays if n not in op.fixed_dtypes
    }
    own = {n: np.asarray(inputs[n]) for n in arrays if n in op.own_dtypes}
    problem_of_inputs(op, {**arrays, **own}, _widest(op), options)
    part = slices(op, arrays, edge)
    exact = {n: np.ascontiguousarray(x[part[n]]) if n in part else x for n, x in arrays.items()}
    require_memory(op, {n: _shape(x.shape, "float32") for n, x in exact.items()}, SMALLER)
    dims = {n: x.shape for n, x in arrays.items()}
    own_kinds = dict.fromkeys(op.dtypes, _own_kinds(op, own)) if own else {}
    return Data(exact, dims, options, _sample_note(exact, part), given=kinds, kinds=own_kinds)


def slices(op: Operator, tensors: Mapping[str, Any], edge: int | None) -> dict[str, tuple[slice, ...]]:
    """The block whose values are computed; empty for all."""
    if op.cut is None:
        if edge is not None:
            why = f" ({op.whole})" if op.whole else ""
            raise UsageError(
                f"{op.name} has no sample: its values are computed whole{why}; leave the sample out"
            )
        return {}
    if any(len(x.shape) != 2 for x in tensors.values()):
        return {}  # the operator's own check says what is wrong
    return op.cut(tensors, edge)


def seen_by_cube(
    stored: Arrays,
    resolved: Resolution,
    rules: CubeRules,
    sliced: Mapping[str, tuple[int, int | None]],
) -> Arrays:
    """Stored inputs as the Cube multiplies them: float32 on the grid of the compute format, subnormals as it reads them.

    Of a split they are the sums of slices, in float64. sliced: that of the operator.
    """
    if resolved.split is not None:
        split = resolved.split
        return {n: slice_sums(x, split, *sliced[n]) if n in sliced else x for n, x in decoded(stored).items()}
    seen = cube_rounding(resolved, rules)
    return {n: seen(x) for n, x in decoded(stored).items()}


def cube_rounding(resolved: Resolution, rules: CubeRules) -> Callable[[np.ndarray], np.ndarray]:
    """Rounds float32 or float64 to what the Cube multiplies."""
    cube = rules.with_switches({"operand": resolved.operand, "accumulator": None})
    how = (cube.operand, cube.operand_round, cube.overflow, cube.operand_subnormals)
    return lambda x: round_to(x, *how)


def decoded(stored: Arrays) -> Arrays:
    """Stored inputs as float32 or float64, each value as it is."""
    return {n: x if x.dtype in FLOATS or _is_whole(x) else decode(x) for n, x in stored.items()}


def with_size(op: Operator, case: Case, name: str, value: int | tuple[int, ...]) -> Case:
    """A case with one size changed."""
    sizes = op.case({**case.sizes, name: value}).sizes
    return replace(case, name=f"{case.name} {name}={point_text(value)}", sizes=sizes)


def point_text(value: Any) -> str:
    """64, or 8x3x5 for dimensions."""
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def case_text(case: str | None, shapes: Mapping[str, tuple[int, ...]], options: Options | None) -> str:
    """A case, or the shapes of given inputs, with the options that the user set."""
    inputs = (f"{n} {point_text(tuple(x)) or 'scalar'}" for n, x in shapes.items())
    told = (f"{n}={point_text(tuple(x) if isinstance(x, list) else x)}" for n, x in (options or {}).items())
    return " ".join([case or ", ".join(inputs), *told])


def check_size(op: Operator, case: Case, name: str, product: Product) -> None:
    """Raises `UsageError` where the other sizes of a case depend on the one that a sweep changes."""
    try:
        tensors = op.describe(case.sizes, _widest(op))
        op.check(tensors, op.read_options(case.options), product)
    except UsageError as error:
        raise UsageError(
            f"{op.name}: {name} cannot be swept alone to {point_text(case.sizes[name])}: {error}; other sizes or options "
            "depend on it, so run one study with --case or --size for each point"
        ) from None


def _widest(op: Operator) -> str:
    return "float32" if "float32" in op.dtypes else op.dtypes[0]


def _shape(dims: tuple[int, ...], dtype: str) -> Shape:
    return Shape(tuple(dims), element_type(dtype))


def _cut_shape(x: Shape, part: tuple[slice, ...] | None) -> Shape:
    if part is None:
        return x
    return Shape(tuple(len(range(n)[s]) for n, s in zip(x.shape, part, strict=True)), x.dtype)


def _wide(op: Operator, name: str, x: Any) -> np.ndarray:
    array = np.asarray(x)
    if _is_whole(array) and name in op.own_dtypes:
        return array
    if array.dtype.kind not in "fV" or array.dtype.itemsize > 8:
        raise UsageError(f"{op.name}: {name!r} holds {array.dtype}; it must hold floating-point numbers")
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return array if array.dtype in FLOATS else decode(array)


def _sample_note(shapes: Mapping[str, Any], part: Mapping[str, Any]) -> str | None:
    if not part:
        return None
    parts = [f"{n} {'x'.join(map(str, x.shape))}" for n, x in shapes.items() if n in part]
    return f"values of a block only ({listed(parts)}), time of the whole case"
