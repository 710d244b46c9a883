"""Charts as SVG text: elements whose text and attributes are escaped, scales, axes. Colours are classes of the CSS."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

FAR = 1e6  # no coordinate is beyond: figures of a record may be anything


def el(name: str, *children: object, **attributes: object) -> Markup:
    """<name attributes>children</name>. `class_` is class, `_` in names is `-`; None leaves an attribute out."""
    given = ((k.rstrip("_").replace("_", "-"), v) for k, v in attributes.items() if v is not None)
    head = Markup("").join(Markup(' {}="{}"').format(Markup(k), _word(v)) for k, v in given)
    inner = Markup("").join(escape(c) for c in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), head, inner)


def _word(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)


def number(x: float) -> str:
    """A coordinate with two digits after the point; what is not finite is the edge of all pictures."""
    if math.isnan(x):
        return "0"
    return f"{max(-FAR, min(x, FAR)):.2f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class Scale:
    """From figures low to high to pixels first to last, evenly or by logarithm."""

    low: float
    high: float
    first: float
    last: float
    log: bool = False

    def __call__(self, x: float) -> float:
        low, high, at = (math.log10(max(v, 1e-300)) if self.log else v for v in (self.low, self.high, x))
        return self.first + (self.last - self.first) * ((at - low) / (high - low) if high != low else 0.5)

    def ticks(self, most: int = 7) -> list[float]:
        """Round figures between both ends."""
        return _decades(self.low, self.high, most) if self.log else _steps(self.low, self.high, most)


def _steps(low: float, high: float, most: int) -> list[float]:
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low] if math.isfinite(low) else []
    raw = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(m * unit for m in (1, 2, 5, 10) if m * unit >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def _decades(low: float, high: float, most: int) -> list[float]:
    a, b = math.log10(low), math.log10(high)
    every = max(1, math.ceil((b - a) / most))
    whole = [k for k in range(math.ceil(a - 1e-9), math.floor(b + 1e-9) + 1) if k % every == 0]
    if len(whole) >= 3 or every > 1:
        return [10.0**k for k in whole]
    between = (m * 10.0**k for k in range(math.floor(a), math.ceil(b) + 1) for m in (1, 2, 5))
    found = [x for x in between if low <= x <= high]
    return found if len(found) >= 3 else _steps(low, high, most)


def spread(values: Iterable[float], log: bool = False, room: float = 0.06) -> tuple[float, float]:
    """Ends for a scale that holds the finite of these figures (of a logarithmic one, those above 0), with some room."""
    found = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
    if not found:
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = min(found), max(found)
    if log:
        factor = max((high / low) ** room, 1.3) if high / low < 1e300 else 10.0
        return low / factor, high * factor
    gap = (high - low) * room or abs(high) * 0.1 or 1.0
    return low - gap, high + gap


def short(x: float) -> str:
    """A figure at an axis: 0.01, 250, 2k, 3M, 1e-06."""
    if not 1e3 <= abs(x) < 1e18:
        return f"{x:.3g}"
    factor, letter = next(
        (f, n) for f, n in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")) if abs(x) >= f
    )
    return f"{x / factor:.3g}{letter}"


def power(exponent: int) -> str:
    """2 to the exponent, as it is written."""
    return "2" + str(exponent).translate(
        str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
    )


@dataclass(frozen=True)
class Frame:
    """The space of a chart, with its axes."""

    width: int = 640
    height: int = 340
    left: int = 62
    right: int = 18
    top: int = 16
    bottom: int = 46

    def x(self, low: float, high: float, log: bool = False) -> Scale:
        return Scale(low, high, self.left, self.width - self.right, log)

    def y(self, low: float, high: float, log: bool = False) -> Scale:
        return Scale(low, high, self.height - self.bottom, self.top, log)

    def axes(
        self,
        x: Scale,
        y: Scale,
        x_title: str,
        y_title: str,
        x_ticks: Sequence[tuple[float, str]] | None = None,
        y_unit: float = 1.0,
    ) -> Markup:
        """Grid lines, figures, titles. x_ticks: where and what, in place of the scale's own; y_unit: a factor of figures."""
        bottom, right = self.height - self.bottom, self.width - self.right
        parts = []
        for v in y.ticks(6):
            parts.append(el("line", class_="grid", x1=self.left, x2=right, y1=y(v), y2=y(v)))
            parts.append(
                el("text", short(v * y_unit), class_="tick", x=self.left - 8, y=y(v) + 4, text_anchor="end")
            )
        for at, word in x_ticks if x_ticks is not None else [(v, short(v)) for v in x.ticks(8)]:
            parts.append(el("line", class_="grid", x1=x(at), x2=x(at), y1=self.top, y2=bottom))
            parts.append(el("text", word, class_="tick", x=x(at), y=bottom + 17, text_anchor="middle"))
        parts.append(el("line", class_="axis", x1=self.left, x2=right, y1=bottom, y2=bottom))
        middle = (self.left + right) / 2
        parts.append(el("text", x_title, class_="title", x=middle, y=self.height - 6, text_anchor="middle"))
        turn = f"translate(14 {number((self.top + bottom) / 2)}) rotate(-90)"
        parts.append(el("text", y_title, class_="title", transform=turn, text_anchor="middle"))
        return Markup("").join(parts)

    def svg(self, label: str, *parts: object) -> Markup:
        """The picture. label: what it shows, for those who do not see it."""
        box = f"0 0 {self.width} {self.height}"
        style = f"max-width:{self.width}px"
        return el("svg", *parts, class_="chart", viewBox=box, role="img", aria_label=label, style=style)


def line(points: Iterable[tuple[float, float]], **attributes: object) -> Markup:
    """A line through points in pixels."""
    path = " ".join(f"{number(a)},{number(b)}" for a, b in points)
    return el("polyline", points=path, fill="none", **attributes)


def steps(points: Sequence[tuple[float, float]], floor: float) -> str:
    """Path of an area below stairs: each level holds until the next point."""
    if not points:
        return ""
    path = [f"M{number(points[0][0])},{number(floor)}"]
    for a, b in points:
        path.append(f"H{number(a)}V{number(b)}")
    return "".join([*path, f"V{number(floor)}Z"])


def mark(kind: int, x: float, y: float, size: float = 5.0, **attributes: object) -> Markup:
    """One of four shapes, so that colour alone never tells points apart."""
    s = size
    shapes = (
        None,
        ((-s, -s), (s, -s), (s, s), (-s, s)),
        ((0, -s * 1.2), (s * 1.1, s), (-s * 1.1, s)),
        ((0, -s * 1.3), (s * 1.3, 0), (0, s * 1.3), (-s * 1.3, 0)),
    )
    corners = shapes[kind % 4]
    if corners is None:
        return el("circle", cx=x, cy=y, r=s, **attributes)
    return el(
        "polygon", points=" ".join(f"{number(x + a)},{number(y + b)}" for a, b in corners), **attributes
    )
