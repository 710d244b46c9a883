"""Time against effective bits: a labelled point for each computation of a study, and a line through the best of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from ....kernels.study.results import ModeRow
from ...facts import texts
from ...facts.charts import Scale, spread
from ...facts.study.labels import LabelBox, labels
from ...facts.study.points import StudyPoint, families, front, study_points
from ..svg import ChartFrame, el, line, spot
from .legend import with_legend

LETTER, HEIGHT, REACH = (
    7.6,
    16.0,
    5.5,
)  # pixels: letters as they are on a narrow screen, where they are largest
NOTE = "Bits against the exact inputs. The line joins what nothing else beats in time and bits."


def bits_chart(rows: Iterable[ModeRow], name: str) -> Markup:
    """Right and up is slow and exact; empty where no row has a time and an error."""
    points = study_points(rows, name)
    if not points:
        return Markup("")
    frame = ChartFrame(width=600, height=330 + 10 * len(points), right=30)
    x = frame.x(*spread([p.time_us for p in points], log=True, room=0.25), log=True)
    y = frame.y(*_ends([p.bits for p in points]))
    best = [(x(p.time_us), y(p.bits)) for p in front(points)]
    parts = [frame.axes(x, y, "us", "effective bits"), line(best, class_="s7 thick pale")]
    parts += [_label(p, box, x, y) for p, box in zip(points, _places(points, frame, x, y, best), strict=True)]
    parts += [spot(0, x(p.time_us), y(p.bits), REACH, p.tip, f"f{p.colour}") for p in points]
    chart = frame.svg(f"Effective bits of {texts.clean(name, 40)} against time", *parts)
    return with_legend(chart, list(families(points).items()), NOTE)


def _ends(bits: Sequence[float]) -> tuple[float, float]:
    low, high = spread(bits, room=0.1)
    return min(0.0, low) if low < 4 else low, high


def _places(
    points: Sequence[StudyPoint], frame: ChartFrame, x: Scale, y: Scale, best: Sequence[tuple[float, float]]
) -> list[LabelBox | None]:
    inside = LabelBox(frame.left, frame.top, frame.width - frame.left - frame.right, y(y.low) - frame.top)
    at = [(x(p.time_us), y(p.bits)) for p in points]
    return labels(at, [(LETTER * len(p.label), HEIGHT) for p in points], inside, REACH, best)


def _label(p: StudyPoint, box: LabelBox | None, x: Scale, y: Scale) -> Markup:
    """The name, with a line to it where it stands apart."""
    if box is None:
        return Markup("")
    at = x(p.time_us), y(p.bits)
    side = "start" if box.left > at[0] else "end" if box.right < at[0] else "middle"
    across = {"start": box.left, "end": box.right, "middle": box.middle[0]}[side]
    text = el("text", p.label, class_="tick", x=across, y=box.middle[1] + 4, text_anchor=side)
    end = box.leader(*at)
    lead = end and el("line", class_=f"s{p.colour} pale", x1=at[0], y1=at[1], x2=end[0], y2=end[1])
    return Markup("").join([lead or "", text])
