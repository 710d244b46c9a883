"""Records as tables of pandas, which comes with an extra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import UsageError


def data_frame(records: Sequence[dict[str, Any]]) -> Any:
    """A pandas DataFrame with a row for each record; a column for each name in any of them, in the order of their first
    appearance. Raises `UsageError` where pandas is not installed."""
    try:
        from pandas import DataFrame
    except ImportError:
        raise UsageError("to_dataframe needs pandas: pip install 'ascendtile[tables]'") from None
    return DataFrame(records, columns=columns(records))


def columns(records: Sequence[dict[str, Any]]) -> list[str]:
    """Names in any of the records, in the order of their first appearance."""
    return list(dict.fromkeys(n for r in records for n in r))
