"""Results of explorations as CSV: one row for each evaluated tiling, best first."""

from __future__ import annotations

import csv
import io

from ...tiling.results.exploration import Exploration, Found
from ...tiling.shapes import Shapes

FIGURES = ("time_us", "bound", "bound_us", "ub_peak_bytes", "error")


def as_csv(e: Exploration) -> str:
    """Columns: every axis, then the figures."""
    axes = list(e.axes)
    rows = [[*axes, *FIGURES]]
    rows += [[*(str(x.point[n]) for n in axes), *_figures(x)] for x in e.ranked]
    return _written(rows)


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
    rows = [["case", *names, *axes, *FIGURES, "proved", "loss"]]
    for case, e in s.explorations.items():
        if e.best is not None:
            sizes = [str(s.sizes[case].get(n, "")) for n in names]
            point = [str(e.best.point.get(n, "")) for n in axes]
            rows.append(
                [case, *sizes, *point, *_figures(e.best), str(e.optimal), str(s.losses.get(case, ""))]
            )
    return _written(rows)


def _figures(x: Found) -> list[str]:
    e = x.evaluation
    found = (e.time_us, e.bound, e.bound_us, e.ub_peak_bytes, e.error)
    return ["" if v is None else str(v) for v in found]


def _written(rows: list[list[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
