"""Orders that must come out right: rows of the tables, the best first."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RankingCase:
    """rows: ids, the best (least time, highest rate) first. only_first: the first must win, no more is published."""

    name: str
    rows: tuple[str, ...]
    source: str
    only_first: bool = False


CASES: tuple[RankingCase, ...] = ()
