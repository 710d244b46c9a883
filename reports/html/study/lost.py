"""Which elements of operands and outputs are not simply rounded, as a table with bars."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from ....kernels.study.results import ModeRow
from ...facts.study.lost import KINDS, lost_shares
from ..writing import render

MOST_ROWS = 200


def lost_table(rows: Iterable[ModeRow], name: str) -> Markup:
    """Empty where nothing is lost."""
    found = lost_shares(rows, name)
    if not found:
        return Markup("")
    return render("lost.html", found=found[:MOST_ROWS], kinds=KINDS, hidden=max(0, len(found) - MOST_ROWS))
