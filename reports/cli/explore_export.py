"""Results of explorations as CSV: one row for each evaluated tiling, best first."""

from __future__ import annotations

from ...tiling.results.exploration import FIGURES, Exploration
from ...tiling.shapes import Shapes
from ..facts.tables import as_csv


def exploration_csv(e: Exploration) -> str:
    """Columns: every axis, then the figures."""
    return as_csv(e.records(), [*e.axes, *FIGURES])


def as_python(e: Exploration) -> str:
    """The best tiling as a dict to paste into a program; knobs that are left to the operator are left out."""
    head = f"# best tiling of {e.op} {e.case or ''} on {e.product}".rstrip()
    best = {} if e.best is None else {n: x for n, x in e.best.point.items() if x is not None}
    time = "none was found" if e.best is None else f"{e.best.time_us:.4g} us"
    return f"{head}: {time}, {'proved' if e.optimal else 'not proved'}\nTILING = {best!r}\n"


def shapes_csv(s: Shapes) -> str:
    """One row for each case with its best tiling; `loss` is what the best single tiling loses there."""
    names = list(dict.fromkeys(n for sizes in s.sizes.values() for n in sizes))
    axes = list(dict.fromkeys(n for e in s.explorations.values() for n in e.axes))
    columns, rows = ["case", *names, *axes, *FIGURES, "proved", "loss"], []
    for case, e in s.explorations.items():
        if e.best is not None:
            point = {**s.sizes[case], **{n: e.best.point.get(n, "") for n in axes}}
            proved = {"proved": e.optimal, "loss": s.losses.get(case)}
            rows.append({"case": case, **point, **e.best.figures(), **proved})
    return as_csv(rows, columns)
