"""What a calibration found: figures before and after, errors before and after, and the product file that comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ascendtile.simulator.products import Figure, Product

from .product_file import printable, product_toml, write_product
from .rows import NotUsed

GRADE = "C"  # one board, measured by somebody else than the vendor


@dataclass(frozen=True)
class Errors:
    """Absolute errors of rows, as fractions of what was measured; None without rows. bias: the median with its sign."""

    rows: int
    median: float | None
    p90: float | None
    bias: float | None


@dataclass(frozen=True)
class FittedFigure:
    """One figure of the product, before and after.

    rows: how many say something of it. deviation: of the new value, as a fraction of it. told: which part of what is known
    of it now comes from the rows, 0 to 1. low, high: the range that others published, None without one.
    """

    key: str
    unit: str
    old: float
    new: float
    low: float | None
    high: float | None
    rows: int
    deviation: float
    told: float

    @property
    def outside(self) -> bool:
        """Whether the new value is outside of what others published."""
        low, high = self.low or self.old, self.high or self.old
        return self.low is not self.high and not (low <= self.new <= high)


@dataclass(frozen=True)
class Calibration:
    """What came of it.

    figures: fitted ones. alone: figures that the rows say nothing of, by key with the reason. before, after: errors of rows
    that were left out; fitted_before, fitted_after: of the others; all from simulations. condition: how well the rows tell
    the figures apart (1 is best). together: keys of those that the rows tell only together, empty for a condition of up to
    30; then what is known before decides how they share it. capped: rows that were not used because there are too many.
    far_off: ids of rows that are wrong by more than a factor of 5 before.
    """

    path: str
    product: Product
    calibrated: Product
    figures: tuple[FittedFigure, ...]
    alone: tuple[tuple[str, str], ...]
    before: Errors
    after: Errors
    fitted_before: Errors
    fitted_after: Errors
    condition: float
    together: tuple[str, ...]
    launches: int
    left_out: tuple[NotUsed, ...]
    capped: int
    far_off: tuple[str, ...]

    @property
    def better(self) -> bool:
        """Whether rows that were left out are predicted better (of none left out: those that were fitted)."""
        before, after = (
            (self.before, self.after) if self.before.rows else (self.fitted_before, self.fitted_after)
        )
        return after.median is not None and before.median is not None and after.median < before.median

    def toml(self) -> str:
        """The product file: `base`, and the figures that differ from it."""
        return product_toml(self.product, [self._figure(f) for f in self.figures], Path(self.path).name)

    def save(self, path: str | Path, force: bool = False) -> None:
        """Write the product file. UsageError if there is a file already and force is False, or it cannot be written."""
        write_product(path, self.toml(), force)

    def _figure(self, f: FittedFigure) -> Figure:
        """low and high: one standard deviation to either side."""
        name = printable(Path(self.path).name)
        source = f"calibrated on {name}: {f.rows} of {self.fitted_before.rows} rows speak for it, within {f.deviation:.0%}"
        low, high = f.new * (1 - min(f.deviation, 0.9)), f.new * (1 + f.deviation)
        ends = _short(low, f.new), _short(high, f.new)
        return Figure(f.key, f.new, f.unit, source, GRADE, *ends, note=f"the product says {f.old:g}")


def _short(bound: float, value: float) -> float:
    """A bound with few digits that does not cross the value."""
    rounded = float(f"{bound:.4g}")
    return min(rounded, value) if bound <= value else max(rounded, value)
