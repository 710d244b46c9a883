"""What predicts which op of the tables. Every topic is a module of this package that registers functions by `predicts`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from importlib import import_module

from ascendtile.simulator.errors import UsageError
from ascendtile.simulator.observers import watch_times
from ascendtile.simulator.products import Product, load_product
from ascendtile.simulator.record.run import Launch

from .accuracy.intervals import Basis, basis_of
from .remarks import Heard, listening, remark
from .table import Row

TOPICS: tuple[str, ...] = (
    "attention.flash",
    "board",
    "convolutions",
    "instructions",
    "layouts",
    "matmuls",
    "pools",
    "reads",
    "transfers",
    "triton.kernels",
    "vector.batch_norms",
    "vector.moves",
    "vector.optimizers",
    "vector.row_kernels",
    "vector.rowwise",
    "vector.scans",
    "vector.softmaxes",
    "vector.streams",
    "vector.sums",
)


@dataclass(frozen=True)
class Prediction:
    """What we say of a row, in the row's unit. roofline: the trivial bound (peak rates only), or None if there is none.

    note: how the row was simulated, and which effects are not modelled. interval: in the row's unit, what nine of ten
    measured times lie in; `predict` fills it in for times of kernels, with what it rests on (`basis`).
    """

    value: float
    roofline: float | None = None
    note: str = ""
    interval: tuple[float, float] | None = None
    basis: Basis | None = None


NO_TILING = "no tiling published"  # what the note of a prediction begins with that took the best of several
TIME = "us"  # the unit of times of kernels
SOURCE_PLACE = re.compile(r"^\S*\.py:\d+(:\d+)?: ")  # that an error of a kernel's source begins with

Predictor = Callable[[Row], Prediction]
_predictors: dict[str, Predictor] = {}


def predicts(*ops: str) -> Callable[[Predictor], Predictor]:
    """Register a function as what predicts rows of these ops."""

    def register(function: Predictor) -> Predictor:
        for op in ops:
            known = _predictors.setdefault(op, function)
            if known is not function:
                raise ValueError(f"{op!r} is predicted by {known.__module__} already")
        return function

    return register


def predictors() -> dict[str, Predictor]:
    """All of them by op, from every topic."""
    for topic in TOPICS:
        import_module(f"{__package__}.{topic}")
    return dict(_predictors)


def predict(row: Row, product: Product | None = None) -> Prediction:
    """The prediction of one row. Raises UsageError if nothing predicts its op, or the row makes no sense to it.

    product: in place of the one that the row names, such as one with changed figures. Predictors hand what a row has there
    to `load_product` or `device`, which take either.
    """
    if product is not None:
        row = replace(row, product=product)  # type: ignore[arg-type]
    known = predictors()
    if row.op not in known:
        raise UsageError(
            f"{row.id}: nothing predicts the op {row.op!r}; there are {', '.join(sorted(known)) or 'none'}"
        )
    launches: list[Launch] = []
    with watch_times(launches.append), in_memory_of(row), listening() as heard:
        found = _asked(known[row.op], row)
        _check_cores(row, heard, launches)
    if not (math.isfinite(found.value) and found.value > 0):
        raise UsageError(f"{row.id}: the prediction of {row.op} is {found.value}, not a number above 0")
    given = NO_TILING not in found.note
    basis = basis_of(found.value, launches, given) if row.unit == TIME else None
    found = replace(found, note="; ".join(filter(None, (found.note, *heard.texts()))))
    return found if basis is None else replace(found, interval=basis.around(found.value), basis=basis)


def _asked(predictor: Predictor, row: Row) -> Prediction:
    """What it says; an error that a kernel or a device has with the row's types or numbers names the row, not the source."""
    try:
        return predictor(row)
    except UsageError as e:
        if str(e).startswith(f"{row.id}: "):
            raise
        what = ", ".join(filter(None, (f"{row.op} of {row.shapes}", row.dtypes, row.tiling)))
        reason = SOURCE_PLACE.sub("", str(e).partition("\n")[0])
        raise UsageError(f"{row.id}: {what}: {reason}") from None


def _check_cores(row: Row, heard: Heard, launches: Sequence[Launch]) -> None:
    """Say of a row that it has more cores than the product: what is beyond waits for a core."""
    given, product = heard.given.get("cores", ""), load_product(row.product)
    cube = any(name.startswith("AIC.") for launch in launches for name in launch.pipes)
    most = product.cube_cores if cube else product.vector_cores
    if given.isdecimal() and int(given) > most:
        remark(f"cores={given}: {product.name} has {most} of this kind, the others' work comes after theirs")


# ---- no tensor that memory cannot hold: sizes like that would run for hours ----

_row: ContextVar[Row | None] = ContextVar("row", default=None)


@contextmanager
def in_memory_of(row: Row) -> Iterator[None]:
    """Inside, `check_fits` is about the product of that row."""
    token = _row.set(row)
    try:
        yield
    finally:
        _row.reset(token)


def check_fits(sizes: Sequence[int], itemsize: int) -> None:
    """Raise UsageError if a tensor of these sizes, of elements of so many bytes, is larger than the product's memory."""
    row = _row.get()
    if row is None:
        return
    product, taken = load_product(row.product), math.prod(sizes) * itemsize
    room = product.integer("memory.size")
    if taken > room:
        raise UsageError(
            f"{row.id}: {row.op} of {row.shapes} has a tensor of {' x '.join(map(str, sizes))} elements, {taken} bytes; "
            f"the memory of {product.name} has {room}: give smaller sizes"
        )
