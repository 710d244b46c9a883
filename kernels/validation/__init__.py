"""Predictions beside public board measurements: tables of rows, what predicts each row, and how far off it is.

`micro.csv` (instructions and transfers) and `kernels.csv` (whole kernels) hold what was measured, where it was published
and whether a figure of ours was fitted on it; `others.csv` what was measured, too, and why it is not simulated. Of a
measurement one figure is a row, its time; shares and times of single pipes beside it are not judged.

A module of this package gives the prediction of an op:

    @predicts("memcpy GM->UB")
    def _load(row: Row) -> Prediction: ...

and is named in `registry.TOPICS`. `validate()` runs the rows; `ascendtile validate` shows what comes out.
"""

from .accuracy.orders import VariantOrder, order_in_words
from .accuracy.statistics import Summary, summarise
from .accuracy.summaries import Group, Result
from .registry import Prediction, predict, predicts
from .table import Row, read_table, read_tables
from .validating import CASES, RankingCase, Validation, rows_of, validate

__all__ = [
    "CASES",
    "Group",
    "Prediction",
    "RankingCase",
    "Result",
    "Row",
    "Summary",
    "Validation",
    "VariantOrder",
    "order_in_words",
    "predict",
    "predicts",
    "read_table",
    "read_tables",
    "rows_of",
    "summarise",
    "validate",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
