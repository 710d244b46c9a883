"""The error model that intervals are made with, fitted anew on kernels that nothing else was fitted on.

python -m ascendtile.kernels.validation.accuracy          # fits, tells the coverage before and after, writes the file
python -m ascendtile.kernels.validation.accuracy --check  # only tells
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....simulator.errors import RunError
from ....simulator.observers import quietly
from ....simulator.products import load_product
from ....simulator.timing.results.error_model import FILE, ErrorModel, stored, wider_with
from ..registry import TIME, predict
from ..table import Row, read_tables
from .regression import Bands, Floats, Sample, best, ends, widening
from .summaries import Result

COVERAGE = 0.90  # of rows whose source was left out, at least
MOST = 0.94  # of the rows that were fitted on
# A time that rests on assumed figures alone is off by so much more, in logarithms, at least: an assumption itself, as most
# rows were measured on what most figures were measured on.
LEAST = {"assumed": 0.1}


class Fitted(NamedTuple):
    """What was fitted, how wide it was made, and the same for each row with its source left out."""

    model: ErrorModel
    ridge: float
    factor: float
    left_out: Bands


def held_out(rows: Sequence[Row] | None = None) -> tuple[Result, ...]:
    """Kernels that nothing was fitted on and that can be predicted, of these rows or of the project's tables."""
    found = read_tables() if rows is None else rows
    chosen = [r for r in found if r.unit == TIME and not r.fitted and not r.excluded and r.measured]
    with quietly():
        results = [r for row in chosen for r in _predicted(row)]
    return tuple(r for r in results if r.prediction is not None and r.prediction.basis is not None)


def _predicted(row: Row) -> list[Result]:
    try:
        return [Result(row, predict(row))]
    except RunError:  # told by `ascendtile validate`
        return []


def source_of(row: Row) -> str:
    """Who published it: the repository, without the place in it."""
    return row.source.split()[0]


def architecture(row: Row) -> str:
    """The `product.npu_arch` of a row's product, as the model's file has it."""
    return str(load_product(row.product).integer("product.npu_arch"))


def sample_of(results: Sequence[Result], rows_of: dict[str, int]) -> Sample:
    """Errors of products with few rows are taken to be as much larger as the model takes them to be."""
    bases = [
        r.prediction.basis for r in results if r.prediction is not None and r.prediction.basis is not None
    ]
    names = list(bases[0].features)
    wider = np.array([wider_with(rows_of[architecture(r.row)]) for r in results])
    return Sample(
        np.array([[basis.features[n] for n in names] for basis in bases]),
        errors_of(results) / wider,
        tuple(source_of(r.row) for r in results),
        np.array([LEAST.get(n, 0.0) for n in names]),
    )


def errors_of(results: Sequence[Result]) -> Floats:
    """log(measured / predicted)."""
    return np.array([np.log((r.row.measured or 1.0) / (r.predicted or 1.0)) for r in results])


def fit(results: Sequence[Result]) -> Fitted:
    """The model of these rows."""
    rows_of = dict(sorted(Counter(architecture(r.row) for r in results).items()))
    sample = sample_of(results, rows_of)
    ridge, found = best(sample, COVERAGE)
    chosen = ends(sample, ridge)
    own = Bands(*(sample.features @ end for end in chosen), sample.errors)
    factor = min(widening(found, COVERAGE), widening(own, MOST))
    names = list(results[0].prediction.basis.features)  # type: ignore[union-attr]
    low, high = ({n: round(factor * float(x), 3) for n, x in zip(names, end, strict=True)} for end in chosen)
    return Fitted(ErrorModel(low, high, rows_of), ridge, factor, found.wider(factor))


def write(fitted: Fitted, sources: int) -> None:
    """Put the model into the file that launches read."""
    model = fitted.model
    head = f"""# Written by `python -m ascendtile.kernels.validation.accuracy`; what the figures mean: error_model.py.
percent = 90
source = "fitted on kernels of kernels/validation/*.csv that no other figure was fitted on"
rows = {sum(model.rows.values())}
sources = {sources}
left_out_coverage = {fitted.left_out.coverage:.3f} # of rows whose source was left out
"""
    parts = {"low": model.low, "high": model.high, "rows_of": model.rows}
    tables = [
        "\n".join([f"[{name}]", *(f"{n} = {x}" for n, x in part.items())]) for name, part in parts.items()
    ]
    FILE.write_text("\n\n".join([head.rstrip(), *tables]) + "\n", encoding="utf-8")
    stored.cache_clear()


__all__ = ["Fitted", "fit", "held_out", "sample_of", "source_of", "write"]
