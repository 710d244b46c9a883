"""What an operator is: data (names, types, cases, knobs) and a handful of functions.

An operator is one file below `kernels/` with an `OPERATOR` of this class; `registry.py` finds it there. Its functions see
tensors by name, numpy arrays or, for time only, `Shape`s: `describe` gives the shapes of a case, `draw` fills them with
seeded numbers, `check` refuses what the operator does not take, `plan` says which kernels to launch with which tiling,
`formula` is the float64 reference.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...simulator.errors import RefusedError, UsageError
from ...simulator.interpreter.tensors import Shape
from ...simulator.precision import dtypes as ty
from ...simulator.precision.block_formats import BLOCK_FORMATS, BlockFormat
from ...simulator.precision.cube_math import PARAM_INVALID, Resolution
from ...simulator.products import Product, load_product, product_names
from .beyond import Beyond
from .blocks import as_shapes, as_tensors, block_format, block_inputs, quantised
from .draw import Draw
from .formats import is_other, number_format, other_formats
from .messages import listed, near
from .parameter import Argument, Parameter, as_mapping, read_all
from .plan import Plan, PlanContext
from .tensors import DTYPE_NAMES, Arrays, Knobs, Options, Sizes, Tensors

FLOATS = ("float16", "bfloat16", "float32")
# Number of a core's architecture -> element types there: A2 and A3; 310P; 910A and 310B.
EVERYWHERE: Mapping[int, tuple[str, ...]] = {
    2201: FLOATS,
    **dict.fromkeys((2002, 1001), ("float16", "float32")),
}


def offered_on(*architectures: int) -> dict[int, tuple[str, ...]]:
    """`Operator.architectures` of an operator that only these have, in all element types that they know."""
    return {n: EVERYWHERE[n] for n in architectures}


def by_name(*functions: Callable[..., Any]) -> dict[str, Any]:
    """Functions that have the names of the fields of `Operator` that they are."""
    return {f.__name__: f for f in functions}


@dataclass(frozen=True)
class Case:
    """A named problem: sizes by name (see `Operator.sizes`), where it comes from, options of the operator."""

    name: str
    title: str
    sizes: Sizes
    source: str
    options: Options = field(default_factory=dict)


@dataclass(frozen=True)
class OnCube:
    """How an operator that can do without the Cube uses it: with the knob at that value.

    resolve: what a cubeMathType means then, for tensors, a product and the mode. formula: the outputs in float64 of stored
    inputs, with a function that rounds an array to what the Cube multiplies. outputs: those that pass the Cube.
    """

    knob: str
    value: str
    resolve: Callable[[Tensors, Product, str], Resolution]
    formula: Callable[[Arrays, Mapping[str, Any], Callable[[np.ndarray], np.ndarray]], Arrays]
    outputs: tuple[str, ...]

    @property
    def text(self) -> str:
        """The knob as on the command line."""
        return f"{self.knob}={self.value}"


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One operator.

    dtypes: in the order of preference. required, optional: inputs. sizes: what a case is given by, name -> help.
    parameters: knobs of the tiling; options: arguments of the operator itself; arguments: how its Python face takes those,
    doc: what that says of inputs, arguments and outputs (`running/face.py`). architectures: number of the core's
    architecture (`product.npu_arch`) -> data types it runs there. main: the input whose type names a run's type;
    fixed_dtypes: inputs whose type does not follow it. own_dtypes: inputs that keep the type in which they are given,
    integers among them, and what it may be. host_bytes: memory that values, errors and reference take here.
    resolve: for operators of the Cube, what a cubeMathType means for input types by name, on a product, with the shapes.
    multiplied: the inputs that the Cube multiplies, all if left out. one_dtype: all inputs have the same, no mixtures.
    formats: whether it takes operands in any other number format, all in one, or in blocks with scales along the axes of
    `sliced`, as a what-if (`formats.py`, `blocks.py`).
    beside_cube: the outputs that never pass the Cube, in float64 from the inputs as they are stored.
    sliced: inputs that a split cuts: which operand of the products each is, 0 or 1, and the axis of the sum, along which it
    has one scale (None: all of it has one).
    order_knobs: knobs of the tiling that decide the order of additions. computes: format of the arithmetic of operators
    of the Vector unit. modes: how many numbers of cubeMathType its interface has, from 0. empty: whether sizes may be 0,
    and `check` judges.
    accumulates: the size that is the length of the longest sum. scaled: the input that a study of
    ranges scales, by default `main`. cancels: its sums do in the
    distribution cancel. cut: slices of the inputs, by name, that give a block of the output of at most so
    many rows and columns (None: what a study affords); empty where that is all of it.
    on_cube: for operators that use the Cube with one of their tilings only. whole: why a study has no block of the output to
    compute instead of all. beyond: what is taken on purpose and stands in no document. finite_on: architectures for which
    the document excludes NaN and infinities. without_influence: inputs that the interface has and no kernel reads.
    explored: the axes of the space of tilings, by knob; without, every knob gets the values that its declaration suggests.
    fits: rule -> which points (columns of knobs) keep it, for a product and a cubeMathType. bound_us: least time of points.
    Those of these three that name a parameter `options` get the arguments of the operator, too, and `fits` as `axes` the
    values of every knob: a second name for a tiling is refused only where the first one is a point of the space.
    """

    name: str
    summary: str
    dtypes: tuple[str, ...] = FLOATS
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    main: str
    fixed_dtypes: Mapping[str, str] = field(default_factory=dict)
    own_dtypes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    outputs: tuple[str, ...]
    sizes: Mapping[str, str]
    cases: Mapping[str, Case]
    parameters: tuple[Parameter, ...]
    options: tuple[Parameter, ...] = ()
    architectures: Mapping[int, tuple[str, ...]] = field(default_factory=lambda: EVERYWHERE)
    describe: Callable[[Sizes, str], dict[str, Shape]]
    draw: Callable[[Mapping[str, Shape], Draw], Arrays]
    check: Callable[[Tensors, Mapping[str, Any], Product], tuple[str, ...]]
    plan: Callable[[Tensors, Mapping[str, Any], Mapping[str, Any], PlanContext], Plan]
    formula: Callable[[Arrays, Mapping[str, Any]], Arrays]
    arguments: tuple[Argument, ...] = ()
    doc: str = ""
    uses_cube: bool = False
    host_bytes: Callable[[Tensors], int] | None = None
    resolve: Callable[[Tensors, Product, str], Resolution] | None = None
    beside_cube: Callable[[Arrays, Mapping[str, Any]], Arrays] | None = None
    multiplied: tuple[str, ...] = ()
    one_dtype: bool = False
    sliced: Mapping[str, tuple[int, int | None]] = field(default_factory=dict)
    formats: bool = False
    order_knobs: tuple[str, ...] = ()
    computes: str = "fp32"
    accumulates: str | None = None
    modes: int = 4
    empty: bool = False
    scaled: str | None = None
    cancels: bool = False
    cut: Callable[[Tensors, int | None], dict[str, tuple[slice, ...]]] | None = None
    # Of tensors and a product; on that device.
    explored: Callable[..., Mapping[str, tuple[Any, ...]]] | None = None
    fits: Callable[..., Mapping[str, np.ndarray]] | None = None  # of tensors, product, cubeMathType, points
    bound_us: Callable[..., np.ndarray] | None = None  # of the same
    on_cube: OnCube | None = None
    whole: str = ""
    beyond: Beyond | None = None
    finite_on: tuple[int, ...] = ()
    without_influence: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        options = {p.name: "" for p in self.options}
        for case in self.cases.values():
            for family, known, given in (("size", self.sizes, case.sizes), ("option", options, case.options)):
                for n in given:
                    if n not in known:
                        raise UsageError(
                            f"{self.name}: case {case.name!r} has the unknown {family} {n!r}{near(n, known)}"
                        )

    def resolution(self, tensors: Tensors, product: Product, mode: str, tiling: Knobs) -> Resolution | None:
        """What a cubeMathType means with these knobs; None where nothing of it runs on the Cube."""
        if self.resolve is not None:
            return self.resolve(tensors, product, mode)
        found = self.used_cube(tiling)
        return found.resolve(tensors, product, mode) if found else None

    def used_cube(self, tiling: Knobs) -> OnCube | None:
        """`on_cube` if these knobs ask for it."""
        found = self.on_cube
        return found if found and self.read_tiling(tiling)[found.knob] == found.value else None

    def inputs(
        self, case: str | Case | Sizes, dtype: str, seed: int = 0, distribution: str = "normal"
    ) -> Arrays:
        """Seeded inputs of a case or of sizes; `distribution` "heavy" gives the tails of real gradients."""
        fmt = self.blocks(dtype)
        if fmt is None:
            return self.draw(self.shapes(case, dtype), Draw(seed, distribution))
        exact = self.draw(self.shapes(case, "float32"), Draw(seed, distribution))
        return as_tensors(quantised(exact, fmt, self.sum_axes))

    def shapes(self, case: str | Case | Sizes, dtype: str) -> dict[str, Shape]:
        """The inputs as shapes, for time only: allocates nothing."""
        fmt, sizes = self.blocks(dtype), self.case(case).sizes
        if fmt is None:
            return self.describe(sizes, self.dtype(dtype))
        whole = self.describe(sizes, "float32")
        return as_shapes({n: x.shape for n, x in whole.items()}, fmt, self.sum_axes)

    def blocks(self, dtype: object) -> BlockFormat | None:
        """The block format of that name, where operands may be in one; None for any other data type."""
        return block_format(str(dtype)) if self.formats else None

    @property
    def sum_axes(self) -> dict[str, int]:
        """The operands of its sums of products, and the axis of the sum."""
        return {n: axis for n, (_, axis) in self.sliced.items() if axis is not None}

    @property
    def block_inputs(self) -> tuple[str, ...]:
        """Inputs that come beside operands in blocks: their scales."""
        return block_inputs(self.sliced) if self.formats else ()

    def reference(self, inputs: Arrays, **options: Any) -> Arrays:
        """Every output in float64, in the shape of the operator's own output."""
        return self.formula(inputs, self.read_options(options))

    def read_options(self, options: Options) -> dict[str, Any]:
        """Checked options with defaults filled in."""
        given = as_mapping(f"{self.name}: options", options, "name to value")
        for p in self.options:
            if p.kind == "choice" and p.name in given and given[p.name] is None:
                raise UsageError(
                    f"{self.name}: option {p.name!r} must be one of {listed(p.choices or (), 'or')}, got None"
                )
        return read_all(self.name, "option", self.options, given)

    def read_tiling(self, tiling: Knobs) -> dict[str, Any]:
        """Checked knobs; None where the operator is to choose."""
        given = as_mapping(f"{self.name}: tiling", tiling, "knob to value")
        return read_all(self.name, "tiling parameter", self.parameters, given)

    def case(self, case: str | Case | Sizes | None) -> Case:
        """The case of that name, the first one for None, or a case made of sizes."""
        if isinstance(case, Case):
            return case
        if case is None:
            return next(iter(self.cases.values()))
        if isinstance(case, Mapping):
            sizes = self._read_sizes(case)
            text = " ".join(f"{n}={_size_text(x)}" for n, x in sizes.items())
            return Case(text, text, sizes, "sizes given by the user")
        if case not in self.cases:
            raise UsageError(f"{self.name} has no case {case!r}{near(case, self.cases)}")
        return self.cases[case]

    def _read_sizes(self, sizes: Sizes) -> dict[str, int | tuple[int, ...]]:
        for name in sizes:
            if name not in self.sizes:
                raise UsageError(f"{self.name} has no size {name!r}{near(name, self.sizes)}")
        missing = [n for n, help in self.sizes.items() if n not in sizes and not help.startswith("optional")]
        if missing:
            raise UsageError(f"{self.name}: size {missing[0]!r} is missing ({self.sizes[missing[0]]})")
        found = {n: _read_size(f"{self.name}: size {n!r}", x) for n, x in sizes.items()}
        for n, x in found.items():
            if not self.empty and min((x,) if isinstance(x, int) else x, default=1) < 1:
                raise UsageError(
                    f"{self.name}: size {n!r} is {_size_text(x)}: a case needs at least one element"
                )
        return found

    def input_dtype(self, name: str, dtype: str) -> str:
        """Data type of one input in a run of `dtype`, which may be a mixture (see `mixtures`)."""
        if name in self.fixed_dtypes:
            return self.fixed_dtypes[name]
        kinds = dtype.split("+")
        return kinds[self.required.index(name)] if len(kinds) > 1 else dtype

    def mixtures(self) -> tuple[str, ...]:
        """Different data types for the required inputs, "float32+float16" in their order; only operators of the Cube."""
        if self.resolve is None or self.one_dtype:
            return ()
        return tuple(
            "+".join(x) for x in itertools.product(self.dtypes, repeat=len(self.required)) if len(set(x)) > 1
        )

    def mixture(self, dtype: str) -> str:
        """The name of a data type or of a mixture of them."""
        kinds = str(dtype).split("+")
        if len(kinds) == 1:
            return self.dtype(dtype)
        mixes = self.resolve is not None and not self.one_dtype
        if not mixes or len(kinds) != len(self.required):
            takes = f"{len(self.required)} types, of {listed(self.required)}" if mixes else "one type"
            raise UsageError(f"{self.name}: {dtype!r} is {len(kinds)} data types; it takes {takes}")
        names = [self.dtype(x) for x in kinds]
        odd = [n for n in names if n not in self.dtypes]
        if odd and len(set(names)) > 1:
            raise UsageError(
                f"{self.name}: {dtype!r}: operands in the number format {odd[0]} are all in that one"
            )
        return names[0] if len(set(names)) == 1 else "+".join(names)

    def dtype(self, dtype: str) -> str:
        """The name of a data type of this operator, as "float16"; short names are accepted."""
        blocks = self.blocks(dtype)
        if blocks is not None:
            return blocks.name
        found = number_format(str(dtype)) if self.formats else None
        if found is not None and is_other(found):
            return found.name
        known = ty.from_name(found.name if found else str(dtype))
        name = DTYPE_NAMES.get(known.name, known.name) if known else str(dtype)
        if name not in self.dtypes:
            formats = (*other_formats(), *BLOCK_FORMATS) if self.formats and known is None else ()
            names = (*self.dtypes, *formats)
            raise UsageError(f"{self.name} has no data type {dtype!r}{near(str(dtype), names)}")
        return name

    def dtypes_on(self, product: Product) -> tuple[str, ...]:
        """The data types it runs on a product; `UsageError` if the product does not have the operator."""
        found = self.architectures.get(product.integer("product.npu_arch"))
        if found is None:
            reason = (
                f"is not available on {product.name} ({product.title}); it is on {listed(self._products())}"
            )
            raise RefusedError(f"{self.name} {reason}", PARAM_INVALID, f"{self.name} {reason}")
        return tuple(d for d in self.dtypes if d in found)

    def require(self, product: Product, dtype: str) -> None:
        """Raise `UsageError` unless the product runs the operator in this data type."""
        here = self.dtypes_on(product)
        name = self.dtype(dtype)
        if name in self.dtypes and name not in here:
            raise RefusedError(
                f"{self.name} does not take {dtype} on {product.name} ({product.title}), status {PARAM_INVALID} (parameter "
                f"invalid); there it takes {listed(here)}",
                PARAM_INVALID,
                f"{dtype} is not supported on {product.name}",
            )

    def _products(self) -> list[str]:
        archs = {name: load_product(name).integer("product.npu_arch") for name in product_names()}
        return [name for name, arch in archs.items() if arch in self.architectures]


def _read_size(what: str, x: Any) -> int | tuple[int, ...]:
    if isinstance(x, tuple | list):
        return tuple(_read_length(what, n) for n in x)
    return _read_length(what, x)


def _read_length(what: str, n: Any) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise UsageError(f"{what} must be made of integers from 0, got {n!r}")
    return int(n)


def _size_text(x: int | tuple[int, ...]) -> str:
    return str(x) if isinstance(x, int) else "x".join(map(str, x)) or "scalar"
