"""`python -m ascendtile.kernels.validation.accuracy`: fits the error model anew, tells what it holds before and after."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np

from .fitting import Fitted, fit, held_out, source_of, write
from .summaries import Result, family_of

LINE = "{:<44}{:>6}{:>9}{:>8}{:>10}{:>8}"


def main(arguments: Sequence[str]) -> int:
    """Print coverage and width by family and group; write the model unless asked to check only."""
    if set(arguments) - {"--check"}:
        print("usage: python -m ascendtile.kernels.validation.accuracy [--check]", file=sys.stderr)
        return 2
    results = held_out()
    fitted = fit(results)
    print(LINE.format("", "rows", "stored:", "", "left out:", ""))
    print(LINE.format("kernels", "", "inside", "width", "inside", "width"))
    for name, chosen in _parts(results):
        print(_line(name, results, np.array(chosen), fitted))
    print(
        f"ridge {fitted.ridge:g}, widened by {fitted.factor:.2f}; low {fitted.model.low}; high {fitted.model.high}"
    )
    if not arguments:
        write(fitted, len({source_of(r.row) for r in results}))
    return 0


def _parts(results: Sequence[Result]) -> list[tuple[str, list[bool]]]:
    """All rows, those of a family, of a product, of a group."""
    keys: tuple[Callable[[Result], str], ...] = (
        lambda _: "all",
        lambda r: family_of(r.row),
        lambda r: r.row.product,
        lambda r: r.row.group,
    )
    parts = ((name, key) for key in keys for name in dict.fromkeys(map(key, results)))
    return [(name, [key(r) == name for r in results]) for name, key in parts]


def _line(name: str, results: Sequence[Result], chosen: np.ndarray, fitted: Fitted) -> str:
    now = [r.interval for r, c in zip(results, chosen, strict=True) if c and r.interval]
    held = [bool(r.inside) for r, c in zip(results, chosen, strict=True) if c]
    widths = np.exp(fitted.left_out.low + fitted.left_out.high)[chosen]
    cells = (
        f"{100 * np.mean(held):.0f} %", f"{np.median([b / a for a, b in now]):.2f}x",
        f"{100 * fitted.left_out.inside[chosen].mean():.0f} %", f"{np.median(widths):.2f}x",
    )  # fmt: skip
    return LINE.format(name[:43], int(chosen.sum()), *cells)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
