"""One figure of a product: a value with its unit, where it comes from and how far it can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

from .spec import ASSUMED_GRADE

Value = int | float | str | tuple[int, ...] | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A value of a product, in `unit`.

    grade: "A" vendor document that names the product, "B" vendor measurement or two sources, "C" third party,
    "D" assumed: nobody published it. low, high: the range of published values, or None.
    overridden: the user set it.
    """

    key: str
    value: Value
    unit: str
    source: str
    grade: str
    low: float | None = None
    high: float | None = None
    note: str | None = None
    overridden: bool = False

    @property
    def assumed(self) -> bool:
        """Whether nobody published this figure for this product."""
        return self.grade == ASSUMED_GRADE

    def to_dict(self) -> dict[str, object]:
        """Plain JSON data without the key; what is absent is left out."""
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        data: dict[str, object] = {
            "value": value,
            "unit": self.unit,
            "source": self.source,
            "grade": self.grade,
        }
        rest = {"low": self.low, "high": self.high, "note": self.note, "overridden": self.overridden or None}
        return data | {name: entry for name, entry in rest.items() if entry is not None}
