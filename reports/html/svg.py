"""Charts as SVG text: elements whose text and attributes are escaped, axes. Colours are classes of the CSS."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from ..facts.charts import Scale, short

FAR = 1e6  # no coordinate is beyond: figures of a record may be anything


def el(name: str, *children: object, **attributes: object) -> Markup:
    """<name attributes>children</name>. `class_` is class, `_` in names is `-`; None leaves an attribute out."""
    given = ((k.rstrip("_").replace("_", "-"), v) for k, v in attributes.items() if v is not None)
    head = Markup("").join(Markup(' {}="{}"').format(Markup(k), _attribute(v)) for k, v in given)
    inner = Markup("").join(escape(c) for c in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), head, inner)


def _attribute(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)


def number(x: float) -> str:
    """A coordinate with two digits after the point; what is not finite is the edge of all pictures."""
    if math.isnan(x):
        return "0"
    return f"{max(-FAR, min(x, FAR)):.2f}".rstrip("0").rstrip(".")


@dataclass(frozen=True)
class ChartFrame:
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
        for at, text in x_ticks if x_ticks is not None else [(v, short(v)) for v in x.ticks(8)]:
            parts.append(el("line", class_="grid", x1=x(at), x2=x(at), y1=self.top, y2=bottom))
            parts.append(el("text", text, class_="tick", x=x(at), y=bottom + 17, text_anchor="middle"))
        parts.append(el("line", class_="axis", x1=self.left, x2=right, y1=bottom, y2=bottom))
        middle = (self.left + right) / 2
        parts.append(el("text", x_title, class_="title", x=middle, y=self.height - 6, text_anchor="middle"))
        upright = f"translate(14 {number((self.top + bottom) / 2)}) rotate(-90)"
        parts.append(el("text", y_title, class_="title", transform=upright, text_anchor="middle"))
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


def spot(kind: int, x: float, y: float, size: float, tip: str, class_: str) -> Markup:
    """A mark that the keyboard reaches and that says what it is."""
    return mark(kind, x, y, size, class_=class_, data_tip=tip, tabindex=0, role="img", aria_label=tip)
